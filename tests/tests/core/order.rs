//! The operations that an operation waits for, and those that it does not.

use usm_core::backend::mock::{Mock, Progress};
use usm_core::{Device, QueueOrder, Shared, UsmVec};

/// Two copies from one array on an out-of-order queue do not wait for each other; a fill of the
/// array waits for both.
#[test]
fn only_conflicts_are_dependencies() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut source = UsmVec::<u32, Shared, Mock>::from_slice(&queue, &[1; 8]).expect("memory");
    let mut left = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 8).expect("memory");
    let mut right = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 8).expect("memory");
    let _ = queue.copy(&mut left, &source).expect("a copy");
    let _ = queue.copy(&mut right, &source).expect("a copy");
    let _ = queue.fill(&mut source, 2).expect("a fill");
    let after: Vec<_> =
        mock.calls().iter().filter(|call| call.bytes == 32).map(|call| call.after).collect::<Vec<_>>();
    assert_eq!(after[after.len() - 3..], [0, 0, 2]);
    mock.finish();
}

/// An array read ten thousand times does not remember ten thousand readers.
#[test]
fn finished_uses_are_forgotten() {
    let mock = Mock::new(Progress::Immediate);
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let source = UsmVec::<u32, Device, Mock>::zeroed(&queue, 1).expect("memory");
    let mut target = UsmVec::<u32, Device, Mock>::zeroed(&queue, 1).expect("memory");
    for _ in 0..10_000 {
        let _ = queue.copy(&mut target, &source).expect("a copy");
    }
    let mut source = source;
    let _ = queue.fill(&mut source, 1).expect("a fill");
    let after = mock.calls().last().expect("calls").after;
    assert!(after <= 5, "{after} dependencies");
}
