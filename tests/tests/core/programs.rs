//! Every program in safe Rust gives the same values as run line by line, in every order that the
//! device may choose, with any failure.
//!
//! `USM_PROGRAMS` is the number of programs (each runs with faults and without),
//! `USM_PROGRAMS_FROM` the first seed.

use core::time::Duration;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{Backend, Context, Result};
use usm_tests::programs::{Driver, Random, Tally, inject, number_in, run_all};

struct OnMock {
    mock: Mock,
    progress: Progress,
}

impl OnMock {
    /// A mock with one of all combinations of settings.
    fn of(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let progress =
            random.of(&[Progress::Immediate, Progress::OnWait, Progress::OnWait, Progress::Manual]);
        let mut mock = Mock::new(progress);
        if random.once_in(3) {
            mock = mock.without_concurrent_access();
        }
        if random.once_in(3) {
            mock = mock.without_queue_memory();
        }
        mock.seed(random.number());
        Self { mock, progress }
    }
}

impl Driver<Mock> for OnMock {
    fn context(&self) -> Result<Context<Mock>> {
        let mut device = None;
        self.mock.for_each_device(&mut |found| device = Some(found))?;
        let context = Context::new(&self.mock, &device.expect("a device"))?;
        if self.progress == Progress::Manual {
            context.set_wait_limit(Duration::ZERO);
        }
        Ok(context)
    }

    fn advance(&self, operations: usize) {
        for _ in 0..operations {
            if !self.mock.step() {
                break;
            }
        }
    }

    fn runs_by_itself(&self) -> bool {
        self.progress != Progress::Manual
    }

    fn fail(&self, sort: usize, skip: usize, late: bool) -> bool {
        inject(&self.mock, sort, skip, late);
        true
    }

    fn verdict(&self, tidy: bool) -> core::result::Result<(), String> {
        let misused = self.mock.violations();
        if !misused.is_empty() {
            return Err(format!("memory was misused: {misused:?}"));
        }
        let left = (self.mock.live_blocks(), self.mock.contexts(), self.mock.queued());
        if tidy && left != (0, 0, 0) {
            return Err(format!("blocks, contexts and operations are left: {left:?}"));
        }
        Ok(())
    }
}

/// Every operation is complete when its call returns.
struct OnHost(HostHeap);

impl Driver<HostHeap> for OnHost {
    fn context(&self) -> Result<Context<HostHeap>> {
        Ok(self.0.context())
    }
}

#[test]
fn programs_on_the_host_give_what_they_say() {
    let (first, count) = (number_in("USM_PROGRAMS_FROM", 0), number_in("USM_PROGRAMS", 300));
    let tally = run_all(first, count, false, |_| OnHost(HostHeap::new()));
    assert!(tally.reads > tally.programs * 5 && tally.errors == 0, "{tally:?}");
}

fn programs(faults: bool) -> Tally {
    let (first, count) = (number_in("USM_PROGRAMS_FROM", 0), number_in("USM_PROGRAMS", 300));
    let tally = run_all(first, count, faults, OnMock::of);
    println!("{tally:?}");
    assert_eq!(tally.programs as u64, count);
    tally
}

#[test]
fn programs_give_what_they_say() {
    let tally = programs(false);
    assert!(tally.reads > tally.programs * 5, "{tally:?}");
}

#[test]
fn programs_with_late_faults_read_the_right_values_or_errors() {
    let tally = programs(true);
    assert!(tally.reads > tally.programs && tally.errors > tally.programs && tally.faults > tally.programs);
}
