//! The meaning of names.

use usm_kernel_ir::{ArrayId, Literal, ValueId, VarId};

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Array(ArrayId),
    /// An array that a function got as `&[T]`.
    ReadOnly(ArrayId),
    Value(ValueId),
    Variable {
        id: VarId,
        mutable: bool,
    },
    Constant(Literal),
    /// Position in [`Reader::tuples`].
    Tuple(usize),
    /// Position in [`Reader::views`].
    View(usize),
    /// Position in [`Module::tables`].
    Table(usize),
}

/// An inlined function, and the places of its results.
pub(crate) struct InlinedCall {
    pub(crate) name: String,
    pub(crate) results: Vec<VarId>,
}
