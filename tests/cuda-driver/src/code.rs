//! The values of `CUresult` that the driver returns.

/// A result of the interface.
pub(crate) type Code = i32;
/// The result of a call, before it becomes a code.
pub(crate) type Answer<T = ()> = Result<T, Code>;

pub(crate) const SUCCESS: Code = 0;
pub(crate) const INVALID_VALUE: Code = 1;
pub(crate) const OUT_OF_MEMORY: Code = 2;
pub(crate) const NOT_INITIALIZED: Code = 3;
pub(crate) const INVALID_DEVICE: Code = 101;
pub(crate) const INVALID_IMAGE: Code = 200;
pub(crate) const INVALID_CONTEXT: Code = 201;
pub(crate) const PEER_ACCESS_UNSUPPORTED: Code = 217;
pub(crate) const INVALID_PTX: Code = 218;
pub(crate) const INVALID_HANDLE: Code = 400;
pub(crate) const NOT_FOUND: Code = 500;
pub(crate) const NOT_READY: Code = 600;
pub(crate) const ILLEGAL_ADDRESS: Code = 700;
pub(crate) const LAUNCH_OUT_OF_RESOURCES: Code = 701;
pub(crate) const LAUNCH_TIMEOUT: Code = 702;
pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
pub(crate) const PEER_ACCESS_NOT_ENABLED: Code = 705;
pub(crate) const CONTEXT_IS_DESTROYED: Code = 709;
pub(crate) const MISALIGNED_ADDRESS: Code = 716;
pub(crate) const LAUNCH_FAILED: Code = 719;
pub(crate) const NOT_SUPPORTED: Code = 801;
