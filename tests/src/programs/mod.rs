//! Random programs in safe Rust, and the values that they must read. A program gives the same
//! values as run line by line, whatever the device reorders. A failure gives an error or the right
//! values, never others.
//!
//! A program works with two contexts, queues of both orders, arrays of every kind and source,
//! buffers, an arena, views, copies, fills, kernels and events. It drops and forgets any of them
//! while work is in flight. Only [`UsmVec::allocation_mut`](usm_core::UsmVec::allocation_mut) is
//! unsafe; the steps keep its contract, because they copy only initialised elements.

mod random;
mod side;
mod step;
mod world;

pub use random::{Random, number_in};
pub use step::Step;
use usm_core::backend::mock::{Fault, Mock, Operation};
use usm_core::{Context, Error, ErrorKind, Result};
use usm_kernel::Programmable;

use world::World;

/// The runtime of the programs, beyond their contexts.
pub trait Driver<B: Programmable> {
    /// A new context.
    ///
    /// # Errors
    /// The driver's, if it was told to fail.
    fn context(&self) -> Result<Context<B>>;

    /// Runs some operations on a device that runs on demand.
    fn advance(&self, operations: usize) {
        let _ = operations;
    }

    /// Whether kernels are launched. A runtime's compiler may take longer than everything else.
    fn has_kernels(&self) -> bool {
        true
    }

    /// Whether a wait makes the device run the awaited work.
    fn runs_by_itself(&self) -> bool {
        true
    }

    /// Makes a later operation fail when it is submitted or, if `late`, when it runs. Returns
    /// whether the driver can.
    fn fail(&self, sort: usize, skip: usize, late: bool) -> bool {
        let _ = (sort, skip, late);
        false
    }

    /// The driver's verdict, after the program's objects are dropped, except forgotten ones.
    ///
    /// # Errors
    /// Misuse, and leftovers: `tidy` means that nothing failed and nothing was forgotten.
    fn verdict(&self, tidy: bool) -> core::result::Result<(), String> {
        let _ = tidy;
        Ok(())
    }
}

/// Makes an operation of the mock fail, of one of eight kinds.
pub fn inject(mock: &Mock, sort: usize, skip: usize, late: bool) {
    const SORTS: [Operation; 8] = [
        Operation::Copy,
        Operation::Fill,
        Operation::Task,
        Operation::Barrier,
        Operation::AllocateInOrder,
        Operation::FreeInOrder,
        Operation::Allocate,
        Operation::CreateQueue,
    ];
    let error = Error::from(ErrorKind::Native { operation: "an operation of the program" });
    mock.inject(Fault { operation: SORTS[sort % SORTS.len()], skip, error, late });
}

/// Counts of the programs' actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of programs.
    pub programs: usize,
    /// Number of reads with the model's values.
    pub reads: usize,
    /// Number of operations and reads that were refused or failed.
    pub errors: usize,
    /// Number of requested faults.
    pub faults: usize,
}

impl Tally {
    /// Adds the counts.
    pub fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.reads += other.reads;
        self.errors += other.errors;
        self.faults += other.faults;
    }
}

/// Runs one program.
///
/// # Errors
/// A read with other values than the model's, an error where nothing can fail, and the driver's
/// [verdict](Driver::verdict).
pub fn run<B: Programmable + 'static>(
    driver: &impl Driver<B>,
    steps: &[Step],
) -> core::result::Result<Tally, String> {
    let mut world = World::new(driver);
    for (number, step) in steps.iter().enumerate() {
        world.take(step).map_err(|wrong| format!("step {number}, {step:?}: {wrong}"))?;
    }
    let (tally, tidy) = world.end().map_err(|wrong| format!("at the end: {wrong}"))?;
    driver.verdict(tidy)?;
    Ok(tally)
}

/// Runs the programs of `count` seeds from `first` on, each on a driver of its own. With `faults`
/// some operations are told to fail. Shortens a failing program as far as possible by omitting
/// steps.
///
/// # Panics
/// With the failing program.
pub fn run_all<B: Programmable + 'static, D: Driver<B>>(
    first: u64,
    count: u64,
    faults: bool,
    driver: impl Fn(u64) -> D,
) -> Tally {
    let mut all = Tally::default();
    for seed in first..first + count {
        let mut steps = step::program(&mut Random::new(seed), faults);
        match run(&driver(seed), &steps) {
            Ok(tally) => all.add(tally),
            Err(wrong) => {
                let wrong = shorten(&mut steps, |steps| run(&driver(seed), steps).err()).unwrap_or(wrong);
                let lines: Vec<_> = steps.iter().map(|step| format!("  {step:?}")).collect();
                panic!("seed {seed}: {wrong}\n{}", lines.join("\n"));
            }
        }
    }
    all
}

/// Omits the steps that are not needed for the failure.
fn shorten(steps: &mut Vec<Step>, goes_wrong: impl Fn(&[Step]) -> Option<String>) -> Option<String> {
    let (mut last, mut width) = (None, steps.len().div_ceil(2));
    while width > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + width).min(steps.len()));
            match goes_wrong(&fewer) {
                Some(wrong) => (*steps, last) = (fewer, Some(wrong)),
                None => at += width,
            }
        }
        width /= 2;
    }
    last
}
