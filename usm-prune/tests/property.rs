//! The limits of pruning, checked on every short path of random graphs.
//!
//! Operations of a block count as the passes see them: increments first, then decrements as one
//! group. On every path, for every set of values that may be one object:
//! 1. after each block the lowest count so far is at least the unpruned one, so nothing is freed
//!    earlier;
//! 2. at each exit the net count of every value is unchanged, so nothing is freed twice or leaked.
//!
//! With `fanout_raise` a path through a raising block may leak less than before, never more.

#[path = "common/graphs.rs"]
mod program;

use program::Graph;
use proptest::prelude::*;
use usm_prune::{BlockId, Cfg, Method, OpKind, Options, Passes, prune};

const VALUES: usize = 3;
/// Maximum number of blocks of a path, and of steps along all paths of a graph.
const MAX_PATH: usize = 12;
const MAX_STEPS: usize = 2000;

/// Random graphs. Raising blocks end there or continue: Numba's store the exception and then jump
/// to a common exit.
fn graphs(loops: bool) -> impl Strategy<Value = Graph> {
    (2usize..10).prop_flat_map(move |blocks| {
        let edges = prop::collection::vec(prop::collection::vec(0usize..100, 0..4), blocks);
        let raising = prop::collection::vec(prop::bool::weighted(0.2), blocks);
        let ends = prop::collection::vec(any::<bool>(), blocks);
        let op = (any::<bool>(), 0usize..VALUES).prop_map(|(inc, value)| (inc, value as u32));
        let ops = prop::collection::vec(
            prop_oneof![3 => Just(vec![]), 4 => prop::collection::vec(op, 1..3)],
            blocks,
        );
        (edges, raising, ends, ops).prop_map(move |(mut edges, raising, ends, ops)| {
            for (from, targets) in edges.iter_mut().enumerate() {
                if raising[from] && ends[from] {
                    targets.clear();
                }
                // Block 0 is entered from outside only.
                for to in targets.iter_mut() {
                    *to = if loops { 1 + *to % (blocks - 1) } else { from + 1 + *to };
                }
                targets.retain(|&to| to < blocks);
            }
            Graph { edges, raising, ops }
        })
    })
}

/// Graphs in the shapes of programs.
fn programs() -> impl Strategy<Value = Graph> {
    program::graphs().prop_map(|mut graph| {
        // Block 0 is entered from outside only.
        graph.edges.iter_mut().for_each(|targets| targets.retain(|&to| to != 0));
        graph.ops.iter_mut().flatten().for_each(|(_, value)| *value %= VALUES as u32);
        graph
    })
}

/// Changes of each value's count in a block: by its increments, then by its decrements.
fn changes(cfg: &Cfg, block: usize) -> [[i32; VALUES]; 2] {
    let mut changes = [[0; VALUES]; 2];
    for op in cfg.ops(BlockId(block as u32)) {
        match op.kind {
            OpKind::Inc => changes[0][op.value.0 as usize] += 1,
            OpKind::Dec => changes[1][op.value.0 as usize] -= 1,
        }
    }
    changes
}

/// The counts along one path: of each value, and the lowest of each set of values.
#[derive(Clone)]
struct Run {
    net: [i32; VALUES],
    lowest: [i32; 1 << VALUES],
}

impl Run {
    fn step(&mut self, changes: &[[i32; VALUES]; 2]) {
        for part in changes {
            self.net.iter_mut().zip(part).for_each(|(net, change)| *net += change);
            for (set, lowest) in self.lowest.iter_mut().enumerate() {
                let sum =
                    (0..VALUES).filter(|value| set >> value & 1 == 1).map(|value| self.net[value]).sum();
                *lowest = (*lowest).min(sum);
            }
        }
    }
}

/// Prunes a graph and checks its paths; with `raises_exactly` raising paths too. Returns the number
/// of removed operations.
fn check(graph: &Graph, options: &Options, raises_exactly: bool) -> Result<usize, TestCaseError> {
    let (before, mut after) = (graph.build(), graph.build());
    let stats = prune(&mut after, options);
    let left = |cfg: &Cfg| (0..cfg.len()).map(|block| cfg.ops(BlockId(block as u32)).len()).sum::<usize>();
    prop_assert_eq!(left(&before) - left(&after), stats.total());
    let before: Vec<_> = (0..graph.edges.len()).map(|block| changes(&before, block)).collect();
    let after: Vec<_> = (0..graph.edges.len()).map(|block| changes(&after, block)).collect();
    let start = Run { net: [0; VALUES], lowest: [0; 1 << VALUES] };
    let mut stack = vec![(vec![0usize], false, start.clone(), start)];
    let mut steps = 0;
    while let Some((path, raised, mut old, mut new)) = stack.pop() {
        let block = path[path.len() - 1];
        old.step(&before[block]);
        new.step(&after[block]);
        let raised = raised || graph.raising[block];
        for set in 0..1 << VALUES {
            prop_assert!(new.lowest[set] >= old.lowest[set], "set {:b} dips on {:?}", set, path);
        }
        if graph.edges[block].is_empty() {
            if !raised || raises_exactly {
                prop_assert_eq!(new.net, old.net, "exit of {:?}", path);
            } else {
                let no_more = new.net.iter().zip(&old.net).all(|(new, old)| new <= old);
                prop_assert!(no_more, "{:?} leaks {:?}, and leaked {:?}", path, new.net, old.net);
            }
        }
        steps += 1;
        if steps > MAX_STEPS || path.len() >= MAX_PATH {
            continue;
        }
        for &to in &graph.edges[block] {
            let mut longer = path.clone();
            longer.push(to);
            stack.push((longer, raised, old.clone(), new.clone()));
        }
    }
    Ok(stats.total())
}

fn options(method: Method, passes: &str) -> Options {
    Options { method, passes: Passes::parse(passes).unwrap(), ..Options::default() }
}

proptest! {
    // `PROPTEST_CASES` may raise the number.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1000)))]

    #[test]
    fn webs_without_the_other_passes_keep_every_path(graph in prop_oneof![graphs(false), graphs(true)]) {
        check(&graph, &options(Method::Extended, "diamond"), true)?;
    }

    #[test]
    fn extended_keeps_every_path(graph in prop_oneof![graphs(false), graphs(true)]) {
        check(&graph, &options(Method::Extended, "per_bb,diamond,fanout"), true)?;
    }

    #[test]
    fn extended_keeps_every_path_of_programs(graph in programs()) {
        check(&graph, &options(Method::Extended, "per_bb,diamond,fanout"), true)?;
        check(&graph, &options(Method::Extended, "diamond"), true)?;
    }

    #[test]
    fn legacy_keeps_every_path(graph in prop_oneof![graphs(false), graphs(true)]) {
        check(&graph, &options(Method::Legacy, ""), true)?;
    }

    #[test]
    fn raise_passes_keep_every_path_that_passes_no_raising_block(
        graph in prop_oneof![graphs(false), graphs(true), programs()],
    ) {
        check(&graph, &options(Method::Extended, "all"), false)?;
    }

    /// Without loops the reference keeps every path too, and the extended method removes no fewer
    /// operations.
    #[test]
    fn extended_removes_no_less(mut graph in graphs(false)) {
        // Removals in unreachable code have no use.
        let mut reached = vec![false; graph.edges.len()];
        reached[0] = true;
        for block in 0..graph.edges.len() {
            if reached[block] {
                graph.edges[block].iter().for_each(|&to| reached[to] = true);
            } else {
                graph.ops[block].clear();
            }
        }
        let passes = "per_bb,diamond,fanout";
        let reference = check(&graph, &options(Method::Reference, passes), true)?;
        let extended = check(&graph, &options(Method::Extended, passes), true)?;
        prop_assert!(extended >= reference, "{} < {}", extended, reference);
    }

    /// Pruning a pruned graph removes nothing.
    #[test]
    fn pruning_is_idempotent(graph in prop_oneof![graphs(true), programs()], method in prop_oneof![Just(Method::Reference), Just(Method::Extended)]) {
        let mut cfg = graph.build();
        prune(&mut cfg, &options(method, "all"));
        prop_assert_eq!(prune(&mut cfg, &options(method, "all")).total(), 0);
    }
}

/// Unreachable code does not keep a pair that always cancels: 0 -> 1; the unreachable block 2 -> 3
/// and 1.
#[test]
fn code_that_never_runs_is_in_nobodys_way() {
    let pair = |raising| Graph {
        edges: vec![vec![1], vec![], vec![3, 1], vec![]],
        raising: vec![false, false, raising, false],
        ops: vec![vec![(true, 0)], vec![(false, 0)], vec![], vec![]],
    };
    let fan = Graph {
        edges: vec![vec![1, 2], vec![], vec![], vec![1, 5], vec![2, 3], vec![]],
        raising: vec![false; 6],
        ops: vec![vec![(true, 0)], vec![(false, 0)], vec![(false, 0)], vec![], vec![], vec![]],
    };
    // The increments join before the decrement; the reference does not find such pairs.
    let join = Graph {
        edges: vec![vec![1, 2], vec![3], vec![3], vec![], vec![3, 5], vec![]],
        raising: vec![false; 6],
        ops: vec![vec![], vec![(true, 0)], vec![(true, 0)], vec![(false, 0)], vec![], vec![]],
    };
    for passes in ["diamond", "fanout", "per_bb,diamond,fanout", "all"] {
        let removed = |graph: &Graph| check(graph, &options(Method::Extended, passes), true).unwrap();
        assert_eq!(removed(&pair(false)), 2, "{passes}");
        assert_eq!(removed(&pair(true)), 2, "{passes}");
        assert_eq!(removed(&fan), 3, "{passes}");
        assert_eq!(removed(&join), 3, "{passes}");
    }
}
