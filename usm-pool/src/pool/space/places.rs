//! Which block contains an address. Marks say where to begin, and cost one write for each block
//! that is given out; neighbours lead from there.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::table::NONE;
use super::{Block, Segment, Space, State, Travel};

/// Bytes with one mark.
const PART: u64 = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Places {
    /// The numbers of segments by address.
    segments: BTreeMap<u64, u32>,
    /// By segment, for each part of it a block that began there when it was given out. It may be
    /// another block's descriptor by now.
    marks: Vec<(u64, Vec<u32>)>,
}

impl Places {
    pub(super) fn add(&mut self, index: u32, address: u64, bytes: u64) {
        self.segments.insert(address, index);
        let index = index as usize;
        if index >= self.marks.len() {
            self.marks.resize(index + 1, (0, Vec::new()));
        }
        self.marks[index] = (address, alloc::vec![NONE; bytes.div_ceil(PART) as usize]);
    }

    pub(super) fn remove(&mut self, index: u32, address: u64) {
        self.segments.remove(&address);
        self.marks[index as usize] = (0, Vec::new());
    }

    /// Remembers where a block begins.
    pub(super) fn mark(&mut self, index: u32, address: u64, slot: u32) {
        if let Some((start, marks)) = self.marks.get_mut(index as usize) {
            if let Some(mark) = marks.get_mut(((address - *start) / PART) as usize) {
                *mark = slot;
            }
        }
    }
}

impl<U: Travel, H> Space<U, H> {
    /// The segment that contains an address, and its number.
    pub(crate) fn segment_at(&self, address: u64) -> Option<(u32, Segment)> {
        let (_, &index) = self.places.segments.range(..=address).next_back()?;
        let segment = (*self.segments.get(index as usize)?)?;
        (address - segment.address < segment.bytes).then_some((index, segment))
    }

    /// The block that contains an address of a segment.
    pub(super) fn block_at(&self, index: u32, address: u64) -> Option<&Block> {
        let segment = (*self.segments.get(index as usize)?)?;
        let (start, marks) = self.places.marks.get(index as usize)?;
        let part = ((address - start) / PART) as usize;
        let begins_before = |slot: u32| {
            let block = self.block(slot)?;
            let is_of_segment = block.segment.get() == index && block.state() != State::Vacant;
            (is_of_segment && block.address.get() <= address).then_some(block)
        };
        // A block as large as its segment leaves no other mark.
        let first = self.block(segment.first)?;
        if address - first.address.get() < first.size.get() {
            return Some(first);
        }
        let mark = marks.get(..=part)?.iter().rev().find_map(|slot| begins_before(*slot));
        let mut block = mark.unwrap_or(first);
        while address - block.address.get() >= block.size.get() {
            block = self.block(block.after.get())?;
        }
        Some(block)
    }
}
