//! Policies for the points on which protocols contradict each other. The caller decides; each
//! default states its reason.

use crate::dtype::Extended;

/// The accepted spellings of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The grammar of the standard, which NumPy writes.
    #[default]
    Strict,
    /// Also spellings that NumPy was measured to read. Accepts everything that [`Mode::Strict`]
    /// accepts, with the same meaning.
    Numpy,
}

/// Meaning of `data[1]` in `__sycl_usm_array_interface__`.
///
/// The documents and `usm_ndarray` use true = read-only. `dpctl.memory` objects export `(ptr,
/// True)` for writable memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyclFlag {
    /// True = read-only, except for a dictionary in the form of `dpctl.memory`: flag true, no
    /// `offset` key, `strides` None, one dimension of `|u1`, and a `syclobj` that is or may be a
    /// queue. Such memory is writable.
    #[default]
    Auto,
    /// True = read-only, always.
    ReadOnly,
    /// True = writable, always. For a host that knows the producer to be a `dpctl.memory` object.
    Writable,
}

/// Unit of `strides` and `offset` in `__sycl_usm_array_interface__`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyclUnits {
    /// Elements, which dpctl writes and reads.
    #[default]
    Elements,
    /// Bytes, as numba-dpex's documents say. No known producer does so.
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
    /// Refused: an address has no reference count.
    #[default]
    Refuse,
    /// Described, for tools that read layouts and never the memory.
    Describe,
}

/// How a dictionary without `data` is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum MissingData {
    /// As the protocol says: `__cuda_array_interface__` requires `data`; for the other two the
    /// producer's buffer is the data.
    #[default]
    Protocol,
    /// Accepted: the caller needs only the layout.
    Allow,
}

/// The policies of one decode. `Policy::default()` is strict.
///
/// Name the fields that differ and write `..Policy::default()` behind them. A further contradiction
/// between protocols adds a field in a minor version. So the structure is not `#[non_exhaustive]`,
/// which would forbid this form.
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
    /// The producer's statement of its element type.
    pub hint: Option<Extended>,
    /// Depth and number of values.
    pub limits: Limits,
}

/// Limits of a decode. [`crate::value::Reader`] enforces them for every source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Limits {
    /// Maximum nesting; at most 64.
    pub depth: usize,
    /// Maximum number of values.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 32, values: 65_536 }
    }
}
