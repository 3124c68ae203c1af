//! Order and lifetime: launches among copies, fills, views and drops.

use usm_core::{Device, Queue, QueueOrder, Shared, UsmVec};
use usm_kernel::{Launch, Programmable, sample};

use super::samples::Step;
use super::{queue, range, ready, shared};
use crate::Fixture;
use crate::conformance::sharing::of_the_program;

/// Slow enough that a launch which does not wait would be detected. The test drivers are slow by
/// themselves.
fn slow<B: Programmable>(fixture: &Fixture<'_, B>) -> Step {
    let held_back = fixture.context.info().name.as_str().ends_with("test device");
    Step { rounds: if held_back { 20 } else { 20_000 } }
}

const ITEMS: u64 = 64;

fn expected(start: u32, steps: u32, by: u32) -> Vec<u32> {
    let end = (0..steps).fold(start, |value, _| value.wrapping_mul(3).wrapping_add(by));
    vec![end; ITEMS as usize]
}

/// Ten launches on one array, without a wait in between.
pub fn launches_on_one_array_run_in_turn<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = queue(fixture, order);
        let (mut a, b) = (shared(&queue, &[1_u32; ITEMS as usize]), shared(&queue, &[2_u32; ITEMS as usize]));
        for _ in 0..10 {
            let launch = Launch::new(&queue, range([ITEMS], [16]));
            let _ = launch.run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
        }
        assert_eq!(a.read().expect("a view")[..], expected(1, 10, 2), "{order:?}");
    }
}

/// One queue's launch reads another queue's result.
pub fn launches_of_two_queues_are_ordered_by_the_arrays<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    let queues = [queue(fixture, QueueOrder::InOrder), queue(fixture, QueueOrder::OutOfOrder)];
    let zeros = [0_u32; ITEMS as usize];
    let (mut a, mut b) = (shared(&queues[0], &[1_u32; ITEMS as usize]), shared(&queues[0], &zeros));
    let (mut x, mut y) = (1_u32, 0_u32);
    for _ in 0..6 {
        let launch = |queue| Launch::new(queue, range([ITEMS], [8]));
        let _ = launch(&queues[0]).run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
        let _ = launch(&queues[1]).run_on(&step, slow(fixture), (&mut b, &a)).expect("a launch");
        x = x.wrapping_mul(3).wrapping_add(y);
        y = y.wrapping_mul(3).wrapping_add(x);
    }
    assert_eq!(a.read().expect("a view")[..], [x; ITEMS as usize]);
    assert_eq!(b.read().expect("a view")[..], [y; ITEMS as usize]);
}

/// Fill, launch, copy, launch, without naming events.
pub fn launches_are_ordered_among_copies_and_fills<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let items = ITEMS as usize;
    let (mut a, mut b) =
        (UsmVec::<u32, Device, B>::zeroed(&queue, items).expect("an array"), shared(&queue, &vec![0; items]));
    let _ = queue.fill(&mut a, 5).expect("a fill");
    let _ = queue.fill(&mut b, 1).expect("a fill");
    let launch = || Launch::new(&queue, range([ITEMS], [8]));
    let _ = launch().run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
    let _ = queue.copy(&mut b, &a).expect("a copy");
    let _ = launch().run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
    let _ = queue.fill(&mut b, 0).expect("a fill");
    assert_eq!(a.to_vec(&queue).expect("the result"), vec![64; items]);
}

/// A launch also waits for events of work on other arrays.
pub fn a_launch_waits_for_the_events_it_is_given<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    let (one, two) = (queue(fixture, QueueOrder::OutOfOrder), queue(fixture, QueueOrder::OutOfOrder));
    let ones = [1_u32; ITEMS as usize];
    let (mut a, mut c, b) = (shared(&one, &ones), shared(&one, &ones), shared(&one, &ones));
    let launch = |queue| Launch::new(queue, range([ITEMS], [8]));
    let first = launch(&one).run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
    let after = [first];
    let second = launch(&two).after(&after).run_on(&step, slow(fixture), (&mut c, &b)).expect("a launch");
    second.wait().expect("done");
    assert_eq!(after[0].status().expect("a state"), usm_core::EventStatus::Complete);
}

/// Arrays, kernel and queue are dropped before the launch runs.
pub fn what_a_launch_uses_may_be_dropped_at_once<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(saxpy) = ready::<sample::saxpy, B, 1>(fixture.context) else { return };
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    let ones = [1_u32; ITEMS as usize];
    let outer = queue(fixture, QueueOrder::OutOfOrder);
    let mut a = shared(&outer, &ones);
    for _ in 0..4 {
        let queue = queue(fixture, QueueOrder::InOrder);
        let step = step.clone();
        let b = shared(&queue, &[2_u32; ITEMS as usize]);
        let launch = Launch::new(&queue, range([ITEMS], [8]));
        let _ = launch.run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
        drop((b, step, queue));
        // A new allocation must not overlap memory that the launch still reads.
        drop(shared(&outer, &[77_u32; ITEMS as usize]));
    }
    drop((step, saxpy));
    assert_eq!(a.read().expect("a view")[..], expected(1, 4, 2));
    outer.wait().expect("idle");
    drop(a);
    fixture.context.collect();
    assert_eq!((fixture.context.stats().sum.live, fixture.context.stats().leaked), (0, 0));
}

/// The wait does not depend on handles.
pub fn a_view_waits_for_a_forgotten_launch<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let (mut a, b) = (shared(&queue, &[1_u32; ITEMS as usize]), shared(&queue, &[2_u32; ITEMS as usize]));
    let launch = Launch::new(&queue, range([ITEMS], [8]));
    core::mem::forget(launch.run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch"));
    core::mem::forget(b);
    core::mem::forget(step);
    core::mem::forget(queue);
    assert_eq!(a.read().expect("a view")[..], expected(1, 1, 2));
}

type Input<B> = (u32, Queue<B>, UsmVec<u32, Shared, B>, UsmVec<u32, Shared, B>);

/// A queue and two arrays for each thread, filled before any launch: without concurrent access a
/// fill and a launch exclude each other.
fn inputs<B: Programmable, const N: usize>(
    fixture: &Fixture<'_, B>,
    order: QueueOrder,
    values: [u32; N],
) -> [Input<B>; N] {
    values.map(|by| {
        let queue = queue(fixture, order);
        let (a, b) = (shared(&queue, &[by; ITEMS as usize]), shared(&queue, &[by; ITEMS as usize]));
        (by, queue, a, b)
    })
}

/// Two threads launch one function with different arguments: the arguments do not mix.
pub fn two_threads_launch_one_function<B: Programmable + 'static>(fixture: &Fixture<'_, B>)
where
    usm_core::Context<B>: Send + Sync,
{
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    std::thread::scope(|scope| {
        let threads = inputs(fixture, QueueOrder::InOrder, [1_u32, 1_000]).map(|(by, queue, mut a, b)| {
            let step = &step;
            scope.spawn(move || {
                for _ in 0..50 {
                    let launch = Launch::new(&queue, range([ITEMS], [8]));
                    let _ = launch.run_on(step, Step { rounds: 10 }, (&mut a, &b)).expect("a launch");
                }
                (by, a)
            })
        });
        // Views come after all launches: without concurrent access they exclude each other.
        for (by, a) in
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        {
            assert_eq!(a.read().expect("a view")[..], expected(by, 50, by));
        }
    });
}

/// More threads than any runtime has processors wait for launches on queues of their own: every
/// wait ends.
pub fn waits_of_many_threads_all_end<B: Programmable + 'static>(fixture: &Fixture<'_, B>)
where
    usm_core::Context<B>: Send + Sync,
{
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    std::thread::scope(|scope| {
        let all = inputs(fixture, QueueOrder::OutOfOrder, [1_u32, 2, 3, 4, 5, 6, 7, 8]);
        let threads = all.map(|(by, queue, mut a, b)| {
            let step = &step;
            scope.spawn(move || {
                for _ in 0..40 {
                    let launch = Launch::new(&queue, range([ITEMS], [8]));
                    let done = launch.run_on(step, Step { rounds: 10 }, (&mut a, &b)).expect("a launch");
                    done.wait().expect("its end");
                }
                (by, a)
            })
        });
        for (by, a) in
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        {
            assert_eq!(a.read().expect("a view")[..], expected(by, 40, by));
        }
    });
}

/// A launch over memory of the program's allocator, if the device can access it.
pub fn kernels_reach_memory_of_the_program<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(step) = ready::<Step, B, 1>(fixture.context) else { return };
    let adopt = |value: u32| of_the_program(fixture.context, vec![value; ITEMS as usize]);
    let (Some(mut a), Some(b)) = (adopt(1), adopt(2)) else { return };
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let launch = Launch::new(&queue, range([ITEMS], [8]));
    let _ = launch.run_on(&step, slow(fixture), (&mut a, &b)).expect("a launch");
    drop(b);
    assert_eq!(a.into_system().map_err(|(_, error)| error).expect("the memory")[..], expected(1, 1, 2));
}
