//! Memory shared with other processes and devices: supported, or refused with a typed error.

use usm_core::ipc::IpcHandle;
use usm_core::{
    AccessFlags, AllocKind, Backend, Context, Device, Error, ErrorKind, Host, QueueOrder, UsmVec,
};

use crate::{Fixture, skip};

fn assert_unsupported(error: &Error) {
    assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
}

/// A handle names its memory. A backend without handles says so.
pub fn an_ipc_handle_names_its_memory_or_is_unsupported<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    for kind in AllocKind::ALL {
        let array =
            UsmVec::<u32, _, B>::from_slice_any(&queue, fixture.context, kind, &[1; 1000]).expect("memory");
        match array.allocation().export_ipc() {
            Ok(handle) => {
                let backend = fixture.context.info().backend;
                assert_eq!((handle.kind(), handle.size(), handle.backend()), (kind, 4000, backend));
                assert_eq!(IpcHandle::from_bytes(&handle.to_bytes()), Ok(handle));
            }
            Err(error) => assert_unsupported(&error),
        }
    }
}

/// Every device that can be asked reaches its own memory. Enabling twice, or disabling nothing,
/// succeeds.
pub fn a_device_reaches_its_own_memory_or_peers_are_unsupported<B: Backend>(fixture: &Fixture<'_, B>) {
    let (context, other) = (fixture.context, fixture.other);
    let changes = [
        context.disable_peer_access(other),
        context.enable_peer_access(other),
        context.enable_peer_access(other),
        context.disable_peer_access(other),
        context.disable_peer_access(other),
    ];
    let refused = changes.iter().filter(|change| change.is_err()).count();
    assert!(refused == 0 || refused == changes.len(), "{changes:?}");
    for error in changes.iter().filter_map(|change| change.as_ref().err()) {
        assert_unsupported(error);
    }
}

/// System USM: copies and fills work in place. The runtime's query does not know it, the statistics
/// do not count it, and it returns to the program.
pub fn memory_of_the_program_is_used_in_place_or_unsupported<B: Backend>(fixture: &Fixture<'_, B>) {
    let context = fixture.context;
    let elements: Box<[u32]> = (0..1000).collect();
    let address = elements.as_ptr();
    let reached = context.info().capabilities.system.contains(AccessFlags::ACCESS | AccessFlags::CONCURRENT);
    let mut ours = match UsmVec::<u32, Host, B>::from_system(context, elements) {
        Ok(array) => array,
        Err((elements, error)) => {
            assert_unsupported(&error);
            assert!(!reached, "{error}");
            assert_eq!((elements.as_ptr(), elements.len()), (address, 1000));
            return;
        }
    };
    assert!(reached);
    assert_eq!((ours.as_ptr(), ours.len(), context.stats().sum.live), (address, 1000, 0));
    assert_eq!(context.query(address.cast::<u8>()).expect("an answer").kind, AllocKind::Unknown);
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut theirs = UsmVec::<u32, Device, B>::zeroed(&queue, 1000).expect("memory");
    let _ = queue.copy(&mut theirs, &ours).expect("a copy");
    let _ = queue.fill(&mut ours, 7).expect("a fill");
    assert_eq!(ours.read().expect("a view")[..], [7; 1000]);
    let _ = queue.copy(&mut ours, &theirs).expect("a copy");
    let back = ours.into_system().expect("the memory");
    assert_eq!(back.as_ptr(), address);
    assert!(back.iter().copied().eq(0..1000));
}

/// An array in memory of the program, or `None` after a report if the device cannot access it.
pub(super) fn of_the_program<T: bytemuck::Pod + Send + Sync, B: Backend>(
    context: &Context<B>,
    elements: Vec<T>,
) -> Option<UsmVec<T, Host, B>> {
    match UsmVec::from_system(context, elements.into()) {
        Ok(array) => Some(array),
        Err((_, error)) => {
            assert_unsupported(&error);
            skip::limit(context.info().backend, "the device does not reach memory of the program");
            None
        }
    }
}

/// Dropped or taken back while a queue works on it.
pub fn memory_of_the_program_outlives_work_in_flight<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let len = 1 << 16;
    let mut last = UsmVec::<u8, Device, B>::zeroed(&queue, len).expect("memory");
    for round in 1..=20_u8 {
        let Some(mut first) = of_the_program(fixture.context, vec![round; len]) else { return };
        let second = UsmVec::<u8, Host, B>::from_system(fixture.context, vec![round; len].into());
        let second = second.map_err(|(_, error)| error).expect("the same answer");
        let _ = queue.copy(&mut last, &second).expect("a copy");
        drop(second);
        let _ = queue.copy(&mut first, &last).expect("a copy");
        let first = first.into_system().expect("the memory");
        assert!(first.iter().all(|byte| *byte == round));
    }
}

/// Memory of the runtime, or an array without elements, is refused and returned.
pub fn memory_of_the_runtime_is_no_memory_of_the_program<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let array = UsmVec::<u16, Host, B>::from_slice(&queue, &[1, 2, 3]).expect("memory");
    let (array, error) = array.into_system().expect_err("memory of the runtime");
    assert!(matches!(error.kind, ErrorKind::WrongKind { .. }), "{error}");
    assert_eq!(array.read().expect("a view")[..], [1, 2, 3]);
    let (none, error) =
        UsmVec::<u16, Host, B>::from_system(fixture.context, Box::new([])).expect_err("nothing");
    assert!(matches!(error.kind, ErrorKind::ZeroSize | ErrorKind::Unsupported { .. }), "{error}");
    assert!(none.is_empty());
}
