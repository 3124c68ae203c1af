//! Copies between layouts of device memory that the host cannot access, compared with two ways to
//! do them by hand.

use std::mem::MaybeUninit;

use usm_core::{AllocKind, Allocation, Backend, MemorySource, Queue, Request, Strided};

use super::peer::Peer;
use crate::pairs::{Clock, pairs};
use crate::row::Row;

/// Bytes of the source. The destination has every other element of `ITEM` bytes, so half as many.
const SIZES: [usize; 3] = [64 << 10, 1 << 20, 16 << 20];
const ITEM: usize = 4;

/// Copies every other element into dense memory. One peer calls the driver and stages in heap
/// memory; the other uses the safe API with host memory of the context, which it allocates each
/// time.
pub(super) fn rows<B: Backend>(name: &str, queue: &Queue<B>, peer: &impl Peer) -> Vec<Row> {
    SIZES.into_iter().flat_map(|size| gathered(name, queue, peer, size)).collect()
}

fn gathered<B: Backend>(name: &str, queue: &Queue<B>, peer: &impl Peer, size: usize) -> [Row; 2] {
    let (half, count) = (size / 2, size / 2 / ITEM);
    let allocate =
        |kind, size| queue.context().allocate(&Request::new(kind, size)).expect("memory of the runtime");
    let device = |size| allocate(AllocKind::Device, size);
    let (src, mut dst, raw, mut other) = (device(size), device(half), device(half), device(half));
    let (shape, dense, strides) = ([count], [ITEM as isize], [2 * ITEM as isize]);
    let from = Strided::new(0, ITEM, &shape, &strides).expect("a layout");
    let to = Strided::new(0, ITEM, &shape, &dense).expect("a layout");
    let mut ours = || {
        let event = queue.copy_strided(&mut dst, &to, &src, &from).expect("a copy");
        event.wait().expect("done");
    };
    let by_hand = || {
        let mut read = Vec::<MaybeUninit<[u8; ITEM]>>::with_capacity(2 * count);
        let mut output = Vec::<MaybeUninit<[u8; ITEM]>>::with_capacity(count);
        peer.wait(peer.copy(read.as_mut_ptr().cast(), src.as_ptr().cast(), size));
        // SAFETY: the device has written all of the first array, and reads all of the second after
        // this.
        unsafe { gather(output.as_mut_ptr().cast(), read.as_ptr().cast(), count) };
        peer.wait(peer.copy(raw.as_ptr().cast(), output.as_ptr().cast(), half));
    };
    let mut through_host_memory = || {
        let (mut read, mut output): (Allocation<B>, Allocation<B>) =
            (allocate(AllocKind::Host, size), allocate(AllocKind::Host, half));
        queue.copy_bytes(&mut read, 0, &src, 0, size).expect("a copy").wait().expect("done");
        // SAFETY: as above.
        unsafe { gather(output.as_ptr().cast(), read.as_ptr().cast_const().cast(), count) };
        queue.copy_bytes(&mut other, 0, &output, 0, half).expect("a copy").wait().expect("done");
        std::hint::black_box(&mut output);
    };
    let case = format!("{name}: every other element of {size} B");
    [
        pairs(Clock::Process, &mut ours, by_hand).row(&case, "driver calls, heap", "us", 1e3),
        pairs(Clock::Process, &mut ours, &mut through_host_memory).row(
            &case,
            "host USM each time",
            "us",
            1e3,
        ),
    ]
}

/// # Safety
/// `count` elements in `to`, twice as many in `from`; the two are disjoint.
unsafe fn gather(to: *mut [u8; ITEM], from: *const [u8; ITEM], count: usize) {
    for index in 0..count {
        // SAFETY: the caller's promise.
        unsafe { to.add(index).write_unaligned(from.add(2 * index).read_unaligned()) };
    }
}
