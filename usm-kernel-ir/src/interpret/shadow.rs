//! Records the accesses to an element.

use super::fault::Deed;
use crate::kernel::Place;

/// An access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// Linear number of the item, group after group.
    pub(crate) item: u32,
    pub(crate) group: u32,
    /// Number of the interval between two barriers, over all groups.
    pub(crate) phase: u32,
    pub(crate) place: Place,
}

impl Touch {
    /// Whether two accesses are unordered. Groups run in any order and at the same time; barriers
    /// order the items of one group.
    const fn unordered(&self, other: &Self) -> bool {
        self.item != other.item && (self.group != other.group || self.phase == other.phase)
    }
}

/// Accesses of one kind, which do not conflict with each other.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// The last access by another group.
    before: Option<Touch>,
    /// The last accesses by two items of one group.
    last: [Option<Touch>; 2],
}

impl Shared {
    fn add(&mut self, touch: Touch) {
        match self.last[0] {
            Some(last) if last.group != touch.group => {
                self.before = Some(last);
                self.last = [Some(touch), None];
            }
            Some(last) if last.item != touch.item => self.last = [Some(touch), Some(last)],
            _ => self.last[0] = Some(touch),
        }
    }

    fn find_unordered(&self, touch: &Touch) -> Option<Touch> {
        let mut all = [self.before, self.last[0], self.last[1]].into_iter().flatten();
        all.find(|other| other.unordered(touch))
    }
}

/// The accesses to an element.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Element {
    write: Option<Touch>,
    reads: Shared,
    atomics: Shared,
    /// Whether the element has a value.
    pub(crate) is_written: bool,
}

impl Element {
    pub(crate) fn with_value() -> Self {
        Self { is_written: true, ..Self::default() }
    }

    /// Records an access. Returns an earlier one that races with it.
    pub(crate) fn record_access(&mut self, touch: Touch, deed: Deed) -> Option<(Touch, Deed)> {
        let write = self.write.filter(|write| write.unordered(&touch)).map(|write| (write, Deed::Write));
        let read = || self.reads.find_unordered(&touch).map(|read| (read, Deed::Read));
        let atomic = || self.atomics.find_unordered(&touch).map(|atomic| (atomic, Deed::Atomic));
        let record = match deed {
            Deed::Read => write.or_else(atomic),
            Deed::Write => write.or_else(read).or_else(atomic),
            Deed::Atomic => write.or_else(read),
        };
        match deed {
            Deed::Read => self.reads.add(touch),
            Deed::Write => self.write = Some(touch),
            Deed::Atomic => self.atomics.add(touch),
        }
        self.is_written |= deed != Deed::Read;
        record
    }
}
