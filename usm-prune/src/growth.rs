//! The growth of the work with the graph, in steps and not in time.

use crate::*;

#[path = "../tests/common/shapes.rs"]
mod shapes;

/// The steps of walks, searches and moves, and the number of removed operations.
fn steps(mut cfg: Cfg, method: Method) -> (u64, usize) {
    let options = Options { method, ..Options::default() };
    normalize::normalize(&mut cfg);
    let mut index = Index::new(&mut cfg);
    let mut stats = PruneStats::default();
    prune_index(&mut index, &options, &mut stats);
    (index.work.get(), stats.total())
}

/// Four times the blocks take less than six times the steps, 16 times the blocks less than 30
/// times, and remove proportionally more operations.
#[test]
fn work_grows_nearly_as_the_graph_does() {
    for (name, shape) in shapes::SHAPES {
        for method in [Method::Reference, Method::Extended] {
            let [(small, few), (large, _), (huge, many)] =
                [250, 1000, 4000].map(|blocks| steps(shape(blocks), method));
            assert!(huge > 0 && large < 6 * small, "{name}, {method:?}: {small} steps, then {large}");
            assert!(huge < 30 * small, "{name}, {method:?}: {small} steps, then {huge}");
            assert!(many >= 15 * few, "{name}, {method:?}: removed {few} operations, then {many}");
        }
    }
}
