//! Memory shared between processes and devices, on a driver that acts as both sides.

use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use usm_core::backend::Dyn;
use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::ipc::IpcHandle;
use usm_core::{
    AllocKind, Allocation, Backend, Block, Context, Device, ErrorKind, Lender, MemorySource, Pending,
    QueueOrder, Request, UsmVec,
};
use usm_pool::Pool;

#[test]
fn a_handle_leads_to_the_memory_and_is_closed_after_the_last_use() {
    let mock = Mock::new(Progress::Manual);
    let (context, other) = (mock.context(), mock.context());
    let (queue, reader) =
        (context.queue(QueueOrder::InOrder).unwrap(), other.queue(QueueOrder::InOrder).unwrap());
    let mut array = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let _ = queue.fill_bytes(&mut array, 0, 64, &[7]).unwrap();
    mock.finish();
    let handle = array.export_ipc().unwrap();
    let handle = IpcHandle::from_bytes(&handle.to_bytes()).unwrap();
    // SAFETY: `array` outlives the opened memory; from here on both sides only read.
    let opened = unsafe { other.open_ipc(&handle) }.unwrap();
    assert_eq!((opened.kind(), opened.size(), mock.opened_blocks()), (AllocKind::Device, 64, 1));
    assert_eq!(other.stats().sum.live, 0, "the ledger does not count foreign memory");
    let mut copy = other.allocate(&Request::new(AllocKind::Host, 64)).unwrap();
    let _ = reader.copy_bytes(&mut copy, 0, &opened, 0, 64).unwrap();
    drop(opened);
    assert_eq!(mock.opened_blocks(), 1, "the copy still reads it");
    mock.finish();
    other.collect();
    assert_eq!(mock.opened_blocks(), 0);
    let _guard = copy.wait_for_host(usm_core::Access::Read).unwrap();
    // SAFETY: host memory, initialised by the copy.
    assert_eq!(unsafe { core::slice::from_raw_parts(copy.as_ptr(), 64) }, [7; 64]);
}

#[test]
fn an_export_waits_for_the_work_that_writes_the_memory() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut array = UsmVec::<u8, Device, _>::zeroed(&queue, 16).unwrap();
    let _ = queue.fill(&mut array, 1).unwrap();
    assert!(mock.queued() > 0);
    array.allocation().export_ipc().unwrap();
    assert_eq!(mock.queued(), 0);
}

#[test]
fn handles_that_name_nothing_are_refused() {
    let mock = Mock::new(Progress::OnWait);
    let (context, other) = (mock.context(), mock.context());
    let array = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let handle = array.export_ipc().unwrap();
    mock.inject(Fault {
        operation: Operation::Ipc,
        skip: 0,
        error: ErrorKind::Native { operation: "the driver's call" }.into(),
        late: false,
    });
    assert!(array.export_ipc().is_err());
    let mut altered = handle.to_bytes();
    altered[24] ^= 1;
    // SAFETY: refused, because the driver knows no such block.
    let refused = unsafe { other.open_ipc(&IpcHandle::from_bytes(&altered).unwrap()) }.unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::Native { .. }));
    drop(array);
    assert_stale(&other, &handle);
    let host = usm_core::backend::host::HostHeap::new().context();
    // SAFETY: refused, because the runtime differs.
    let refused = unsafe { host.open_ipc(&handle) }.unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::Unsupported { .. }));
    assert_eq!(mock.opened_blocks(), 0);
}

/// The bytes of a handle come from another process. Values in it that contradict the opened memory
/// are refused.
#[test]
fn a_handle_that_was_altered_is_refused_or_names_a_part() {
    let mock = Mock::new(Progress::OnWait);
    let (context, other) = (mock.context(), mock.context());
    let array = context.allocate(&Request::new(AllocKind::Device, 4096)).unwrap();
    let good = array.export_ipc().unwrap().to_bytes();
    let altered = |kind: u8, offset: u64, size: u64| {
        let mut bytes = good;
        bytes[5] = kind;
        bytes[8..16].copy_from_slice(&offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&size.to_le_bytes());
        IpcHandle::from_bytes(&bytes).unwrap()
    };
    let device = good[5];
    for (kind, offset, size, wrong) in [
        (device, 0, 4096, None),
        (device, 96, 4000, None),
        (device, 0, 4097, Some(16)),
        (device, 96, 4001, Some(16)),
        (device, 4096, 1, Some(8)),
        (device, 1 << 40, 1 << 40, Some(8)),
        (AllocKind::Host as u8, 0, 4096, Some(5)),
        (AllocKind::Shared as u8, 0, 4096, Some(5)),
    ] {
        // SAFETY: `array` outlives the opened memory, which nothing accesses.
        match unsafe { other.open_ipc(&altered(kind, offset, size)) } {
            Ok(opened) => {
                assert_eq!(wrong, None, "{offset} {size}");
                assert_eq!(opened.as_ptr(), array.as_ptr().wrapping_add(offset as usize));
                // SAFETY: as above. Opened twice, it is the same memory, closed twice.
                let again = unsafe { other.open_ipc(&altered(kind, offset, size)) }.unwrap();
                assert_eq!((again.as_ptr(), mock.opened_blocks()), (opened.as_ptr(), 2));
            }
            Err(error) => {
                let len = IpcHandle::BYTES;
                assert_eq!(Some(error.kind), wrong.map(|byte| ErrorKind::BadIpcHandle { byte, len }));
            }
        }
        assert_eq!(mock.opened_blocks(), 0, "closed");
    }
    for cut in 0..IpcHandle::BYTES {
        assert!(IpcHandle::from_bytes(&good[..cut]).is_err());
    }
    assert_eq!(mock.violations(), []);
}

fn assert_stale<B: Backend>(context: &Context<B>, handle: &IpcHandle) {
    // SAFETY: refused, because the memory is freed.
    let refused = unsafe { context.open_ipc(handle) }.expect_err("stale");
    assert_eq!(refused.kind, ErrorKind::StaleIpcHandle);
    assert_eq!(refused.backend, Some(context.info().backend));
}

/// Memory that is named by a handle, opened and closed.
fn assert_lives<B: Backend>(context: &Context<B>, handle: &IpcHandle) {
    // SAFETY: closed at once, and never accessed.
    drop(unsafe { context.open_ipc(handle) }.expect("memory that lives"));
}

/// A driver gives memory out again, and then takes the old handle for the new memory.
#[test]
fn a_handle_of_freed_memory_does_not_open_the_memory_that_came_after_it() {
    let mock = Mock::default();
    let (context, other) = (mock.context(), mock.context());
    let request = Request::new(AllocKind::Device, 4096);
    let first = context.allocate(&request).unwrap();
    let handle = first.export_ipc().unwrap();
    assert_eq!(first.export_ipc(), Ok(handle), "exported once");
    assert_lives(&other, &handle);
    drop(first);
    let second = context.allocate(&request).unwrap();
    // The driver's part of the second handle, with the sign of life of the first.
    let mut reused = second.export_ipc().unwrap().to_bytes();
    let name = IpcHandle::BYTES - 16..;
    reused[name.clone()].copy_from_slice(&handle.to_bytes()[name]);
    assert_stale(&other, &IpcHandle::from_bytes(&reused).unwrap());
    assert_stale(&other, &handle);
    assert_lives(&other, &second.export_ipc().unwrap());
    assert_eq!((mock.opened_blocks(), mock.violations()), (0, vec![]));
}

/// Memory whose free waits for work is still that memory.
#[test]
fn a_handle_is_stale_when_the_memory_is_freed_and_not_before() {
    let mock = Mock::new(Progress::Manual);
    let (context, other) = (mock.context(), mock.context());
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut array = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let kept = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let [handle, kept_handle] = [&array, &kept].map(|memory| memory.export_ipc().unwrap());
    let _ = queue.fill_bytes(&mut array, 0, 64, &[7]).unwrap();
    drop(array);
    assert_lives(&other, &handle);
    mock.finish();
    context.collect();
    assert_stale(&other, &handle);
    // With a history the free takes another way.
    context.keep_history(10);
    assert_lives(&other, &kept_handle);
    drop(kept);
    assert_stale(&other, &kept_handle);
    assert_eq!(context.history().len(), 1);
    // What is not freed is not stale, whoever forgets it.
    let forgotten = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let handle = forgotten.export_ipc().unwrap();
    core::mem::forget(forgotten);
    drop((context, queue));
    assert_lives(&other, &handle);
}

/// A context that gives up waiting leaks the block, which its native context takes along.
#[test]
fn a_handle_is_stale_when_the_context_is_gone() {
    let mock = Mock::new(Progress::Manual);
    let (context, other) = (mock.context(), mock.context());
    context.set_wait_limit(core::time::Duration::ZERO);
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut array = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let handle = array.export_ipc().unwrap();
    let _ = queue.fill_bytes(&mut array, 0, 64, &[7]).unwrap();
    drop(array);
    drop((context, queue));
    assert_stale(&other, &handle);
}

/// Gives nothing back: the base is freed with the source.
struct Parts(#[allow(dead_code, reason = "keeps the base")] Allocation<Mock>);

// SAFETY: no part has uses, and the test lends each again only when it is back.
unsafe impl Lender<Mock> for Parts {
    unsafe fn take_back(lender: NonNull<Self>, _: u32, _: &Block, _: Pending<Mock>) {
        // SAFETY: the part holds a count.
        drop(unsafe { Arc::from_raw(lender.as_ptr()) });
    }
}

#[test]
fn a_handle_of_a_part_is_stale_without_the_part_and_one_of_a_loan_lives_with_the_memory() {
    let mock = Mock::default();
    let (context, other) = (mock.context(), mock.context());
    let base = context.allocate(&Request::new(AllocKind::Device, 4096)).unwrap();
    let [first, second] = [0, 2048].map(|offset| Block {
        pointer: core::ptr::NonNull::new(base.as_ptr().wrapping_add(offset)).unwrap(),
        size: 2048,
        ..*base.block()
    });
    let whole = base.export_ipc().unwrap();
    let source = Arc::new(Parts(base));
    // SAFETY: the halves of a block that the source keeps, without uses.
    let lend = |block| unsafe {
        let lender = NonNull::new(Arc::into_raw(source.clone()).cast_mut()).unwrap();
        Allocation::from_lender(&context, block, Pending::none(), lender, 0)
    };
    let [one, two] = [first, second].map(lend);
    let [one_handle, two_handle] = [&one, &two].map(|part| part.export_ipc().unwrap());
    // SAFETY: a part of a live block, which `two` keeps for longer.
    let loan = unsafe { Allocation::foreign(context.clone(), second, Box::new(())) };
    assert_eq!(loan.export_ipc(), Ok(two_handle), "the same bytes");
    drop(loan);
    drop(one);
    // The next owner of the bytes has another handle.
    let again = lend(first);
    let again_handle = again.export_ipc().unwrap();
    assert_stale(&other, &one_handle);
    [whole, two_handle, again_handle].iter().for_each(|handle| assert_lives(&other, handle));
    drop((two, source));
    [whole, again_handle].iter().for_each(|handle| assert_lives(&other, handle));
    assert_stale(&other, &two_handle);
    drop(again);
    [whole, again_handle].iter().for_each(|handle| assert_stale(&other, handle));
}

/// The segment lives on with its other blocks, and the bytes get their next owner at once, from the
/// cache of whatever thread freed them.
#[test]
fn a_handle_of_a_block_of_a_pool_is_stale_without_the_block() {
    let mock = Mock::new(Progress::Manual);
    let (context, other) = (mock.context(), mock.context());
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let pool = Pool::new(&context, AllocKind::Device);
    let take = || pool.on(&queue).allocate(&Request::new(AllocKind::Device, 4096)).unwrap();
    let kept = take();
    let kept_handle = kept.export_ipc().unwrap();
    for of_other_thread in [false, true] {
        for in_use in [false, true] {
            let mut block = take();
            let (address, handle) = (block.as_ptr(), block.export_ipc().unwrap());
            assert_lives(&other, &handle);
            if in_use {
                let _ = queue.fill_bytes(&mut block, 0, 64, &[7]).unwrap();
            }
            let next = if of_other_thread {
                std::thread::scope(|scope| {
                    let free_and_take = || {
                        // The thread has a cache.
                        drop(take());
                        drop(block);
                        take()
                    };
                    scope.spawn(free_and_take).join().unwrap()
                })
            } else {
                drop(block);
                take()
            };
            assert_eq!(next.as_ptr(), address, "from the thread's cache");
            assert_stale(&other, &handle);
            mock.finish();
            let next_handle = next.export_ipc().unwrap();
            [&next_handle, &kept_handle].iter().for_each(|handle| assert_lives(&other, handle));
            drop(next);
            assert_stale(&other, &next_handle);
        }
    }
    assert_lives(&other, &kept_handle);
    drop(kept);
    assert_stale(&other, &kept_handle);
    assert!(pool.stats().reserved > 0, "the segment is there still");
    assert_eq!((mock.opened_blocks(), mock.violations()), (0, vec![]));
}

/// Between the first answer of the other process and the end of the opening.
#[test]
fn memory_that_is_freed_while_it_is_opened_is_closed_and_refused() {
    for _ in 0..2_000 {
        let mock = Mock::default();
        let (context, other) = (mock.context(), mock.context());
        let array = context.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
        let handle = array.export_ipc().unwrap();
        let calls = || mock.calls().iter().filter(|call| call.operation == Operation::Ipc).count();
        let before = calls();
        let waits = AtomicBool::new(false);
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                waits.store(true, Ordering::Relaxed);
                while calls() == before {
                    core::hint::spin_loop();
                }
                drop(array);
            });
            while !waits.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            // SAFETY: closed at once, and never accessed.
            unsafe { other.open_ipc(&handle) }.err()
        });
        assert_eq!(mock.opened_blocks(), 0);
        if refused.is_some_and(|error| error.kind == ErrorKind::StaleIpcHandle) {
            return;
        }
    }
    panic!("no free met an opening");
}

#[test]
fn peers_are_known_by_device_and_refused_by_type() {
    for (mock, reach) in [
        (Mock::default().with_devices(2), true),
        (Mock::default().with_devices(2).without_peer_access(), false),
    ] {
        let erased = Dyn::new(mock);
        let devices = erased.devices().unwrap();
        let [one, two]: [Context<Dyn>; 2] = core::array::from_fn(|index| devices[index].context().unwrap());
        assert_eq!([one.can_access_peer(&one), one.can_access_peer(&two)], [Ok(true), Ok(reach)]);
        assert_eq!(one.enable_peer_access(&one), Ok(()));
        assert_eq!(one.enable_peer_access(&two).is_ok(), reach);
        assert_eq!(one.disable_peer_access(&two).is_ok(), reach);
        let host = Dyn::new(usm_core::backend::host::HostHeap::new()).devices().unwrap();
        let another_driver = Dyn::new(Mock::default()).devices().unwrap();
        for other in [&host[0], &another_driver[0]] {
            let other = other.context().unwrap();
            assert_eq!(one.can_access_peer(&other), Ok(false));
            for refused in [one.enable_peer_access(&other), one.disable_peer_access(&other)] {
                assert!(matches!(refused.unwrap_err().kind, ErrorKind::Unsupported { .. }));
            }
        }
    }
}

#[test]
fn an_erased_handle_is_that_of_the_backend() {
    let mock = Mock::new(Progress::OnWait);
    let erased = Dyn::new(mock.clone()).devices().unwrap()[0].context().unwrap();
    let array = erased.allocate(&Request::new(AllocKind::Device, 64)).unwrap();
    let handle = array.export_ipc().unwrap();
    assert_eq!(handle.backend(), usm_core::BackendKind::Mock);
    // SAFETY: `array` outlives the opened memory.
    let opened = unsafe { erased.open_ipc(&handle) }.unwrap();
    assert_eq!((opened.as_ptr(), mock.opened_blocks()), (array.as_ptr(), 1));
    drop(opened);
    assert_eq!(mock.opened_blocks(), 0);
}

proptest! {
    #[test]
    fn no_bytes_panic_and_what_is_taken_travels_back(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), whole: bool) {
        if whole {
            bytes.resize(IpcHandle::BYTES, 3);
            bytes[..8].copy_from_slice(b"usm2\x01\x01\0\0");
        }
        match IpcHandle::from_bytes(&bytes) {
            Ok(handle) => {
                prop_assert_eq!(&handle.to_bytes()[..], &bytes[..]);
                prop_assert!(handle.offset().checked_add(handle.size()).is_some());
            }
            Err(error) => {
                let len = bytes.len();
                let at = match error.kind {
                    ErrorKind::BadIpcHandle { byte, len: said } if said == len => byte,
                    _ => usize::MAX,
                };
                prop_assert!(at <= len, "{}", error);
            }
        }
    }
}
