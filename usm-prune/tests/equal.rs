//! The fast passes against their definition: equal statistics and equal remaining operations on
//! graphs of every shape.

#[path = "common/graphs.rs"]
mod graphs;
#[path = "common/model.rs"]
mod model;
#[path = "common/shapes.rs"]
mod shapes;

use graphs::graphs;
use model::Model;
use proptest::prelude::*;
use usm_prune::{BlockId, Cfg, Options, Passes, prune};

fn passes() -> impl Strategy<Value = Passes> {
    let some = any::<[bool; 4]>().prop_map(|[per_block, diamond, fanout, fanout_raise]| Passes {
        per_block,
        diamond,
        fanout,
        fanout_raise,
    });
    prop_oneof![Just(Passes::ALL), some]
}

proptest! {
    // `PROPTEST_CASES` may raise the number.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]

    #[test]
    fn fast_passes_follow_their_definition(graph in graphs(), passes in passes(), limit in prop_oneof![Just(1000usize), 1usize..30]) {
        let mut options = Options::default();
        (options.passes, options.subgraph_limit) = (passes, limit);
        check(graph.build(), &options)?;
    }
}

#[test]
fn shapes_of_large_graphs_agree_when_small() {
    for (name, shape) in shapes::SHAPES {
        for blocks in [8, 40, 97] {
            check(shape(blocks), &Options::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

fn check(mut cfg: Cfg, options: &Options) -> Result<(), TestCaseError> {
    let mut model = Model::new(&cfg);
    let expected = model.prune(options);
    let stats = prune(&mut cfg, options);
    for block in 0..cfg.len() {
        let left: Vec<_> = cfg.ops(BlockId(block as u32)).iter().map(|op| op.id).collect();
        prop_assert_eq!(left, model.ops(block), "block {}", block);
    }
    prop_assert_eq!(stats, expected);
    Ok(())
}
