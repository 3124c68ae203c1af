//! Random programs in safe Rust, and what they must read: a program gives what it would give run
//! line by line, whatever the device reorders, and whatever fails meanwhile gives an error or the
//! right values, never others.
//!
//! A program works with two contexts, queues of both orders, arrays of every kind and source,
//! buffers, an arena, views, copies, fills, kernels and events; it drops and forgets any of them
//! while work is in flight. The one thing that is not safe here is
//! [`UsmVec::allocation_mut`](usm_core::UsmVec::allocation_mut), whose promise the steps keep: only
//! elements with values are copied.

mod random;
mod step;
mod world;

pub use random::Random;
pub use step::Step;
use usm_core::backend::mock::{Fault, Mock, Operation};
use usm_core::{Context, Error, ErrorKind, Result};
use usm_kernel::Programmable;

use world::World;

/// The runtime that programs run on, as far as contexts do not tell it.
pub trait Driver<B: Programmable> {
    /// A new context.
    ///
    /// # Errors
    /// Where the driver was told to fail.
    fn context(&self) -> Result<Context<B>>;

    /// Lets the device run some operations, where it waits to be told.
    fn advance(&self, operations: usize) {
        let _ = operations;
    }

    /// Whether kernels are launched. A runtime's compiler may take longer than all the rest.
    fn has_kernels(&self) -> bool {
        true
    }

    /// Whether a wait makes the device run what it waits for.
    fn runs_by_itself(&self) -> bool {
        true
    }

    /// Makes a later operation fail, as it is submitted or, `late`, as it runs. Whether the driver
    /// can.
    fn fail(&self, sort: usize, skip: usize, late: bool) -> bool {
        let _ = (sort, skip, late);
        false
    }

    /// What the driver saw, once everything that the program did not forget is gone.
    ///
    /// # Errors
    /// What was misused, or is left: `tidy` says that nothing failed and nothing was forgotten.
    fn verdict(&self, tidy: bool) -> core::result::Result<(), String> {
        let _ = tidy;
        Ok(())
    }
}

/// Lets an operation of the mock fail, of one of eight sorts.
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

/// What programs did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Programs.
    pub programs: usize,
    /// Reads with the values that the model has.
    pub reads: usize,
    /// Operations and reads that were refused or failed.
    pub errors: usize,
    /// Faults that the driver was told to make.
    pub faults: usize,
}

impl Tally {
    /// Both.
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
/// A read with other values than the model has, an error where nothing can fail, and the driver's
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

/// Runs the programs of `count` seeds from `first` on, each on a driver of its own; with `faults`,
/// some operations are told to fail. What goes wrong is made as short as it can be by leaving steps
/// out.
///
/// # Panics
/// With the program that went wrong.
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

/// Leaves out what is not needed to go wrong.
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
