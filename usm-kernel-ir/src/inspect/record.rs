//! Which items accessed an element, in a word or three.

use alloc::vec;
use alloc::vec::Vec;

use crate::interpret::Deed;

/// Owners from this number on do not fit a word.
pub(super) const OWNERS: u64 = (1 << 29) - 2;
/// More than one owner.
const MANY: u32 = (1 << 29) - 1;

/// Who accessed an element: one owner, counted from 1, or many, above a bit for each kind of
/// access.
#[derive(Clone, Copy, Default)]
struct Word(u32);

impl Word {
    /// Records an access of an owner. True if it conflicts with one of another owner.
    fn add(&mut self, owner: u32, deed: Deed) -> bool {
        let kind = match deed {
            Deed::Read => 1,
            Deed::Write => 2,
            Deed::Atomic => 4,
        };
        let (reader, kinds) = (self.0 >> 3, self.0 & 7 | kind);
        let owner = if reader == 0 || reader == owner + 1 { owner + 1 } else { MANY };
        self.0 = owner << 3 | kinds;
        // A write conflicts with any other access, a read with an atomic one. Where two owners have
        // both kinds together, one of each pair is of another owner than the other.
        owner == MANY && (kinds & 2 != 0 || kinds == 5)
    }
}

/// The accesses to an array.
pub(super) struct Record {
    /// By items, in a launch without barriers.
    items: Vec<Word>,
    /// By groups.
    groups: Vec<Word>,
    /// By items of a group between two barriers, and the number of that phase.
    phases: Vec<(Word, u32)>,
}

/// An access.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) item: u32,
    pub(super) group: u32,
    pub(super) phase: u32,
    pub(super) deed: Deed,
}

impl Record {
    /// For an array of a launch without barriers.
    pub(super) fn of_items(len: usize) -> Self {
        Self { items: vec![Word(0); len], groups: Vec::new(), phases: Vec::new() }
    }

    /// For an array that groups with barriers share.
    pub(super) fn of_groups(len: usize) -> Self {
        let phases = vec![(Word(0), 0); len];
        Self { items: Vec::new(), groups: vec![Word(0); len], phases }
    }

    /// For an array of a group.
    pub(super) fn of_group(len: usize) -> Self {
        Self { items: Vec::new(), groups: Vec::new(), phases: vec![(Word(0), 0); len] }
    }

    /// Records an access. True if it conflicts with an earlier one.
    pub(super) fn add(&mut self, index: usize, access: Access) -> bool {
        let mut conflict = false;
        if let Some(word) = self.items.get_mut(index) {
            conflict |= word.add(access.item, access.deed);
        }
        if let Some(word) = self.groups.get_mut(index) {
            conflict |= word.add(access.group, access.deed);
        }
        if let Some((word, phase)) = self.phases.get_mut(index) {
            if *phase != access.phase {
                (*word, *phase) = (Word(0), access.phase);
            }
            conflict |= word.add(access.item, access.deed);
        }
        conflict
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{Access, Record};
    use crate::interpret::Deed;

    /// Whether two accesses conflict.
    fn conflicts(one: Access, two: Access, grouped: bool) -> bool {
        let atomic = |access: Access| access.deed == Deed::Atomic;
        let reads = |access: Access| access.deed == Deed::Read;
        let apart = match grouped {
            true => one.group != two.group || (one.phase == two.phase && one.item != two.item),
            false => one.item != two.item,
        };
        apart && !(reads(one) && reads(two)) && !(atomic(one) && atomic(two))
    }

    #[test]
    fn it_finds_what_all_pairs_find() {
        let mut seed = 1_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let deeds = [Deed::Read, Deed::Write, Deed::Atomic];
        let (mut raced, mut free) = (0, 0);
        for _ in 0..2000 {
            for grouped in [false, true] {
                let mut record = if grouped { Record::of_groups(1) } else { Record::of_items(1) };
                let (mut all, mut phase) = (Vec::<Access>::new(), 1);
                let mut group = 0;
                for _ in 0..4 {
                    if next(3) == 0 {
                        (group, phase) = (group + next(2) as u32, phase + 1);
                    }
                    let access = Access {
                        item: group * 3 + next(3) as u32,
                        group,
                        phase,
                        deed: deeds[next(3) as usize],
                    };
                    let reader = all.iter().any(|one| conflicts(*one, access, grouped));
                    assert_eq!(record.add(0, access), reader, "grouped {grouped}");
                    *(if reader { &mut raced } else { &mut free }) += 1;
                    if reader {
                        break;
                    }
                    all.push(access);
                }
            }
        }
        assert!(raced > 500 && free > 500, "{raced} {free}");
    }
}
