//! A launch runs its groups one after the other. The items of a group take turns between barriers
//! and collective steps.

use core::fmt;

use super::arithmetic::{calculate, compare, convert, together};
use super::memory::{Memory, Range, Wrong};
use super::program::{Action, Entry, Special};
use super::warp::{self, LANES};
use crate::code::{Code, LAUNCH_FAILED, LAUNCH_TIMEOUT};

/// Maximum steps of a launch, so that an endless kernel is found.
const MOST_STEPS: u64 = 1 << 34;
/// The content of memory that was never written.
pub(super) const PATTERN: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// Everything that a launch needs.
#[derive(Debug)]
pub(crate) struct Launch<'l> {
    pub(crate) entry: &'l Entry,
    /// The module's.
    pub(crate) constants: &'l [u64],
    /// Items of a group and groups of the grid, X first.
    pub(crate) group: [u32; 3],
    pub(crate) groups: [u32; 3],
    /// The bytes of all parameters.
    pub(crate) parameters: &'l [u8],
    /// Bytes of dynamic shared memory.
    pub(crate) shared_bytes: usize,
    /// The memory that the launch may access, sorted.
    pub(crate) ranges: &'l [Range],
    /// Runs groups and items in reverse order.
    pub(crate) reversed: bool,
    /// Steps after which the next item continues. Without a number an item continues to its next
    /// wait.
    pub(crate) turns: Option<u64>,
}

/// An error of a kernel and its place.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// One item: its position, registers and memory.
pub(super) struct Item {
    next: usize,
    pub(super) state: State,
    pub(super) registers: Vec<u64>,
    local: Vec<u64>,
}

/// Whether an item can continue, or what it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Ready,
    Barrier,
    /// For other lanes, at the collective step with this index.
    Together(usize),
    Ended,
}

/// Splits a linear number, X fastest.
fn triple(number: u64, sizes: [u32; 3]) -> [u64; 3] {
    let [x, y, _] = sizes.map(|size| u64::from(size.max(1)));
    [number % x, number / x % y, number / x / y]
}

/// Memory of that many bytes.
fn words(bytes: usize) -> Vec<u64> {
    vec![PATTERN; bytes.div_ceil(8)]
}

/// Runs the launch to the end.
pub(crate) fn run(launch: &Launch<'_>) -> Result<(), Fault> {
    let (entry, product) =
        (launch.entry, |sizes: [u32; 3]| sizes.iter().map(|size| u64::from(*size)).product());
    let (count, groups): (u64, u64) = (product(launch.group), product(launch.groups));
    let mut parameters = words(launch.parameters.len());
    for (word, bytes) in parameters.iter_mut().zip(launch.parameters.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let mut shared = words(entry.shared_bytes + launch.shared_bytes);
    let item = |_| Item {
        next: 0,
        state: State::Ready,
        registers: entry.registers.clone(),
        local: words(entry.local_bytes),
    };
    let mut items: Vec<Item> = (0..count).map(item).collect();
    let mut budget = MOST_STEPS;
    let number = |index: u64, all: u64| if launch.reversed { all - 1 - index } else { index };
    for group in 0..groups {
        let group = triple(number(group, groups), launch.groups);
        shared.fill(PATTERN);
        for (index, item) in items.iter_mut().enumerate() {
            let place = triple(index as u64, launch.group);
            (item.next, item.state) = (0, State::Ready);
            item.registers.copy_from_slice(&entry.registers);
            item.local.fill(PATTERN);
            for (register, special) in &entry.specials {
                item.registers[*register as usize] = match special {
                    Special::Item(axis) => place[*axis],
                    Special::GroupSize(axis) => u64::from(launch.group[*axis]),
                    Special::Group(axis) => group[*axis],
                    Special::Groups(axis) => u64::from(launch.groups[*axis]),
                    Special::Lane => (index % LANES) as u64,
                    Special::Lanes { before, itself, behind } => {
                        let (own, below) = (1_u32 << (index % LANES), (1_u32 << (index % LANES)) - 1);
                        let part = |wanted: &bool, bits| if *wanted { bits } else { 0 };
                        u64::from(part(before, below) | part(itself, own) | part(behind, !(below | own)))
                    }
                };
            }
        }
        let fault = |item: &Item, index: usize, (code, what): (Code, String)| {
            let line = entry.steps.get(item.next - 1).map_or(0, |step| step.line);
            let (name, item) = (&entry.name, triple(index as u64, launch.group));
            Err(Fault { code, what: format!("{name}, line {line}, group {group:?}, item {item:?}: {what}") })
        };
        loop {
            for index in 0..count {
                let index = number(index, count) as usize;
                let item = &mut items[index];
                if !matches!(item.state, State::Ready) {
                    continue;
                }
                let (ranges, constants) = (launch.ranges, launch.constants);
                let (parameters, shared, local) = (&mut *parameters, &mut *shared, &mut *item.local);
                let mut memory = Memory { ranges, parameters, shared, local, constants, last: 0 };
                let limits = (&mut budget, launch.turns.unwrap_or(u64::MAX));
                match advance(entry, &mut item.next, &mut item.registers, &mut memory, limits) {
                    Ok(state) => item.state = state,
                    Err(wrong) => return fault(item, index, wrong),
                }
            }
            if items.iter().any(|item| matches!(item.state, State::Ready)) {
                continue;
            }
            if warp::meet(entry, &mut items) {
                continue;
            }
            if let Some((index, why)) = warp::stuck(entry, &items) {
                return fault(&items[index], index, (LAUNCH_TIMEOUT, why));
            }
            // Runs from barrier to barrier; ended items take no part.
            let mut more = false;
            for item in items.iter_mut().filter(|item| matches!(item.state, State::Barrier)) {
                (item.state, more) = (State::Ready, true);
            }
            if !more {
                break;
            }
        }
    }
    Ok(())
}

fn wrong(wrong: Wrong) -> (Code, String) {
    (wrong.code, format!("{} bytes at {:#x} are not its", wrong.bytes, wrong.address))
}

/// Runs an item to its next wait, to its end, or to the end of its turn.
fn advance(
    entry: &Entry,
    next: &mut usize,
    registers: &mut [u64],
    memory: &mut Memory<'_>,
    (budget, mut turn): (&mut u64, u64),
) -> Result<State, (Code, String)> {
    while let Some(step) = entry.steps.get(*next) {
        if turn == 0 {
            return Ok(State::Ready);
        }
        turn -= 1;
        *next += 1;
        *budget -= 1;
        if *budget == 0 {
            return Err((LAUNCH_TIMEOUT, format!("no end after {MOST_STEPS} steps")));
        }
        if step.guard.is_some_and(|(predicate, value)| (registers[predicate as usize] & 1 != 0) != value) {
            continue;
        }
        let [a, b, c] = step.from.map(|register| registers.get(register as usize).copied().unwrap_or(0));
        let result = match step.action {
            Action::Calculate(operation) => calculate(operation, step.of, [a, b, c])
                .ok_or((LAUNCH_FAILED, format!("{operation:?} by zero, or of such values")))?,
            Action::Compare(comparison, logic) => {
                u64::from(together(logic, compare(comparison, step.of, a, b), c & 1 != 0))
            }
            Action::Select => {
                if c & 1 != 0 {
                    a
                } else {
                    b
                }
            }
            Action::Convert(from, rounding) => convert(step.of, from, rounding, a),
            Action::Load(space, offset) => {
                memory.load(space, step.of, a.wrapping_add_signed(offset)).map_err(wrong)?
            }
            Action::Store(space, offset) => {
                memory.store(space, step.of, a.wrapping_add_signed(offset), b).map_err(wrong)?;
                continue;
            }
            Action::Update(space, offset, update) => {
                let address = a.wrapping_add_signed(offset);
                memory.update(space, update, step.of, address, [b, c]).map_err(wrong)?
            }
            Action::Jump(target) => {
                *next = target;
                continue;
            }
            Action::Barrier => return Ok(State::Barrier),
            Action::Together(_) => return Ok(State::Together(*next - 1)),
            Action::End => return Ok(State::Ended),
            Action::Trap => return Err((LAUNCH_FAILED, "it says so itself".into())),
            Action::Nothing => continue,
        };
        registers[step.to as usize] = result;
    }
    Ok(State::Ended)
}
