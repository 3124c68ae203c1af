//! The portable pointer query: an interval map of live allocations.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::backend::PointerInfo;
use crate::sync::Mutex;

/// Live allocations by base address. Answers for any pointer into one of them; one past the end belongs to none.
///
/// Two levels: the first bases of leaves of up to 64 blocks, and the leaves. Both searches run over plain addresses that lie
/// together, which at ten thousand blocks takes a third of the time of a general ordered map.
#[derive(Debug, Default)]
pub struct Registry {
    blocks: Mutex<Blocks>,
}

const LEAF: usize = 64;

#[derive(Debug)]
struct Leaf {
    bases: [usize; LEAF],
    infos: [PointerInfo; LEAF],
    len: usize,
}

#[derive(Debug)]
pub(crate) struct Blocks {
    /// Base of the first block of each leaf.
    firsts: Vec<usize>,
    /// As many leaves, none of them empty; boxed, because a split moves those behind it.
    #[allow(clippy::vec_box)]
    leaves: Vec<Box<Leaf>>,
    /// The last leaf that became empty: a program that allocates and frees one block at a time needs one all the time.
    spare: Option<Box<Leaf>>,
    len: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self::new()
    }
}

impl Leaf {
    fn empty() -> Box<Self> {
        Box::new(Self { bases: [0; LEAF], infos: [PointerInfo::UNKNOWN; LEAF], len: 0 })
    }

    fn bases(&self) -> &[usize] {
        &self.bases[..self.len]
    }

    fn insert(&mut self, index: usize, info: PointerInfo) {
        self.bases.copy_within(index..self.len, index + 1);
        self.infos.copy_within(index..self.len, index + 1);
        (self.bases[index], self.infos[index]) = (info.base, info);
        self.len += 1;
    }

    fn remove(&mut self, index: usize) -> PointerInfo {
        let info = self.infos[index];
        self.bases.copy_within(index + 1..self.len, index);
        self.infos.copy_within(index + 1..self.len, index);
        self.len -= 1;
        info
    }

    /// Moves the upper half to `upper`, which is empty.
    fn split(&mut self, upper: &mut Self) {
        let half = self.len / 2;
        upper.len = self.len - half;
        upper.bases[..upper.len].copy_from_slice(&self.bases[half..self.len]);
        upper.infos[..upper.len].copy_from_slice(&self.infos[half..self.len]);
        self.len = half;
    }
}

impl Blocks {
    pub(crate) const fn new() -> Self {
        Self { firsts: Vec::new(), leaves: Vec::new(), spare: None, len: 0 }
    }

    /// The leaf that holds `address` if any does: the last one that does not start above it.
    fn leaf_of(&self, address: usize) -> Option<usize> {
        self.firsts.partition_point(|first| *first <= address).checked_sub(1)
    }

    pub(crate) fn insert(&mut self, info: PointerInfo) {
        // A base below all leaves goes to the first one.
        let mut index = self.leaf_of(info.base).unwrap_or(0);
        if self.leaves.is_empty() {
            let leaf = self.empty_leaf();
            self.firsts.push(info.base);
            self.leaves.push(leaf);
        }
        if self.leaves[index].len == LEAF {
            let mut upper = self.empty_leaf();
            self.leaves[index].split(&mut upper);
            self.firsts.insert(index + 1, upper.bases[0]);
            self.leaves.insert(index + 1, upper);
            index += usize::from(info.base >= self.firsts[index + 1]);
        }
        let leaf = &mut self.leaves[index];
        match leaf.bases().binary_search(&info.base) {
            // The runtime has given out the address again, so the old block cannot be live.
            Ok(place) => leaf.infos[place] = info,
            Err(place) => {
                leaf.insert(place, info);
                self.len += 1;
            }
        }
        self.firsts[index] = self.leaves[index].bases[0];
    }

    fn empty_leaf(&mut self) -> Box<Leaf> {
        self.spare.take().unwrap_or_else(Leaf::empty)
    }

    pub(crate) fn remove(&mut self, base: usize) -> Option<PointerInfo> {
        let index = self.leaf_of(base)?;
        let leaf = &mut self.leaves[index];
        let place = leaf.bases().binary_search(&base).ok()?;
        let info = leaf.remove(place);
        self.len -= 1;
        if leaf.len == 0 {
            self.spare = Some(self.leaves.remove(index));
            self.firsts.remove(index);
        } else {
            self.firsts[index] = leaf.bases[0];
        }
        Some(info)
    }

    pub(crate) fn find(&self, address: usize) -> Option<PointerInfo> {
        let leaf = &self.leaves[self.leaf_of(address)?];
        let place = leaf.bases().partition_point(|base| *base <= address).checked_sub(1)?;
        let info = &leaf.infos[place];
        info.contains(address).then_some(*info)
    }
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub const fn new() -> Self {
        Self { blocks: Mutex::new(Blocks::new()) }
    }

    /// Adds the block that `info` describes. A block with the same base replaces the old one.
    pub fn insert(&self, info: PointerInfo) {
        self.blocks.lock().insert(info);
    }

    /// Removes the block that starts at `base` and gives it back.
    pub fn remove(&self, base: usize) -> Option<PointerInfo> {
        self.blocks.lock().remove(base)
    }

    /// The live block that contains `address`.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<PointerInfo> {
        self.blocks.lock().find(address)
    }

    /// Number of live blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.lock().len
    }

    /// Whether no block is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
