//! The pointer query gives the same answers on every driver.

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

/// The end of a block belongs to nothing, unless a neighbour starts there. The same holds for
/// addresses beyond and for the byte before the block.
pub fn one_past_the_end_is_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 4096)).expect("memory");
        for outside in [allocation.as_ptr().wrapping_add(4096), allocation.as_ptr().wrapping_sub(1)] {
            let info = fixture.context.query(outside).expect("an answer");
            assert_eq!(info, PointerInfo::UNKNOWN, "{kind}");
        }
    }
}

/// After a free, neither registry nor runtime knows any byte of the block.
pub fn a_freed_pointer_is_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 64)).expect("memory");
        let pointer = allocation.as_ptr();
        drop(allocation);
        for pointer in [pointer, pointer.wrapping_add(63)] {
            let info = fixture.context.query(pointer).expect("an answer");
            assert_eq!(info, PointerInfo::UNKNOWN, "{kind}");
            let runtime = fixture.context.query_runtime(pointer as usize).expect("an answer");
            assert_eq!(runtime.kind, AllocKind::Unknown, "{kind}");
        }
    }
}

/// Null, the stack, the heap, constants, code and extreme addresses give the value `Unknown`, not
/// an error, from registry and runtime.
pub fn pointers_of_nobody_are_unknown<B: Backend>(fixture: &Fixture<'_, B>) {
    static CONSTANT: u8 = 7;
    let (local, heap) = (5_u8, vec![1_u8; 4096]);
    let nobodys: [*const u8; 8] = [
        core::ptr::null(),
        &raw const local,
        heap.as_ptr(),
        &raw const CONSTANT,
        (pointers_of_nobody_are_unknown::<B> as fn(&Fixture<'_, B>)) as *const u8,
        core::ptr::without_provenance(1),
        core::ptr::without_provenance(isize::MAX as usize + 1),
        core::ptr::without_provenance(usize::MAX),
    ];
    for pointer in nobodys {
        assert_eq!(fixture.context.query(pointer).expect("an answer"), PointerInfo::UNKNOWN);
        let runtime = fixture.context.query_runtime(pointer as usize).expect("an answer");
        assert_eq!(runtime, PointerInfo::UNKNOWN);
    }
}

/// A pointer is known only in its context.
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

/// Registry and driver agree on the kind, and on base and size if the driver knows them.
pub fn the_runtime_agrees_with_the_registry<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 4000)).expect("memory");
        let address = allocation.as_ptr() as usize + 77;
        let runtime = fixture.context.query_runtime(address).expect("an answer");
        assert_eq!(runtime.kind, kind);
        if kind == AllocKind::Host {
            assert_eq!(runtime.device, None, "host memory belongs to no device");
        }
        if runtime.size != 0 {
            assert_eq!((runtime.base, runtime.size), (allocation.as_ptr() as usize, 4000));
        }
    }
}

/// Host memory has no device; device and shared memory have the context's device.
pub fn host_memory_has_no_device<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = fixture.context.allocate(&Request::new(kind, 64)).expect("memory");
        let device = fixture.context.query(allocation.as_ptr()).expect("an answer").device;
        let expected = (kind != AllocKind::Host).then_some(fixture.context.info().ordinal);
        assert_eq!(device, expected, "{kind}");
    }
}
