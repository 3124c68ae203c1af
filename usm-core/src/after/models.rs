//! Models of the list: each value is released once, and never before its work is complete.

use alloc::sync::Arc;
use core::cell::Cell;
use core::time::Duration;

use loom::sync::atomic::{AtomicBool, AtomicUsize};
use loom::thread;

use super::*;
use crate::backend::EventStatus;
use crate::error::{Error, Result};

/// Work that another thread may complete.
#[derive(Clone)]
struct Work(Arc<AtomicBool>);

impl EventOps for Work {
    fn status(&self) -> Result<EventStatus> {
        let complete = self.0.load(Ordering::Acquire);
        Ok(if complete { EventStatus::Complete } else { EventStatus::Pending })
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        if self.is_complete() { Ok(()) } else { Err(Error::timeout(limit)) }
    }
}

/// Must not be released before its work is complete.
struct Code {
    work: Work,
    gone: Arc<AtomicUsize>,
}

impl Drop for Code {
    fn drop(&mut self) {
        assert!(self.work.is_complete(), "it runs");
        self.gone.fetch_add(1, Ordering::AcqRel);
    }
}

type List = After<Code, Work>;

/// Uses the lock once, because this thread must make loom's objects.
fn list() -> (Arc<List>, Arc<AtomicUsize>) {
    let list = List::new();
    drop(list.take());
    (Arc::new(list), Arc::new(AtomicUsize::new(0)))
}

fn work() -> Work {
    Work(Arc::new(AtomicBool::new(false)))
}

fn push(list: &List, work: &Work, gone: &Arc<AtomicUsize>) {
    list.push(Code { work: work.clone(), gone: Arc::clone(gone) }, alloc::vec![work.clone()]);
    list.collect(drop);
}

#[test]
fn a_value_is_released_once_and_after_its_work() {
    let mut builder = loom::model::Builder::new();
    // Three threads: three forced switches are enough to show their interactions.
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let ((list, gone), works) = (list(), [work(), work()]);
        let other = {
            let (list, work, gone) = (Arc::clone(&list), works[1].clone(), Arc::clone(&gone));
            thread::spawn(move || push(&list, &work, &gone))
        };
        let device = {
            let works = works.clone();
            thread::spawn(move || works.iter().for_each(|work| work.0.store(true, Ordering::Release)))
        };
        push(&list, &works[0], &gone);
        other.join().expect("no panic");
        device.join().expect("no panic");
        list.collect(drop);
        assert_eq!((gone.load(Ordering::Acquire), list.len()), (2, 0));
    });
}

/// The list is dropped while the device works: unfinished values are left, and no value is both
/// taken and left.
#[test]
fn unfinished_values_are_left_at_the_deadline() {
    loom::model(|| {
        let ((list, gone), works) = (list(), [work(), work()]);
        works.iter().for_each(|work| push(&list, work, &gone));
        let device = {
            let works = works.clone();
            thread::spawn(move || works.iter().for_each(|work| work.0.store(true, Ordering::Release)))
        };
        let left = Cell::new(0);
        list.drain(&mut Deadline::after(Duration::ZERO), drop, |_code| left.set(left.get() + 1));
        assert_eq!((gone.load(Ordering::Acquire) + left.get(), list.len()), (2, 0));
        device.join().expect("no panic");
    });
}
