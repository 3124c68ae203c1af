//! The portable pointer query: an interval map of live allocations.

use alloc::collections::BTreeMap;

use crate::backend::PointerInfo;
use crate::sync::Mutex;

/// Live allocations by base address. Answers for any pointer into one of them; one past the end belongs to none.
#[derive(Debug, Default)]
pub struct Registry {
    blocks: Mutex<BTreeMap<usize, PointerInfo>>,
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub const fn new() -> Self {
        Self { blocks: Mutex::new(BTreeMap::new()) }
    }

    /// Adds the block that `info` describes. A block with the same base replaces the old one: the runtime has given
    /// out the address again, so the old block cannot be live.
    pub fn insert(&self, info: PointerInfo) {
        self.blocks.lock().insert(info.base, info);
    }

    /// Removes the block that starts at `base` and gives it back.
    pub fn remove(&self, base: usize) -> Option<PointerInfo> {
        self.blocks.lock().remove(&base)
    }

    /// The live block that contains `address`.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<PointerInfo> {
        let blocks = self.blocks.lock();
        let (_, info) = blocks.range(..=address).next_back()?;
        info.contains(address).then_some(*info)
    }

    /// Number of live blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.lock().len()
    }

    /// Whether no block is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
