//! Named policies: where protocols contradict each other, the caller decides, and the default says
//! why.

use crate::dtype::Extended;

/// Which spellings of types are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The grammar: what the standard says and NumPy writes.
    #[default]
    Strict,
    /// Also what NumPy was measured to read. Everything that [`Mode::Strict`] accepts is accepted,
    /// with the same meaning.
    Numpy,
}

/// Meaning of `data[1]` in `__sycl_usm_array_interface__`.
///
/// The documents and `usm_ndarray` say true = read-only; `dpctl.memory` objects export
/// `(ptr, True)` for writable memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyclFlag {
    /// True = read-only, except for a dictionary as `dpctl.memory` writes it: flag true, no
    /// `offset` key, `strides` None, one dimension of `|u1`, and a `syclobj` that is, or may be, a
    /// queue. Such memory is writable.
    #[default]
    Auto,
    /// True = read-only, always.
    ReadOnly,
    /// True = writable, always: the host knows that the producer is a `dpctl.memory` object.
    Writable,
}

/// Unit of `strides` and `offset` in `__sycl_usm_array_interface__`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyclUnits {
    /// Elements: what dpctl writes and reads.
    #[default]
    Elements,
    /// Bytes: what the documents of numba-dpex say. No producer was seen that does so.
    Bytes,
}

/// Whether a null pointer is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Null {
    /// Only when the array has no bytes.
    #[default]
    ZeroSize,
    /// Never.
    Refuse,
}

/// Whether Python object pointers are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Objects {
    /// Refused: an address says nothing about reference counts.
    #[default]
    Refuse,
    /// Described, for tools that look at layouts and never at the memory.
    Describe,
}

/// How a dictionary without `data` is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum MissingData {
    /// As the protocol says: `__cuda_array_interface__` requires `data`; for the other two the
    /// producer's buffer stands in.
    #[default]
    Protocol,
    /// The layout alone is wanted.
    Allow,
}

/// The policies of one decode. `Policy::default()` is strict.
///
/// Name what differs and write `..Policy::default()` behind it: protocols that contradict each
/// other in one more place bring one more field, in a minor version. That is why the structure is
/// not `#[non_exhaustive]`, which would forbid this very form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Policy {
    /// Spellings of types.
    pub mode: Mode,
    /// Polarity of the SYCL read-only flag.
    pub sycl_flag: SyclFlag,
    /// Unit of SYCL strides and offset.
    pub sycl_units: SyclUnits,
    /// Null pointers.
    pub null: Null,
    /// Object pointers.
    pub objects: Objects,
    /// Dictionaries without `data`.
    pub missing_data: MissingData,
    /// What the producer says its element type is.
    pub hint: Option<Extended>,
    /// Depth and number of values.
    pub limits: Limits,
}

/// Budgets of a decode, enforced by [`crate::value::Reader`] whatever the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Limits {
    /// Levels of nesting; at most 64.
    pub depth: usize,
    /// Values in total.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 32, values: 65_536 }
    }
}
