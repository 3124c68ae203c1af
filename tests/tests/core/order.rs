//! Any program of copies and fills over any queues gives what it would give run line by line, however the device
//! orders what it may order.

use proptest::prelude::*;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{Device, QueueOrder, Shared, UsmVec};

const ARRAYS: usize = 5;
const QUEUES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Fill { queue: usize, array: usize, value: u32 },
    Copy { queue: usize, from: usize, to: usize },
    View { array: usize },
    Add { array: usize, value: u32 },
    Replace { array: usize, value: u32 },
    Run { operations: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (array, queue, value) = (0..ARRAYS, 0..QUEUES, any::<u32>());
    prop_oneof![
        3 => (queue.clone(), array.clone(), value)
            .prop_map(|(queue, array, value)| Step::Fill { queue, array, value }),
        6 => (queue, array.clone(), array.clone()).prop_map(|(queue, from, to)| Step::Copy { queue, from, to }),
        1 => array.clone().prop_map(|array| Step::View { array }),
        1 => (array.clone(), value).prop_map(|(array, value)| Step::Add { array, value }),
        1 => (array, value).prop_map(|(array, value)| Step::Replace { array, value }),
        2 => (0..4_usize).prop_map(|operations| Step::Run { operations }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn programs_give_what_they_say(steps in prop::collection::vec(step(), 1..60), seed: u64) {
        let mock = Mock::new(Progress::OnWait);
        mock.seed(seed);
        let context = mock.context();
        let orders = [QueueOrder::InOrder, QueueOrder::OutOfOrder, QueueOrder::InOrder, QueueOrder::OutOfOrder];
        let queues = orders.map(|order| context.queue(order).expect("a queue"));
        let mut arrays: Vec<_> = (0..ARRAYS)
            .map(|index| UsmVec::<u32, Shared, Mock>::from_slice(&queues[0], &[index as u32; 3]).expect("memory"))
            .collect();
        let mut model: Vec<u32> = (0..ARRAYS as u32).collect();

        for step in steps {
            match step {
                Step::Fill { queue, array, value } => {
                    let _ = queues[queue].fill(&mut arrays[array], value).expect("a fill");
                    model[array] = value;
                }
                Step::Copy { from, to, .. } if from == to => {}
                Step::Copy { queue, from, to } => {
                    let mut target = arrays.swap_remove(to);
                    let source = if from == arrays.len() { &arrays[to] } else { &arrays[from] };
                    let _ = queues[queue].copy(&mut target, source).expect("a copy");
                    arrays.push(target);
                    arrays.swap(to, ARRAYS - 1);
                    model[to] = model[from];
                }
                Step::View { array } => prop_assert_eq!(&arrays[array].read().expect("a view")[..], &[model[array]; 3]),
                Step::Add { array, value } => {
                    let mut view = arrays[array].write().expect("a view");
                    view.iter_mut().for_each(|element| *element = element.wrapping_add(value));
                    model[array] = model[array].wrapping_add(value);
                }
                // The old array is dropped while work may still use it.
                Step::Replace { array, value } => {
                    arrays[array] = UsmVec::from_slice(&queues[0], &[value; 3]).expect("memory");
                    model[array] = value;
                }
                Step::Run { operations } => (0..operations).for_each(|_| {
                    mock.step();
                }),
            }
        }
        for (array, expected) in arrays.iter().zip(&model) {
            prop_assert_eq!(&array.read().expect("a view")[..], &[*expected; 3]);
        }
        drop(arrays);
        drop((queues, context));
        prop_assert_eq!(mock.violations(), vec![]);
        prop_assert_eq!(mock.live_blocks(), 0);
    }
}

/// Two copies from one array on an out-of-order queue do not wait for each other; a fill of it waits for both.
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
