//! Random operator graphs with many views, permits, loops and tensors that a loop carries.

use std::collections::HashSet;

use usm_pool::graph::Graph;
use usm_pool::{Op, Tensor, TensorKind};

use crate::common::executor::Random;

/// A graph; `None` if the drawn one is invalid.
pub(crate) fn graph(random: &mut Random) -> Option<Graph> {
    let mut draft = Draft { random, tensors: Vec::new(), ops: Vec::new() };
    draft.given();
    // Inputs are recent tensors, so that lives end, or any.
    let window = if draft.chance(1, 3) { usize::MAX } else { 6 };
    for _ in 0..=draft.below(10) {
        draft.op(window);
    }
    let loops = draft.loops();
    draft.build(&loops)
}

struct TensorDraft {
    size: u64,
    alignment: Option<u64>,
    padding: u64,
    kind: Option<TensorKind>,
    /// The base of a view, and the offset in it.
    view: Option<(usize, u64)>,
    produced: bool,
}

/// Tensors are named by their index in the list.
struct OpDraft {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    permits: Vec<(usize, usize)>,
}

struct Draft<'r> {
    random: &'r mut Random,
    tensors: Vec<TensorDraft>,
    ops: Vec<OpDraft>,
}

impl Draft<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn chance(&mut self, wins: u64, of: u64) -> bool {
        self.random.below(of) < wins
    }

    fn block(&mut self, size: u64) -> usize {
        let alignment = self.chance(1, 6).then(|| 1 << self.random.below(5));
        let padding = if self.chance(1, 12) { self.random.below(8) } else { 0 };
        self.tensors.push(TensorDraft { size, alignment, padding, kind: None, view: None, produced: false });
        self.tensors.len() - 1
    }

    /// A view of a part: often the whole, the beginning or the end.
    fn view(&mut self, of: usize) -> usize {
        let whole = self.tensors[of].size;
        let size = match self.random.below(4) {
            0 => whole,
            1 => whole / 2,
            _ => self.random.below(whole + 1),
        };
        let offset = match self.random.below(3) {
            0 => 0,
            1 => whole - size,
            _ => self.random.below(whole - size + 1),
        };
        let view = Some((of, offset));
        self.tensors.push(TensorDraft {
            size,
            alignment: None,
            padding: 0,
            kind: None,
            view,
            produced: false,
        });
        self.tensors.len() - 1
    }

    /// Tensors with content before the first operator.
    fn given(&mut self) {
        for _ in 0..self.below(3) {
            let size = self.random.below(40);
            let tensor = self.block(size);
            self.tensors[tensor].kind = Some(match self.random.below(8) {
                0 => TensorKind::Constant,
                1 => TensorKind::Input,
                2 => TensorKind::State,
                _ => TensorKind::Activation,
            });
        }
    }

    fn op(&mut self, window: usize) {
        let inputs = self.inputs(window);
        let mut outputs = Vec::new();
        let most = 1 + self.below(3);
        for _ in 0..most.min(1 + self.below(3)) {
            self.output(&inputs, &mut outputs);
        }
        let mut seen = HashSet::new();
        outputs.retain(|output| seen.insert(*output));
        for &output in &outputs {
            self.tensors[output].produced = true;
        }
        let (mut permits, density) = (Vec::new(), 1 + self.random.below(4));
        for &input in &inputs {
            for &output in &outputs {
                if self.chance(density, 4) {
                    permits.push((input, output));
                }
            }
        }
        self.ops.push(OpDraft { inputs, outputs, permits });
    }

    fn inputs(&mut self, window: usize) -> Vec<usize> {
        let mut inputs = Vec::new();
        for _ in 0..self.below(4) {
            let count = self.tensors.len();
            if count == 0 {
                break;
            }
            let of = count - 1 - self.below(count.min(window));
            let input = if self.chance(1, 3) { self.view(of) } else { of };
            inputs.push(input);
            if self.chance(1, 8) {
                inputs.push(input);
            }
            if self.chance(1, 4) {
                let part = self.view(input);
                inputs.push(part);
            }
        }
        inputs
    }

    /// One output, or several of one block.
    fn output(&mut self, inputs: &[usize], outputs: &mut Vec<usize>) {
        let like = (!inputs.is_empty()).then(|| inputs[self.below(inputs.len())]);
        let size = match like {
            Some(input) if self.chance(2, 3) => self.tensors[input].size,
            _ => self.random.below(40),
        };
        match self.random.below(12) {
            0 if !inputs.is_empty() => {
                let of = inputs[self.below(inputs.len())];
                outputs.push(self.view(of));
            }
            1 | 2 => {
                let more = if self.chance(1, 2) { self.random.below(20) } else { 0 };
                let root = self.block(size + more);
                self.tensors[root].kind = Some(TensorKind::Activation);
                let part = self.view(root);
                outputs.push(part);
                if self.chance(1, 2) {
                    outputs.push(self.view(part));
                }
                if self.chance(1, 3) {
                    outputs.push(root);
                }
            }
            3 if !self.tensors.is_empty() => {
                let of = self.below(self.tensors.len());
                outputs.push(self.view(of));
            }
            4 if !self.tensors.is_empty() => {
                let of = self.below(self.tensors.len());
                if !self.tensors[of].produced {
                    outputs.push(of);
                }
            }
            _ => outputs.push(self.block(size)),
        }
    }

    /// The first and last operators of loops: none, one, or one inside another. The next iteration
    /// may read the last operator's outputs.
    fn loops(&mut self) -> Vec<(usize, usize)> {
        if !self.chance(1, 4) {
            return Vec::new();
        }
        let first = self.below(self.ops.len());
        let last = first + self.below(self.ops.len() - first);
        let mut loops = vec![(first, last)];
        if self.chance(1, 3) {
            let inner = first + self.below(last - first + 1);
            let inner = (inner, inner + self.below(last - inner + 1));
            if inner != (first, last) {
                loops.push(inner);
            }
        }
        let carried = self.ops[last].outputs.first().copied().filter(|_| self.random.below(2) == 0);
        if let Some(carried) = carried {
            let reader = first + self.below(last - first + 1);
            self.ops[reader].inputs.push(carried);
        }
        loops
    }

    fn build(&mut self, loops: &[(usize, usize)]) -> Option<Graph> {
        let count = self.tensors.len();
        let mut ids: Vec<u64> = (0..count as u64).map(|place| place * 3 + 1).collect();
        if self.chance(1, 2) {
            self.shuffle(&mut ids);
        }
        let mut order: Vec<usize> = (0..count).collect();
        if self.chance(1, 3) {
            self.shuffle(&mut order);
        }
        let mut builder = Graph::builder().default_alignment(if self.chance(1, 2) { 1 } else { 8 });
        for place in order {
            let draft = &self.tensors[place];
            let mut tensor = Tensor::new(ids[place], draft.size).padding(draft.padding);
            if let Some(alignment) = draft.alignment {
                tensor = tensor.alignment(alignment);
            }
            if let Some(kind) = draft.kind {
                tensor = tensor.kind(kind);
            }
            if let Some((of, offset)) = draft.view {
                tensor = tensor.alias_of(ids[of], offset);
            }
            builder = builder.tensor(tensor);
        }
        for draft in &self.ops {
            let named = |places: &[usize]| places.iter().map(|&place| ids[place]).collect::<Vec<u64>>();
            let mut op = Op::new("").inputs(named(&draft.inputs)).outputs(named(&draft.outputs));
            for &(input, output) in &draft.permits {
                op = op.in_place(ids[input], ids[output]);
            }
            builder = builder.op(op);
        }
        for id in ids {
            if self.chance(1, 14) {
                builder = builder.output(id);
            }
        }
        for &(first, last) in loops {
            builder = builder.loop_body(first, last);
        }
        builder.build().ok()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.below(last + 1);
            list.swap(last, other);
        }
    }
}
