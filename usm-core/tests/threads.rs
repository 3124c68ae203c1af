//! Work that is divided between threads.

#![cfg(feature = "threads")]

use core::num::NonZeroUsize;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;
use std::collections::HashSet;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use usm_core::threads::{self, Shares};
use usm_core::{Error, ErrorKind};

/// The tests share the number of threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn number(threads: usize) -> NonZeroUsize {
    NonZeroUsize::new(threads).unwrap()
}

/// Runs so many parts, each once, and returns the number of threads that ran some.
fn run(count: usize, stated: Option<usize>, part: impl Fn() + Sync) -> usize {
    let runs: Vec<AtomicU8> = (0..count).map(|_| AtomicU8::new(0)).collect();
    let seen = Mutex::new(HashSet::new());
    let work = |parts: Range<u64>| {
        seen.lock().unwrap().insert(thread::current().id());
        for number in parts {
            runs[number as usize].fetch_add(1, Ordering::Relaxed);
            part();
        }
    };
    let alone = |parts| {
        work(parts);
        ControlFlow::Continue(())
    };
    let others = |shares: &Shares| shares.for_each(work);
    assert_eq!(threads::divide(count as u64, stated.map(number), alone, others), Ok(count as u64));
    assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
    seen.into_inner().unwrap().len()
}

#[test]
fn each_part_runs_once_on_at_most_the_stated_number_of_threads() {
    let _turn = ONE_AT_A_TIME.lock();
    for threads in [3, 2, 7, 1] {
        threads::set(number(threads)).unwrap();
        assert_eq!(threads::count(), Ok(number(threads)));
        for count in [0, 1, 2, 63, 64, 65, 1000] {
            assert!(run(count, None, || ()) <= threads);
            assert!(run(count, Some(2), || ()) <= threads.min(2));
        }
        let slow = || thread::sleep(Duration::from_micros(200));
        let found = run(200, None, slow);
        assert!(found <= threads && (found > 1 || threads == 1), "{found} of {threads} threads");
    }
    assert!(matches!(
        threads::set(number(threads::MOST + 1)),
        Err(Error { kind: ErrorKind::BadSetting { .. }, .. })
    ));
}

#[test]
fn the_calling_thread_ends_the_work() {
    let _turn = ONE_AT_A_TIME.lock();
    threads::set(number(3)).unwrap();
    for stated in [None, Some(number(3))] {
        let last = AtomicU8::new(0);
        let run = |parts: Range<u64>| {
            thread::sleep(Duration::from_micros(100));
            last.fetch_max(parts.end as u8, Ordering::Relaxed);
        };
        let alone = |parts: Range<u64>| {
            let end = parts.end;
            run(parts);
            if end > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = threads::divide(200, stated, alone, |shares| shares.for_each(run)).unwrap();
        assert!((21..200).contains(&done), "{done}");
        assert_eq!(u64::from(last.into_inner()), done, "what was begun is done");
    }
}

#[test]
fn a_part_of_divided_work_divides_nothing() {
    let _turn = ONE_AT_A_TIME.lock();
    threads::set(number(4)).unwrap();
    let slow = || thread::sleep(Duration::from_micros(200));
    let inner = Mutex::new(Vec::new());
    let others = |shares: &Shares| {
        shares.for_each(|_| inner.lock().unwrap().push((threads::count(), run(20, None, slow))));
    };
    let alone = |_| {
        slow();
        ControlFlow::Continue(())
    };
    threads::divide(100, None, alone, others).unwrap();
    assert!(inner.into_inner().unwrap().iter().all(|found| *found == (Ok(NonZeroUsize::MIN), 1)));
}

#[test]
fn the_calling_thread_stops_the_others_for_a_while() {
    let _turn = ONE_AT_A_TIME.lock();
    threads::set(number(4)).unwrap();
    let (running, stops) = (AtomicU8::new(0), AtomicU8::new(0));
    let part = || {
        running.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_micros(50));
        running.fetch_sub(1, Ordering::SeqCst);
    };
    let alone = |_: Range<u64>, shares: &Shares| {
        part();
        shares.while_others_wait(|| {
            assert_eq!(running.load(Ordering::SeqCst), 0, "another thread runs a part");
            stops.fetch_add(1, Ordering::SeqCst);
        });
        ControlFlow::Continue(())
    };
    let others = |shares: &Shares| {
        while shares.take().is_some() {
            part();
            if !shares.may_continue() {
                return;
            }
        }
    };
    let done = threads::divide_if(300, Some(number(4)), || true, alone, others);
    assert_eq!(done, Ok(300));
    assert!(stops.into_inner() > 0);
    let never = threads::divide_if(100, None, || false, |_, _| ControlFlow::Continue(()), |_| unreachable!());
    assert_eq!(never, Ok(100));
}

/// The name of the variable with which this program runs itself.
const CASE: &str = "USM_THREADS_CASE";

#[test]
fn the_environment_states_the_number() {
    if std::env::var_os(CASE).is_some() {
        match threads::count() {
            Ok(count) => println!("found {count} {}", run(300, Some(64), || ())),
            Err(error) => println!("found {error}"),
        }
        return;
    }
    let ask = |value: &str| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        let program = program.args(["the_environment_states_the_number", "--exact", "--nocapture"]);
        let output = program.env(CASE, "1").env(threads::VARIABLE, value).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| Some(line.split_once("found ")?.1.to_owned())).unwrap()
    };
    assert_eq!(ask("1"), "1 1");
    assert!(ask("3").starts_with("3 "));
    for bad in ["0", "-1", "two", "4097", "1.5"] {
        assert_eq!(
            ask(bad),
            "USM_NUM_THREADS has no such value: a number of threads from 1 to 4096 is needed"
        );
    }
}
