//! Every page a pool ever handed out. Queries for them are answered from the registry: after
//! `cuMemFreeAsync` the driver's answer is undefined, whether or not the stream has reached the
//! free.

use alloc::vec::Vec;
use core::ops::Range;

use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::sync::{AtomicUsize, Ordering};

/// Two pools never share a page, because devices get access to a whole pool.
const PAGE: usize = 4096;

/// The pages of a pool that ever had a block. The set only grows, so a block in the visible range
/// costs two loads.
#[derive(Debug)]
pub(super) struct PoolPages {
    /// A sleeping lock, because growing the list calls the allocator.
    known_pages: Mutex<KnownPages>,
    /// Bounds of the visible range.
    start: AtomicUsize,
    end: AtomicUsize,
}

#[derive(Debug)]
struct KnownPages {
    /// Ascending, disjoint ranges.
    ranges: Vec<Range<usize>>,
    /// The visible range: the first one, grown by every merge. It only grows, so a reader that
    /// loads its bounds at two moments still gets a part of it.
    last_seen: Range<usize>,
}

impl PoolPages {
    pub(super) const fn new() -> Self {
        let (start, end) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
        let known_pages = KnownPages { ranges: Vec::new(), last_seen: 0..0 };
        Self { known_pages: Mutex::new(known_pages), start, end }
    }

    /// Records a block from the pool, before other code can know its address.
    #[inline]
    pub(super) fn add(&self, base: usize, bytes: usize) {
        if !self.is_visible(base, bytes) {
            self.list(base, bytes);
        }
    }

    /// Whether a block lies in the range that is visible without the lock.
    #[inline]
    fn is_visible(&self, base: usize, bytes: usize) -> bool {
        base >= self.start.load(Ordering::Acquire)
            && base.saturating_add(bytes) <= self.end.load(Ordering::Acquire)
    }

    #[cold]
    fn list(&self, base: usize, bytes: usize) {
        let end = base.saturating_add(bytes);
        let pages = base & !(PAGE - 1)..end.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        let mut guard = self.known_pages.lock();
        let KnownPages { ranges, last_seen } = &mut *guard;
        // Merges it with overlapping and adjacent ranges.
        let first = ranges.partition_point(|range| range.end < pages.start);
        let overlap_count = ranges[first..].iter().take_while(|range| range.start <= pages.end).count();
        let start = ranges
            .get(first)
            .filter(|_| overlap_count > 0)
            .map_or(pages.start, |range| range.start.min(pages.start));
        let end = ranges[first..][..overlap_count].last().map_or(pages.end, |range| range.end.max(pages.end));
        ranges.splice(first..first + overlap_count, core::iter::once(start..end));
        if last_seen.start >= last_seen.end || start <= last_seen.start && last_seen.end <= end {
            *last_seen = start..end;
            self.start.store(start, Ordering::Release);
            self.end.store(end, Ordering::Release);
        }
    }

    /// Whether the address lies in a page that the pool handed out.
    pub(super) fn has(&self, address: usize) -> bool {
        let ranges = &self.known_pages.lock().ranges;
        let first = ranges.partition_point(|range| range.end <= address);
        ranges.get(first).is_some_and(|range| range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_of_all_blocks() {
        let (mut random, mut seen_grows) = (1_usize, 0);
        for _ in 0..200 {
            let (pool_pages, mut model, mut before) = (PoolPages::new(), [false; 80], None::<Range<usize>>);
            for step in 0..40 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let (page, bytes) = (random >> 33 & 63, 1 + (random >> 40 & 0xFFFF));
                let base = page * PAGE + (random >> 20 & 0xF00);
                model[page..(base + bytes).div_ceil(PAGE)].fill(true);
                pool_pages.add(base, bytes);
                let found: Vec<bool> = (0..80).map(|page| pool_pages.has(page * PAGE)).collect();
                assert_eq!(&found[..], &model[..], "after {step} steps");
                assert!((0..80).all(|page| pool_pages.has(page * PAGE + PAGE - 1) == model[page]));
                let known = pool_pages.known_pages.lock();
                let ranges = &known.ranges;
                assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
                let seen = pool_pages.start.load(Ordering::Relaxed)..pool_pages.end.load(Ordering::Relaxed);
                assert!(known.last_seen == seen && ranges.contains(&seen), "{seen:?} of {ranges:?}");
                // Bounds of two moments still enclose only addresses of the range.
                let grows = |before: Range<usize>| seen.start <= before.start && before.end <= seen.end;
                assert!(before.replace(seen.clone()).is_none_or(grows), "{seen:?}");
                seen_grows += usize::from(ranges.len() == 1);
            }
        }
        assert!(seen_grows > 200, "ranges become one");
    }

    #[test]
    fn the_end_of_the_address_space_is_no_overflow() {
        let pool_pages = PoolPages::new();
        pool_pages.add(usize::MAX - 10, 11);
        assert!(pool_pages.has(usize::MAX - 5) && !pool_pages.has(usize::MAX / 2));
    }
}

#[cfg(all(test, loom))]
mod models {
    use alloc::sync::Arc;

    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    use super::*;

    /// If a thread passes its block to another one, that thread finds the block, whatever other
    /// blocks are recorded meanwhile.
    #[test]
    fn a_block_passed_to_another_thread_is_known_there() {
        loom::model(|| {
            let pool_pages = Arc::new(PoolPages::new());
            // This thread makes loom's objects.
            pool_pages.add(10 * PAGE, PAGE);
            let passed = loom::sync::Arc::new(AtomicBool::new(false));
            let given = {
                let (pool_pages, passed) = (Arc::clone(&pool_pages), passed.clone());
                thread::spawn(move || {
                    pool_pages.add(11 * PAGE, PAGE);
                    passed.store(true, Ordering::Release);
                })
            };
            // After it, before it and inside both.
            pool_pages.add(9 * PAGE, PAGE);
            pool_pages.add(10 * PAGE, 2 * PAGE);
            if passed.load(Ordering::Acquire) {
                assert!(pool_pages.has(11 * PAGE));
            }
            assert!(pool_pages.has(9 * PAGE) && pool_pages.has(10 * PAGE));
            given.join().expect("no panic");
            assert!(pool_pages.has(11 * PAGE) && !pool_pages.has(12 * PAGE));
        });
    }
}
