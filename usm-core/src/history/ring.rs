//! The ring of the last records.
//!
//! Events of pools come later than they happened, in batches of each thread, and without the live
//! bytes: a thread knows only its own. Their numbers say where they belong, and the live bytes
//! after each record follow from those before the first one.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

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
        if let Some(first) = self.records.front() {
            Self::lose(&mut self.before, &mut self.resets, first);
            self.lost += 1;
            let _ = self.records.pop_front();
        }
    }

    /// Goes over a record that is not kept.
    #[inline]
    fn lose(before: &mut Walk, resets: &mut VecDeque<usize>, event: &Event) {
        while resets.front().is_some_and(|reset| is_before(*reset, event.number)) {
            let _ = resets.pop_front();
            before.reset_peak();
        }
        let _ = before.step(&event.record);
    }

    #[inline]
    pub(super) fn insert(&mut self, event: &Event) {
        if self.capacity == 0 {
            return;
        }
        if self.records.back().is_some_and(|last| is_before(event.number, last.number)) {
            return self.insert_between(event);
        }
        if self.records.len() == self.capacity {
            self.lose_first();
        }
        self.records.push_back(*event);
    }

    /// Threads bring what they noted in any order.
    #[cold]
    fn insert_between(&mut self, event: &Event) {
        let earlier = self.records.iter().rposition(|other| is_before(other.number, event.number));
        let mut at = earlier.map_or(0, |earlier| earlier + 1);
        if self.records.len() == self.capacity {
            if at == 0 {
                self.lost += 1;
                return Self::lose(&mut self.before, &mut self.resets, event);
            }
            self.lose_first();
            at -= 1;
        }
        self.records.insert(at, *event);
    }

    pub(super) fn insert_events(&mut self, events: &[Event]) {
        self.has_events = true;
        events.iter().for_each(|event| self.insert(event));
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
