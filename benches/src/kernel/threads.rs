//! Launches on the pool's threads beside the same launches on one thread, in wall time.

use core::hint::black_box;

use usm_core::Queue;
use usm_core::backend::host::HostHeap;
use usm_kernel::prelude::*;

use super::one_source::{matmul, saxpy};
use super::{usm, values};
use crate::row::{Row, microseconds};

const PEER: &str = "one thread";

pub(super) fn rows(queue: &Queue<HostHeap>) -> Vec<Row> {
    let mut rows = vec![multiplied(queue)];
    rows.extend([1 << 12, 1 << 20, 1 << 24].map(|n| saxpied(queue, n)));
    rows
}

fn multiplied(queue: &Queue<HostHeap>) -> Row {
    const N: usize = 512;
    let some: Vec<f32> = values().into_iter().cycle().take(N * N).collect();
    let (a, b) = (usm(queue, &some), usm(queue, &some));
    let (mut c, mut d) = (usm(queue, &vec![0.0_f32; N * N]), usm(queue, &vec![0.0_f32; N * N]));
    let range = NdRange::new([N as u64; 2], [16, 16]).expect("the sizes divide");
    let ours = || {
        let arguments = (N as u64, black_box(&a), black_box(&b), black_box(&mut c));
        let _ = Launch::new(queue, range).run(matmul, arguments).expect("launches");
    };
    let theirs = || {
        let arguments = (N as u64, black_box(&a), black_box(&b), black_box(&mut d));
        let _ = Launch::new(queue, range).threads(1).run(matmul, arguments).expect("launches");
    };
    let (ours, theirs) = microseconds(ours, theirs);
    Row::new("threads: matmul n=512", PEER, "us", ours, theirs)
}

fn saxpied(queue: &Queue<HostHeap>, n: usize) -> Row {
    let some: Vec<f32> = values().into_iter().cycle().take(n).collect();
    let (x, mut y, mut z) = (usm(queue, &some), usm(queue, &some), usm(queue, &some));
    let range = Range::new([n as u64]).expect("fits");
    let ours = || {
        let arguments = (1e-6, black_box(&x), black_box(&mut y));
        let _ = Launch::with_range(queue, range).run(saxpy, arguments).expect("launches");
    };
    let theirs = || {
        let arguments = (1e-6, black_box(&x), black_box(&mut z));
        let _ = Launch::with_range(queue, range).threads(1).run(saxpy, arguments).expect("launches");
    };
    let (ours, theirs) = microseconds(ours, theirs);
    Row::new(&format!("threads: saxpy n={n}"), PEER, "us", ours, theirs)
}
