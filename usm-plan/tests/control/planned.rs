//! Executes a planned graph literally: each operator reads and writes the bytes of the plan, and
//! nothing else remembers a value. On a queue without order the operators of all iterations
//! overlap, as far as accesses to the same bytes of one block allow.

use std::collections::HashMap;

use usm_pool::graph::{Graph, TensorNode};
use usm_pool::{Row, TensorKind};

use crate::generate::{About, Model, Random};
use crate::reference::{Values, apply};

use usm_plan::usm_pool;

/// An operator of one iteration of each loop around it.
#[derive(Clone, Debug)]
struct Run {
    op: usize,
    /// The iteration of the innermost loop.
    iteration: usize,
    /// It does not run, but its place in the order counts: in the branch that was not taken, and in
    /// a loop without an iteration.
    skipped: bool,
}

/// What the names of a flat graph say.
pub(crate) struct Facts<'m> {
    model: &'m Model,
    graph: &'m Graph,
    /// For each operator its node's label, and what it does there.
    does: Vec<(&'m str, &'m str)>,
    /// The branches that each operator is in: the condition, and its value that lets it run.
    branches: Vec<Vec<(usize, bool)>>,
    /// For each `Next` of a row: the number of the node's output.
    rows: Vec<Option<usize>>,
}

impl<'m> Facts<'m> {
    pub(crate) fn of(model: &'m Model, graph: &'m Graph) -> Self {
        let does: Vec<(&str, &str)> = graph.ops().iter().map(|op| parts(&op.name)).collect();
        let name = |tensor: usize| graph.tensors()[tensor].name.as_deref().expect("a name");
        // The flat name of a node's first output, by label.
        let mut outputs: HashMap<&str, Vec<String>> = HashMap::new();
        let flat: HashMap<&str, &str> = graph
            .tensors()
            .iter()
            .filter_map(|node| node.name.as_deref())
            .filter(|name| !name.starts_with("usm.control/"))
            .map(|flat| (flat.rsplit_once('/').map_or(flat, |(_, last)| last), flat))
            .collect();
        let mut left = vec![&model.graph];
        while let Some(graph) = left.pop() {
            for node in &graph.node {
                let names =
                    node.output.iter().map(|name| flat.get(name.as_str()).copied().unwrap_or("").to_owned());
                outputs.insert(&node.name, names.collect());
                left.extend(node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()));
            }
        }
        let joins: HashMap<&str, usize> = does
            .iter()
            .enumerate()
            .filter(|(_, (_, does))| *does == "Join")
            .map(|(op, (label, _))| (*label, *graph.ops()[op].inputs.last().expect("a condition")))
            .collect();
        let guards = |first: Option<&str>| {
            let (mut guards, mut at) = (Vec::new(), first.map(str::to_owned));
            while let Some(of) = at {
                let of = ["usm.control/next/", "usm.control/held/"]
                    .iter()
                    .fold(of.as_str(), |of, start| of.strip_prefix(start).unwrap_or(of));
                let Some((label, rest)) = of.split_once('/') else { break };
                if rest.starts_with("then_branch#") || rest.starts_with("else_branch#") {
                    guards.push((joins[label], rest.starts_with("then")));
                }
                at = outputs[label].first().cloned();
            }
            guards
        };
        let branches =
            graph.ops().iter().map(|op| guards(op.outputs.first().map(|&output| name(output)))).collect();
        let row = |(op, node): (usize, &usm_pool::graph::OpNode)| {
            let (label, _) = Some(does[op]).filter(|(_, does)| *does == "Next")?;
            let (of, _) = graph.tensors()[node.outputs[0]].alias.expect("a Next overwrites another tensor");
            outputs[label].iter().position(|output| output == name(of))
        };
        let rows = graph.ops().iter().enumerate().map(row).collect();
        Self { model, graph, does, branches, rows }
    }
}

pub(crate) struct Machine<'m> {
    facts: &'m Facts<'m>,
    model: &'m Model,
    graph: &'m Graph,
    rows: Vec<Option<Row>>,
    arena: Vec<u8>,
    /// Inputs and constants.
    outside: &'m Values,
    /// An operator whose write is hidden.
    hidden: Option<usize>,
}

/// The label of the operator's node, and what it does there.
fn parts(name: &str) -> (&str, &str) {
    let name = name.split('#').next().unwrap_or(name);
    name.split_once('/').unwrap_or_else(|| (name, name.split_once(':').map_or("", |(_, op_type)| op_type)))
}

impl<'m> Machine<'m> {
    pub(crate) fn new(facts: &'m Facts<'m>, rows: &[Row], outside: &'m Values) -> Self {
        let &Facts { model, graph, .. } = facts;
        let mut of = vec![None; graph.tensors().len()];
        for row in rows {
            of[graph.tensor_index(row.id).expect("a tensor")] = Some(*row);
        }
        let end = rows.iter().map(|row| row.offset + row.size).max().unwrap_or(0);
        // No byte has its right value by chance.
        let arena = (0..end).map(|at| (at * 37 + 11) as u8).collect();
        Self { facts, model, graph, rows: of, arena, outside, hidden: None }
    }

    fn node(&self, tensor: usize) -> &'m TensorNode {
        &self.graph.tensors()[tensor]
    }

    fn read(&self, tensor: usize) -> Vec<i64> {
        let node = self.node(tensor);
        let Some(row) = self.rows[tensor] else {
            // A view of an input or a constant has all or a part of its numbers.
            let name = self.node(node.root).name.as_deref().expect("a name");
            // A constant of a body has the body's name before its own.
            let own = name.rsplit_once('/').map_or(name, |(_, own)| own);
            let all = self.outside.get(name).unwrap_or_else(|| &self.outside[own]);
            let (from, count) = (node.root_offset as usize / 8, (node.size as usize).div_ceil(8));
            return all[from..from + count].to_vec();
        };
        let bytes = &self.arena[row.offset as usize..(row.offset + row.size) as usize];
        match bytes {
            [flag] => vec![i64::from(*flag)],
            _ => bytes.chunks(8).map(|word| i64::from_le_bytes(word.try_into().expect("a word"))).collect(),
        }
    }

    /// Writes numbers to some positions of a tensor.
    fn write(&mut self, tensor: usize, numbers: impl IntoIterator<Item = (usize, i64)>) {
        let row = self.rows[tensor].expect("operators write the arena");
        for (position, number) in numbers {
            let at = row.offset as usize + position * 8;
            match row.size {
                1 => self.arena[row.offset as usize] = number as u8,
                _ => self.arena[at..at + 8].copy_from_slice(&number.to_le_bytes()),
            }
        }
    }

    fn op(&self, op: usize) -> (&'m str, &'m str) {
        self.facts.does[op]
    }

    fn about(&self, label: &str) -> Option<&'m About> {
        self.model.about.get(label)
    }

    /// Whether an operator writes an output: a view of an input's bytes is there already.
    fn writes(&self, op: usize, output: usize) -> bool {
        let root = self.node(output).root;
        let of = self.node(output);
        let inputs = self.graph.ops()[op].inputs.iter().map(|&input| self.node(input));
        let inputs: Vec<&TensorNode> = inputs.filter(|input| input.root == root).collect();
        let has = |byte: u64| {
            inputs.iter().any(|input| input.root_offset <= byte && byte < input.root_offset + input.size)
        };
        inputs.is_empty() || !(of.root_offset..of.root_offset + of.size).all(has)
    }

    /// What the operator writes: numbers at positions of outputs.
    fn results(&self, run: &Run) -> Vec<(usize, Vec<(usize, i64)>)> {
        let op = &self.graph.ops()[run.op];
        let (label, does) = self.op(run.op);
        let whole = |numbers: Vec<i64>| numbers.into_iter().enumerate().collect::<Vec<_>>();
        let first = || self.read(op.inputs[0]);
        let only = |numbers: Vec<(usize, i64)>| vec![(op.outputs[0], numbers)];
        match (does, self.about(label)) {
            ("Collect", _) => Vec::new(),
            // No condition is given: it holds.
            ("Enter" | "Keep", _) if op.inputs.is_empty() => only(vec![(0, 1)]),
            ("Enter" | "Keep" | "Hold" | "Leave", _) => only(whole(first())),
            ("Number", _) => only(vec![(0, run.iteration as i64)]),
            ("Join", _) => {
                let taken = self.read(op.inputs[op.inputs.len() - 1])[0] != 0;
                only(whole(self.read(op.inputs[if taken { 0 } else { op.inputs.len() - 2 }])))
            }
            ("Element", Some(About::Scan { states, count, sequences, .. })) => {
                // The elements come in the order of the sequences.
                let before = (0..run.op).rev().take_while(|&op| self.op(op) == (label, "Element")).count();
                assert!(before < sequences.len() && *states < 9);
                let all = first();
                let positions = sequences[before].positions(run.iteration, *count);
                only(whole(positions.into_iter().map(|position| all[position]).collect()))
            }
            ("Next", Some(about)) => {
                let target = self.node(op.outputs[0]);
                let (of, _) = target.alias.expect("a Next overwrites another tensor");
                let Some(at) = self.facts.rows[run.op] else { return vec![(of, whole(first()))] };
                let row = first();
                let positions: Vec<usize> = match about {
                    About::Scan { states, count, rows, .. } => {
                        rows[at - states].positions(run.iteration, *count)
                    }
                    _ => (run.iteration * row.len()..).take(row.len()).collect(),
                };
                vec![(of, positions.into_iter().zip(row).collect())]
            }
            (op_type, about) => {
                let inputs: Vec<Vec<i64>> = op.inputs.iter().map(|&input| self.read(input)).collect();
                let results = apply(op_type, about, &inputs).into_iter().map(whole);
                op.outputs.iter().copied().zip(results).collect()
            }
        }
    }

    fn finish(&mut self, run: &Run) {
        if self.hidden == Some(run.op) {
            return;
        }
        for (tensor, numbers) in self.results(run) {
            let next = self.op(run.op).1 == "Next";
            if next || self.writes(run.op, tensor) {
                self.write(tensor, numbers);
            }
        }
    }

    /// A kernel may write from its first moment on, in any order, except over what it overwrites in
    /// place.
    fn start(&mut self, run: &Run) {
        if matches!(self.op(run.op).1, "Next" | "Collect") {
            return;
        }
        let graph = self.graph;
        let op = &graph.ops()[run.op];
        for &output in &op.outputs {
            if !self.writes(run.op, output) {
                continue;
            }
            let place = self.rows[output].map(|row| row.offset);
            let over = |&&(input, to): &&(usize, usize)| {
                to == output && self.rows[input].map(|row| row.offset) == place
            };
            if !op.in_place.iter().any(|pair| over(&pair)) {
                let count = (self.node(output).size as usize).div_ceil(8);
                self.write(output, (0..count).map(|position| (position, 0x0BAD_F00D)));
            }
        }
    }

    /// Runs in order. Returns the operators in the order in which they ran.
    fn run_in_order(&mut self) -> Vec<Run> {
        let mut runs = Vec::new();
        self.part(0, self.graph.ops().len(), (None, 0), false, &mut runs);
        runs
    }

    fn execute(&mut self, run: Run, runs: &mut Vec<Run>) {
        if !run.skipped {
            self.start(&run);
            self.finish(&run);
        }
        runs.push(run);
    }

    fn part(
        &mut self,
        first: usize,
        end: usize,
        inside: (Option<usize>, usize),
        skip: bool,
        runs: &mut Vec<Run>,
    ) {
        let mut op = first;
        while op < end {
            let begins = |&&(begin, _): &&(usize, usize)| begin == op;
            let within = |&&(at, _): &&(usize, &(usize, usize))| inside.0 != Some(at);
            let loops = self.graph.loops().iter().enumerate();
            let found = loops.filter(|(_, body)| begins(body) && body.1 < end).filter(|at| within(&at));
            let Some((at, &(_, last))) = found.max_by_key(|(_, body)| body.1) else {
                let skipped = skip || self.is_dead(op);
                self.execute(Run { op, iteration: inside.1, skipped }, runs);
                op += 1;
                continue;
            };
            // A loop begins with its own operator: Number or Element.
            let label = self.op(op).0;
            let skip_all = skip || self.is_dead(op);
            let mut iteration = 0;
            while !skip_all && self.goes_on(label, op, iteration) {
                self.part(op, last + 1, (Some(at), iteration), false, runs);
                iteration += 1;
            }
            if iteration == 0 {
                self.part(op, last + 1, (Some(at), 0), true, runs);
            }
            op = last + 1;
        }
    }

    fn goes_on(&self, label: &str, first: usize, iteration: usize) -> bool {
        match self.about(label) {
            Some(About::Scan { count, .. }) => iteration < *count,
            _ => {
                let number = &self.graph.ops()[first];
                assert_eq!(self.op(first), (label, "Number"));
                let [times, go] = [0, 1].map(|input| self.read(number.inputs[input])[0]);
                go != 0 && (iteration as i64) < times
            }
        }
    }

    /// Whether an operator is in a branch that does not run.
    fn is_dead(&self, op: usize) -> bool {
        // In another order a branch may begin before its condition is known: both run.
        if self.graph.loops().is_empty() {
            return false;
        }
        self.facts.branches[op].iter().any(|&(condition, runs)| (self.read(condition)[0] != 0) != runs)
    }

    fn outputs(&self) -> Vec<(String, Vec<i64>)> {
        let name = |tensor: usize| self.node(tensor).name.clone().expect("a name");
        self.graph.outputs().iter().map(|&tensor| (name(tensor), self.read(tensor))).collect()
    }
}

/// Executes in order; also the operators that ran.
pub(crate) fn in_order(
    facts: &Facts<'_>,
    rows: &[Row],
    outside: &Values,
) -> (Vec<(String, Vec<i64>)>, Order) {
    let mut machine = Machine::new(facts, rows, outside);
    let runs = machine.run_in_order();
    (machine.outputs(), Order { runs })
}

/// Executes in order, as a graph would have it in which the `Next` of a number hides its write.
pub(crate) fn with_hidden_write(
    facts: &Facts<'_>,
    rows: &[Row],
    outside: &Values,
    number: usize,
) -> Option<Vec<(String, Vec<i64>)>> {
    let mut machine = Machine::new(facts, rows, outside);
    let next = (0..facts.does.len()).filter(|&op| facts.does[op].1 == "Next").collect::<Vec<_>>();
    machine.hidden = Some(*next.get(number % next.len().max(1))?);
    machine.run_in_order();
    Some(machine.outputs())
}

/// The operators of all iterations in their order.
pub(crate) struct Order {
    runs: Vec<Run>,
}

/// The bytes of a root from one to another, and whether they are written.
type Access = ((usize, u64, u64), bool);

/// Executes these operators overlapping at random.
pub(crate) fn out_of_order(
    facts: &Facts<'_>,
    (rows, edges): (&[Row], &[(usize, usize)]),
    outside: &Values,
    Order { runs }: &Order,
    random: &mut Random,
) -> Vec<(String, Vec<i64>)> {
    let mut machine = Machine::new(facts, rows, outside);
    let graph = facts.graph;
    let range = |tensor: usize| {
        let node = &graph.tensors()[tensor];
        (node.root, node.root_offset, node.root_offset + node.size)
    };
    let written: Vec<Vec<bool>> = graph
        .ops()
        .iter()
        .enumerate()
        .map(|(op, node)| node.outputs.iter().map(|&output| machine.writes(op, output)).collect())
        .collect();
    let accesses = |op: usize| {
        let node = &graph.ops()[op];
        let reads = node.inputs.iter().map(|&input| (range(input), false));
        let writes = node.outputs.iter().zip(&written[op]).map(|(&output, &writes)| (range(output), writes));
        // A row is somewhere in its result.
        let writes = writes.map(|((root, low, high), writes)| match parts(&node.name).1 {
            "Next" => ((root, low, graph.tensors()[root].size.max(high)), writes),
            _ => ((root, low, high), writes),
        });
        reads.chain(writes).collect::<Vec<_>>()
    };
    let all: Vec<Vec<Access>> = (0..graph.ops().len()).map(accesses).collect();
    let depends = |earlier: usize, later: usize| {
        let makes = |&output: &usize| graph.ops()[later].inputs.contains(&output);
        graph.ops()[earlier].outputs.iter().any(makes)
            || edges.contains(&(earlier, later))
            || all[earlier].iter().any(|&((root, low, high), writes)| {
                all[later].iter().any(|&((other, from, to), also)| {
                    root == other && low.max(from) < high.min(to) && (writes || also)
                })
            })
    };
    let table: Vec<Vec<bool>> = (0..graph.ops().len())
        .map(|earlier| (0..graph.ops().len()).map(|later| depends(earlier, later)).collect())
        .collect();
    let mut waits = vec![0_usize; runs.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); runs.len()];
    for (later, run) in runs.iter().enumerate() {
        for (earlier, before) in runs[..later].iter().enumerate() {
            if table[before.op][run.op] {
                waits[later] += 1;
                after[earlier].push(later);
            }
        }
    }
    let mut ready: Vec<usize> = (0..runs.len()).filter(|&at| waits[at] == 0).collect();
    let mut running: Vec<usize> = Vec::new();
    while !ready.is_empty() || !running.is_empty() {
        if !ready.is_empty() && (running.is_empty() || random.percent(50)) {
            let at = ready.swap_remove(random.below(ready.len()));
            if !runs[at].skipped {
                machine.start(&runs[at]);
            }
            running.push(at);
            continue;
        }
        let at = running.swap_remove(random.below(running.len()));
        if !runs[at].skipped {
            machine.finish(&runs[at]);
        }
        for &later in &after[at] {
            waits[later] -= 1;
            if waits[later] == 0 {
                ready.push(later);
            }
        }
    }
    machine.outputs()
}

/// Rows that share no byte: every block has its own place.
pub(crate) fn apart(graph: &Graph, rows: &[Row]) -> Vec<Row> {
    let mut base = vec![0; graph.tensors().len()];
    let mut end = 0;
    for (tensor, node) in graph.tensors().iter().enumerate() {
        if node.alias.is_none() && node.kind == TensorKind::Activation {
            base[tensor] = end;
            end += node.size.next_multiple_of(64);
        }
    }
    let place = |row: &Row| {
        let node = &graph.tensors()[graph.tensor_index(row.id).expect("a tensor")];
        let mut apart = *row;
        apart.offset = base[node.root] + node.root_offset;
        apart
    };
    rows.iter().map(place).collect()
}
