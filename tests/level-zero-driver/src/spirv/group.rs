//! A launch runs its groups one after the other. The items of a group take turns from barrier to
//! barrier.

use super::Fault;
use super::item::{Item, Stop};
use super::memory::Regions;
use super::program::{Entry, Module, Parameter, Slot, Step};
use crate::kernel::Argument;

/// Maximum steps of a launch, so that an endless kernel is found.
const MOST_STEPS: u64 = 1 << 34;
/// Unused bytes between two local arrays.
const GAP: usize = 64;

/// Everything that a launch needs.
#[derive(Debug)]
pub(crate) struct Launch<'l> {
    pub(crate) module: &'l Module,
    pub(crate) entry: &'l Entry,
    pub(crate) group: [u32; 3],
    pub(crate) groups: [u32; 3],
    pub(crate) arguments: &'l [Argument],
    /// Start and size of each range that the launch may access.
    pub(crate) memory: Vec<(usize, usize)>,
    /// Runs groups and items in reverse order.
    pub(crate) reversed: bool,
}

/// The data that all groups share: parameter slots, and the offsets of local arrays.
struct Prepared<'l> {
    values: Vec<(Slot, u64)>,
    structures: Vec<(Slot, usize, &'l [u8])>,
    structure_bytes: usize,
    /// Local memory of one group, aligned for the widest type.
    local: Vec<u128>,
    regions: Regions,
}

/// Runs the launch to the end.
pub(crate) fn run(launch: &Launch<'_>) -> Result<(), Fault> {
    let mut prepared = prepare(launch);
    let count: usize = launch.group.iter().map(|size| *size as usize).product();
    let mut items: Vec<Item> =
        (0..count).map(|_| Item::new(launch.module, prepared.structure_bytes)).collect();
    let groups: u64 = launch.groups.iter().map(|size| u64::from(*size)).product();
    let mut budget = MOST_STEPS;
    for number in 0..groups {
        let number = if launch.reversed { groups - 1 - number } else { number };
        // Local memory is uninitialised by contract, so it gets a pattern.
        prepared.local.fill(0xA5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5);
        one_group(launch, &prepared, &mut items, triple(number, launch.groups), &mut budget)?;
    }
    Ok(())
}

/// Splits a linear number, X fastest.
fn triple(number: u64, sizes: [u32; 3]) -> [u64; 3] {
    let [x, y, _] = sizes.map(|size| u64::from(size.max(1)));
    [number % x, number / x % y, number / x / y]
}

fn one_group(
    launch: &Launch<'_>,
    prepared: &Prepared<'_>,
    items: &mut [Item],
    group: [u64; 3],
    budget: &mut u64,
) -> Result<(), Fault> {
    for item in &mut *items {
        item.start(launch.entry.start, &prepared.values, &prepared.structures);
    }
    let local = prepared.local.as_ptr() as u64;
    loop {
        let mut stop = None;
        for turn in 0..items.len() {
            let number = if launch.reversed { items.len() - 1 - turn } else { turn };
            let own = triple(number as u64, launch.group);
            let built_in = |what: u32, lane: u32| built_in(launch, group, own, what, lane);
            let place = |fault: Fault| {
                format!(
                    "kernel {}, group {group:?}, item {own:?}: {fault}",
                    launch.entry.name.to_string_lossy()
                )
            };
            let found = items[number].run(launch.module, &prepared.regions, local, &built_in, budget);
            let found = found.map_err(place)?;
            if found == Stop::Exhausted {
                return Err(place(format!("no end after {MOST_STEPS} steps")));
            }
            let expected = *stop.get_or_insert(found);
            if expected != found {
                return Err(place(format!("{found:?}, others of the group {expected:?}")));
            }
        }
        if stop.is_none_or(|stop| stop == Stop::End) {
            return Ok(());
        }
    }
}

/// A lane of a built-in variable. The specification numbers the variables.
fn built_in(launch: &Launch<'_>, group: [u64; 3], own: [u64; 3], what: u32, lane: u32) -> Result<u64, Fault> {
    let at = lane as usize;
    let (size, groups) = (launch.group.map(u64::from), launch.groups.map(u64::from));
    if at > 2 {
        return Err(format!("lane {at} of built-in variable {what}"));
    }
    let global = |at: usize| group[at] * size[at] + own[at];
    Ok(match what {
        24 => groups[at],
        25 | 32 => size[at],
        26 => group[at],
        27 => own[at],
        28 => global(at),
        29 => (own[2] * size[1] + own[1]) * size[0] + own[0],
        30 => 3,
        31 => groups[at] * size[at],
        33 => 0,
        34 => (global(2) * groups[1] * size[1] + global(1)) * groups[0] * size[0] + global(0),
        _ => return Err(format!("built-in variable {what} is not known")),
    })
}

fn prepare<'l>(launch: &Launch<'l>) -> Prepared<'l> {
    let (mut values, mut structures) = (Vec::new(), Vec::new());
    let mut structure_bytes = 0;
    let private = (launch.module.private_bytes as usize).next_multiple_of(8);
    // Offsets of the local arrays. The module's own variables come first.
    let mut arrays = vec![(0, launch.module.local_bytes as usize)];
    let mut end = launch.module.local_bytes as usize;
    for ((parameter, argument), (slot, lane_bytes)) in
        launch.entry.parameters.iter().zip(launch.arguments).zip(&launch.entry.slots)
    {
        match (parameter, argument) {
            (Parameter::Structure(_), Argument::Value(bytes)) => {
                structures.push((*slot, private + structure_bytes, &bytes[..]));
                structure_bytes = (structure_bytes + bytes.len()).next_multiple_of(8);
            }
            (_, Argument::Value(bytes)) => {
                for (lane, bytes) in bytes.chunks(*lane_bytes).enumerate() {
                    let value = bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                    values.push((*slot + lane as Slot, value));
                }
            }
            (_, Argument::Local(bytes)) => {
                let start = (end + GAP).next_multiple_of(16);
                arrays.push((start, *bytes));
                end = start + bytes;
                // The slot holds the offset until the memory is allocated.
                values.push((*slot, start as u64));
            }
        }
    }
    let local = vec![0_u128; end.div_ceil(16)];
    let base = local.as_ptr() as usize;
    let locals = launch
        .entry
        .parameters
        .iter()
        .zip(&launch.entry.slots)
        .filter(|(parameter, _)| **parameter == Parameter::Local);
    for (_, (slot, _)) in locals {
        for (_, value) in values.iter_mut().filter(|(known, _)| known == slot) {
            *value += base as u64;
        }
    }
    let arrays = arrays.into_iter().map(|(start, bytes)| (base + start, bytes));
    let regions = Regions::new(launch.memory.iter().copied().chain(arrays));
    Prepared { values, structures, structure_bytes, local, regions }
}

impl Entry {
    /// Whether the kernel is an endless loop without effects: such a launch never finishes.
    pub(crate) fn is_endless(&self, module: &Module) -> bool {
        let mut place = self.start;
        for _ in 0..16 {
            match module.steps.get(place as usize) {
                Some(Step::Jump { target, .. }) if *target == place => return true,
                Some(Step::Jump { target, .. } | Step::Call { target, .. }) => place = *target,
                Some(Step::Local { .. }) => place += 1,
                _ => return false,
            }
        }
        false
    }
}
