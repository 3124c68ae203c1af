//! A byte-level oracle: runs a graph at the offsets of a plan, and checks every read.
//!
//! A tensor's content is a pattern of its root and position. An operator checks its inputs, spoils
//! its outputs as soon as it starts (it may write them in any order), checks the inputs again when
//! it ends (it may read them to the last moment) and then fills the outputs. Only the bytes of an
//! output that has a permit for just this input, at the same address and no larger, may differ by
//! then: the operator has read each of them before it wrote it. Every byte that has had its last
//! use is poisoned. Shares nothing with planners and checkers but the public graph.

use core::ops::Range;

use usm_pool::graph::Graph;
use usm_pool::{Row, TensorKind};

const POISON: u8 = 0xDB;

/// A small deterministic generator (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

fn pattern(root: usize, position: u64, run: u64) -> u8 {
    let value = (root as u64 + 1)
        .wrapping_mul(0x9E37_79B9)
        .wrapping_add(position.wrapping_mul(0x85EB_CA6B))
        .wrapping_add(run);
    match (value ^ (value >> 15)) as u8 {
        POISON => 0,
        byte => byte,
    }
}

/// The bytes of one run.
pub(crate) struct Executor<'a> {
    graph: &'a Graph,
    rows: Vec<Option<Row>>,
    /// By the number of the memory.
    memory: Vec<Vec<u8>>,
    reads_left: Vec<usize>,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(graph: &'a Graph, rows: &[Row]) -> Self {
        let mut by_tensor = vec![None; graph.tensors().len()];
        let most = rows.iter().map(|row| row.memory.number()).max().unwrap_or(0);
        let mut memory = vec![Vec::new(); most as usize + 1];
        for row in rows {
            by_tensor[graph.tensor_index(row.id).expect("tensor")] = Some(*row);
            let arena = &mut memory[row.memory.number() as usize];
            let end = (row.offset + row.size) as usize;
            if arena.len() < end {
                arena.resize(end, POISON);
            }
        }
        let reads_left =
            graph.tensors().iter().map(|tensor| tensor.users.len() + usize::from(tensor.is_output)).collect();
        let mut executor = Self { graph, rows: by_tensor, memory, reads_left };
        for tensor in 0..graph.tensors().len() {
            let node = &graph.tensors()[tensor];
            let family = || graph.family(node.root).iter().map(|&member| &graph.tensors()[member]);
            let written = family().filter_map(|member| member.producer).min();
            let read = family().filter_map(|member| member.users.first().copied()).min();
            // The bytes had content before the run: no operator writes them before they are read.
            let given = match (written, read) {
                (None, _) => true,
                (Some(written), Some(read)) => {
                    read <= written && graph.tensors()[node.root].producer.is_none()
                }
                (Some(_), None) => false,
            };
            if given && node.kind == TensorKind::Activation {
                executor.fill(tensor);
            }
        }
        executor
    }

    fn bytes(&mut self, tensor: usize) -> Option<&mut [u8]> {
        let row = self.rows[tensor]?;
        let arena = &mut self.memory[row.memory.number() as usize];
        Some(&mut arena[row.offset as usize..(row.offset + row.size) as usize])
    }

    fn fill(&mut self, tensor: usize) {
        let (root, at) = (self.graph.tensors()[tensor].root, self.graph.tensors()[tensor].root_offset);
        for (k, byte) in self.bytes(tensor).into_iter().flatten().enumerate() {
            *byte = pattern(root, at + k as u64, 0);
        }
    }

    fn check(&mut self, tensor: usize, when: &str) -> Result<(), String> {
        self.check_but(tensor, &[], when)
    }

    /// Checks every byte of the tensor outside the given ranges of positions in it.
    fn check_but(&mut self, tensor: usize, but: &[Range<usize>], when: &str) -> Result<(), String> {
        let (root, at) = (self.graph.tensors()[tensor].root, self.graph.tensors()[tensor].root_offset);
        let id = self.graph.tensors()[tensor].id;
        for (k, byte) in self.bytes(tensor).into_iter().flatten().enumerate() {
            let excused = but.iter().any(|range| range.contains(&k));
            if !excused && *byte != pattern(root, at + k as u64, 0) {
                return Err(format!("tensor {id}, byte {k}: {byte:#x} {when}"));
            }
        }
        Ok(())
    }

    /// The positions of an input that the operator may have overwritten by its end: those of
    /// outputs with a permit for exactly this input.
    fn written_in_place(&self, op: usize, input: usize) -> Vec<Range<usize>> {
        let Some(from) = self.rows[input] else { return Vec::new() };
        let permitted = |&&(of, _): &&(usize, usize)| of == input;
        let permits = self.graph.ops()[op].in_place.iter().filter(permitted);
        permits
            .filter_map(|&(_, output)| self.rows[output])
            .filter(|to| (to.memory, to.offset) == (from.memory, from.offset) && to.size <= from.size)
            .map(|to| 0..to.size as usize)
            .collect()
    }

    /// Whether the output's bytes have content already: the operator reads their block, or another
    /// one has written it.
    fn family_written(&self, output: usize, op: usize) -> bool {
        let tensors = self.graph.tensors();
        let node = &tensors[output];
        let reads = self.graph.ops()[op].inputs.iter().any(|&input| tensors[input].root == node.root);
        let under = |&&other: &&usize| {
            let other = &tensors[other];
            let low = node.root_offset.max(other.root_offset);
            low < (node.root_offset + node.size).min(other.root_offset + other.size)
        };
        let mut family = self.graph.family(node.root).iter().filter(under);
        reads || family.any(|&member| tensors[member].producer.is_some_and(|p| p < op))
    }

    pub(crate) fn start(&mut self, op: usize) -> Result<(), String> {
        for input in self.graph.ops()[op].inputs.clone() {
            self.check(input, &format!("when op {op} starts to read"))?;
        }
        for output in self.graph.ops()[op].outputs.clone() {
            // A view of written bytes writes nothing.
            if !self.family_written(output, op) {
                self.bytes(output).into_iter().flatten().for_each(|byte| *byte = POISON);
            }
        }
        Ok(())
    }

    /// `again` if a loop will run the operator once more: then its inputs have further uses.
    pub(crate) fn finish(&mut self, op: usize, again: bool) -> Result<(), String> {
        let mut inputs = self.graph.ops()[op].inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        for &input in &inputs {
            let written = self.written_in_place(op, input);
            self.check_but(input, &written, &format!("while op {op} still reads"))?;
        }
        for &input in inputs.iter().filter(|_| !again) {
            self.reads_left[input] -= 1;
            if self.reads_left[input] == 0 && self.graph.tensors()[input].kind == TensorKind::Activation {
                self.poison(input);
            }
        }
        for output in self.graph.ops()[op].outputs.clone() {
            self.fill(output);
        }
        for output in self.graph.ops()[op].outputs.clone() {
            self.check(output, &format!("after op {op} wrote it"))?;
        }
        Ok(())
    }

    /// Poisons the bytes of a tensor after its last use, except those that another tensor still
    /// needs.
    fn poison(&mut self, tensor: usize) {
        let node = &self.graph.tensors()[tensor];
        let (low, high) = (node.root_offset, node.root_offset + node.size);
        let needed: Vec<Range<u64>> = self
            .graph
            .family(node.root)
            .iter()
            .filter(|&&member| self.reads_left[member] > 0)
            .map(|&member| &self.graph.tensors()[member])
            .map(|other| other.root_offset..other.root_offset + other.size)
            .collect();
        for (position, byte) in (low..high).zip(self.bytes(tensor).into_iter().flatten()) {
            if !needed.iter().any(|range| range.contains(&position)) {
                *byte = POISON;
            }
        }
    }

    /// Before the first iteration, fills the tensors that the body reads before it writes them.
    fn enter_loop(&mut self, first: usize, last: usize) {
        let body = first..=last;
        for tensor in 0..self.graph.tensors().len() {
            let node = &self.graph.tensors()[tensor];
            let carried = |writer: usize| node.users.iter().any(|op| body.contains(op) && *op <= writer);
            if node.producer.is_some_and(|writer| body.contains(&writer) && carried(writer)) {
                self.fill(tensor);
            }
        }
    }

    pub(crate) fn outputs(&mut self) -> Result<(), String> {
        for output in self.graph.outputs().to_vec() {
            self.check(output, "after the run")?;
        }
        Ok(())
    }
}

/// Runs in processing order, the body of every loop twice.
pub(crate) fn in_order(graph: &Graph, rows: &[Row]) -> Result<(), String> {
    let mut executor = Executor::new(graph, rows);
    // If an enclosing loop repeats, its inner loops run all their iterations again.
    let mut left: Vec<usize> = vec![1; graph.loops().len()];
    let mut op = 0;
    while op < graph.ops().len() {
        for (k, &(first, last)) in graph.loops().iter().enumerate() {
            if first == op && left[k] == 1 {
                executor.enter_loop(first, last);
            }
        }
        let inside = |&(first, last): &(usize, usize)| (first..=last).contains(&op);
        let again = graph.loops().iter().zip(&left).any(|(body, &left)| inside(body) && left > 0);
        executor.start(op)?;
        executor.finish(op, again)?;
        // The innermost loop that ends here goes first.
        let ending = (0..left.len()).filter(|&k| graph.loops()[k].1 == op && left[k] > 0);
        match ending.max_by_key(|&k| graph.loops()[k].0) {
            Some(k) => {
                left[k] -= 1;
                let (first, last) = graph.loops()[k];
                for (inner, &(f, l)) in graph.loops().iter().enumerate() {
                    let nested = f >= first && l <= last && (f, l) != (first, last);
                    if nested {
                        left[inner] = 1;
                    }
                }
                op = first;
            }
            None => op += 1,
        }
    }
    executor.outputs()
}

/// Runs with operators overlapping at random, as the data dependencies and `edges` allow.
pub(crate) fn out_of_order(
    graph: &Graph,
    edges: &[(usize, usize)],
    rows: &[Row],
    random: &mut Random,
) -> Result<(), String> {
    let n = graph.ops().len();
    let mut waiting: Vec<Vec<usize>> = (0..n).map(|op| data_predecessors(graph, op)).collect();
    for &(before, after) in edges {
        waiting[after].push(before);
    }
    let mut executor = Executor::new(graph, rows);
    let mut done = vec![false; n];
    let mut pending: Vec<usize> = (0..n).collect();
    let mut running: Vec<usize> = Vec::new();
    while !pending.is_empty() || !running.is_empty() {
        let ready: Vec<usize> =
            (0..pending.len()).filter(|&k| waiting[pending[k]].iter().all(|&before| done[before])).collect();
        let start = !ready.is_empty() && (running.is_empty() || random.below(2) == 0);
        if start {
            let op = pending.swap_remove(ready[random.below(ready.len() as u64) as usize]);
            executor.start(op)?;
            running.push(op);
        } else {
            let op = running.swap_remove(random.below(running.len() as u64) as usize);
            executor.finish(op, false)?;
            done[op] = true;
        }
    }
    executor.outputs()
}

/// The writers of an operator's inputs, from the definition: the operator must wait for them.
pub(crate) fn data_predecessors(graph: &Graph, op: usize) -> Vec<usize> {
    let tensors = graph.tensors();
    let mut found = Vec::new();
    for &input in &graph.ops()[op].inputs {
        match tensors[input].producer {
            Some(producer) => found.push(producer),
            None => {
                let node = &tensors[input];
                for other in graph.family(node.root).iter().map(|&other| &tensors[other]) {
                    let low = node.root_offset.max(other.root_offset);
                    let high = (node.root_offset + node.size).min(other.root_offset + other.size);
                    // An operator that makes a view of an input writes nothing.
                    let writes = |op: &usize| {
                        !graph.ops()[*op].inputs.iter().any(|&read| tensors[read].root == node.root)
                    };
                    found.extend(other.producer.filter(|op| low < high && writes(op)));
                }
            }
        }
    }
    found.retain(|&before| before < op);
    found.sort_unstable();
    found.dedup();
    found
}
