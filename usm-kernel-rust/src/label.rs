//! Loops and their labels.
//!
//! The IR leaves only the innermost loop. A jump further out sets a variable and leaves the
//! innermost loop, and each loop on the way out is followed by a test of the variable.

use usm_kernel_ir::{Place, Stmt, StmtKind, VarId};

/// An enclosing loop.
pub(crate) struct Loop {
    pub(crate) label: Option<String>,
    /// Number of functions around it: a label is not known inside of a function that is called.
    pub(crate) calls: usize,
    /// Jumps from inside to loops around it.
    pub(crate) exits: Vec<Exit>,
}

/// Jumps to one loop.
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    /// The loop's index among the enclosing ones.
    pub(crate) to: usize,
    pub(crate) jump: Jump,
    /// Whether an item jumps.
    pub(crate) variable: VarId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    Break,
    Continue,
}

impl Jump {
    pub(crate) fn stmt(self, at: Place) -> Stmt {
        Stmt::new(if self == Self::Break { StmtKind::Break } else { StmtKind::Continue }, at)
    }
}
