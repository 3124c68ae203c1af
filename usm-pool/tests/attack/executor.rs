//! Runs a graph twice at the same time: in memory where every block has its own place, and at the
//! offsets of a plan. Every read must find the same content in both.
//!
//! Each write stores new numbers in its cells, so a read also identifies the writer. 0 means
//! unwritten: a graph that reads it says nothing about the plan.

use core::cell::Cell;

use usm_pool::graph::Graph;
use usm_pool::{Row, TensorKind};

/// The value of an unwritten cell in a plan's memory.
const UNTOUCHED: u64 = u64::MAX;

/// The place of each tensor: its arena, and its first cell. A cell stands for a byte.
struct Memory {
    places: Vec<(usize, usize)>,
    arenas: Vec<Vec<u64>>,
}

impl Memory {
    /// Gives every block its own place.
    fn apart(graph: &Graph) -> Self {
        let tensors = graph.tensors();
        let arenas = tensors.iter().map(|tensor| match tensor.alias {
            None => vec![0; tensor.size as usize],
            Some(_) => Vec::new(),
        });
        let places = tensors.iter().map(|tensor| (tensor.root, tensor.root_offset as usize));
        Self { places: places.collect(), arenas: arenas.collect() }
    }

    /// The places of a plan, which must contain exactly the activations.
    fn planned(graph: &Graph, rows: &[Row]) -> Self {
        let mut memory = Self::apart(graph);
        let blocks = memory.arenas.len();
        let end = rows.iter().map(|row| (row.offset + row.size) as usize).max().unwrap_or(0);
        memory.arenas.extend([vec![UNTOUCHED; end], vec![UNTOUCHED; end]]);
        for row in rows {
            let tensor = graph.tensor_index(row.id).expect("a row is of a tensor");
            memory.places[tensor] = (blocks + row.memory.number() as usize, row.offset as usize);
        }
        for (tensor, place) in graph.tensors().iter().zip(&memory.places) {
            assert_eq!(tensor.kind == TensorKind::Activation, place.0 >= blocks);
        }
        memory
    }

    fn cells(&self, tensor: usize, len: usize) -> &[u64] {
        let (arena, first) = self.places[tensor];
        &self.arenas[arena][first..first + len]
    }

    fn cells_mut(&mut self, tensor: usize, len: usize) -> &mut [u64] {
        let (arena, first) = self.places[tensor];
        &mut self.arenas[arena][first..first + len]
    }
}

/// Both memories of one run.
pub(crate) struct Executor<'g> {
    graph: &'g Graph,
    apart: Memory,
    planned: Memory,
    /// The last number that a write used.
    last: u64,
    /// Whether an operator writes the views that it makes of its inputs.
    writes_views: bool,
    read_unwritten: Cell<bool>,
}

impl<'g> Executor<'g> {
    pub(crate) fn new(graph: &'g Graph, rows: &[Row], writes_views: bool) -> Self {
        let (apart, planned) = (Memory::apart(graph), Memory::planned(graph, rows));
        let read_unwritten = Cell::new(false);
        let mut executor = Self { graph, apart, planned, last: 1 << 20, writes_views, read_unwritten };
        for (root, node) in graph.tensors().iter().enumerate() {
            if node.alias.is_none() && executor.is_given(root) {
                executor.write(root);
            }
        }
        executor
    }

    /// Whether a block has content before the run: no operator writes it before it is read.
    fn is_given(&self, root: usize) -> bool {
        let tensors = self.graph.tensors();
        let family = || self.graph.family(root).iter().map(|&member| &tensors[member]);
        let written = family().filter_map(|member| member.producer).min();
        let read = family().filter_map(|member| member.users.first().copied()).min();
        match (written, read) {
            (None, _) => true,
            (Some(written), Some(read)) => read <= written && tensors[root].producer.is_none(),
            (Some(_), None) => false,
        }
    }

    fn len(&self, tensor: usize) -> usize {
        self.graph.tensors()[tensor].size as usize
    }

    fn write(&mut self, tensor: usize) {
        self.last += 1 << 12;
        let (first, len) = (self.last + 1, self.len(tensor));
        for memory in [&mut self.apart, &mut self.planned] {
            for (cell, number) in memory.cells_mut(tensor, len).iter_mut().zip(first..) {
                *cell = number;
            }
        }
    }

    /// Every byte of the tensor except the first ones, which may be overwritten.
    fn check(&self, tensor: usize, over: usize, when: &str) -> Result<(), String> {
        let len = self.len(tensor);
        let pairs = self.apart.cells(tensor, len).iter().zip(self.planned.cells(tensor, len));
        for (byte, (apart, planned)) in pairs.enumerate() {
            if *apart == 0 {
                self.read_unwritten.set(true);
            } else if apart != planned && byte >= over {
                let id = self.graph.tensors()[tensor].id;
                return Err(format!("tensor {id} (index {tensor}) byte {byte} {when}"));
            }
        }
        Ok(())
    }

    fn write_outputs(&mut self, op: usize) {
        for &output in &self.graph.ops()[op].outputs {
            if self.writes_views || !is_read(self.graph, op, output) {
                self.write(output);
            }
        }
    }

    pub(crate) fn start(&mut self, op: usize) -> Result<(), String> {
        for &input in &self.graph.ops()[op].inputs {
            self.check(input, 0, &format!("at the start of op {op}"))?;
        }
        // An operator may write from its start on, in any order.
        self.write_outputs(op);
        Ok(())
    }

    pub(crate) fn finish(&mut self, op: usize) -> Result<(), String> {
        let node = &self.graph.ops()[op];
        // An operator may read to its end, except bytes that it has overwritten in place.
        for &input in &node.inputs {
            self.check(input, self.written_in_place(op, input), &format!("at the end of op {op}"))?;
        }
        self.write_outputs(op);
        for &output in &node.outputs {
            let tensor = &self.graph.tensors()[output];
            if !tensor.users.is_empty() || tensor.is_output {
                self.check(output, 0, &format!("as output of op {op}"))?;
            }
        }
        Ok(())
    }

    /// The first bytes of an input that outputs with a permit for exactly this input overwrite.
    fn written_in_place(&self, op: usize, input: usize) -> usize {
        let tensors = self.graph.tensors();
        let over = self.graph.ops()[op].in_place.iter().filter(|&&(of, output)| {
            of == input
                && self.planned.places[output] == self.planned.places[input]
                && tensors[output].size <= tensors[input].size
                && tensors[output].root != tensors[input].root
        });
        over.map(|&(_, output)| self.len(output)).max().unwrap_or(0)
    }

    /// Before the first iteration, fills the tensors that the body reads before it writes them.
    pub(crate) fn enter_loop(&mut self, first: usize, last: usize) {
        for (tensor, node) in self.graph.tensors().iter().enumerate() {
            let carried = |writer| node.users.iter().any(|user| (first..=writer).contains(user));
            if node.producer.is_some_and(|writer| (first..=last).contains(&writer) && carried(writer)) {
                self.write(tensor);
            }
        }
    }

    /// Ends a run whose operators gave `outcome`.
    pub(crate) fn end(self, outcome: Result<(), String>) -> Result<(), String> {
        let mut outputs = self.graph.outputs().iter();
        let outcome =
            outcome.and_then(|()| outputs.try_for_each(|&output| self.check(output, 0, "after the run")));
        if self.read_unwritten.get() { Ok(()) } else { outcome }
    }
}

/// Whether an operator reads every byte of its output, as parts of the same block: it makes a view.
pub(crate) fn is_read(graph: &Graph, op: usize, output: usize) -> bool {
    let tensors = graph.tensors();
    let (of, inputs) = (&tensors[output], &graph.ops()[op].inputs);
    let has = |input: usize, byte: u64| {
        let input = &tensors[input];
        input.root == of.root && (input.root_offset..input.root_offset + input.size).contains(&byte)
    };
    let shares = inputs.iter().any(|&input| tensors[input].root == of.root);
    let mut bytes = of.root_offset..of.root_offset + of.size;
    shares && bytes.all(|byte| inputs.iter().any(|&input| has(input, byte)))
}
