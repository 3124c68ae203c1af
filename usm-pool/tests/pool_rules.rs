//! The rules of OpenVINO's pool, one by one and together.

#![cfg(feature = "alloc")]

mod common;

use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::alias::InPlace;
use usm_pool::planner::pool_rules::{PaddedLayout, PoolLayout, PoolRequest, PoolType, pool, pool_bytes};
use usm_pool::{Buffer, Memory, Options, Problem, Queue, Strategy as PlanStrategy, plan};

/// Two buffers one after the other in time: 1000 bytes, then `second` bytes.
fn pair(second: u64) -> Problem {
    Problem::from_buffers(vec![Buffer::new(0, 0, 1, 1000), Buffer::new(1, 1, 2, second)]).expect("problem")
}

fn padded(batch: u64, feature: u64, padding: u64) -> PoolRequest {
    let layout = PaddedLayout { format: 1, data_type: 2, x: 8, y: 8, padding, feature, batch };
    PoolRequest::new().layout(PoolLayout::Padded(layout))
}

fn entries(second: u64, requests: [PoolRequest; 2]) -> usize {
    pool(&pair(second), &requests).expect("pool").len()
}

#[test]
fn each_rule_decides() {
    let plain = PoolRequest::new();
    assert_eq!(entries(100, [plain, plain]), 1, "a larger buffer will do");
    assert_eq!(entries(500, [plain, plain.dynamic()]), 2, "half of the buffer is not more than half");
    assert_eq!(entries(501, [plain, plain.dynamic()]), 1);
    assert_eq!(entries(100, [plain, plain.exclusive()]), 2);
    assert_eq!(entries(100, [plain.memory(Memory::Host), plain]), 2, "memories do not mix");
    let sliced = |feature| PoolRequest::new().layout(PoolLayout::Sliced { feature });
    assert_eq!(entries(100, [plain, sliced(64)]), 1);
    assert_eq!(entries(100, [plain, sliced(40)]), 2, "features must fill slices of 32");
    assert_eq!(entries(100, [padded(4, 16, 1), padded(2, 16, 1)]), 1);
    assert_eq!(entries(100, [padded(4, 16, 1), padded(5, 16, 1)]), 2, "more batches than the entry has");
    assert_eq!(entries(100, [padded(4, 16, 1), padded(4, 17, 1)]), 2);
    assert_eq!(entries(100, [padded(4, 16, 1), padded(4, 16, 2)]), 2, "another padding");
    assert_eq!(entries(100, [padded(4, 16, 1), plain]), 2);
    let all = pool(&pair(100), &[padded(4, 16, 1), padded(2, 16, 1)]).expect("pool");
    assert_eq!(
        (all[0].pool, all[0].clear.as_slice()),
        (PoolType::Padded, [0, 1].as_slice()),
        "padding is cleared for each user"
    );
    assert!(pool(&pair(1), &[plain]).is_err());
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn users_of_an_entry_never_conflict(graph in graphs(14), kinds in prop::collection::vec(0_u8..6, 60)) {
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let problem = Problem::from_graph(&graph, queue, InPlace::Never).expect("problem");
            let requests: Vec<PoolRequest> = (0..problem.buffers().len())
                .map(|i| match kinds[i % kinds.len()] {
                    0 => PoolRequest::new().dynamic(),
                    1 => PoolRequest::new().exclusive(),
                    2 => padded(i as u64 % 3, i as u64 % 5, 1),
                    3 => PoolRequest::new().memory(Memory::Host),
                    _ => PoolRequest::new(),
                })
                .collect();
            let entries = pool(&problem, &requests).expect("pool");
            let mut seen = vec![0; problem.buffers().len()];
            for entry in &entries {
                for (k, &user) in entry.users.iter().enumerate() {
                    seen[user] += 1;
                    prop_assert!(problem.buffers()[user].size <= entry.size);
                    prop_assert!(entry.users[..k].iter().all(|&other| !problem.conflict(user, other)));
                }
            }
            for (buffer, seen) in problem.buffers().iter().zip(seen) {
                prop_assert_eq!(seen, u32::from(buffer.size > 0));
            }
        }
    }

    #[test]
    fn plain_requests_are_the_whole_buffer_strategy(graph in graphs(14)) {
        let problem = Problem::from_graph(&graph, Queue::InOrder, InPlace::Never).expect("problem");
        let entries = pool(&problem, &vec![PoolRequest::new(); problem.buffers().len()]).expect("pool");
        let mut options = Options::default();
        options.strategy = PlanStrategy::WholeBuffer;
        let plan = plan(&problem, &options).expect("plan");
        prop_assert_eq!(pool_bytes(&entries), [plan.peak, 0]);
    }
}
