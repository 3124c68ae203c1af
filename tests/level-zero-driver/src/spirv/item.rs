//! One work-item: its slots, and the steps up to the next barrier.

use super::Fault;
use super::arithmetic::{Unary, binary, unary};
use super::memory::{Reach, Regions};
use super::program::{Atomic, Module, Moves, Slot, Step};
use super::types::Scalar;

/// Maximum call depth: OpenCL C has no recursion.
const DEEPEST: usize = 64;

/// A work-item.
#[derive(Debug)]
pub(super) struct Item {
    slots: Vec<u64>,
    private: Vec<u64>,
    place: u32,
    /// For each active call: where the caller continues, and the slot of the result.
    callers: Vec<(u32, Slot)>,
    moved: Vec<u64>,
}

/// The reason why an item stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the barrier of that step.
    Barrier(u32),
    /// At its end.
    End,
    /// The item has used its budget of steps.
    Exhausted,
}

impl Item {
    /// An item with the private memory of the module's functions and `more` bytes after it.
    pub(super) fn new(module: &Module, more: usize) -> Self {
        let words = (module.private_bytes as usize + more).div_ceil(8);
        Self {
            slots: module.slots.clone(),
            private: vec![0; words],
            place: 0,
            callers: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Moves to the start of a kernel with these arguments, each at its slot: values, and
    /// structures at an offset in private memory.
    pub(super) fn start(&mut self, place: u32, values: &[(Slot, u64)], structures: &[(Slot, usize, &[u8])]) {
        self.place = place;
        self.callers.clear();
        // Private memory is uninitialised, as on a device.
        self.private.fill(0xA5A5_A5A5_A5A5_A5A5);
        for (slot, value) in values {
            self.put(*slot, *value);
        }
        for (slot, offset, bytes) in structures {
            for (index, byte) in bytes.iter().enumerate() {
                let (word, shift) = ((offset + index) / 8, (offset + index) % 8 * 8);
                self.private[word] = self.private[word] & !(0xff << shift) | u64::from(*byte) << shift;
            }
            let address = self.private.as_ptr() as u64 + *offset as u64;
            self.put(*slot, address);
        }
    }

    fn at(&self, slot: Slot) -> u64 {
        self.slots[slot as usize]
    }

    fn put(&mut self, slot: Slot, value: u64) {
        self.slots[slot as usize] = value;
    }

    fn go(&mut self, target: u32, moves: &Moves) {
        match moves.0[..] {
            [] => {}
            [(to, from)] => self.put(to, self.at(from)),
            _ => {
                // Moves all values at the same time: a source may be the target of another move.
                let mut moved = core::mem::take(&mut self.moved);
                moved.extend(moves.0.iter().map(|(_, from)| self.at(*from)));
                for ((to, _), value) in moves.0.iter().zip(moved.drain(..)) {
                    self.put(*to, value);
                }
                self.moved = moved;
            }
        }
        self.place = target;
    }

    /// Runs to the next barrier or the end, at most `budget` steps. `built_in` takes a variable's
    /// number and a lane.
    pub(super) fn run(
        &mut self,
        module: &Module,
        regions: &Regions,
        local: u64,
        built_in: &impl Fn(u32, u32) -> Result<u64, Fault>,
        budget: &mut u64,
    ) -> Result<Stop, Fault> {
        let start = self.private.as_mut_ptr() as u64;
        let reach = Reach { regions, private: (start, start + self.private.len() as u64 * 8) };
        loop {
            if *budget == 0 {
                return Ok(Stop::Exhausted);
            }
            *budget -= 1;
            let place = self.place;
            let step = module.steps.get(place as usize).ok_or("the end of a function without a return")?;
            self.place += 1;
            match step {
                Step::Move { to, from, lanes } => {
                    for lane in 0..*lanes {
                        self.put(to + lane, self.at(from + lane));
                    }
                }
                Step::Binary { operation, of, to, a, b, lanes } => {
                    for lane in 0..*lanes {
                        let value = binary(*operation, *of, self.at(a + lane), self.at(b + lane))?;
                        self.put(to + lane, value);
                    }
                }
                Step::Unary { operation, from, of, to, a, lanes } => {
                    for lane in 0..*lanes {
                        self.put(to + lane, unary(*operation, *from, *of, self.at(a + lane)));
                    }
                }
                Step::Select { to, condition, yes, no, lanes } => {
                    let from = if self.at(*condition) != 0 { yes } else { no };
                    for lane in 0..*lanes {
                        self.put(to + lane, self.at(from + lane));
                    }
                }
                Step::Load { to, address, bytes, alignment, lanes } => {
                    let first = self.at(*address);
                    for lane in 0..*lanes {
                        let address = first.wrapping_add(u64::from(lane) * u64::from(*bytes));
                        let alignment = if lane == 0 { *alignment } else { 1 };
                        self.put(to + lane, reach.load(address, usize::from(*bytes), alignment)?);
                    }
                }
                Step::Store { address, from, bytes, alignment, lanes } => {
                    let first = self.at(*address);
                    for lane in 0..*lanes {
                        let address = first.wrapping_add(u64::from(lane) * u64::from(*bytes));
                        let alignment = if lane == 0 { *alignment } else { 1 };
                        reach.store(address, usize::from(*bytes), alignment, self.at(from + lane))?;
                    }
                }
                Step::BuiltIn { to, number, lanes } => {
                    for lane in 0..*lanes {
                        self.put(to + lane, built_in(*number, lane)?);
                    }
                }
                Step::Local { to, offset } => self.put(*to, local + offset),
                Step::Private { to, offset } => self.put(*to, start + offset),
                Step::Address { to, base, constant, indices } => {
                    let mut address = self.at(*base).wrapping_add(*constant);
                    for (slot, of, bytes) in indices {
                        let index = unary(Unary::ResizeSigned, *of, Scalar::I64, self.at(*slot));
                        address = address.wrapping_add(index.wrapping_mul(*bytes));
                    }
                    self.put(*to, address);
                }
                Step::Atomic { operation, of, to, address, value, expected } => {
                    let (address, bytes) = (self.at(*address), of.bytes());
                    let (value, expected) = (self.at(*value), self.at(*expected));
                    // Items run in turn, so this is atomic.
                    let before = match operation {
                        Atomic::Store => 0,
                        _ => reach.load(address, bytes, bytes as u32)?,
                    };
                    let after = match operation {
                        Atomic::Load => None,
                        Atomic::Store | Atomic::Exchange => Some(value),
                        Atomic::CompareExchange => (before == expected).then_some(value),
                        Atomic::Of(operation) => Some(binary(*operation, *of, before, value)?),
                    };
                    if let Some(after) = after {
                        reach.store(address, bytes, bytes as u32, after)?;
                    }
                    self.put(*to, before);
                }
                Step::Jump { target, moves } => self.go(*target, moves),
                Step::Branch { condition, yes, yes_moves, no, no_moves } => {
                    if self.at(*condition) != 0 {
                        self.go(*yes, yes_moves);
                    } else {
                        self.go(*no, no_moves);
                    }
                }
                Step::Call { target, moves, to } => {
                    if self.callers.len() == DEEPEST {
                        return Err(format!("calls are deeper than {DEEPEST}"));
                    }
                    self.callers.push((self.place, *to));
                    self.go(*target, moves);
                }
                Step::Return => match self.callers.pop() {
                    Some((place, _)) => self.place = place,
                    None => return Ok(Stop::End),
                },
                Step::ReturnValue { from, lanes } => {
                    let Some((place, to)) = self.callers.pop() else { return Ok(Stop::End) };
                    for lane in 0..*lanes {
                        self.put(to + lane, self.at(from + lane));
                    }
                    self.place = place;
                }
                Step::Barrier => return Ok(Stop::Barrier(place)),
                Step::Unreachable => return Err("a place that is said to be unreachable".to_owned()),
            }
        }
    }
}
