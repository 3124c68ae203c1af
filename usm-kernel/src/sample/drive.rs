//! Results that take several launches.

use usm_core::{Device, Event, Kind, Queue, UsmVec};

use super::{add_carries, reduce, scan};
use crate::{Executable, Launch, LaunchError, NdRange, Programmable};

/// Elements of one work-item of the first launch of [`sum`], if the array has that many.
const PER_ITEM: u64 = 16;

/// The sum of an array, in groups of `group` items: one launch sums parts, one sums their sums.
///
/// # Errors
/// Errors of the launches, and of the memory for the sums.
pub fn sum<B: Programmable, K: Kind>(
    executable: &Executable<reduce, B, 1>,
    queue: &Queue<B>,
    a: &UsmVec<f32, K, B>,
    group: u64,
) -> Result<f32, LaunchError> {
    let part = group.saturating_mul(PER_ITEM).max(1);
    let groups = (a.len() as u64).div_ceil(part).max(1);
    let mut sums = UsmVec::<f32, Device, B>::zeroed(queue, groups as usize)?;
    let mut whole = UsmVec::<f32, Device, B>::zeroed(queue, 1)?;
    let range = |groups: u64| NdRange::new([group.saturating_mul(groups)], [group]);
    let _ = Launch::new(queue, range(groups)?).run_on(executable, reduce, (a, &mut sums))?;
    let _ = Launch::new(queue, range(1)?).run_on(executable, reduce, (&sums, &mut whole))?;
    Ok(whole.to_vec(queue)?[0])
}

/// `output` = the running sums of `input`, modulo 2^32: each round scans parts of `group` elements,
/// and the next round scans their totals.
///
/// # Errors
/// Errors of the launches, and of the memory for the totals; [`LaunchError::WrongGroup`] for groups
/// of one item, which would have as many totals as elements.
pub fn running_sums<B: Programmable, K1: Kind, K2: Kind>(
    executables: (&Executable<scan, B, 1>, &Executable<add_carries, B, 1>),
    queue: &Queue<B>,
    input: &UsmVec<u32, K1, B>,
    output: &mut UsmVec<u32, K2, B>,
    group: u64,
) -> Result<Event<B>, LaunchError> {
    let range = NdRange::covering([input.len() as u64], [group])?;
    if group == 1 {
        return Err(LaunchError::WrongGroup { dimension: 0, expected: 2, found: 1 });
    }
    let groups = range.groups().items();
    let mut sums = UsmVec::<u32, Device, B>::zeroed(queue, groups as usize)?;
    let launch = || Launch::new(queue, range);
    let event = launch().run_on(executables.0, scan, (input, &mut *output, &mut sums))?;
    if groups <= 1 {
        return Ok(event);
    }
    let mut carries = UsmVec::<u32, Device, B>::zeroed(queue, groups as usize)?;
    let _ = running_sums(executables, queue, &sums, &mut carries, group)?;
    launch().run_on(executables.1, add_carries, (&carries, output))
}
