//! The ring of the last records.
//!
//! Events of pools come later than they happened, in batches of each thread, and without the live
//! bytes: a thread knows only its own. Their numbers say where they belong, and the live bytes
//! after each record follow from those before the first one.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::slice;

use super::{Operation, Record};
use crate::MemoryType;
use crate::ledger::CurrentAndPeak;
use crate::segment::Event;

/// Live bytes and peak of each memory type, indexed as [`MemoryType::ALL`].
pub(crate) type Numbers = [CurrentAndPeak; MemoryType::ALL.len()];

/// Whether a record comes before another one. Numbers may wrap.
fn is_before(one: usize, other: usize) -> bool {
    (one.wrapping_sub(other) as isize) < 0
}

/// The live bytes from record to record.
#[derive(Clone, Copy, Debug)]
struct Walk(Numbers);

impl Walk {
    /// The live bytes and the peak after a record.
    fn step(&mut self, record: &Record) -> CurrentAndPeak {
        let (current, peak) = &mut self.0[record.memory_type.index()];
        match record.operation {
            Operation::Allocate => *current = current.wrapping_add(record.bytes),
            Operation::Free => *current = current.wrapping_sub(record.bytes),
            Operation::Refuse => {}
        }
        // Below zero if threads allocated while the history began.
        let live = if *current > isize::MAX as usize { 0 } else { *current };
        *peak = live.max(*peak);
        (live, *peak)
    }

    fn reset_peak(&mut self) {
        self.0.iter_mut().for_each(|(current, peak)| *peak = *current);
    }
}

/// The last records, oldest first. Off (capacity 0) by default: history then costs nothing.
#[derive(Debug)]
pub(super) struct Ring {
    records: VecDeque<Event>,
    capacity: usize,
    /// Records that made room for later ones.
    pub(super) lost: u64,
    /// Whether there was an event of a pool.
    has_events: bool,
    /// Before the first record.
    before: Walk,
    /// Numbers of the moments at which new peaks began, since the first record.
    resets: VecDeque<usize>,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self {
            records: VecDeque::new(),
            capacity: 0,
            lost: 0,
            has_events: false,
            before: Walk([(0, 0); MemoryType::ALL.len()]),
            resets: VecDeque::new(),
        }
    }

    /// Begins with these live bytes. There are no records.
    pub(super) fn begin(&mut self, numbers: Numbers) {
        self.before = Walk(numbers);
        self.has_events = false;
        self.resets.clear();
    }

    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.records.len() > capacity {
            self.lose_first();
        }
        self.lost = 0;
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.capacity > 0
    }

    #[inline]
    fn lose_first(&mut self) {
        let Some(first) = self.records.front() else { return };
        while self.resets.front().is_some_and(|reset| is_before(*reset, first.number)) {
            let _ = self.resets.pop_front();
            self.before.reset_peak();
        }
        let _ = self.before.step(&first.record);
        self.lost += 1;
        let _ = self.records.pop_front();
    }

    pub(super) fn insert(&mut self, event: &Event) {
        self.merge(slice::from_ref(event));
    }

    pub(super) fn insert_events(&mut self, events: &[Event]) {
        self.has_events = true;
        self.merge(events);
    }

    /// Adds records that are in order among themselves. Threads bring theirs in any order.
    fn merge(&mut self, events: &[Event]) {
        let Some(first) = events.first().filter(|_| self.is_enabled()) else { return };
        if self.records.back().is_none_or(|last| is_before(last.number, first.number)) {
            for event in events {
                if self.records.len() >= self.capacity {
                    self.lose_first();
                }
                self.records.push_back(*event);
            }
            return;
        }
        // From the last on, so that nothing moves that is before all of them.
        let (mut kept, mut added) = (self.records.len(), events.len());
        self.records.extend(events);
        while added > 0 {
            let event = &events[added - 1];
            let later =
                kept.checked_sub(1).filter(|last| is_before(event.number, self.records[*last].number));
            let place = kept + added - 1;
            if let Some(last) = later {
                self.records[place] = self.records[last];
                kept = last;
            } else {
                self.records[place] = *event;
                added -= 1;
            }
        }
        while self.records.len() > self.capacity {
            self.lose_first();
        }
    }

    pub(super) fn reset_peak(&mut self, number: usize) {
        if !self.is_enabled() {
            return;
        }
        match self.resets.back_mut() {
            // No record lies between the two.
            Some(last) if last.wrapping_add(1) == number => *last = number,
            _ => self.resets.push_back(number),
        }
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let records = self.records.iter();
        if !self.has_events {
            return records.map(|event| event.record).collect();
        }
        let (mut walk, mut time) = (self.before, 0);
        let mut resets = self.resets.iter().peekable();
        let all = records.map(|event| {
            while resets.next_if(|reset| is_before(**reset, event.number)).is_some() {
                walk.reset_peak();
            }
            let (current, peak) = walk.step(&event.record);
            time = event.record.time.max(time);
            Record { current, peak, time, ..event.record }
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(numbers: &[usize]) -> Vec<Event> {
        let event = |number: &usize| {
            let stamp = (number.wrapping_add(usize::MAX - 20), 0);
            Event::new(Operation::Allocate, MemoryType::UsmHost, stamp, (*number, *number))
        };
        numbers.iter().map(event).collect()
    }

    /// Also where numbers wrap.
    #[test]
    fn batches_in_any_order_are_the_last_records_in_order() {
        let batches: [&[usize]; 6] =
            [&[3, 9, 10, 30], &[1, 4, 40], &[2], &[11, 12, 13, 41], &[0, 5, 42], &[6, 7, 8]];
        for capacity in 1..=20 {
            let mut ring = Ring::new();
            ring.set_capacity(capacity);
            let (mut seen, mut lost) = (Vec::new(), 0);
            for batch in batches {
                ring.insert_events(&events(batch));
                seen.extend_from_slice(batch);
                seen.sort_unstable();
                while seen.len() > capacity {
                    let _ = seen.remove(0);
                    lost += 1;
                }
                let kept: Vec<usize> = ring.records().iter().map(|record| record.address).collect();
                assert_eq!((kept, ring.lost), (seen.clone(), lost), "{capacity}");
            }
            let all: usize = batches.iter().flat_map(|batch| batch.iter()).sum();
            assert_eq!(ring.records()[capacity.min(18) - 1].current, all);
        }
    }
}
