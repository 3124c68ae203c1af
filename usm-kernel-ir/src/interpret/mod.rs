//! Runs a kernel's nodes directly: the oracle of all writers, and the check of a launch without a
//! device.
//!
//! Each work-item runs up to a barrier, then the next one does. Every element records its accesses,
//! so a race is found in any order of the items.

mod code;
mod fault;
mod half;
mod input;
mod machine;
mod shadow;
mod value;

use alloc::vec::Vec;

pub use fault::{Deed, Fault, Site, WorkItem};
pub(crate) use input::length_with;
pub use input::{Argument, Input, InputError, length};

use crate::error::Refusal;
use crate::kernel::Kernel;
use crate::verify::verify_items;
use machine::Machine;
pub(crate) use shadow::{Element, Touch};
pub(crate) use value::{cast, compute, is_less, math, neutral, next_of_loop, unary};

/// The order of items between two barriers, and of groups.
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
    /// The position at this step of `count`.
    fn place(self, step: u64, count: u64) -> u64 {
        match self {
            Self::Forwards => step,
            Self::Backwards => count - 1 - step,
            // A stride that shares no factor with the count visits all positions.
            Self::Shuffled(seed) => {
                let mut stride = (seed | 1) % count.max(1);
                while stride == 0 || greatest_common_divisor(stride, count) != 1 {
                    stride += 1;
                }
                (u128::from(step) * u128::from(stride) + u128::from(seed)).rem_euclid(u128::from(count))
                    as u64
            }
        }
    }
}

fn greatest_common_divisor(one: u64, two: u64) -> u64 {
    if two == 0 { one } else { greatest_common_divisor(two, one % two) }
}

/// Runs one launch in one order.
#[derive(Debug)]
pub struct Interpreter<'k> {
    kernel: &'k Kernel,
    input: Input,
    order: Order,
    steps: u64,
    is_watched: bool,
}

impl<'k> Interpreter<'k> {
    /// A launch of a verified kernel, for which `input` was made. `steps` limits the statements of
    /// all items together.
    #[must_use]
    pub const fn new(kernel: &'k Kernel, input: Input, order: Order, steps: u64) -> Self {
        Self { kernel, input, order, steps, is_watched: true }
    }

    /// Detects only indices outside, not races and uninitialised memory, which is zero.
    #[must_use]
    pub const fn unwatched(mut self) -> Self {
        self.is_watched = false;
        self
    }

    /// Runs the launch. Returns the bytes of each array parameter, in the order of the parameters.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn run(self) -> Result<Vec<Vec<u8>>, Fault> {
        self.run_while(&mut || true).map(Option::unwrap_or_default)
    }

    /// [`run`](Self::run) while `go_on`, called every few milliseconds, returns true. `None` if it
    /// returned false.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn run_while(self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Vec<Vec<u8>>>, Fault> {
        let input = self.input.clone();
        let machine = Machine::new(self.kernel, self.input, self.order, self.steps).watch(self.is_watched);
        Ok(machine.run(go_on)?.map(|words| input.bytes(self.kernel, &words)))
    }
}

/// The reason why a launch did not pass [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The kernel itself.
    Kernel(Refusal),
    /// The range or the arguments.
    Input(InputError),
    /// A fault of its items.
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

/// Runs a launch on copies of its arguments, in three orders of items and groups. Returns the first
/// fault: an index outside, a race of two items, local or private memory that is read before it is
/// written, or a barrier that not all items of a group reach.
///
/// `global` and `local` have a number for each dimension, `arguments` one for each parameter. The
/// kernel needs no proof, and [`verify`](crate::verify) may refuse one of its barriers. `steps`
/// limits the statements of all items together in one order.
///
/// Takes about 50 ns for each executed node, and about 200 bytes for each element.
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
    check_while(kernel, global, local, arguments, steps, false, &mut || true)
}

/// [`check`] while `go_on`, called every few milliseconds, returns true. No fault if it returned
/// false. With `zeros`, local and private memory begins with zeros, as in all code, so no read of
/// it is a fault.
///
/// # Errors
/// As [`check`].
pub fn check_while(
    kernel: &Kernel,
    global: &[u64],
    local: &[u64],
    arguments: &[Argument<'_>],
    steps: u64,
    zeros: bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), CheckError> {
    verify_items(kernel).map_err(CheckError::Kernel)?;
    let input = Input::new(kernel, global, local, arguments).map_err(CheckError::Input)?;
    for order in [Order::Forwards, Order::Backwards, Order::Shuffled(0x9E37_79B9)] {
        let machine = Machine::new(kernel, input.clone(), order, steps).zeros(zeros);
        if machine.run(go_on).map_err(CheckError::Fault)?.is_none() {
            break;
        }
    }
    Ok(())
}
