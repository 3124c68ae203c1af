//! Every program with memory of queues gives the same result as with plain memory.

use proptest::prelude::*;
use usm_core::backend::mock::{Call, Mock, Operation, Progress};
use usm_core::{Device, Host, QueueOrder, UsmVec};

use super::BYTES;

/// The actions of a program on memory of queues, with small numbers.
#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate { queue: usize, place: usize },
    Fill { queue: usize, place: usize, value: u8 },
    Copy { queue: usize, from: usize, to: usize },
    Drop { place: usize },
    DropQueue { queue: usize },
    Run,
}

/// Size of an array in bytes, if there is one.
type Content = Option<Vec<u8>>;
/// Live bytes, live blocks, blocks ever allocated.
type Totals = (usize, usize, usize);

const QUEUES: usize = 3;
const PLACES: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let (queue, place) = (0..QUEUES, 0..PLACES);
    prop_oneof![
        3 => (queue.clone(), place.clone()).prop_map(|(queue, place)| Step::Allocate { queue, place }),
        4 => (queue.clone(), place.clone(), any::<u8>())
            .prop_map(|(queue, place, value)| Step::Fill { queue, place, value }),
        4 => (queue.clone(), place.clone(), place.clone())
            .prop_map(|(queue, from, to)| Step::Copy { queue, from, to }),
        3 => place.prop_map(|place| Step::Drop { place }),
        1 => queue.prop_map(|queue| Step::DropQueue { queue }),
        1 => Just(Step::Run),
    ]
}

/// Runs the steps. Returns the final content of each place and the totals after each step.
fn run(mock: &Mock, steps: &[Step]) -> (Vec<Content>, Vec<Totals>) {
    let context = mock.context();
    let order = |index: usize| [QueueOrder::InOrder, QueueOrder::InOrder, QueueOrder::OutOfOrder][index];
    let new_queue = |index| context.queue(order(index)).expect("a queue");
    let mut queues: Vec<_> = (0..QUEUES).map(new_queue).collect();
    let mut places: Vec<Option<UsmVec<u8, Device, Mock>>> = (0..PLACES).map(|_| None).collect();
    let mut totals = Vec::new();
    for step in steps {
        match *step {
            Step::Allocate { queue, place } => {
                let queue = &queues[queue];
                places[place] = Some(UsmVec::zeroed_in(queue, queue, BYTES).expect("an array"));
            }
            Step::Fill { queue, place, value } => {
                if let Some(array) = &mut places[place] {
                    let _ = queues[queue].fill(array, value).expect("a fill");
                }
            }
            Step::Copy { queue, from, to } if from != to => {
                let source = places[from].take();
                if let (Some(source), Some(target)) = (&source, &mut places[to]) {
                    let _ = queues[queue].copy(target, source).expect("a copy");
                }
                places[from] = source;
            }
            Step::Copy { .. } => {}
            Step::Drop { place } => places[place] = None,
            Step::DropQueue { queue } => queues[queue] = new_queue(queue),
            Step::Run => _ = mock.step(),
        }
        let sum = context.stats().sum;
        totals.push((sum.current, sum.live, sum.count));
    }
    mock.finish();
    let queue = new_queue(2);
    let read = |array: &UsmVec<u8, Device, Mock>| {
        let staging = UsmVec::<u8, Host, Mock>::uninit(&context, BYTES).expect("an array");
        let (copy, _) = staging.copy_from(&queue, array).expect("a copy");
        mock.finish();
        copy.read().expect("a view").to_vec()
    };
    let content = places.iter().map(|place| place.as_ref().map(read)).collect();
    (content, totals)
}

/// The content of each place if every operation completes at once.
fn model(steps: &[Step]) -> Vec<Content> {
    let mut places: Vec<Option<u8>> = vec![None; PLACES];
    for step in steps {
        match *step {
            Step::Allocate { place, .. } => places[place] = Some(0),
            Step::Fill { place, value, .. } => places[place] = places[place].map(|_| value),
            Step::Copy { from, to, .. } => {
                places[to] = places[to].map(|before| places[from].unwrap_or(before));
            }
            Step::Drop { place } => places[place] = None,
            Step::DropQueue { .. } | Step::Run => {}
        }
    }
    places.into_iter().map(|value| value.map(|value| vec![value; BYTES])).collect()
}

proptest! {
    /// On three queues in any legal order, and on the same driver without queue order, with equal
    /// totals after each step.
    #[test]
    fn any_program_is_the_one_without_queues(steps in prop::collection::vec(step(), 0..40), seed in any::<u64>()) {
        let (ordered, plain) = (Mock::new(Progress::Manual), Mock::new(Progress::Manual).without_queue_memory());
        ordered.seed(seed);
        plain.seed(seed);
        let (content, totals) = run(&ordered, &steps);
        prop_assert_eq!(&content, &model(&steps));
        prop_assert_eq!(ordered.violations(), []);
        prop_assert_eq!(run(&plain, &steps), (content, totals));
        prop_assert_eq!(plain.violations(), []);
        let is_in_order = |call: &Call| call.operation == Operation::AllocateInOrder;
        prop_assert!(!plain.calls().iter().any(is_in_order));
    }
}
