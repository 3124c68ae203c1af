//! Exchange of memory with other packages: one file a protocol, and what they share.

pub(crate) mod adoption;
pub(crate) mod array_method;
pub(crate) mod arrow;
pub(crate) mod bounds;
pub(crate) mod buffer;
pub(crate) mod bytes_view;
pub(crate) mod capsule;
pub(crate) mod cuda;
pub(crate) mod dictionary;
pub(crate) mod dlpack;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod literal;
pub(crate) mod ndarray;
pub(crate) mod pep3118;
pub(crate) mod sycl;
pub(crate) mod sycl_queues;
