//! What kernels of one source print.

#![cfg(feature = "std")]

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{LaunchError, set_printer};

/// The lines of all tests, which begin with their own word.
static PRINTED: Mutex<String> = Mutex::new(String::new());

/// The bytes of each piece of a long text.
static PIECES: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Whether the printer panicked.
static DIED: AtomicBool = AtomicBool::new(false);

fn keep(text: &str) {
    if text.starts_with("long ") {
        assert!(text.ends_with('\n'), "a piece ends with a line");
        return PIECES.lock().expect("no panic").push(text.len());
    }
    if text.starts_with("dies ") {
        DIED.store(true, Ordering::Relaxed);
        panic!("the printer's own, as planned");
    }
    PRINTED.lock().expect("no panic").push_str(text);
}

/// The lines that begin with a word, without it.
fn printed(word: &str) -> Vec<String> {
    let all = PRINTED.lock().expect("no panic");
    all.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect()
}

fn queue() -> Queue<HostHeap> {
    set_printer(Some(keep));
    HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue")
}

fn items(count: u64) -> Range<1> {
    Range::new([count]).expect("a range")
}

#[kernels]
mod kernels {
    #[kernel_fn]
    fn half(x: f64) -> f64 {
        println!("every half of {x:?}");
        x / 2.0
    }

    #[kernel]
    pub(super) fn everything(a: &[f32], b: &[u64], c: &mut [f64], factor: f32, flags: &[bool]) {
        let i = global_id(0);
        let wide = (a[i], i as i32 - 3);
        print!("every {i} {} {:>8.3} ", a[i], c[i]);
        print!("{{{}}} {flag}", b[i], flag = flags[i]);
        println!("{0:+} {0:#x} {1:e} {factor} {2} {3} {4:05}", wide.1, wide.0, 7, 0.5, a[i] > 1.0);
        for k in 0..i {
            println!("every {k:<3}|{k:^5}|{:-^7}|", k * 2);
        }
        c[i] = half(c[i]);
        println!();
    }

    #[kernel]
    pub(super) fn many(a: &mut [u32]) {
        let i = global_id(0);
        println!("many {i}");
        a[i] = 1;
    }

    #[kernel(group = 4)]
    pub(super) fn tiles(a: &[i16], b: &mut [i64]) {
        #[local]
        let mut lm: [i16; 4];
        let l = local_id(0);
        lm[l] = a[global_id(0)];
        barrier(LOCAL);
        let other = lm[3 - l];
        println!("tiles {} {other:x}", group_id(0));
        b[global_id(0)] = other as i64;
    }

    #[kernel]
    pub(super) fn outside(index: &[u32], a: &mut [u32]) {
        let i = global_id(0);
        println!("outside {i}");
        a[i] = index[index[i] as u64];
    }

    #[kernel]
    pub(super) fn dies(index: &[u32], a: &mut [u32]) {
        let i = global_id(0);
        println!("dies {i}");
        a[i] = index[index[i] as u64];
    }

    #[kernel]
    pub(super) fn long(a: &mut [u32]) {
        let i = global_id(0);
        println!("long {i:1000}{i:1000}");
        a[i] = 1;
    }

    #[kernel(dimensions = 2)]
    pub(super) fn rows(a: &mut [u8]) {
        let (r, c) = (global_id(0), global_id(1));
        println!("rows {r} {c}");
        a[r * global_size(1) + c] = 1;
    }
}

const A: [f32; 5] = [0.1, 3.4e38, f32::NEG_INFINITY, 1e-45, -2.5];
const B: [u64; 5] = [0, u64::MAX, 1 << 63, 7, 8];
const C: [f64; 5] = [0.1, -1e300, f64::NAN, 2.5, 0.0];
const FLAGS: [u8; 5] = [0, 1, 0, 255, 1];

/// What plain Rust prints.
fn model() -> Vec<String> {
    let mut text = String::new();
    for i in 0..5_usize {
        let (a, b, c, flag, factor) = (A[i], B[i], C[i], FLAGS[i] != 0, 0.25_f32);
        let wide = (a, i as i32 - 3);
        text += &format!("every {i} {} {:>8.3} {{{}}} {flag}", a, c, b);
        text += &format!("{0:+} {0:#x} {1:e} {factor} {2} {3} {4:05}\n", wide.1, wide.0, 7, 0.5, a > 1.0);
        for k in 0..i {
            text += &format!("every {k:<3}|{k:^5}|{:-^7}|\n", k * 2);
        }
        text += &format!("every half of {c:?}\n\n");
    }
    text.lines().filter_map(|line| line.strip_prefix("every")).map(str::to_owned).collect()
}

#[test]
fn items_print_what_rust_would_print() {
    let queue = queue();
    let (a, b) = (vec(&queue, &A), vec(&queue, &B));
    let (mut c, flags) = (vec(&queue, &C), vec(&queue, &FLAGS));
    let launch = || Launch::with_range(&queue, items(5));
    let proof = launch().proof(kernels::everything, (&a, &b, &mut c, 0.25, &flags)).expect("arguments");
    assert!(proof.is_proven(), "{proof:?}");
    assert!(printed("every").is_empty(), "nothing ran");
    launch().check(kernels::everything, (&a, &b, &mut c, 0.25, &flags)).expect("no fault");
    assert_eq!(printed("every"), model());
    launch()
        .require_proof()
        .run(kernels::everything, (&a, &b, &mut c, 0.25, &flags))
        .expect("a launch")
        .wait()
        .expect("an end");
    assert_eq!(printed("every"), [model(), model()].concat());
    assert_eq!(c.read().expect("a view")[3], 1.25);
}

fn vec<T: bytemuck::Pod>(queue: &Queue<HostHeap>, values: &[T]) -> UsmVec<T, Host, HostHeap> {
    UsmVec::from_slice(queue, values).expect("memory")
}

#[test]
fn lost_lines_are_counted() {
    let queue = queue();
    let count = 1_000_000;
    let mut a = vec(&queue, &vec![0_u32; count]);
    let _ = Launch::with_range(&queue, items(count as u64)).run(kernels::many, (&mut a,)).expect("a launch");
    let lines = printed("many ");
    assert_eq!(lines.len(), 1 << 14);
    let numbers: Vec<usize> = lines.iter().map(|line| line.parse().expect("a number")).collect();
    assert!(numbers.is_sorted_by(|one, two| one < two), "each item has one line, in order");
    let lost = printed("kernel many: ");
    assert_eq!(lost, ["983616 more lines are lost: a launch keeps 16384"]);
    assert!(a.read().expect("a view").iter().all(|one| *one == 1));
}

#[test]
fn groups_with_barriers_and_two_dimensions_print_by_items() {
    let queue = queue();
    let (a, mut b) = (vec(&queue, &[1_i16, -1, 300, 4, 5, 6, 7, 8]), vec(&queue, &[0_i64; 8]));
    let range = NdRange::new([8], [4]).expect("a range");
    let _ = Launch::new(&queue, range).run(kernels::tiles, (&a, &mut b)).expect("a launch");
    assert_eq!(printed("tiles "), ["0 4", "0 12c", "0 ffff", "0 1", "1 8", "1 7", "1 6", "1 5"]);
    let mut a = vec(&queue, &[0_u8; 6]);
    let range = Range::new([2, 3]).expect("a range");
    let _ = Launch::with_range(&queue, range).run(kernels::rows, (&mut a,)).expect("a launch");
    assert_eq!(printed("rows "), ["0 0", "0 1", "0 2", "1 0", "1 1", "1 2"]);
}

#[test]
fn what_was_printed_before_a_fault_is_shown() {
    let queue = queue();
    let (index, mut a) = (vec(&queue, &[0_u32, 1, 9, 2]), vec(&queue, &[0_u32; 4]));
    let launch = || Launch::with_range(&queue, items(4));
    launch().check(kernels::outside, (&index, &mut a)).expect_err("a fault");
    assert!(printed("outside ").is_empty());
    let ran = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        launch().run(kernels::outside, (&index, &mut a)).map(drop)
    }));
    let text = ran.expect_err("an index outside");
    assert!(text.downcast_ref::<String>().expect("a text").contains("index 9"));
    assert_eq!(printed("outside "), ["0", "1", "2"]);
    let refused = launch().require_proof().run(kernels::outside, (&index, &mut a));
    assert!(matches!(refused.expect_err("no proof"), LaunchError::Unproven { .. }));
    assert_eq!(printed("outside ").len(), 3, "nothing ran");
}

#[test]
fn long_texts_come_in_pieces_of_whole_lines() {
    let queue = queue();
    let mut a = vec(&queue, &[0_u32; 3000]);
    let _ = Launch::with_range(&queue, items(3000)).run(kernels::long, (&mut a,)).expect("a launch");
    let pieces = PIECES.lock().expect("no panic");
    assert_eq!(pieces.iter().sum::<usize>(), 3000 * 2006);
    assert!(pieces.len() > 4 && pieces.iter().all(|piece| *piece < (1 << 20) + 2006), "{pieces:?}");
}

/// A second panic while the first one unwinds would end the process.
#[test]
fn a_printer_may_panic_while_the_launch_does() {
    let queue = queue();
    let (index, mut a) = (vec(&queue, &[0_u32, 1, 9, 2]), vec(&queue, &[0_u32; 4]));
    let ran = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        Launch::with_range(&queue, items(4)).run(kernels::dies, (&index, &mut a)).map(drop)
    }));
    let text = ran.expect_err("an index outside");
    assert!(text.downcast_ref::<String>().expect("the launch's own").contains("index 9"));
    assert!(DIED.load(Ordering::Relaxed), "the printer was called");
}
