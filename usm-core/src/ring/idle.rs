//! Pinned blocks that no copy uses now.

use alloc::vec::Vec;

use crate::backend::{Backend, Block};
use crate::sync::sleeping::Mutex;

/// The blocks of a context that no copy uses now.
pub(crate) struct Ring<B: Backend>(pub(super) Mutex<Vec<Idle<B>>>);

/// A block with the last copies that use it.
pub(crate) struct Idle<B: Backend> {
    pub(crate) block: Block,
    pub(crate) events: Vec<B::Event>,
}

impl<B: Backend> Ring<B> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Takes all idle blocks out.
    pub(crate) fn take_all(&self) -> Vec<Idle<B>> {
        core::mem::take(&mut *self.0.lock())
    }
}
