//! Launches and memory of two contexts.

use usm_core::{Context, ErrorKind, QueueOrder, Shared, Usage, UsmVec};
use usm_kernel::sample::saxpy;
use usm_kernel::{Launch, LaunchError, Programmable};

use super::{queue, range, ready, refused, shared};
use crate::Fixture;

/// As a read or written argument, as named memory, and by an event; nothing runs.
pub fn a_launch_over_memory_of_another_context_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(ready) = ready::<saxpy, B, 1>(fixture.context) else { return };
    let foreign = |context: &Context<B>| {
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        (UsmVec::<f32, Shared, B>::from_slice(&queue, &[1.0; 8]).expect("an array"), queue)
    };
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let (x, mut y) = (shared(&queue, &[1.0_f32; 8]), shared(&queue, &[1.0_f32; 8]));
    let (mut theirs, their_queue) = foreign(fixture.other);
    let event = [their_queue.barrier(&[]).expect("a barrier")];
    let used = [Usage::read(theirs.allocation())];
    let launch = || Launch::new(&queue, range([8], [8]));
    let errors = [
        refused(launch().uses(&used).run_on(&ready, saxpy, (2.0, &x, &mut y))),
        refused(launch().after(&event).run_on(&ready, saxpy, (2.0, &x, &mut y))),
        refused(launch().run_on(&ready, saxpy, (2.0, &theirs, &mut y))),
        refused(launch().run_on(&ready, saxpy, (2.0, &x, &mut theirs))),
    ];
    let (expected, found) = (fixture.context.id(), fixture.other.id());
    for error in errors {
        let LaunchError::Memory(error) = error else { panic!("{error}") };
        assert_eq!(error.kind, ErrorKind::WrongContext { expected, found });
    }
    queue.wait().expect("idle");
    for array in [&y, &theirs] {
        assert_eq!(array.read().expect("a view")[..], [1.0; 8]);
    }
}
