//! The portable pointer query: an interval map of live allocations.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::backend::PointerInfo;
use crate::sync::Mutex;

/// Live allocations by base address. Answers for any pointer into one of them; one past the end
/// belongs to none.
///
/// Two levels: the first bases of leaves of up to 64 blocks, and the leaves. Both searches run over
/// contiguous addresses, which at ten thousand blocks takes a third of the time of a general
/// ordered map.
#[derive(Debug, Default)]
pub struct Registry {
    blocks: Mutex<Blocks>,
}

const LEAF: usize = 64;

#[derive(Debug)]
struct Leaf {
    bases: [usize; LEAF],
    infos: [PointerInfo; LEAF],
    serials: [u64; LEAF],
    len: usize,
}

/// The map itself. Each entry has a serial number, so its owner removes that entry and no later one
/// at the same address.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// The youngest block, with its serial number. Many blocks are freed before the next
    /// allocation, and then no leaf changes. A search looks here first, because all other blocks
    /// are older.
    youngest: Option<(PointerInfo, u64)>,
    older_blocks: OlderBlocks,
}

/// All blocks but the youngest.
#[derive(Debug)]
struct OlderBlocks {
    /// Base of the first block of each leaf except the first, which has all lower addresses.
    firsts: Vec<usize>,
    /// One leaf more than `firsts`, or none before the first block. Only a single leaf may be
    /// empty. Boxed, because a split moves the later ones.
    #[allow(clippy::vec_box)]
    leaves: Vec<Box<Leaf>>,
    /// The last leaf that became empty, kept for a program whose number of blocks moves up and down
    /// around a leaf boundary.
    spare: Option<Box<Leaf>>,
    len: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self::new()
    }
}

impl Blocks {
    pub(crate) const fn new() -> Self {
        Self { youngest: None, older_blocks: OlderBlocks::new() }
    }

    /// Adds a block and removes older entries that begin inside it, because the runtime has reused
    /// their memory.
    #[inline]
    pub(crate) fn insert(&mut self, info: PointerInfo, serial: u64) {
        if self.youngest.is_some() {
            self.sort();
        }
        self.youngest = Some((info, serial));
    }

    /// Removes the entry that starts at `base` if it has this serial number.
    #[inline]
    pub(crate) fn remove_own(&mut self, base: usize, serial: u64) {
        match self.youngest {
            Some((_, youngest)) if youngest == serial => self.youngest = None,
            _ => self.older_blocks.remove_own(base, serial),
        }
    }

    #[inline]
    pub(crate) fn find(&self, address: usize) -> Option<PointerInfo> {
        match self.youngest {
            Some((info, _)) if info.contains(address) => Some(info),
            _ => self.older_blocks.find(address),
        }
    }

    /// At least the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.older_blocks.len + usize::from(self.youngest.is_some())
    }

    /// Calls `visit` for each block, by address.
    pub(crate) fn for_each(&mut self, visit: impl FnMut(&PointerInfo)) {
        let leaves = &self.sort().leaves;
        leaves.iter().flat_map(|leaf| &leaf.infos[..leaf.len]).for_each(visit);
    }

    /// Moves the youngest entry to its place among the others.
    fn sort(&mut self) -> &mut OlderBlocks {
        if let Some((info, serial)) = self.youngest.take() {
            self.older_blocks.insert(info, serial);
        }
        &mut self.older_blocks
    }
}

impl Leaf {
    fn empty() -> Box<Self> {
        let (bases, infos, serials) = ([0; LEAF], [PointerInfo::UNKNOWN; LEAF], [0; LEAF]);
        Box::new(Self { bases, infos, serials, len: 0 })
    }

    fn bases(&self) -> &[usize] {
        &self.bases[..self.len]
    }

    fn insert(&mut self, index: usize, info: PointerInfo, serial: u64) {
        if index < self.len {
            self.bases.copy_within(index..self.len, index + 1);
            self.infos.copy_within(index..self.len, index + 1);
            self.serials.copy_within(index..self.len, index + 1);
        }
        (self.bases[index], self.infos[index], self.serials[index]) = (info.base, info, serial);
        self.len += 1;
    }

    fn remove(&mut self, index: usize) -> PointerInfo {
        let info = self.infos[index];
        if index + 1 < self.len {
            self.bases.copy_within(index + 1..self.len, index);
            self.infos.copy_within(index + 1..self.len, index);
            self.serials.copy_within(index + 1..self.len, index);
        }
        self.len -= 1;
        info
    }

    /// Moves the upper half to `upper`, which is empty.
    fn split(&mut self, upper: &mut Self) {
        let half = self.len / 2;
        upper.len = self.len - half;
        upper.bases[..upper.len].copy_from_slice(&self.bases[half..self.len]);
        upper.infos[..upper.len].copy_from_slice(&self.infos[half..self.len]);
        upper.serials[..upper.len].copy_from_slice(&self.serials[half..self.len]);
        self.len = half;
    }
}

impl OlderBlocks {
    const fn new() -> Self {
        Self { firsts: Vec::new(), leaves: Vec::new(), spare: None, len: 0 }
    }

    /// Index of the only leaf that may hold `address`: the last one that does not start above it.
    fn leaf_index(&self, address: usize) -> usize {
        self.firsts.partition_point(|first| *first <= address)
    }

    fn insert(&mut self, info: PointerInfo, serial: u64) {
        if self.leaves.is_empty() {
            self.leaves.push(Leaf::empty());
        }
        let mut index = self.leaf_index(info.base);
        if self.leaves[index].len == LEAF {
            let mut upper = self.spare.take().unwrap_or_else(Leaf::empty);
            self.leaves[index].split(&mut upper);
            self.firsts.insert(index, upper.bases[0]);
            self.leaves.insert(index + 1, upper);
            index += usize::from(info.base >= self.firsts[index]);
        }
        let leaf = &mut self.leaves[index];
        let place = leaf.bases().partition_point(|base| *base < info.base);
        if leaf.bases().get(place) == Some(&info.base) {
            (leaf.infos[place], leaf.serials[place]) = (info, serial);
        } else {
            leaf.insert(place, info, serial);
            self.len += 1;
        }
        self.evict(index, place + 1, info.base.saturating_add(info.size));
    }

    /// Removes the entries from this place on that have a base below `end`.
    fn evict(&mut self, mut index: usize, mut place: usize, end: usize) {
        loop {
            if place == self.leaves[index].len {
                if self.firsts.get(index).is_none_or(|first| *first >= end) {
                    return;
                }
                (index, place) = (index + 1, 0);
            }
            if self.leaves[index].bases[place] >= end {
                return;
            }
            let last_of_leaf = self.leaves[index].len == 1;
            self.remove_at(index, place);
            if last_of_leaf {
                // The leaf was removed too. It was not the new block's leaf, so there is an earlier
                // one.
                index -= 1;
                place = self.leaves[index].len;
            }
        }
    }

    /// Removes the entry that starts at `base`, whatever its serial number.
    fn remove(&mut self, base: usize) -> Option<PointerInfo> {
        let (index, place) = self.find_entry(base)?;
        Some(self.remove_at(index, place))
    }

    fn remove_own(&mut self, base: usize, serial: u64) {
        if let Some((index, place)) = self.find_entry(base) {
            if self.leaves[index].serials[place] == serial {
                self.remove_at(index, place);
            }
        }
    }

    fn find_entry(&self, base: usize) -> Option<(usize, usize)> {
        let index = self.leaf_index(base);
        let bases = self.leaves.get(index)?.bases();
        let place = bases.partition_point(|other| *other < base);
        (bases.get(place) == Some(&base)).then_some((index, place))
    }

    fn remove_at(&mut self, index: usize, place: usize) -> PointerInfo {
        let leaf = &mut self.leaves[index];
        let info = leaf.remove(place);
        self.len -= 1;
        if leaf.len == 0 && !self.firsts.is_empty() {
            self.spare = Some(self.leaves.remove(index));
            // The previous leaf takes over its addresses, or the next one if it was the first.
            self.firsts.remove(index.saturating_sub(1));
        } else if place == 0 && index > 0 {
            self.firsts[index - 1] = leaf.bases[0];
        }
        info
    }

    fn find(&self, address: usize) -> Option<PointerInfo> {
        let leaf = self.leaves.get(self.leaf_index(address))?;
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

    /// Adds the block that `info` describes. Removes older blocks that begin inside it.
    pub fn insert(&self, info: PointerInfo) {
        self.blocks.lock().insert(info, 0);
    }

    /// Removes the block that starts at `base` and returns it.
    pub fn remove(&self, base: usize) -> Option<PointerInfo> {
        self.blocks.lock().sort().remove(base)
    }

    /// The live block that contains `address`.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<PointerInfo> {
        self.blocks.lock().find(address)
    }

    /// Number of live blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.lock().sort().len
    }

    /// Whether there is no live block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(base: usize, size: usize) -> PointerInfo {
        PointerInfo { base, size, ..PointerInfo::UNKNOWN }
    }

    #[test]
    fn an_owner_takes_out_its_own_entry_and_no_later_one() {
        let mut blocks = Blocks::new();
        blocks.insert(info(4096, 10), 1);
        blocks.insert(info(8192, 10), 2);
        // The runtime reused the first address before its old owner removed the entry.
        blocks.insert(info(4096, 20), 3);
        blocks.remove_own(4096, 1);
        assert_eq!(blocks.find(4110).map(|found| found.size), Some(20));
        blocks.insert(info(0, 1), 4);
        blocks.remove_own(4096, 1);
        assert_eq!(blocks.find(4110).map(|found| found.size), Some(20));
        blocks.remove_own(4096, 3);
        blocks.remove_own(8192, 2);
        assert_eq!((blocks.find(4096), blocks.find(8192)), (None, None));
        assert!(blocks.find(0).is_some());
    }
}
