//! Estimates the time of the last steps of a plan, by all of these steps on a part of the table.

use std::time::{Duration, Instant};

use usm_pool::planner::given;
use usm_pool::{Buffer, Options, Plan, Problem};

/// The estimate runs with one buffer in this many. More would take too much of the search's time.
const SHARE: usize = 16;

/// The estimate runs with at least this many buffers.
const LEAST: usize = 1 << 12;

/// Safety factor, in halves. The whole table does not fit the caches, so each buffer takes up to
/// 3/2 of the measured time.
const HALVES: u32 = 3;

/// The time to make rows of offsets, check them and `write` them, for all buffers of the problem.
/// `None` for lives with gaps.
pub(crate) fn measure(problem: &Problem, write: &dyn Fn(&Problem, &Plan)) -> Option<Duration> {
    if problem.conflicts().is_some() {
        return None;
    }
    let start = Instant::now();
    let buffers = problem.buffers();
    let count = (buffers.len() / SHARE).max(LEAST).min(buffers.len());
    let part = first_to_live(buffers, count);
    let small = Problem::from_buffers(part.clone()).ok()?;
    let plan = given(&small, stack_all(&part)?, &Options::default()).ok()?;
    // No two buffers share bytes, so the plan is correct, and the check of it takes its full time.
    plan.verify(&small).ok()?;
    write(&small, &plan);
    let times = u32::try_from(buffers.len().div_ceil(count.max(1))).ok()?;
    start.elapsed().checked_mul(times)?.checked_mul(HALVES).map(|halves| halves / 2)
}

/// The `count` buffers that begin first. As many of them live together as in the whole table; of
/// buffers chosen at random, fewer would.
fn first_to_live(buffers: &[Buffer], count: usize) -> Vec<Buffer> {
    let mut begins: Vec<u64> = buffers.iter().map(|buffer| buffer.lower).collect();
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let (_, &mut last, _) = begins.select_nth_unstable(last);
    buffers.iter().filter(|buffer| buffer.lower <= last).take(count).copied().collect()
}

/// Offsets that put each buffer behind the one before it; `None` on overflow.
fn stack_all(buffers: &[Buffer]) -> Option<Vec<u64>> {
    let mut top = 0_u64;
    let place = |buffer: &Buffer| {
        let offset = top.checked_next_multiple_of(buffer.alignment)?;
        top = offset.checked_add(buffer.size)?;
        Some(offset)
    };
    buffers.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_as_dense_as_the_whole() {
        // A hundred live at each instant; the table has them in any order.
        let buffers: Vec<Buffer> =
            (0..10_000_u64).map(|id| id * 7919 % 10_000).map(|at| Buffer::new(at, at, at + 100, 1)).collect();
        let mut part = first_to_live(&buffers, 1000);
        part.sort_unstable_by_key(|buffer| buffer.lower);
        assert_eq!(part.len(), 1000);
        assert!(part.windows(100).all(|live| live[99].lower < live[0].upper));
        let at_once = vec![Buffer::new(0, 5, 6, 1); 64];
        assert_eq!([0, 1, 63, 64].map(|count| first_to_live(&at_once, count).len()), [0, 1, 63, 64]);
    }
}
