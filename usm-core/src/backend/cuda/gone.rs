//! Memory that was freed in the order of a stream. The driver must not be asked about such addresses (its answer is undefined from the moment of
//! the free, not from that at which the stream comes to it), and everybody may ask us about any address. Where the device's pool, which all
//! libraries share, gives one to another library, nobody tells us: its memory there is unknown to us.

use alloc::vec::Vec;
use core::ops::Range;

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// The addresses that were freed and not given to us again, whichever context they were of. Neighbours are one range, so there are not
/// more of them than gaps between live blocks.
#[derive(Debug)]
pub(super) struct Gone {
    /// Ascending, apart from each other.
    ranges: Mutex<Vec<Range<usize>>>,
    /// Length of the list: 0 where nobody uses such memory, and then nobody takes the lock.
    len: AtomicUsize,
}

impl Gone {
    pub(super) const fn new() -> Self {
        Self { ranges: Mutex::new(Vec::new()), len: AtomicUsize::new(0) }
    }

    /// Notes that a block is about to be freed: before, because another thread may be given its address next.
    pub(super) fn add(&self, block: Range<usize>) {
        self.change(|ranges| {
            // Those that it meets or touches become one with it.
            let first = ranges.partition_point(|range| range.end < block.start);
            let met = ranges[first..].iter().take_while(|range| range.start <= block.end).count();
            if met == 0 {
                return ranges.insert(first, block);
            }
            let start = ranges[first].start.min(block.start);
            let end = ranges[first + met - 1].end.max(block.end);
            ranges[first] = start..end;
            if met > 1 {
                ranges.drain(first + 1..first + met);
            }
        });
    }

    /// Notes that the driver gave a block, or did not take it back.
    #[inline]
    pub(super) fn remove(&self, block: Range<usize>) {
        if self.len.load(Ordering::Acquire) != 0 {
            self.remove_listed(&block);
        }
    }

    fn remove_listed(&self, block: &Range<usize>) {
        self.change(|ranges| {
            let first = ranges.partition_point(|range| range.end <= block.start);
            let met = ranges[first..].iter().take_while(|range| range.start < block.end).count();
            let Some(last) = met.checked_sub(1) else { return };
            let before = ranges[first].start..block.start;
            let after = block.end..ranges[first + last].end;
            match (met, before.is_empty(), after.is_empty()) {
                // A whole range, its start or its end: what is usual takes no other list.
                (1, true, true) => drop(ranges.remove(first)),
                (1, true, false) => ranges[first] = after,
                (1, false, true) => ranges[first] = before,
                _ => {
                    let left = [before, after].into_iter().filter(|range| !range.is_empty());
                    ranges.splice(first..first + met, left);
                }
            }
        });
    }

    /// Whether the address lies in memory that was freed.
    #[inline]
    pub(super) fn has(&self, address: usize) -> bool {
        self.len.load(Ordering::Acquire) != 0 && self.lists(address)
    }

    fn lists(&self, address: usize) -> bool {
        let ranges = self.ranges.lock();
        let first = ranges.partition_point(|range| range.end <= address);
        ranges.get(first).is_some_and(|range| range.contains(&address))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Range<usize>>)) {
        let mut ranges = self.ranges.lock();
        change(&mut ranges);
        self.len.store(ranges.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_set_of_its_addresses() {
        let (gone, mut model, mut random) = (Gone::new(), [false; 80], 1_usize);
        for step in 0..20_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let (start, len, add) = (random >> 33 & 63, 1 + (random >> 40 & 15), random >> 50 & 1 == 0);
            let block = start..start + len;
            model[block.clone()].fill(add);
            if add {
                gone.add(block)
            } else {
                gone.remove(block)
            }
            let found: Vec<bool> = (0..80).map(|address| gone.has(address)).collect();
            assert_eq!(&found[..], &model[..], "after {step} steps");
            let ranges = gone.ranges.lock();
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
            assert_eq!(ranges.len(), gone.len.load(Ordering::Relaxed));
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use alloc::sync::Arc;

    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    use super::*;

    /// The driver gives the address to a thread only after the other thread's call of the free.
    #[test]
    fn what_is_given_again_is_no_longer_gone() {
        loom::model(|| {
            let gone = Arc::new(Gone::new());
            // Loom's objects are made by this thread.
            gone.add(200..300);
            gone.remove(200..300);
            let freed = loom::sync::Arc::new(AtomicBool::new(false));
            let freeing = {
                let (gone, freed) = (Arc::clone(&gone), freed.clone());
                thread::spawn(move || {
                    gone.add(0..100);
                    freed.store(true, Ordering::Release);
                })
            };
            if freed.load(Ordering::Acquire) {
                gone.remove(0..100);
                assert!(!gone.has(50));
                freeing.join().expect("no panic");
                assert!(!gone.has(50));
            } else {
                freeing.join().expect("no panic");
                assert!(gone.has(50));
            }
        });
    }
}
