//! Graphs with features that are easy to plan wrongly: views, permits, parts, branches, loops. Also
//! rows, graphs and edges that are certainly wrong.

#[allow(dead_code, reason = "the tests of usm-pool use more of it")]
#[path = "../../../../../usm-pool/tests/common/executor.rs"]
mod executor;
#[path = "../../../../../usm-pool/tests/common/views.rs"]
mod views;

use usm_pool::dependency::Reachability;
use usm_pool::graph::{GraphBuilder, TensorNode};
use usm_pool::{Graph, Op, Options, Queue, Row, Strategy, Tensor, TensorKind, plan_graph, verify};

use crate::Checker;
use executor::Random;

/// All graphs, with the queue of their plan.
pub(super) fn all() -> [(&'static str, Graph, Queue); 10] {
    [
        ("residual", residual(), Queue::InOrder),
        ("residual, out of order", residual(), Queue::OutOfOrder),
        ("attention", attention(), Queue::InOrder),
        ("attention, out of order", attention(), Queue::OutOfOrder),
        ("concatenation", concatenation(), Queue::InOrder),
        ("concatenation, out of order", concatenation(), Queue::OutOfOrder),
        ("branches, out of order", branches(), Queue::OutOfOrder),
        ("loop", looping(), Queue::InOrder),
        ("states", built(states(&[(0, 1), (1, 2), (2, 3)])), Queue::InOrder),
        ("states, out of order", built(states(&[(0, 1), (1, 2), (2, 3)])), Queue::OutOfOrder),
    ]
}

fn built(builder: GraphBuilder) -> Graph {
    builder.build().expect("a well-formed graph")
}

/// Convolutions with activations in place, and additions of earlier results.
pub(super) fn residual() -> Graph {
    let mut builder = Graph::builder().tensor(Tensor::new(0, 12_288)).tensor(Tensor::new(1, 65_536));
    builder = builder.op(Op::new("stem").inputs([0]).outputs([1]));
    let mut last = 1;
    for block in 0..4_u64 {
        let (size, id) = (65_536 >> block, 10 * (block + 1));
        for k in 0..4 {
            builder = builder.tensor(Tensor::new(id + k, size));
        }
        builder = builder
            .op(Op::new("convolution").inputs([last]).outputs([id]))
            .op(Op::new("relu").inputs([id]).outputs([id + 1]).in_place(id, id + 1))
            .op(Op::new("shortcut").inputs([last]).outputs([id + 2]))
            .op(Op::new("add").inputs([id + 1, id + 2]).outputs([id + 3]).in_place(id + 2, id + 3));
        last = id + 3;
    }
    built(builder.output(last))
}

/// Heads as views of one projection, a softmax in place, and a mask that is a view of the masked
/// tensor.
fn attention() -> Graph {
    let mut builder = Graph::builder()
        .tensor(Tensor::new(0, 6144).kind(TensorKind::Activation))
        .tensor(Tensor::new(1, 18_432))
        .op(Op::new("projection").inputs([0]).outputs([1]));
    let mut sums = Vec::new();
    for head in 0..3_u64 {
        let id = 10 * (head + 1);
        builder = builder
            .tensor(Tensor::new(id, 2048).alias_of(1, 6144 * head))
            .tensor(Tensor::new(id + 1, 2048).alias_of(1, 6144 * head + 2048))
            .tensor(Tensor::new(id + 2, 2048).alias_of(1, 6144 * head + 4096))
            .tensor(Tensor::new(id + 3, 4096))
            .tensor(Tensor::new(id + 4, 4096))
            .tensor(Tensor::new(id + 5, 64).alias_of(id + 3, 0))
            .tensor(Tensor::new(id + 6, 2048))
            .op(Op::new("scores").inputs([id, id + 1]).outputs([id + 3]))
            .op(Op::new("softmax").inputs([id + 3]).outputs([id + 4]).in_place(id + 3, id + 4))
            .op(Op::new("values").inputs([id + 4, id + 2]).outputs([id + 6]));
        sums.push(id + 6);
    }
    built(
        builder
            .tensor(Tensor::new(40, 2048))
            .op(Op::new("mix").inputs(sums).outputs([40]).in_place(16, 40))
            .output(40),
    )
}

/// Branches that write the parts of one block, which is read as a whole.
fn concatenation() -> Graph {
    let mut builder = Graph::builder()
        .tensor(Tensor::new(0, 4096).kind(TensorKind::Activation))
        .tensor(Tensor::new(1, 8192))
        .tensor(Tensor::new(9, 1024));
    for part in 0..4_u64 {
        builder = builder
            .tensor(Tensor::new(10 + part, 2048))
            .tensor(Tensor::new(20 + part, 2048).alias_of(1, 2048 * part))
            .op(Op::new("branch").inputs([0]).outputs([10 + part]))
            .op(Op::new("part").inputs([10 + part]).outputs([20 + part]));
    }
    built(builder.op(Op::new("head").inputs([1]).outputs([9])).output(9))
}

/// Parallel chains whose tensors share bytes only with ordering edges.
fn branches() -> Graph {
    let mut builder = Graph::builder().tensor(Tensor::new(0, 256)).op(Op::new("begin").outputs([0]));
    let mut ends = Vec::new();
    for branch in 0..3_u64 {
        let id = 10 * (branch + 1);
        builder = builder
            .tensor(Tensor::new(id, 4096))
            .tensor(Tensor::new(id + 1, 4096))
            .tensor(Tensor::new(id + 2, 64))
            .op(Op::new("widen").inputs([0]).outputs([id]))
            .op(Op::new("work").inputs([id]).outputs([id + 1]))
            .op(Op::new("narrow").inputs([id + 1]).outputs([id + 2]));
        ends.push(id + 2);
    }
    built(builder.tensor(Tensor::new(1, 64)).op(Op::new("end").inputs(ends).outputs([1])).output(1))
}

/// A loop whose body hands on a state and reads a table in each iteration.
fn looping() -> Graph {
    built(
        Graph::builder()
            .tensor(Tensor::new(0, 512))
            .tensor(Tensor::new(1, 1024))
            .tensor(Tensor::new(2, 1024))
            .tensor(Tensor::new(3, 512))
            .tensor(Tensor::new(4, 1024))
            .tensor(Tensor::new(5, 512))
            .op(Op::new("table").outputs([0]))
            .op(Op::new("read").inputs([0, 4]).outputs([1]))
            .op(Op::new("work").inputs([1]).outputs([2]).in_place(1, 2))
            .op(Op::new("step").inputs([2]).outputs([4]))
            .op(Op::new("after").inputs([4]).outputs([3]))
            .op(Op::new("end").inputs([3]).outputs([5]))
            .loop_body(1, 3)
            .output(5),
    )
}

/// A tensor's row and its root.
/// Three states that a loop hands on, tensors 10 to 12, and one that it makes anew, 13, of the old
/// 12. The copies (to, from) name states by number; each writes a view of its state.
fn states(copies: &[(u64, u64)]) -> GraphBuilder {
    let mut builder = Graph::builder();
    for state in 0..3 {
        builder = builder
            .tensor(Tensor::new(state, 512))
            .tensor(Tensor::new(10 + state, 512))
            .tensor(Tensor::new(20 + state, 512).alias_of(10 + state, 0))
            .tensor(Tensor::new(30 + state, 512))
            .op(Op::new("make").outputs([state]))
            .op(Op::new("enter").inputs([state]).outputs([10 + state]));
    }
    builder = builder.tensor(Tensor::new(13, 512)).tensor(Tensor::new(40, 1024));
    builder = builder.op(Op::new("wide").inputs([12]).outputs([40]));
    builder = builder.op(Op::new("body").inputs([40, 10]).outputs([13]));
    for &(to, from) in copies {
        builder = builder.op(Op::new("next").inputs([10 + from]).outputs([20 + to]));
    }
    let last = 7 + copies.len();
    for state in 0..3 {
        builder = builder.op(Op::new("leave").inputs([10 + state]).outputs([30 + state])).output(30 + state);
    }
    builder.loop_body(6, last)
}

/// Ends of iterations: right ones, and those in which a copy reads a state that another one has
/// overwritten.
pub(super) fn ends_of_iterations() -> Vec<(String, bool, GraphBuilder)> {
    let mut ends = Vec::new();
    let copies = [(0, 1), (1, 2), (2, 3)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let copies = order.map(|at| copies[at]);
        let right = order == [0, 1, 2];
        ends.push((format!("copies {copies:?}"), right, states(&copies)));
    }
    for circle in [vec![(0, 1), (1, 0)], vec![(0, 1), (1, 2), (2, 0)]] {
        ends.push((format!("a circle {circle:?}"), false, states(&circle)));
    }
    ends.push(("one input for two states".to_owned(), true, states(&[(0, 2), (1, 2), (2, 3)])));
    ends
}

/// Graphs with the permit to write tensor 1 over tensor 0, and the queues on which no plan can take
/// it.
pub(super) fn void_permits() -> Vec<(&'static str, Graph, Vec<Queue>)> {
    let begin = || {
        let builder = Graph::builder().tensor(Tensor::new(0, 256)).tensor(Tensor::new(1, 256));
        builder.op(Op::new("make").outputs([0])).output(1)
    };
    let over = || Op::new("over").inputs([0]).outputs([1]).in_place(0, 1);
    let view =
        || begin().tensor(Tensor::new(2, 256).alias_of(0, 0)).op(Op::new("view").inputs([0]).outputs([2]));
    let both = || vec![Queue::InOrder, Queue::OutOfOrder];
    vec![
        ("the input is an output", built(begin().op(over()).output(0)), both()),
        ("a view of the input is an output", built(view().op(over()).output(2)), both()),
        ("the input is read later", built(begin().op(over()).op(Op::new("read").inputs([0]))), both()),
        (
            "the input is read at any time",
            built(begin().op(Op::new("read").inputs([0])).op(over())),
            vec![Queue::OutOfOrder],
        ),
        ("a view is read too", built(view().op(over().inputs([2]))), both()),
        (
            "a view is made too",
            built(begin().tensor(Tensor::new(2, 256).alias_of(0, 0)).op(over().outputs([2]))),
            both(),
        ),
    ]
}

/// Rows with the output 1 on the input 0.
pub(super) fn taken(graph: &Graph, rows: &[Row]) -> Vec<Row> {
    let root = |row: &Row| graph.tensors()[graph.tensor_index(row.id).expect("a tensor")].root;
    let mut rows = rows.to_vec();
    rows.iter_mut().for_each(|row| row.offset = 256 * root(row) as u64);
    rows.iter_mut().filter(|row| row.id == 1).for_each(|row| row.offset = 0);
    rows
}

fn row_of(graph: &Graph, rows: &[Row], tensor: usize) -> Option<Row> {
    rows.iter().find(|row| row.id == graph.tensors()[tensor].id).copied()
}

/// The rows with the root of `tensor` and all its views moved, so that `tensor` starts where `onto`
/// does.
fn moved(graph: &Graph, rows: &[Row], tensor: usize, onto: usize) -> Option<Vec<Row>> {
    let node = &graph.tensors()[tensor];
    let (target, memory) = row_of(graph, rows, onto).map(|row| (row.offset, row.memory))?;
    let base = target.checked_sub(node.root_offset)?;
    let mut rows = rows.to_vec();
    for row in &mut rows {
        let other = &graph.tensors()[graph.tensor_index(row.id)?];
        if other.root == node.root {
            (row.offset, row.memory) = (base + other.root_offset, memory);
        }
    }
    Some(rows)
}

/// Wrong rows: single invalid rows, and rows that overlap although both tensors are needed.
pub(super) fn wrong_rows(graph: &Graph, queue: Queue, rows: &[Row]) -> Vec<(String, Vec<Row>)> {
    let mut found: Vec<(String, Vec<Row>)> = Vec::new();
    let mut edit = |what: &str, change: &dyn Fn(&mut Vec<Row>)| {
        let mut rows = rows.to_vec();
        change(&mut rows);
        found.push((what.to_owned(), rows));
    };
    edit("no rows", &|rows| rows.clear());
    edit("the first row missing", &|rows| *rows = rows[1..].to_vec());
    edit("the last row missing", &|rows| rows.truncate(rows.len() - 1));
    edit("a row twice", &|rows| rows.push(rows[0]));
    edit("a row of an unknown tensor", &|rows| {
        rows.push(rows[0]);
        rows.last_mut().expect("row").id = 1 << 50;
    });
    edit("a larger row", &|rows| rows[0].size += 1);
    edit("a smaller row", &|rows| rows[1].size -= 1);
    edit("a row at an odd byte", &|rows| {
        rows.iter_mut().filter(|row| row.alignment > 1).take(1).for_each(|row| row.offset |= 1)
    });
    edit("a row beyond 64 bits", &|rows| rows[0].offset = !(rows[0].alignment - 1));
    edit("everything at 0", &|rows| rows.iter_mut().for_each(|row| row.offset = 0));
    let is_view = |row: &Row| graph.tensor_index(row.id).is_some_and(|t| graph.tensors()[t].alias.is_some());
    if rows.iter().any(is_view) {
        edit("a view away from its root", &|rows| {
            rows.iter_mut().filter(|row| is_view(row)).take(1).for_each(|row| row.offset += 1 << 20);
        });
        edit("a view in another memory", &|rows| {
            let memory = usm_pool::Memory::Host;
            rows.iter_mut().filter(|row| is_view(row)).take(1).for_each(|row| row.memory = memory);
        });
    }
    if let Some(given) = graph.tensors().iter().find(|node| node.kind == TensorKind::Input) {
        edit("a row of what is handed in", &|rows| {
            rows.push(rows[0]);
            let row = rows.last_mut().expect("row");
            (row.id, row.size, row.offset) = (given.id, given.size, 1 << 20);
        });
    }
    let tensors = graph.tensors();
    let apart = |a: usize, b: usize| tensors[a].root != tensors[b].root;
    for (op, node) in graph.ops().iter().enumerate() {
        let mut add = |what: &str, tensor: usize, onto: usize| {
            if apart(tensor, onto) {
                found.extend(
                    moved(graph, rows, tensor, onto)
                        .map(|rows| (format!("op {op}, {}: {what} {tensor} {onto}", node.name), rows)),
                );
            }
        };
        for &output in &node.outputs {
            for &input in node.inputs.iter().filter(|&&input| !node.in_place.contains(&(input, output))) {
                add("writes over what it reads", output, input);
            }
            // A tensor of an earlier operator that a later one reads.
            let passing = |node: &&TensorNode| {
                let before = node.producer.is_some_and(|producer| producer < op);
                before
                    && node.users.iter().any(|&user| user > op)
                    && node.users.iter().all(|&user| user != op)
            };
            if let Some(passing) = tensors.iter().position(|node| passing(&node)) {
                if queue == Queue::InOrder {
                    add("writes over what is read later", output, passing);
                }
            }
        }
        for (k, &input) in node.inputs.iter().enumerate() {
            for &other in &node.inputs[..k] {
                add("reads two from one place", input, other);
            }
        }
    }
    found
}

/// The graph with one more reader of a tensor whose bytes another tensor reuses.
pub(super) fn asking_more(
    graph: &Graph,
    queue: Queue,
    edges: &[(usize, usize)],
    rows: &[Row],
) -> Vec<(String, Graph)> {
    let mut found = Vec::new();
    let reach = Reachability::new(graph, edges).expect("edges that close no cycle");
    // An edge may put an operator before one earlier in the list.
    let follows = |later: usize, earlier: usize| match queue {
        Queue::InOrder => earlier < later,
        _ => reach.precedes(earlier, later),
    };
    let span = |tensor: usize| row_of(graph, rows, tensor).map(|row| (row.offset, row.offset + row.size));
    for (tensor, node) in graph.tensors().iter().enumerate() {
        let overwritten = graph.tensors().iter().enumerate().any(|(other, later)| {
            let (Some(mine), Some(its)) = (span(tensor), span(other)) else { return false };
            let after = node.producer.zip(later.producer).is_some_and(|(mine, its)| follows(its, mine));
            after && later.root != node.root && mine.0.max(its.0) < mine.1.min(its.1)
        });
        if overwritten && !node.is_output {
            let id = node.id;
            found.push((
                format!("the caller reads tensor {id} too"),
                built(GraphBuilder::from(graph).output(id)),
            ));
            let reader = GraphBuilder::from(graph).op(Op::new("late").inputs([id]));
            found.push((format!("another operator reads tensor {id}"), built(reader)));
        }
    }
    found
}

/// Edges that no executor can follow, and plans without one of their edges.
pub(super) fn wrong_edges(graph: &Graph, edges: &[(usize, usize)]) -> Vec<(String, Vec<(usize, usize)>)> {
    let last = graph.ops().len() - 1;
    let with = |more: &[(usize, usize)]| [edges, more].concat();
    let mut found = vec![
        ("an edge from no operator".to_owned(), with(&[(last + 1, 0)])),
        ("an edge to no operator".to_owned(), with(&[(0, usize::MAX)])),
        ("an edge from an operator to itself".to_owned(), with(&[(1, 1)])),
        ("two edges in a circle".to_owned(), with(&[(last - 1, last), (last, last - 1)])),
        ("an edge against the data".to_owned(), with(&[(last, 0)])),
    ];
    if !edges.is_empty() {
        found.push(("no edges".to_owned(), Vec::new()));
        found.push(("edges turned round".to_owned(), edges.iter().map(|&(a, b)| (b, a)).collect()));
    }
    found
}

/// Small graphs whose result overlaps an input. Each is wrong for one reason, and right without it.
pub(super) fn pairs(checker: &mut Checker) {
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let mut over = |what: &str, right: bool, graph: Graph, output: usize, input: usize| {
            let mut options = Options::default();
            options.queue = queue;
            let (_, plan) = plan_graph(&graph, &options).expect("plan");
            let rows = moved(&graph, &plan.rows, output, input).expect("rows");
            let (what, check) =
                (format!("{what}, {}", queue.name()), || verify::graph(&graph, queue, &[], &rows));
            if right { checker.right(&what, check) } else { checker.wrong(&what, check) }
        };
        // A table of 64 rows and a view of it. The permits determine whether the result may overlap
        // the table.
        let add = |(offset, size): (u64, u64), permits: &[(u64, u64)]| {
            let mut op = Op::new("add").inputs([0, 1]).outputs([2]);
            for &(input, output) in permits {
                op = op.in_place(input, output);
            }
            Graph::builder()
                .tensor(Tensor::new(0, 4096))
                .tensor(Tensor::new(1, size).alias_of(0, offset))
                .tensor(Tensor::new(2, 4096))
                .op(Op::new("fill").outputs([0]))
                .op(op)
                .output(2)
        };
        type Addition = (&'static str, (u64, u64), &'static [(u64, u64)], bool);
        let table: [Addition; 9] = [
            ("a table with its own permit, and its first row", (0, 64), &[(0, 2)], false),
            ("a table with its own permit, and all of it again", (0, 4096), &[(0, 2)], false),
            ("a table with its own permit, and its second row", (64, 64), &[(0, 2)], false),
            ("a table with its own permit, and its last row", (4032, 64), &[(0, 2)], false),
            ("a permit for the view alone", (0, 4096), &[(1, 2)], false),
            ("a permit for a smaller view", (0, 64), &[(0, 2), (1, 2)], false),
            ("no permit at all", (0, 4096), &[], false),
            ("a permit for each", (0, 4096), &[(0, 2), (1, 2)], true),
            ("a view of nothing", (0, 0), &[(0, 2)], true),
        ];
        for (what, view, permits, right) in table {
            over(what, right, built(add(view, permits)), 2, 0);
        }
        over(
            "a result that the caller's input lies under",
            false,
            built(add((0, 4096), &[(0, 2), (1, 2)]).output(0)),
            2,
            0,
        );
        let late = add((0, 4096), &[(0, 2), (1, 2)]).op(Op::new("late").inputs([1]));
        over("a result over a view that is read later", false, built(late), 2, 0);
        over(
            "a result in a loop over what each iteration reads",
            false,
            built(add((0, 4096), &[(0, 2), (1, 2)]).loop_body(1, 1)),
            2,
            0,
        );
        let parts = |split: bool| {
            let builder = Graph::builder()
                .tensor(Tensor::new(0, 128))
                .tensor(Tensor::new(1, 128))
                .tensor(Tensor::new(2, 64).alias_of(1, 0))
                .tensor(Tensor::new(3, 64).alias_of(1, 64))
                .op(Op::new("fill").outputs([0]));
            let first = Op::new("first").inputs([0]).outputs([2]).in_place(0, 2);
            built(if split {
                builder.op(first.outputs([3])).output(1)
            } else {
                builder.op(Op::new("other").outputs([3])).op(first).output(1)
            })
        };
        over("two parts over one input, a permit for one", false, parts(true), 1, 0);
        over("a part over an input that another operator's part comes before", false, parts(false), 1, 0);
        let given = Graph::builder()
            .tensor(Tensor::new(0, 64).kind(TensorKind::Activation))
            .tensor(Tensor::new(1, 64).kind(TensorKind::Activation))
            .tensor(Tensor::new(2, 64))
            .op(Op::new("add").inputs([0, 1]).outputs([2]));
        over("two that are there before the run at one place", false, built(given), 1, 0);
        let twice = Graph::builder()
            .tensor(Tensor::new(0, 64))
            .tensor(Tensor::new(1, 64))
            .tensor(Tensor::new(2, 64))
            .op(Op::new("fill").outputs([0]))
            .op(Op::new("both").inputs([0]).outputs([1, 2]).in_place(0, 1).in_place(0, 2))
            .output(1);
        over("two results at one place", false, built(twice), 2, 1);
    }
}

/// Random graphs of views with families at random offsets, for which a byte-level executor shows a
/// wrong result.
pub(super) fn random(checker: &mut Checker) {
    let mut random = Random(2026);
    let mut left = 80;
    while left > 0 {
        let graph = views::graph(&mut random, 5);
        let mut options = Options::default();
        options.queue = if left % 2 == 0 { Queue::InOrder } else { Queue::OutOfOrder };
        options.strategy = Strategy::GreedyBySize;
        let (_, plan) = plan_graph(&graph, &options).expect("plan");
        let count = plan.rows.len() as u64;
        if count == 0 {
            continue;
        }
        let (from, onto) = (random.below(count) as usize, random.below(count) as usize);
        let index = |row: usize| graph.tensor_index(plan.rows[row].id);
        if let (Some(from), Some(onto)) = (index(from), index(onto)) {
            let Some(rows) = moved(&graph, &plan.rows, from, onto) else { continue };
            let ran = match options.queue {
                Queue::InOrder => executor::in_order(&graph, &rows),
                _ => executor::out_of_order(&graph, &[], &rows, &mut random),
            };
            if ran.is_err() {
                let what = format!("random graph {left}, {}, runs wrong", options.queue.name());
                checker.wrong(&what, || verify::graph(&graph, options.queue, &[], &rows));
                left -= 1;
            }
        }
    }
}
