//! Forms of the language in kernels that are compiled, beside Rust's own.

#![cfg(all(feature = "macros", feature = "std"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;

const ITEMS: usize = 48;

#[kernels]
mod all {
    const WEIGHTS: [[u32; 2]; 3] = [[1, 2], [3, 4], [5, 6]];

    #[kernel_fn]
    fn ends(x: &[u32]) -> (u32, u32) {
        (x[0], x[x.len() - 1])
    }

    #[kernel]
    pub fn forms(a: &[u32], marks: &mut [bool], b: &mut [u32], width: usize) {
        let i = global_id(0);
        let row = &a[i * width..(i + 1) * width];
        let (mut first, mut last) = ends(&row[1..3]);
        if first > last {
            (first, last) = (last, first);
        }
        let pair = (first, {
            let more = last * 2;
            more + 1
        });
        let mut m = [[0_u32; 2]; 2];
        for r in 0..2_usize {
            m[r][1 - r] = WEIGHTS[r + 1][r];
        }
        b[i] = match i % 5 {
            0 | 1 => pair.0 + m[0][1],
            2..=3 if first > 40 => pair.1,
            other => m[1][0] * other as u32 + row[0],
        };
        marks[i] = first == last || marks[i];
    }

    #[kernel]
    pub fn positive(a: &[f32], b: &mut [f32]) {
        let i = global_id(0);
        assert!(a[i] > 0.0, "a \"root\"");
        b[i] = a[i].sqrt();
    }

    #[kernel]
    pub fn of_many(
        a: &[f32],
        b: &[f32],
        c: &[f32],
        d: &[f32],
        e: &[f32],
        f: &[f32],
        k: f32,
        l: f32,
        m: f32,
        n: f32,
        o: f32,
        out: &mut [f32],
    ) {
        let i = global_id(0);
        out[i] = (a[i] * k).erf() + b[i] * l + c[i] * m + d[i] * n + e[i] * o + f[i];
    }
}

#[test]
fn compiled_forms_are_those_of_rust() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let a: Vec<u32> = (0..ITEMS as u32 * 4).map(|i| i.wrapping_mul(2_654_435_769) >> 25).collect();
    let from = UsmVec::<u32, Host, _>::from_slice(&queue, &a).unwrap();
    let marked: Vec<u8> = (0..ITEMS).map(|i| u8::from(i % 7 == 0) * 9).collect();
    let mut marks = UsmVec::<u8, Host, _>::from_slice(&queue, &marked).unwrap();
    let mut b = UsmVec::<u32, Host, _>::zeroed(&queue, ITEMS).unwrap();
    let launch = Launch::with_range(&queue, Range::new([ITEMS as u64]).unwrap());
    let launch = launch.require_proof();
    launch.run(all::forms, (&from, &mut marks, &mut b, 4_usize)).unwrap().wait().unwrap();
    for (i, row) in a.chunks(4).enumerate() {
        let (first, last) = (row[1].min(row[2]), row[1].max(row[2]));
        let wanted = match i % 5 {
            0 | 1 => first + 3,
            2..=3 if first > 40 => last * 2 + 1,
            other => 6 * other as u32 + row[0],
        };
        assert_eq!(b.read().unwrap()[i], wanted, "item {i}");
        let mark = u8::from(first == last || marked[i] != 0);
        assert_eq!(marks.read().unwrap()[i], mark, "item {i}");
    }
}

#[test]
fn a_kernel_has_twelve_parameters() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let one = UsmVec::<f32, Host, _>::from_slice(&queue, &[0.5; ITEMS]).unwrap();
    let mut out = UsmVec::<f32, Host, _>::zeroed(&queue, ITEMS).unwrap();
    let launch = Launch::with_range(&queue, Range::new([ITEMS as u64]).unwrap());
    let arguments = (&one, &one, &one, &one, &one, &one, 1.0, 2.0, 3.0, 4.0, 5.0, &mut out);
    launch.run(all::of_many, arguments).unwrap().wait().unwrap();
    // erf(0.5), and the sum of the others.
    assert_eq!(out.read().unwrap()[7], 0.520_499_9 + 7.5);
}

#[test]
fn a_false_assertion_fails_the_launch() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let mut roots = UsmVec::<f32, Host, _>::zeroed(&queue, ITEMS).unwrap();
    let range = NdRange::new([ITEMS as u64], [1]).unwrap();
    let mut values = [4.0; ITEMS];
    let right = UsmVec::<f32, Host, _>::from_slice(&queue, &values).unwrap();
    Launch::new(&queue, range).check(all::positive, (&right, &mut roots)).unwrap();
    Launch::new(&queue, range).run(all::positive, (&right, &mut roots)).unwrap().wait().unwrap();
    assert_eq!(roots.read().unwrap()[..], [2.0; ITEMS]);
    values[5] = -1.0;
    let wrong = UsmVec::<f32, Host, _>::from_slice(&queue, &values).unwrap();
    let said = Launch::new(&queue, range).check(all::positive, (&wrong, &mut roots)).unwrap_err();
    assert!(said.to_string().contains("`assert a[i] > 0.0: a \"root\"` is false, by work-item"), "{said}");
    let run =
        core::panic::AssertUnwindSafe(|| Launch::new(&queue, range).run(all::positive, (&wrong, &mut roots)));
    let panic = std::panic::catch_unwind(run).expect_err("a panic, as of an index outside");
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.ends_with("`assert a[i] > 0.0: a \"root\"` is false"), "{said}");
}
