//! The invariants of the planner, as functions of bytes: the fuzz targets call them, and the
//! corpora run through them as ordinary tests.
//!
//! Refused with a message, or planned, verified, and run by the byte-level oracle; never a panic.

#![allow(dead_code, unreachable_pub, missing_docs)] // Each user takes some of the functions; the fuzz targets take them by name.

#[path = "../common/executor.rs"]
mod executor;

use usm_pool::graph::GraphBuilder;
use usm_pool::placement::{Limits, plan_graph_within, plan_within};
use usm_pool::planner::prove_bound;
use usm_pool::planner::reorder::reorder;
use usm_pool::{
    Buffer, Graph, Op, Options, Problem, Queue, Strategy, Tensor, TensorKind, alias::InPlace, fixed, plan,
    plan_graph, verify,
};

/// A target: its name, which is its corpus's too, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 4] =
    [("plan_table", table), ("plan_graph", graph), ("plan_run", run), ("plan_proof", proof)];

/// Search nodes for one plan: enough for small problems, few enough for thousands of plans a
/// second.
const NODES: u64 = 64;

/// Reads bytes in order; zeros after the end.
struct Input<'a>(core::slice::Iter<'a, u8>);

impl Input<'_> {
    fn new(data: &[u8]) -> Input<'_> {
        Input(data.iter())
    }

    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        u64::from(self.byte()) % bound.max(1)
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Mostly small numbers, and numbers around every limit.
    fn number(&mut self) -> u64 {
        match self.byte() {
            0xFF => u64::MAX,
            0xFE => 1 << 63,
            0xFD => u64::from(u32::MAX),
            0xFC => (0..8).fold(0, |value, _| value << 8 | u64::from(self.byte())),
            byte => u64::from(byte),
        }
    }

    fn options(&mut self) -> Options<'static> {
        let mut options = Options::default();
        let choice = self.byte();
        options.strategy = Strategy::ALL[usize::from(choice) % Strategy::ALL.len()];
        options.queue = if choice & 0x40 == 0 { Queue::InOrder } else { Queue::OutOfOrder };
        options.keep_critical_path = choice & 0x80 != 0;
        options.ordering_edges = self.below(5) as usize;
        options.capacity = self.flag().then(|| self.number());
        options.nodes = NODES;
        options
    }

    fn limits(&mut self) -> Limits {
        Limits::new(self.flag().then(|| self.number()), self.flag().then(|| self.number()))
    }
}

/// Any table of buffers, with gaps.
pub fn table(data: &[u8]) {
    let mut input = Input::new(data);
    let options = input.options();
    let limits = input.limits();
    let count = input.below(12) as usize;
    let mut buffers = Vec::new();
    let mut gaps = Vec::new();
    for k in 0..count {
        let shape = input.byte();
        let (lower, length) = (input.number(), input.number());
        let upper = if shape & 1 == 0 { lower.saturating_add(length) } else { length };
        let alignment = if shape & 2 == 0 { 1 << (shape >> 2 & 7) } else { input.number() };
        let id = if shape & 0x40 == 0 { k as u64 } else { input.below(8) };
        buffers.push(Buffer { id, lower, upper, size: input.number(), alignment });
        if shape & 0x80 != 0 {
            gaps.push((input.below(14) as usize, input.number(), input.number()));
        }
    }
    let zeros = vec![0; buffers.len()];
    let _ = verify::sweep(&buffers, &zeros, u64::MAX);
    let problem = match Problem::with_gaps(buffers.clone(), &gaps) {
        Ok(problem) => problem,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let found = plan_within(&problem, &options, &limits).expect("a checked table has a plan");
    let peaks = found.verify(&problem).expect("verified");
    assert_eq!(peaks.iter().sum::<u64>(), found.peak);
    assert!(found.lower_bound <= found.peak || !found.feasible());
    // More budget is never worse, and no result is worse than the simple strategies.
    let mut auto = Options::default();
    let mut last = u64::MAX;
    for nodes in [0, 8, NODES] {
        auto.nodes = nodes;
        let better = plan(&problem, &auto).expect("plan");
        assert!(better.peak <= last, "{nodes} nodes: {} above {last}", better.peak);
        last = better.peak;
    }
    for strategy in Strategy::ALL {
        auto.strategy = strategy;
        assert!(last <= plan(&problem, &auto).expect("plan").peak, "auto is above {}", strategy.name());
    }
    if let (true, Ok(buffers)) = (gaps.is_empty(), <[Buffer; 6]>::try_from(buffers)) {
        let small = fixed::plan(&buffers).expect("a checked table");
        assert_eq!(verify::intervals(&buffers, &small.offsets, small.peak), Ok(small.peak));
    }
}

/// Any graph: unknown names, cycles of views, two producers, partly overlapping loops.
pub fn graph(data: &[u8]) {
    let mut input = Input::new(data);
    let options = input.options();
    let limits = input.limits();
    let mut builder = Graph::builder();
    for k in 0..input.below(10) {
        let shape = input.byte();
        let id = if shape & 1 == 0 { k } else { input.below(10) };
        let mut tensor = Tensor::new(id, input.number());
        if shape & 2 != 0 {
            tensor = tensor.alignment(input.number());
        }
        if shape & 4 != 0 {
            tensor = tensor.alias_of(input.below(11), input.number());
        }
        if shape & 8 != 0 {
            tensor = tensor.padding(input.number());
        }
        let kinds = [TensorKind::Activation, TensorKind::Constant, TensorKind::State, TensorKind::Input];
        if shape & 16 != 0 {
            tensor = tensor.kind(kinds[input.below(4) as usize]);
        }
        builder = builder.tensor(tensor);
    }
    for _ in 0..input.below(10) {
        let shape = input.byte();
        let mut op = Op::new(if shape & 1 == 0 { "" } else { "same" });
        for _ in 0..shape >> 1 & 3 {
            op = op.inputs([input.below(11)]);
        }
        for _ in 0..shape >> 3 & 3 {
            op = op.outputs([input.below(11)]);
        }
        if shape & 0x20 != 0 {
            op = op.in_place(input.below(11), input.below(11));
        }
        if shape & 0x40 != 0 {
            op = op.cost(input.number());
        }
        builder = builder.op(op);
    }
    for _ in 0..input.below(3) {
        builder = builder.output(input.below(11));
    }
    for _ in 0..input.below(3) {
        builder = builder.loop_body(input.below(11) as usize, input.below(11) as usize);
    }
    let graph = match builder.build() {
        Ok(graph) => graph,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(GraphBuilder::from(&graph).build().as_ref(), Ok(&graph), "its own description");
    match plan_graph_within(&graph, &options, &limits) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok((problem, plan)) => {
            plan.verify(&problem).expect("verified");
            verify::graph(&graph, options.queue, &plan.ordering_edges, &plan.rows)
                .expect("verified against the graph");
        }
    }
    if let Ok(found) = reorder(&graph, InPlace::SameSize) {
        assert!(found.peak <= found.peak_before);
        match graph.reordered(&found.order) {
            Ok(ordered) => {
                let bound = found.every_order.expect("a bound without loops");
                verify::order_bound(&ordered, &bound)
                    .unwrap_or_else(|wrong| panic!("{wrong}: {bound:?} {ordered:#?}"));
                let mut options = Options::default();
                options.nodes = NODES;
                if let Ok((_, plan)) = plan_graph(&ordered, &options) {
                    assert!(bound.bytes <= plan.peak, "{} above {}", bound.bytes, plan.peak);
                }
            }
            Err(error) => assert!(!graph.loops().is_empty(), "{error}"),
        }
    }
}

/// Runs a well-formed graph byte by byte in the memory of its plan.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut options = input.options();
    options.capacity = None;
    let seed = input.number();
    let graph = runnable(&mut input);
    let (problem, plan) = plan_graph(&graph, &options).expect("a small graph has a plan");
    plan.verify(&problem).expect("verified");
    verify::graph(&graph, options.queue, &plan.ordering_edges, &plan.rows)
        .unwrap_or_else(|wrong| panic!("{wrong}: {:?} {graph:#?} {:#?}", options.queue, plan.rows));
    let ran = match options.queue {
        Queue::OutOfOrder if !graph.loops().is_empty() => Ok(()),
        Queue::OutOfOrder => {
            executor::out_of_order(&graph, &plan.ordering_edges, &plan.rows, &mut executor::Random(seed))
        }
        _ => executor::in_order(&graph, &plan.rows),
    };
    ran.unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// A proof, written for a table or a graph and then altered, shows no more than is true.
pub fn proof(data: &[u8]) {
    let mut input = Input::new(data);
    let shape = input.byte();
    let mut options = Options::default();
    options.nodes = 4096;
    options.queue = if shape & 2 == 0 { Queue::InOrder } else { Queue::OutOfOrder };
    let (problem, peak) = if shape & 1 == 0 {
        let buffer = |id, input: &mut Input<'_>| {
            let (lower, length) = (input.below(6), 1 + input.below(5));
            Buffer::new(id, lower, lower + length, input.below(9)).aligned(1 << (input.byte() & 3))
        };
        let buffers = (0..input.below(7)).map(|id| buffer(3 * id, &mut input)).collect();
        let problem = Problem::from_buffers(buffers).expect("a table of small numbers");
        let peak = plan(&problem, &options).expect("plan").peak;
        (problem, peak)
    } else {
        let graph = runnable(&mut input);
        let peak = plan_graph(&graph, &options).expect("a small graph has a plan").1.peak;
        (Problem::relaxed(&graph, options.queue).expect("a small graph"), peak)
    };
    let found = plan(&problem, &options).expect("plan");
    let bound = found.lower_bound;
    assert!(bound <= peak, "{bound} is no bound of a plan of {peak}");
    let proven = prove_bound(&problem, bound, &options).expect("tables that fit");
    if let Some(text) = &proven {
        assert_eq!(verify::bound_proof(&problem, text), Ok(bound), "{text}");
    }
    assert_eq!(
        prove_bound(&problem, found.peak + 1, &options),
        Ok(None),
        "there is a plan of {}",
        found.peak
    );
    let mut lines: Vec<String> = proven.unwrap_or_default().lines().map(str::to_owned).collect();
    let ids: Vec<u64> = problem.buffers().iter().map(|buffer| buffer.id).collect();
    for _ in 0..input.below(6) {
        let at = input.below(lines.len() as u64) as usize;
        let id = ids.get(input.below(ids.len() as u64) as usize).copied().unwrap_or(0);
        let line = match input.byte() & 7 {
            0 => format!("place {id}"),
            1 => format!("tall {id}"),
            2 => format!("over {id} {}", input.below(9)),
            3 => format!("cut {}", input.below(9)),
            4 => format!("part {} {}", input.below(9), input.number()),
            5 => format!("bound {}", bound.wrapping_add(input.number())),
            6 => "done".to_owned(),
            _ => lines.get(input.below(lines.len() as u64) as usize).cloned().unwrap_or_default(),
        };
        match input.byte() & 3 {
            0 => lines.insert(at, line),
            1 if at < lines.len() => drop(lines.remove(at)),
            2 if at + 1 < lines.len() => lines.swap(at, at + 1),
            _ if at < lines.len() => lines[at] = line,
            _ => {}
        }
    }
    let raw = String::from_utf8_lossy(data);
    for text in [lines.join("\n") + "\n", format!("usm proof 1\nbuffers {}\n{raw}", ids.len())] {
        match verify::bound_proof(&problem, &text) {
            Ok(bound) => assert!(bound <= peak.min(found.peak), "{bound}, but {peak} is enough: {text}"),
            Err(error) => assert!(!error.to_string().is_empty() && error.line > 0),
        }
    }
}

/// One operator: its reads and writes, and an optional permit.
struct Step {
    reads: Vec<u64>,
    writes: Vec<u64>,
    permit: Option<(u64, u64)>,
}

/// Operators that read recent tensors, with views, in-place permits, outputs, and loops that carry
/// tensors.
fn runnable(input: &mut Input<'_>) -> Graph {
    let mut sizes: Vec<u64> = vec![48];
    let mut tensors = vec![Tensor::new(0, 48).alignment(1).kind(TensorKind::Activation)];
    let mut ops: Vec<Step> = Vec::new();
    let mut outputs = Vec::new();
    for _ in 0..1 + input.below(14) {
        let shape = input.byte();
        let recent =
            |input: &mut Input<'_>| (sizes.len() - 1) as u64 - input.below(sizes.len().min(6) as u64);
        let reads: Vec<u64> = (0..shape & 3).map(|_| recent(input)).collect();
        let mut writes = Vec::new();
        let mut permit = None;
        for _ in 0..shape >> 2 & 3 {
            let (id, flavour, size) = (tensors.len() as u64, input.byte(), 1 + input.below(200));
            let mut tensor = Tensor::new(id, size).alignment(1 << (flavour >> 4 & 3));
            match (flavour & 7, reads.first()) {
                (1, Some(&of)) => {
                    let size = 1 + size % sizes[of as usize];
                    tensor = Tensor::new(id, size).alias_of(of, (sizes[of as usize] - size) / 2);
                    sizes.push(size);
                }
                (2 | 3, Some(&from)) if permit.is_none() => {
                    permit = Some((from, id));
                    tensor = Tensor::new(id, sizes[from as usize]).alignment(1);
                    sizes.push(sizes[from as usize]);
                }
                (4, _) => {
                    outputs.push(id);
                    sizes.push(size);
                }
                _ => sizes.push(size),
            }
            tensors.push(tensor);
            writes.push(id);
        }
        ops.push(Step { reads, writes, permit });
    }
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for _ in 0..input.below(3) {
        let (a, b) = (input.below(ops.len() as u64) as usize, input.below(ops.len() as u64) as usize);
        let (first, last) = (a.min(b), a.max(b));
        let cuts = |&(f, l): &(usize, usize)| {
            let apart = last < f || l < first;
            let nested = (first >= f && last <= l) || (f >= first && l <= last);
            !apart && !nested
        };
        if loops.iter().any(cuts) {
            continue;
        }
        loops.push((first, last));
        // Reads in the next iteration what this one writes.
        let (reader, writer) = (first + input.below((last - first + 1) as u64) as usize, last);
        let plain =
            |id: &&u64| tensors[**id as usize] == Tensor::new(**id, sizes[**id as usize]).alignment(1);
        if let (true, Some(&id)) = (input.flag(), ops[writer].writes.iter().find(plain)) {
            if ops[writer].permit.is_none_or(|(_, to)| to != id) {
                ops[reader].reads.push(id);
            }
        }
    }
    let mut builder = Graph::builder();
    for tensor in tensors {
        builder = builder.tensor(tensor);
    }
    for Step { reads, writes, permit } in ops {
        let mut op = Op::new("").inputs(reads).outputs(writes);
        if let Some((from, to)) = permit {
            op = op.in_place(from, to);
        }
        builder = builder.op(op);
    }
    for id in outputs {
        builder = builder.output(id);
    }
    for (first, last) in loops {
        builder = builder.loop_body(first, last);
    }
    builder.build().expect("well-formed by construction")
}
