//! How the work grows with the graph: steps are counted, not time.

use super::*;

#[path = "../../tests/pruning/shapes.rs"]
mod shapes;

/// Steps of walks, searches and moves on the way to the result.
fn steps(mut cfg: Cfg, method: Method) -> (u64, usize) {
    let options = Options { method, ..Options::default() };
    normalize::normalize(&mut cfg);
    let mut index = Index::new(&mut cfg);
    let mut stats = PruneStats::default();
    match method {
        Method::Extended => prune_extended(&mut index, &options, &mut stats),
        _ => prune_reference(&mut index, &options, &mut stats),
    }
    (index.work.get(), stats.total())
}

/// Four times the blocks take less than six times the steps, 64 times the blocks less than 200 times.
#[test]
fn work_grows_nearly_as_the_graph_does() {
    for (name, shape) in shapes::SHAPES {
        let [(small, _), (large, _), (huge, removed)] =
            [500, 2000, 32_000].map(|blocks| steps(shape(blocks), Method::Reference));
        assert!(huge > 0 && large < 6 * small, "{name}: {small} steps, then {large}");
        assert!(huge < 200 * small, "{name}: {small} steps, then {huge}, to remove {removed}");
    }
}
