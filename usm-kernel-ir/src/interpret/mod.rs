//! Runs a kernel as its nodes say: the oracle of all writers, and the check of a launch without a
//! device.
//!
//! Each work-item runs up to a barrier, then the next one does. Every element remembers who touched
//! it, so that a race is found in whatever order the items run.

mod code;
mod fault;
mod input;
mod machine;
mod shadow;
mod value;

use alloc::vec::Vec;

pub use fault::{Deed, Fault, Site, WorkItem};
pub use input::{Argument, Input, InputError, length};

use crate::error::Refusal;
use crate::kernel::Kernel;
use crate::verify::verify_items;
use machine::Machine;
pub(crate) use value::neutral;

/// The order in which items run between two barriers, and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First to last.
    Forwards,
    /// Last to first.
    Backwards,
    /// Another permutation for each number.
    Shuffled(u64),
}

impl Order {
    /// The place that comes at this step of `count`.
    fn place(self, step: u64, count: u64) -> u64 {
        match self {
            Self::Forwards => step,
            Self::Backwards => count - 1 - step,
            // A stride that shares no factor with the count visits all places.
            Self::Shuffled(seed) => {
                let mut stride = (seed | 1) % count.max(1);
                while stride == 0 || common(stride, count) != 1 {
                    stride += 1;
                }
                (u128::from(step) * u128::from(stride) + u128::from(seed)).rem_euclid(u128::from(count))
                    as u64
            }
        }
    }
}

fn common(one: u64, two: u64) -> u64 {
    if two == 0 { one } else { common(two, one % two) }
}

/// Runs one launch in one order.
#[derive(Debug)]
pub struct Interpreter<'k> {
    kernel: &'k Kernel,
    input: Input,
    order: Order,
    steps: u64,
    watched: bool,
}

impl<'k> Interpreter<'k> {
    /// A launch of a verified kernel, of which `input` was made. `steps` limits the statements that
    /// all items run together.
    #[must_use]
    pub const fn new(kernel: &'k Kernel, input: Input, order: Order, steps: u64) -> Self {
        Self { kernel, input, order, steps, watched: true }
    }

    /// Looks for indices outside only, and not for races and memory without values.
    #[must_use]
    pub const fn unwatched(mut self) -> Self {
        self.watched = false;
        self
    }

    /// Runs it. The bytes of each array that is a parameter afterwards, in the order of the
    /// parameters.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn run(self) -> Result<Vec<Vec<u8>>, Fault> {
        self.run_while(&mut || true).map(Option::unwrap_or_default)
    }

    /// As [`run`](Self::run), as long as `go_on`, which is asked before each group, says so.
    /// Nothing where it said no.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn run_while(self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Vec<Vec<u8>>>, Fault> {
        let input = self.input.clone();
        let machine = Machine::new(self.kernel, self.input, self.order, self.steps).watched(self.watched);
        Ok(machine.run(go_on)?.map(|words| input.bytes(self.kernel, &words)))
    }
}

/// Why a launch did not pass [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The kernel itself.
    Kernel(Refusal),
    /// The range or the arguments.
    Input(InputError),
    /// What the items do.
    Fault(Fault),
}

impl core::fmt::Display for CheckError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Kernel(refusal) => refusal.fmt(f),
            Self::Input(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for CheckError {}

/// Runs a launch on copies of its arguments, in three orders of items and groups, and gives the
/// first fault: an index outside, two items that race, local or private memory that is read before
/// it is written, or a barrier that not all items of a group reach.
///
/// `global` and `local` have a number for each dimension, `arguments` one for each parameter. A
/// kernel needs no proof for it, and may be one of which [`verify`](crate::verify) refuses a
/// barrier. `steps` limits the statements that all items run together in one order.
///
/// The time is some 50 ns a node that runs, the memory some 200 bytes an element.
///
/// # Errors
/// [`CheckError`].
pub fn check(
    kernel: &Kernel,
    global: &[u64],
    local: &[u64],
    arguments: &[Argument<'_>],
    steps: u64,
) -> Result<(), CheckError> {
    verify_items(kernel).map_err(CheckError::Kernel)?;
    let input = Input::new(kernel, global, local, arguments).map_err(CheckError::Input)?;
    for order in [Order::Forwards, Order::Backwards, Order::Shuffled(0x9E37_79B9)] {
        Machine::new(kernel, input.clone(), order, steps).run(&mut || true).map_err(CheckError::Fault)?;
    }
    Ok(())
}
