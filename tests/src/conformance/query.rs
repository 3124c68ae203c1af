//! The pointer query: the same answers whatever the driver says.

use usm_core::{AllocKind, Backend, MemorySource, PointerInfo, Request};

use crate::Fixture;

/// Any byte of a block leads to its base, size, kind and context.
pub fn interior_pointers_answer_with_base_and_size<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 4096)).expect("memory");
        let base = allocation.as_ptr();
        for offset in [0, 1, 100, 4095] {
            let info = fixture.context.query(base.wrapping_add(offset)).expect("an answer");
            assert_eq!((info.kind, info.base, info.size), (kind, base as usize, 4096), "offset {offset}");
            assert_eq!(info.context, fixture.context.id());
        }
    }
}

/// The end belongs to nobody, unless a neighbour starts there.
pub fn one_past_the_end_is_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    let allocation = fixture.context.allocate(&Request::new(AllocKind::Host, 4096)).expect("memory");
    let info = fixture.context.query(allocation.as_ptr().wrapping_add(4096)).expect("an answer");
    assert_eq!(info, PointerInfo::UNKNOWN);
}

/// Memory that is gone is not known.
pub fn a_freed_pointer_is_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    let allocation = fixture.context.allocate(&Request::new(AllocKind::Device, 64)).expect("memory");
    let pointer = allocation.as_ptr();
    drop(allocation);
    assert_eq!(fixture.context.query(pointer).expect("an answer").kind, AllocKind::Unknown);
}

/// Null, the stack and addresses at the edges are a value, not an error.
pub fn pointers_of_nobody_are_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    let local = 5_u8;
    let edge = core::ptr::without_provenance::<u8>(usize::MAX);
    for pointer in [core::ptr::null(), &raw const local, edge] {
        assert_eq!(fixture.context.query(pointer).expect("an answer"), PointerInfo::UNKNOWN);
    }
}

/// A pointer makes sense in its context.
pub fn pointers_of_another_context_are_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    let allocation = fixture.other.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    assert_ne!(fixture.context.id(), fixture.other.id());
    let ours = fixture.other.query(allocation.as_ptr()).expect("an answer");
    assert_eq!(ours.kind, AllocKind::Shared);
    let info = fixture.context.query(allocation.as_ptr()).expect("an answer");
    if fixture.separate {
        assert_eq!(info, PointerInfo::UNKNOWN);
    } else {
        assert_eq!(info.kind, AllocKind::Shared);
    }
}

/// The cross-check: books and driver tell the same kind, and the same base and size where the driver knows them.
pub fn the_runtime_agrees_with_the_registry<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 4000)).expect("memory");
        let address = allocation.as_ptr() as usize + 77;
        let runtime = fixture.context.query_runtime(address).expect("an answer");
        assert_eq!(runtime.kind, kind);
        if runtime.size != 0 {
            assert_eq!((runtime.base, runtime.size), (allocation.as_ptr() as usize, 4000));
        }
    }
}

/// Host memory is nobody's; device and shared memory belong to the context's device.
pub fn host_memory_has_no_device<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 64)).expect("memory");
        let device = fixture.context.query(allocation.as_ptr()).expect("an answer").device;
        let expected = (kind != AllocKind::Host).then_some(fixture.context.info().ordinal);
        assert_eq!(device, expected, "{kind}");
    }
}
