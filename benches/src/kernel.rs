//! Phased kernels beside the loops one would write by hand, in the cache (n = 65,536) where the
//! difference shows.

mod one_source;

use core::hint::black_box;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::sample::{Histogram, Reduce, Reverse, Saxpy, histogram_plain, saxpy_plain};
use usm_kernel::{Launch, NdRange, Range};

use crate::row::{Row, microseconds};

const N: usize = 1 << 16;
const GROUP: usize = 256;
const PEER: &str = "hand-written loop";

pub(crate) fn rows() -> Vec<Row> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("the host has queues");
    let mut rows = vec![reverse(&queue), reduce(&queue), saxpy(&queue), histogram(&queue)];
    rows.extend(one_source::rows(&queue));
    rows
}

fn row(name: &str, (ours, theirs): (f64, f64)) -> Row {
    Row::new(&format!("{name} n={N} group={GROUP}"), PEER, "us", ours, theirs)
}

fn values() -> Vec<f32> {
    (0..N).map(|i| (i % 1000) as f32 / 1000.0).collect()
}

fn usm<T: bytemuck::Pod>(queue: &Queue<HostHeap>, values: &[T]) -> UsmVec<T, Host, HostHeap> {
    UsmVec::from_slice(queue, values).expect("the host has memory")
}

fn grid(groups: usize) -> NdRange<1> {
    NdRange::new([(groups * GROUP) as u64], [GROUP as u64]).expect("the sizes divide")
}

fn reverse(queue: &Queue<HostHeap>) -> Row {
    // Zeros stay zeros however often the kernel runs: no value overflows, and the work is the same.
    let mut a = usm(queue, &vec![0.0; N]);
    let mut b = vec![0.0_f32; N];
    let mut lm = [0.0_f32; GROUP];
    let range = grid(N / GROUP);
    row(
        "reverse",
        microseconds(
            || {
                let _ = Launch::new(queue, range).run(Reverse, (black_box(&mut a),)).expect("launches");
            },
            || {
                for block in black_box(&mut b).chunks_exact_mut(GROUP) {
                    lm.copy_from_slice(block);
                    for (value, mirror) in block.iter_mut().zip(lm.iter().rev()) {
                        *value += mirror;
                    }
                }
            },
        ),
    )
}

fn reduce(queue: &Queue<HostHeap>) -> Row {
    const LANES: usize = 32;
    let kernel = Reduce::default();
    let groups = kernel.groups(N, GROUP);
    let a = usm(queue, &values());
    let mut sums = usm(queue, &vec![0.0_f32; groups]);
    let b = values();
    let range = grid(groups);
    row(
        "reduce",
        microseconds(
            || {
                let arguments = (black_box(&a), &mut sums);
                let _ = Launch::new(queue, range).run(kernel, arguments).expect("launches");
                black_box(sums.read().expect("done").iter().sum::<f32>());
            },
            || {
                let mut lanes = [0.0_f32; LANES];
                for block in black_box(&b).chunks_exact(LANES) {
                    for (lane, value) in lanes.iter_mut().zip(block) {
                        *lane += value;
                    }
                }
                black_box(lanes.iter().sum::<f32>());
            },
        ),
    )
}

fn saxpy(queue: &Queue<HostHeap>) -> Row {
    let x = usm(queue, &values());
    let mut y = usm(queue, &values());
    let (plain_x, mut plain_y) = (values(), values());
    let range = Range::new([N as u64]).expect("fits");
    row(
        "saxpy",
        microseconds(
            || {
                let arguments = (1e-6, black_box(&x), black_box(&mut y));
                let _ = Launch::with_range(queue, range).run(Saxpy, arguments).expect("launches");
            },
            || saxpy_plain(1e-6, black_box(&plain_x), black_box(&mut plain_y)),
        ),
    )
}

fn histogram(queue: &Queue<HostHeap>) -> Row {
    let bytes: Vec<u8> = (0..N as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    let kernel = Histogram::default();
    let a = usm(queue, &bytes);
    let mut counts = usm(queue, &[0_u32; Histogram::BINS]);
    let mut plain = [0_u32; Histogram::BINS];
    let range = grid(kernel.groups(N, GROUP));
    row(
        "histogram",
        microseconds(
            || {
                let arguments = (black_box(&a), &mut counts);
                let _ = Launch::new(queue, range).run(kernel, arguments).expect("launches");
            },
            || histogram_plain(black_box(&bytes), black_box(&mut plain)),
        ),
    )
}
