//! Memory of other processes and other devices: there, or refused by type.

use usm_core::ipc::IpcHandle;
use usm_core::{AllocKind, Backend, Error, ErrorKind, QueueOrder, UsmVec};

use crate::Fixture;

fn assert_unsupported(error: &Error) {
    assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
}

/// What travels names the memory; who cannot make a handle says so.
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

/// Every device reaches its own memory where the question exists; allowing it twice, or taking back nothing, is fine.
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
