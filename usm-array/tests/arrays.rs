//! What arrays promise on the host, beside the conformance suite of all backends.

#![allow(clippy::std_instead_of_alloc, clippy::std_instead_of_core, reason = "a test with std")]
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use usm_array::{Array, End, Error, Layout, MAX_DIMS, copy};
use usm_core::backend::Dyn;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{AllocKind, ErrorKind, Host, Queue, QueueOrder, UsmVec};

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue")
}

/// Sets a flag when it is dropped.
struct Flag(Arc<AtomicBool>, UsmVec<u32, Host, HostHeap>);

impl Drop for Flag {
    fn drop(&mut self) {
        assert_eq!(self.1.len(), 12, "the memory lives until now");
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn lent_memory_is_used_in_place_and_its_owner_goes_after_the_last_view() {
    let queue = queue();
    let values: Vec<u32> = (0..12).collect();
    let memory = UsmVec::<u32, Host, _>::from_slice(&queue, &values).expect("memory");
    let pointer = NonNull::new(memory.as_ptr().cast_mut().cast::<u8>()).expect("an address");
    let is_gone = Arc::new(AtomicBool::new(false));
    let layout = Layout::new(4, &[2, 3], &[24, 8], 4).expect("a layout");
    let owner = Flag(Arc::clone(&is_gone), memory);
    // SAFETY: 12 elements, which the owner keeps and nobody else uses.
    let array = unsafe { Array::<u32, _>::lent(&queue, (AllocKind::Host, pointer, 48), layout, owner) };
    let array = array.expect("an array").readonly();
    let row = array.row(1).expect("a row");
    assert_eq!(array.to_vec().expect("elements"), [1, 3, 5, 7, 9, 11]);
    assert!(matches!(row.set(&[0], 1), Err(Error::ReadOnly)));
    assert!(matches!(row.transposed().fill(1), Err(Error::ReadOnly)));
    assert!(matches!(row.copy_from(&row), Err(Error::ReadOnly)));
    drop(array);
    assert!(!is_gone.load(Ordering::SeqCst), "a view uses the memory");
    assert_eq!(row.get(&[2]).expect("an element"), 11);
    drop(row);
    assert!(is_gone.load(Ordering::SeqCst));
}

#[test]
fn a_layout_beyond_the_memory_is_refused() {
    let queue = queue();
    let mut bytes = [0_u8; 16];
    let pointer = NonNull::from(&mut bytes).cast::<u8>();
    let lend = |layout: Layout| {
        // SAFETY: 16 bytes that outlive the array.
        unsafe { Array::<u32, _>::lent(&queue, (AllocKind::Host, pointer, 16), layout, ()) }
    };
    assert!(lend(Layout::new(4, &[4], &[4], 0).expect("a layout")).is_ok());
    assert!(lend(Layout::new(4, &[4], &[-4], 12).expect("a layout")).is_ok());
    for layout in [Layout::new(4, &[4], &[4], 1), Layout::new(4, &[2, 2], &[8, 8], 0)] {
        let error = lend(layout.expect("a layout")).expect_err("beyond the memory");
        assert!(
            matches!(&error, Error::Core(core) if matches!(core.kind, ErrorKind::OutOfBounds { .. })),
            "{error}"
        );
    }
    let error = lend(Layout::new(2, &[4], &[4], 0).expect("a layout")).expect_err("other elements");
    assert!(
        matches!(&error, Error::Core(core) if matches!(core.kind, ErrorKind::LengthMismatch { .. })),
        "{error}"
    );
}

#[test]
fn layouts_that_no_memory_has_are_refused() {
    for layout in [
        Layout::new(4, &[3], &[-4], 7),
        Layout::new(4, &[3], &[4, 4], 0),
        Layout::new(4, &[usize::MAX], &[isize::MAX], 0),
        Layout::new(4, &[2, 2], &[isize::MIN, 4], 0),
        Layout::new(1, &[1; MAX_DIMS + 1], &[0; MAX_DIMS + 1], 0),
        Layout::contiguous(8, &[usize::MAX / 4, 2]),
        Layout::contiguous(8, &[0, usize::MAX]),
        Layout::contiguous(1, &[1; MAX_DIMS + 1]),
    ] {
        assert!(layout.is_err(), "{layout:?}");
    }
}

#[test]
fn indices_that_an_axis_does_not_have_are_refused() {
    let queue = queue();
    let array = Array::<u8, _>::zeros(&queue, AllocKind::Host, &[2, 3]).expect("an array");
    let texts = [
        array.row(2).map(drop).expect_err("an index").to_string(),
        array.row(isize::MIN).map(drop).expect_err("an index").to_string(),
        array.get(&[0, 3]).map(drop).expect_err("an index").to_string(),
        array.get(&[0]).map(drop).expect_err("an axis").to_string(),
        array.select(|axes| axes.range(0, 1, 3)).map(drop).expect_err("a range").to_string(),
        array.select(|axes| axes.range(1, isize::MIN, 3)).map(drop).expect_err("a range").to_string(),
        array.select(|axes| axes.all(3)).map(drop).expect_err("an axis").to_string(),
        array.reshaped(&[-1, 4]).map(drop).expect_err("a shape").to_string(),
        array.broadcast_to(&[2, 2]).map(drop).expect_err("a shape").to_string(),
        Array::from_slice(&queue, AllocKind::Host, &[2, 2], &[1_u8])
            .map(drop)
            .expect_err("a length")
            .to_string(),
    ];
    assert_eq!(
        texts,
        [
            "index 2 is out of bounds for axis 0 of 2 elements",
            "index -9223372036854775808 is out of bounds for axis 0 of 2 elements",
            "index 3 is out of bounds for axis 1 of 3 elements",
            "axis 1 of an array of 2 dimensions",
            "index 2 is out of bounds for axis 0 of 2 elements",
            "index 9223372036854775807 is out of bounds for axis 0 of 2 elements",
            "axis 2 of an array of 2 dimensions",
            "cannot reshape [2, 3] to [-1, 4]: the number of elements differs",
            "shape [2, 3] cannot be broadcast to [2, 2]",
            "1 values for 4 elements",
        ]
    );
}

#[test]
fn threads_that_share_an_array_leave_one_result() {
    let queue = queue();
    let array = Array::<u64, _>::zeros(&queue, AllocKind::Host, &[64, 64]).expect("an array");
    std::thread::scope(|scope| {
        for number in 1..=4_u64 {
            let array = array.clone();
            scope.spawn(move || {
                for round in 0..50 {
                    let view = if round % 2 == 0 { array.clone() } else { array.transposed() };
                    view.fill(number).expect("a fill");
                    let values = view.to_vec().expect("elements");
                    assert!(values.iter().all(|value| *value == values[0]), "a fill is whole");
                }
            });
        }
    });
}

#[test]
fn a_vector_becomes_an_array_without_a_copy() {
    let queue = queue();
    let vec = UsmVec::<f64, Host, _>::from_slice(&queue, &[1.0, 2.0, 3.0, 4.0]).expect("a vector");
    let address = vec.as_ptr() as usize;
    let array = Array::from_vec(&queue, vec, &[2, 2]).expect("an array");
    assert_eq!(
        (array.storage().address(), array.to_vec().expect("elements")),
        (address, vec![1.0, 2.0, 3.0, 4.0])
    );
    let other = HostHeap::new().context();
    let foreign = UsmVec::<f64, Host, _>::zeroed(&other.queue(QueueOrder::InOrder).expect("a queue"), 4);
    let error = Array::from_vec(&queue, foreign.expect("a vector"), &[4]).expect_err("another context");
    assert!(
        matches!(&error, Error::Core(core) if matches!(core.kind, ErrorKind::WrongContext { .. })),
        "{error}"
    );
}

#[test]
fn threads_that_copy_between_two_contexts_leave_one_result() {
    let (one, two) = (queue(), queue());
    let source = Array::<u64, _>::zeros(&one, AllocKind::Host, &[96, 96]).expect("an array");
    std::thread::scope(|scope| {
        let shared = source.clone();
        scope.spawn(move || (1..=200).for_each(|number| shared.fill(number).expect("a fill")));
        let copy = Array::<u64, _>::zeros(&two, AllocKind::Host, &[96, 96]).expect("an array");
        for _ in 0..60 {
            copy.copy_from(&source.transposed()).expect("a copy");
            let values = copy.to_vec().expect("elements");
            assert!(values.iter().all(|value| *value == values[0]), "a copy sees a whole fill");
        }
    });
}

#[test]
fn bytes_behind_the_elements_are_out_of_reach() {
    let queue = queue();
    // One element of a block with room for more: what lies behind it was never written.
    let none = Array::<[u64; 2], _>::from_slice(&queue, AllocKind::Host, &[0], &[]).ok();
    let read = |size: usize, array: &Array<[u64; 2], HostHeap>| {
        array.storage().read(&queue, 0, size, vec![0_u8; size]).map(drop)
    };
    if let Some(array) = none {
        assert_eq!(array.storage().size(), 0);
        assert!(read(1, &array).is_err());
    }
    let array = Array::from_slice(&queue, AllocKind::Host, &[1], &[[1, 2]]).expect("an array");
    assert!(read(16, &array).is_ok());
    assert!(read(17, &array).is_err());
    let wide = Layout::contiguous(16, &[2]).expect("a layout");
    let error = copy::packed::<u8, _, _>(&array.end().with_layout(&wide)).expect_err("beyond the elements");
    assert!(
        matches!(&error, Error::Core(core) if matches!(core.kind, ErrorKind::OutOfBounds { .. })),
        "{error}"
    );
}

#[test]
fn a_queue_of_another_context_is_refused_as_an_end() {
    let (here, there) = (queue(), queue());
    let array = Array::<u32, _>::zeros(&here, AllocKind::Host, &[4]).expect("an array");
    let end = End::new(array.storage(), &there, array.layout());
    for outcome in [
        copy::elements(&end, &array.end()),
        copy::elements(&array.end(), &end),
        copy::fill(&end, &[0; 4]),
        copy::store(&end, &[0; 16]),
        copy::packed::<u8, _, _>(&end).map(drop),
        copy::submit(&array.end(), &end).map(drop),
    ] {
        let error = outcome.expect_err("two contexts");
        let is_context = |core: &usm_core::Error| matches!(core.kind, ErrorKind::WrongContext { .. });
        assert!(matches!(&error, Error::Core(core) if is_context(core)), "{error}");
    }
    assert!(array.with_queue(&there).is_err());
}

#[test]
fn shapes_and_steps_that_no_array_has_are_refused() {
    let queue = queue();
    let array = Array::<u8, _>::zeros(&queue, AllocKind::Host, &[1]).expect("an array");
    for shape in [vec![usize::MAX], vec![isize::MAX as usize; 2], vec![1 << 32; 2], vec![1; MAX_DIMS + 1]] {
        assert!(matches!(array.broadcast_to(&shape), Err(Error::Broadcast { .. })), "{shape:?}");
    }
    let wide = Array::<u8, _>::zeros(&queue, AllocKind::Host, &[4]).expect("an array");
    let error = wide.select(|axes| axes.range(0, 0, isize::MAX as usize)).expect_err("a step of 0");
    assert!(matches!(error, Error::Step { axis: 0, .. }), "{error}");
    assert_eq!(wide.select(|axes| axes.range(3, 0, 1)).expect("one element").len(), 1);
    assert!(Array::<(), _>::zeros(&queue, AllocKind::Host, &[3]).is_err(), "elements of no bytes");
    assert!(copy::packed::<u64, _, _>(&wide.end()).is_err(), "4 bytes are no element of 8");
    assert!(wide.permuted(&[0, 0]).is_err() && wide.permuted(&[]).is_err());
}

#[test]
fn a_slice_fills_any_view() {
    let queue = queue();
    let array = Array::<i16, _>::zeros(&queue, AllocKind::Device, &[2, 3, 2]).expect("an array");
    let view = array.permuted(&[2, 0, 1]).expect("axes");
    let values: Vec<i16> = (0..12).collect();
    view.copy_from_slice(&values).expect("a copy");
    assert_eq!(view.to_vec().expect("elements"), values);
    assert_eq!(array.get(&[1, 2, 0]).expect("an element"), 5);
    assert!(matches!(view.copy_from_slice(&values[1..]), Err(Error::Length { expected: 12, found: 11 })));
}

/// A queue of the host and one of a device whose work waits until somebody waits for it.
fn of_two_runtimes() -> [Queue<Dyn>; 2] {
    [Dyn::new(HostHeap::new()), Dyn::new(Mock::new(Progress::OnWait))].map(|backend| {
        let device = backend.devices().expect("devices").remove(0);
        device.context().expect("a context").queue(QueueOrder::InOrder).expect("a queue")
    })
}

#[test]
fn later_work_on_either_array_waits_for_a_submitted_copy() {
    let [host, device] = of_two_runtimes();
    let values = [1_u32, 2, 3, 4];
    let on_host = Array::<u32, _>::zeros(&host, AllocKind::Host, &[4]).expect("an array");
    let on_device = Array::from_slice(&device, AllocKind::Device, &[4], &values).expect("an array");
    let _downloaded = on_host.submit_copy_from(&on_device).expect("a copy");
    assert_eq!(on_host.to_vec().expect("elements"), values, "the host's context waits for the device");

    let other = Array::<u32, _>::zeros(&device, AllocKind::Device, &[4]).expect("an array");
    let uploaded = other.submit_copy_from(&on_host).expect("a copy");
    on_host.fill(9).expect("a fill");
    uploaded.wait().expect("the copy");
    assert_eq!(other.to_vec().expect("elements"), values, "the copy reads what was there before");
}
