//! A block that is allocated and freed by one thread.

use std::sync::Mutex;

use offset_allocator::Allocator;
use usm_core::backend::Dyn;
use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Backend, Context, MemorySource, Request};
use usm_pool::Pool;

use super::umf::Umf;
use crate::cpu_time::{keep, medians};
use crate::row::Row;

/// Bytes of one unit of offset-allocator, which counts in 32 bits.
const UNIT: u64 = 64;

pub(super) fn peer(bytes: u64) -> Mutex<Allocator> {
    Mutex::new(Allocator::with_max_allocs((bytes / UNIT) as u32, 1 << 17))
}

pub(super) fn units(bytes: usize) -> u32 {
    (bytes as u64).div_ceil(UNIT) as u32
}

pub(super) fn peer_pair(other: &Mutex<Allocator>, size: usize) {
    let block = other.lock().expect("no panic").allocate(units(size)).expect("room");
    keep(&block);
    other.lock().expect("no panic").free(block);
}

pub(super) const PEER: &str = "offset-allocator, Mutex";

pub(super) fn request(size: usize) -> Request {
    Request::new(AllocKind::Shared, size)
}

fn mimalloc_pair(size: usize) {
    // SAFETY: any size may be asked for.
    let block = unsafe { libmimalloc_sys::mi_malloc(size) };
    keep(block);
    // SAFETY: of the call above.
    unsafe { libmimalloc_sys::mi_free(block) };
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let umf = Umf::load();
    for size in [64, 4 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30] {
        rows.extend(lifo("host", &HostHeap::new().context(), size, umf.as_ref()));
        rows.extend(lifo("Dyn over the host", &erased(), size, umf.as_ref()));
    }
    rows
}

fn lifo<B: Backend + 'static>(name: &str, context: &Context<B>, size: usize, umf: Option<&Umf>) -> Vec<Row> {
    let pool = Pool::new(context, AllocKind::Shared);
    let other = peer(4 << 30);
    let request = request(size);
    let ours = &mut || keep(pool.allocate(&request).expect("memory"));
    let theirs = &mut || peer_pair(&other, size);
    let plain = &mut || keep(context.allocate(&request).expect("memory"));
    let of_mimalloc = &mut || mimalloc_pair(size);
    let mut of_umf = || umf.iter().for_each(|umf| umf.pair(size));
    let mut all: Vec<(&str, &mut dyn FnMut())> =
        vec![("pool", ours), (PEER, theirs), ("Context::allocate", plain), ("mimalloc 2.3", of_mimalloc)];
    if umf.is_some() {
        all.push(("UMF 1.2, disjoint pool", &mut of_umf));
    }
    let times = medians(&mut all);
    let case = format!("pair of {size} B, {name}");
    let peers = all.iter().zip(&times).skip(1);
    peers.map(|((peer, _), theirs)| Row::new(&case, peer, "ns", times[0], *theirs)).collect()
}

/// The host behind the erased backend, which Python uses.
fn erased() -> Context<Dyn> {
    Context::from_raw(Dyn::erase_context::<HostHeap>(HostHeap::new().context().raw().clone()))
}
