//! The safe handles compared with the shortest equivalent sequence of driver calls, on every
//! installed runtime; and a large registry.
//!
//! A missing runtime is omitted, with the reason on standard error. Level Zero runs in separate
//! processes: on the test driver, which executes on the host, its rows show our overhead for a
//! call; on Intel's driver without a GPU, that overhead beside the real cost of its calls.

mod cuda;
mod level_zero;
mod opencl;
mod peer;
mod strided;
mod sycl;

use std::hint::black_box;

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, MemorySource, PointerInfo, Registry, Request};

use crate::pairs::{Clock, pairs};
use crate::row::Row;

pub(crate) fn rows() -> Vec<Row> {
    if level_zero::is_child() {
        return level_zero::rows().unwrap_or_else(|reason| skipped("Level Zero", &reason));
    }
    let mut rows = vec![registry(), ledger()];
    rows.extend(middle(opencl::rows).unwrap_or_else(|reason| skipped("OpenCL", &reason)));
    rows.extend(middle(sycl::rows).unwrap_or_else(|reason| skipped("SYCL", &reason)));
    rows.extend(level_zero::on_the_host().unwrap_or_else(|reason| skipped("Level Zero", &reason)));
    rows.extend(level_zero::in_capture().unwrap_or_else(|reason| skipped("Intel's driver", &reason)));
    rows.extend(middle(cuda::rows).unwrap_or_else(|reason| skipped("CUDA", &reason)));
    rows
}

/// For each row, the middle one of several rounds by its ratio. Memory layout and other load of the
/// machine move a row by some hundredths for a while, so each round makes everything anew.
fn middle(round: impl Fn() -> Result<Vec<Row>, String>) -> Result<Vec<Row>, String> {
    const ROUNDS: usize = 5;
    let mut rounds = (0..ROUNDS).map(|_| round().map(Vec::into_iter)).collect::<Result<Vec<_>, _>>()?;
    let next = || rounds.iter_mut().map(Iterator::next).collect::<Option<Vec<Row>>>();
    let middle_one = |mut rows: Vec<Row>| {
        rows.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
        rows.swap_remove(ROUNDS / 2)
    };
    Ok(core::iter::from_fn(next).map(middle_one).collect())
}

fn skipped(runtime: &str, reason: &str) -> Vec<Row> {
    eprintln!("skipped: backends on {runtime}: {reason}");
    Vec::new()
}

/// A lookup among 10,000 live allocations; the peer searches a sorted slice that never changes and
/// has no lock.
fn registry() -> Row {
    const LIVE: usize = 10_000;
    let info = |slot: usize| PointerInfo {
        kind: AllocKind::Shared,
        // Spread as an allocator would: 4 KiB blocks with gaps.
        base: 0x7000_0000_0000 + slot * 12_288,
        size: 4096,
        device: Some(0),
        context: 1,
    };
    let registry = Registry::new();
    (0..LIVE).for_each(|slot| registry.insert(info(slot)));
    let infos: Vec<PointerInfo> = (0..LIVE).map(info).collect();
    let mut addresses = (0..LIVE).map(|step| info(step * 7919 % LIVE).base + 100).collect::<Vec<_>>();
    addresses.rotate_left(17);
    let (mut one, mut two) = (addresses.iter().cycle(), addresses.iter().cycle());
    let pairs = pairs(
        Clock::Thread,
        || {
            black_box(registry.find(*one.next().expect("endless")));
        },
        || {
            let address = *two.next().expect("endless");
            let index = infos.partition_point(|info| info.base <= address);
            black_box(infos[index - 1].contains(address));
        },
    );
    pairs.row("registry query, 10,000 live", "binary search", "ns", 1.0)
}

/// The cost of the ledger: an allocation of host memory beside the allocator's call.
fn ledger() -> Row {
    let context = HostHeap::new().context();
    let request = Request::new(AllocKind::Host, 4096);
    let layout = std::alloc::Layout::from_size_align(4096, 64).expect("a valid layout");
    let pairs = pairs(
        Clock::Thread,
        || drop(black_box(context.allocate(&request).expect("memory"))),
        || {
            // SAFETY: the size is not zero.
            let pointer = black_box(unsafe { std::alloc::alloc(layout) });
            // SAFETY: just allocated with this layout.
            unsafe { std::alloc::dealloc(pointer, layout) };
        },
    );
    pairs.row("allocate and free 4096 B host", "global allocator", "ns", 1.0)
}
