//! Typed arrays: construction, kinds, refusals.

use usm_core::{
    AllocKind, AnyKind, Backend, Device, ErrorKind, Host, MemorySource, Queue, QueueOrder, Request, Shared,
    UsmVec,
};

use crate::Fixture;

fn queue<B: Backend>(fixture: &Fixture<'_, B>) -> Queue<B> {
    fixture.context.queue(QueueOrder::InOrder).expect("a queue")
}

/// Independent of the memory's old content.
pub fn zeroed_arrays_are_zero<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    for kind in AllocKind::ALL {
        let dirty = UsmVec::<u8, AnyKind, B>::from_slice_any(&queue, fixture.context, kind, &[0xFF; 500]);
        drop(dirty.expect("an array"));
        let array =
            UsmVec::<u8, AnyKind, B>::zeroed_any(&queue, fixture.context, kind, 500).expect("an array");
        assert_eq!(array.to_vec(&queue).expect("the content"), [0; 500], "{kind}");
    }
}

/// Floats keep their bits.
pub fn slices_round_trip_through_every_kind<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let values = [1.5_f64, -0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
    for kind in AllocKind::ALL {
        let array = UsmVec::from_slice_any(&queue, fixture.context, kind, &values).expect("an array");
        let back: Vec<u64> =
            array.to_vec(&queue).expect("the content").iter().map(|value| value.to_bits()).collect();
        assert_eq!(back, values.map(f64::to_bits), "{kind}");
    }
}

/// They exist, have a pointer, and can be copied.
pub fn arrays_of_no_elements<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut host = UsmVec::<u32, Host, B>::zeroed(&queue, 0).expect("an array");
    let device = UsmVec::<u32, Device, B>::from_slice(&queue, &[]).expect("an array");
    assert!(host.is_empty() && device.is_empty() && !host.as_ptr().is_null());
    queue.copy(&mut host, &device).expect("a copy").wait().expect("done");
    assert_eq!(host.read().expect("a view").len(), 0);
    assert_eq!(device.to_vec(&queue).expect("the content"), Vec::<u32>::new());
}

/// Copies never truncate.
pub fn lengths_that_differ_are_refused_with_both_numbers<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut short = UsmVec::<u32, Host, B>::zeroed(&queue, 3).expect("an array");
    let long = UsmVec::<u32, Device, B>::zeroed(&queue, 4).expect("an array");
    let refused = queue.copy(&mut short, &long).expect_err("lengths").kind;
    assert_eq!(refused, ErrorKind::LengthMismatch { expected: 3, found: 4 });
    let refused = queue.read_to_slice(&mut [0; 5], &long).expect_err("lengths").kind;
    assert_eq!(refused, ErrorKind::LengthMismatch { expected: 5, found: 4 });
}

/// With a kind known only at run time, the host still cannot view device memory.
pub fn the_runtime_kind_is_checked<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut array = UsmVec::<u32, Device, B>::zeroed(&queue, 4).expect("an array").into_any();
    let refused = array.try_host().expect_err("device memory").kind;
    assert_eq!(refused, ErrorKind::NotHostAccessible { kind: AllocKind::Device });
    assert!(array.try_host_mut().is_err());
    let mut array = UsmVec::<u32, Shared, B>::zeroed(&queue, 4).expect("an array").into_any();
    array.try_host_mut().expect("shared memory")[3] = 8;
    assert_eq!(array.try_host().expect("shared memory")[..], [0, 0, 0, 8]);
}

/// A failed conversion returns the array.
pub fn an_array_of_the_wrong_kind_comes_back<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let array = UsmVec::<u32, Shared, B>::from_slice(&queue, &[1, 2]).expect("an array").into_any();
    let (array, error) = array.try_kind::<Host>().expect_err("shared memory");
    assert_eq!(error.kind, ErrorKind::WrongKind { expected: AllocKind::Host, found: AllocKind::Shared });
    let array = array.try_kind::<Shared>().map_err(|(_, error)| error).expect("shared memory");
    assert_eq!(array.read().expect("a view")[..], [1, 2]);
}

/// Uninitialised memory must be written before it can be read.
pub fn an_uninitialised_array_is_a_copy_target<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let source = UsmVec::<u16, Device, B>::from_slice(&queue, &[4, 5, 6]).expect("an array");
    let target = UsmVec::<u16, Host, B>::uninit(fixture.context, 3).expect("memory");
    let (target, _) = target.copy_from(&queue, &source).expect("a copy");
    assert_eq!(target.read().expect("a view")[..], [4, 5, 6]);
    let target = UsmVec::<u16, Device, B>::uninit(fixture.context, 2).expect("memory");
    let target = target.write_from_slice(&queue, &[7, 8]).expect("a copy");
    assert_eq!(target.to_vec(&queue).expect("the content"), [7, 8]);
}

/// Includes the way back.
pub fn the_host_writes_and_the_device_reads<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut shared = UsmVec::<u32, Shared, B>::zeroed(&queue, 8).expect("an array");
    let mut device = UsmVec::<u32, Device, B>::zeroed(&queue, 8).expect("an array");
    for round in 0..4 {
        shared.write().expect("a view").fill(round);
        let _ = queue.copy(&mut device, &shared).expect("a copy");
        assert_eq!(device.to_vec(&queue).expect("the content"), [round; 8]);
    }
}

/// Conversion of memory to an array checks size and kind, and returns the memory on failure.
pub fn memory_too_small_for_its_elements_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let bytes = UsmVec::<u8, Host, B>::zeroed(&queue, 10).expect("an array").into_allocation();
    // SAFETY: the bytes are zeroed.
    let refused = unsafe { UsmVec::<u32, Host, B>::from_allocation(bytes, 3) };
    let (bytes, error) = refused.expect_err("too small");
    assert_eq!(error.kind, ErrorKind::OutOfBounds { offset: 0, len: 12, size: 10 });
    // SAFETY: as above.
    let array = unsafe { UsmVec::<u32, Host, B>::from_allocation(bytes, 2) }.map_err(|(_, error)| error);
    assert_eq!(array.expect("large enough").read().expect("a view")[..], [0, 0]);
    let shared = fixture.context.allocate(&Request::new(AllocKind::Shared, 8)).expect("memory");
    // SAFETY: refused before anything is read.
    let refused = unsafe { UsmVec::<u32, Host, B>::from_allocation(shared, 2) };
    assert!(matches!(refused.expect_err("kind").1.kind, ErrorKind::WrongKind { .. }));
}
