//! Launches that complete after their call returns: a view, copy or free of an array comes after
//! the kernel, even if every handle of the launch was forgotten.

use core::mem::forget;
use core::time::Duration;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::backend::{Backend, Dyn};
use usm_core::{Context, Device, ErrorKind, EventStatus, Host, Queue, QueueOrder, Shared, UsmVec};
use usm_kernel::sample::{reverse, running_sums, saxpy, sum};
use usm_kernel::{Executable, Launch, LaunchError, NdRange, Programmable, Range};

fn arange(count: usize) -> Vec<f32> {
    (0..count).map(|value| value as f32).collect()
}

fn ten() -> NdRange<1> {
    NdRange::new([10], [10]).unwrap()
}

fn queue_of(mock: &Mock) -> Queue<Mock> {
    mock.context().queue(QueueOrder::InOrder).unwrap()
}

#[test]
fn a_view_waits_for_the_launch() {
    let mock = Mock::new(Progress::OnWait);
    let queue = queue_of(&mock);
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    let event = Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap();
    assert_eq!((event.status().unwrap(), mock.queued()), (EventStatus::Pending, 1));
    assert_eq!(a.read().unwrap()[..], [9.0; 10]);
    assert_eq!(event.status().unwrap(), EventStatus::Complete);
}

#[test]
fn a_view_waits_although_every_handle_was_forgotten() {
    let mock = Mock::new(Progress::OnWait);
    let queue = queue_of(&mock);
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    forget(a.read().unwrap());
    forget(Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap());
    forget(a.write().unwrap());
    forget(Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap());
    forget(queue);
    assert_eq!(mock.queued(), 1);
    assert_eq!(a.write().unwrap()[..], [18.0; 10]);
}

#[test]
fn a_forgotten_array_stays_valid_for_the_kernel() {
    let mock = Mock::new(Progress::Manual);
    let queue = queue_of(&mock);
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    let first = a.as_ptr();
    let _ = Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap();
    forget(a);
    mock.finish();
    // SAFETY: the array was forgotten, so its memory is never freed, and its kernel has completed.
    assert_eq!(unsafe { *first }, 9.0);
}

#[test]
fn a_dropped_array_is_freed_after_the_kernel() {
    let mock = Mock::new(Progress::Manual);
    let queue = queue_of(&mock);
    let x = UsmVec::<f32, Host, _>::from_slice(&queue, &arange(10)).unwrap();
    let mut y = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    let _ = Launch::with_range(&queue, Range::new([10]).unwrap()).run(saxpy, (1.0, &x, &mut y)).unwrap();
    drop((x, y));
    queue.context().collect();
    assert_eq!((mock.live_blocks(), queue.context().deferred_frees()), (2, 2));
    mock.finish();
    queue.context().collect();
    assert_eq!((mock.live_blocks(), queue.context().deferred_frees()), (0, 0));
}

#[test]
fn a_view_gives_up_when_the_kernel_does_not_finish() {
    let mock = Mock::new(Progress::Manual);
    let queue = queue_of(&mock);
    queue.context().set_wait_limit(Duration::from_millis(5));
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    let _ = Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap();
    assert_eq!(a.read().unwrap_err().kind, ErrorKind::Timeout { limit_ms: 5 });
    mock.finish();
    assert_eq!(a.read().unwrap()[..], [9.0; 10]);
}

#[test]
fn readers_share_an_array_with_a_view() {
    let mock = Mock::new(Progress::OnWait);
    let queue = queue_of(&mock);
    let x = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    let mut y = UsmVec::<f32, Device, _>::zeroed(&queue, 10).unwrap();
    let view = x.read().unwrap();
    let _ = Launch::with_range(&queue, Range::new([10]).unwrap()).run(saxpy, (2.0, &x, &mut y)).unwrap();
    assert_eq!(view[9], 9.0);
    assert_eq!(y.to_vec(&queue).unwrap()[9], 18.0);
}

#[test]
fn arguments_order_launches_and_copies_on_any_queues() {
    for seed in 0..50 {
        let mock = Mock::new(Progress::OnWait);
        mock.seed(seed);
        let context = mock.context();
        let one = context.queue(QueueOrder::OutOfOrder).unwrap();
        let other = context.queue(QueueOrder::InOrder).unwrap();
        let mut a = UsmVec::<f32, Device, _>::from_slice(&one, &arange(10)).unwrap();
        let mut b = UsmVec::<f32, Device, _>::zeroed(&other, 10).unwrap();
        let ten_items = Range::new([10]).unwrap();
        let _ = Launch::new(&one, ten()).run(reverse, (&mut a,)).unwrap();
        let _ = Launch::with_range(&other, ten_items).run(saxpy, (2.0, &a, &mut b)).unwrap();
        let _ = Launch::with_range(&one, ten_items).run(saxpy, (1.0, &b, &mut a)).unwrap();
        let _ = one.copy(&mut b, &a).unwrap();
        let _ = Launch::new(&other, ten()).run(reverse, (&mut b,)).unwrap();
        assert_eq!(b.to_vec(&one).unwrap(), [54.0; 10], "seed {seed}");
        assert_eq!(mock.violations(), []);
    }
}

#[test]
fn a_launch_is_refused_while_a_view_lives_on_memory_without_concurrent_access() {
    let mock = Mock::new(Progress::OnWait).without_concurrent_access();
    let queue = queue_of(&mock);
    let looked_at = UsmVec::<f32, Shared, _>::zeroed(&queue, 10).unwrap();
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    let view = looked_at.read().unwrap();
    let refused = Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap_err();
    assert_eq!(refused, LaunchError::Memory(ErrorKind::HostViewLive { views: 1 }.into()));
    drop(view);
    let _ = Launch::new(&queue, ten()).run(reverse, (&mut a,)).unwrap();
    assert_eq!(a.read().unwrap()[0], 9.0);
    forget(looked_at.read().unwrap());
    assert!(Launch::new(&queue, ten()).run(reverse, (&mut a,)).is_err());
}

#[test]
fn a_launch_that_fails_has_not_run() {
    let mock = Mock::new(Progress::OnWait);
    let queue = queue_of(&mock);
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange(10)).unwrap();
    mock.inject(Fault {
        operation: Operation::Task,
        skip: 0,
        late: false,
        error: ErrorKind::DeviceLost.into(),
    });
    assert!(Launch::new(&queue, ten()).run(reverse, (&mut a,)).is_err());
    assert_eq!(a.read().unwrap()[..], arange(10));

    let mut region = [0; 256];
    let refused = Launch::new(&queue, ten()).local_memory(&mut region).run(reverse, (&mut a,));
    assert_eq!(refused.unwrap_err(), LaunchError::ArenaWithAsynchronous);

    let stranger = queue_of(&mock);
    let refused = Launch::new(&stranger, ten()).run(reverse, (&mut a,)).unwrap_err();
    assert!(matches!(refused, LaunchError::Memory(_)), "{refused}");
    assert_eq!(mock.queued(), 0);
}

#[test]
fn local_memory_and_groups_keep_the_limits_of_the_device() {
    let mock = Mock::new(Progress::OnWait).with_device(|info| {
        info.max_work_group_size = 64;
        info.local_mem_size = 100;
    });
    let queue = queue_of(&mock);
    let mut a = UsmVec::<f32, Device, _>::zeroed(&queue, 128).unwrap();
    let of = |group: u64| NdRange::new([128], [group]).unwrap();
    let refused = Launch::new(&queue, of(128)).run(reverse, (&mut a,)).unwrap_err();
    assert_eq!(refused, LaunchError::GroupTooLarge { size: 128, limit: 64 });
    let refused = Launch::new(&queue, of(32)).run(reverse, (&mut a,)).unwrap_err();
    assert_eq!(refused, LaunchError::LocalMemoryTooLarge { size: 128, limit: 100 });
    assert!(Launch::new(&queue, of(16)).run(reverse, (&mut a,)).is_ok());
}

/// The same program on a static backend and on one chosen at run time.
fn program<B: Programmable>(context: &Context<B>) {
    let queue = context.queue(QueueOrder::OutOfOrder).unwrap();
    let ones = UsmVec::<f32, Device, B>::from_slice(&queue, &[1.0; 10_000]).unwrap();
    let ready = Executable::build(context).unwrap();
    assert_eq!(sum(&ready, &queue, &ones, 8).unwrap(), 10_000.0);
    let values: Vec<u32> = (1..=10_000).collect();
    let input = UsmVec::<u32, Host, B>::from_slice(&queue, &values).unwrap();
    let mut output = UsmVec::<u32, Shared, B>::zeroed(&queue, values.len()).unwrap();
    let (parts, carry) = (Executable::build(context).unwrap(), Executable::build(context).unwrap());
    let event = running_sums((&parts, &carry), &queue, &input, &mut output, 8).unwrap();
    event.wait().unwrap();
    assert_eq!(output.read().unwrap()[9_999], 50_005_000);
}

#[test]
fn one_program_on_all_backends() {
    program(&HostHeap::new().context());
    program(&Mock::new(Progress::OnWait).context());
    for backend in [Dyn::new(HostHeap::new()), Dyn::new(Mock::new(Progress::OnWait))] {
        let mut device = None;
        backend.for_each_device(&mut |found| device = Some(found)).unwrap();
        program(&Context::new(&backend, &device.unwrap()).unwrap());
    }
}
