//! What kernels print is the same on every device.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use usm_core::QueueOrder;
use usm_kernel::prelude::*;
use usm_kernel::{Programmable, set_printer};
use usm_kernel_jit::{Argument, Function};

use super::{queue, range, ready_in_every_format, shared};
use crate::Fixture;

/// What all launches printed. Each has a number of its own.
static PRINTED: Mutex<String> = Mutex::new(String::new());

fn keep(text: &str) {
    PRINTED.lock().expect("no panic").push_str(text);
}

/// The lines of a launch, and a number for the next one.
fn next(launch: u32) -> (Vec<String>, u32) {
    static LAUNCHES: AtomicU32 = AtomicU32::new(0);
    set_printer(Some(keep));
    let printed = PRINTED.lock().expect("no panic");
    let start = format!("{launch}: ");
    let lines = printed.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect();
    (lines, LAUNCHES.fetch_add(1, Ordering::Relaxed))
}

macro_rules! with_text {
    ($name:ident: $($kernel:item)+) => {
        $($kernel)+
        const $name: &str = stringify!($($kernel)+);
    };
}

with_text! { REPORT:
    #[kernel]
    fn report(launch: u32, a: &[f32], b: &[i8], index: &[u32], to: &mut [u64]) {
        let i = global_id(0);
        println!("{launch}: {i} {:.3} {a:?} {:#x} {}", a[i], b[i], b[i] > 0, a = a[i]);
        if i % 3 == 1 {
            println!("{launch}: {} of {}", to[i], global_size(0));
        }
        to[i] = index[index[i] as u64] as u64;
        println!("{launch}: after {0}", to[i]);
    }
}

#[kernel(group = 8)]
fn groups(launch: u32, to: &mut [u32]) {
    #[local]
    let mut lm: [u32; 8];
    let l = local_id(0);
    lm[l] = l as u32;
    barrier(LOCAL);
    println!("{launch}: {} has {}", group_id(0), lm[7 - l]);
    to[global_id(0)] = lm[7 - l];
}

#[kernel]
fn many(launch: u32, to: &mut [u8]) {
    println!("{launch}: {}", global_id(0));
    to[global_id(0)] = 1;
}

const ITEMS: usize = 37;

/// Values of every type, groups, checked indices, and more lines than are kept.
pub fn one_source_prints<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let a: Vec<f32> = (0..ITEMS).map(|i| i as f32 / 7.0 - 2.0).collect();
    let b: Vec<i8> = (0..ITEMS).map(|i| 5 - i as i8).collect();
    let index: Vec<u32> = (0..ITEMS as u32).map(|i| i * 5 % 37).collect();
    let wanted = || {
        let mut lines = Vec::new();
        for i in 0..ITEMS {
            lines.push(format!("{i} {:.3} {a:?} {:#x} {}", a[i], b[i], b[i] > 0, a = a[i]));
            if i % 3 == 1 {
                lines.push("7 of 37".to_owned());
            }
            lines.push(format!("after {}", index[index[i] as usize]));
        }
        lines
    };
    let (on_a, on_b, on_index) = (shared(&queue, &a), shared(&queue, &b), shared(&queue, &index));
    let items = |count: usize| Launch::with_range(&queue, Range::new([count as u64]).expect("a range"));
    for ready in ready_in_every_format::<report, B, 1>(fixture.context) {
        let (mut to, launch) = (shared(&queue, &[7_u64; ITEMS]), next(0).1);
        let run = items(ITEMS).run_on(&ready, report, (launch, &on_a, &on_b, &on_index, &mut to));
        run.expect("a launch").wait().expect("an end");
        assert_eq!(next(launch).0, wanted());
        let launch = next(0).1;
        let mut to = shared(&queue, &[7_u64; ITEMS]);
        items(ITEMS).check(report, (launch, &on_a, &on_b, &on_index, &mut to)).expect("no fault");
        assert_eq!(next(launch).0, wanted());

        // The fixed arena of the host has no memory for the lines.
        if queue.context().info().max_alloc_size < 1 << 22 {
            continue;
        }
        let function = Function::from_rust(REPORT, "lines.rs", None).expect("a kernel");
        let launch = next(0).1;
        let [a, b, index] = [Argument::read(&on_a), Argument::read(&on_b), Argument::read(&on_index)];
        let arguments = [Argument::value(launch), a, b, index, Argument::write(&mut to)];
        let text = function.launch(&queue, &[ITEMS as u64]);
        text.check(&arguments).expect("no fault");
        assert_eq!(next(launch).0, wanted());
        assert_eq!(text.interpret(&arguments, &mut || true).expect("no fault").expect("an end").len(), 4);
        text.run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(next(launch).0, [wanted(), wanted()].concat());
    }
    for ready in ready_in_every_format::<groups, B, 1>(fixture.context) {
        let (mut to, launch) = (shared(&queue, &[0_u32; 16]), next(0).1);
        let run = Launch::new(&queue, range([16], [8])).require_proof();
        run.run_on(&ready, groups, (launch, &mut to)).expect("a launch").wait().expect("an end");
        let wanted: Vec<String> = (0..16).map(|i| format!("{} has {}", i / 8, 7 - i % 8)).collect();
        assert_eq!(next(launch).0, wanted);
    }
    for ready in ready_in_every_format::<many, B, 1>(fixture.context) {
        let (mut to, launch) = (shared(&queue, &[0_u8; 20_000]), next(0).1);
        let run = items(20_000).run_on(&ready, many, (launch, &mut to));
        run.expect("a launch").wait().expect("an end");
        assert_eq!(next(launch).0.len(), 1 << 14);
        let printed = PRINTED.lock().expect("no panic");
        assert!(printed.contains("kernel many: 3616 more lines are lost: a launch keeps 16384\n"));
    }
}
