//! How long the last steps of a plan will take: a part of the table is taken through all of them.

use std::time::{Duration, Instant};

use usm_pool::planner::given;
use usm_pool::{Buffer, Options, Plan, Problem};

/// One buffer of this many is rehearsed. More would cost the search its time.
const SHARE: usize = 16;

/// At least this many buffers are rehearsed.
const LEAST: usize = 1 << 12;

/// The steps of the whole table take up to this many times as long for each buffer: its tables are
/// too large for the caches, and other programs may run in between.
const SLOWER: u32 = 2;

/// The time to make rows of offsets, check them and `write` them, for all buffers of the problem.
/// `None` for lives with gaps.
pub(crate) fn measure(problem: &Problem, write: &dyn Fn(&Problem, &Plan)) -> Option<Duration> {
    if problem.conflicts().is_some() {
        return None;
    }
    let begun = Instant::now();
    let buffers = problem.buffers();
    let count = (buffers.len() / SHARE).max(LEAST).min(buffers.len());
    let part = &buffers[..count];
    let small = Problem::from_buffers(part.to_vec()).ok()?;
    let plan = given(&small, stack_all(part)?, &Options::default()).ok()?;
    // One buffer lies on the other, so it is right.
    plan.verify(&small).ok()?;
    write(&small, &plan);
    let times = u32::try_from(buffers.len().div_ceil(count.max(1))).ok()?;
    begun.elapsed().checked_mul(times)?.checked_mul(SLOWER)
}

/// One on the other.
fn stack_all(buffers: &[Buffer]) -> Option<Vec<u64>> {
    let mut top = 0_u64;
    let place = |buffer: &Buffer| {
        let offset = top.checked_next_multiple_of(buffer.alignment)?;
        top = offset.checked_add(buffer.size)?;
        Some(offset)
    };
    buffers.iter().map(place).collect()
}
