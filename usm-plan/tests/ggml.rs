//! Graphs of ggml through the C structs, by a C program, with its offsets judged from the trace.
#![cfg(feature = "capi")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{cc, crate_dir, program, run, scratch};

/// A tensor of a trace.
struct Tensor {
    size: u64,
    /// Its root and the offset into it; itself and 0 for no view.
    root: (usize, u64),
    /// Of a root: the operators that use it or a view, from the first to the last.
    used: Option<(usize, usize)>,
    is_output: bool,
}

#[derive(Default)]
struct Op {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    permits: Vec<(usize, usize)>,
}

/// What `benches/ggml/trace.c` describes.
#[derive(Default)]
struct Trace {
    alignment: u64,
    /// Bytes that ggml-alloc asked for.
    theirs: u64,
    tensors: Vec<Tensor>,
    ops: Vec<Op>,
}

impl Trace {
    fn read(file: &Path) -> Self {
        let mut trace = Self::default();
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let (inputs, outputs) = line.split_once('>').unwrap_or((line, ""));
            let numbers = |text: &str| text.split(' ').filter_map(|word| word.parse().ok()).collect();
            let (numbers, outputs): (Vec<u64>, Vec<u64>) = (numbers(inputs), numbers(outputs));
            let at = trace.tensors.len();
            let tensor = |root| Tensor { size: numbers[0], root, used: None, is_output: false };
            match line.split(' ').next().unwrap() {
                "ggml" => (trace.alignment, trace.theirs) = (numbers[0], numbers[1]),
                "tensor" => trace.tensors.push(tensor((at, 0))),
                "view" => trace.tensors.push(tensor((numbers[1] as usize, numbers[2]))),
                "op" => trace.add_op(&numbers, &outputs),
                "permit" => {
                    let permit = (numbers[0] as usize, numbers[1] as usize);
                    trace.ops.last_mut().unwrap().permits.push(permit);
                }
                "output" => {
                    let root = trace.tensors[numbers[0] as usize].root.0;
                    trace.tensors[root].is_output = true;
                }
                other => panic!("{}: {other}", file.display()),
            }
        }
        let last = trace.ops.len() - 1;
        for tensor in trace.tensors.iter_mut().filter(|tensor| tensor.is_output) {
            tensor.used.as_mut().expect("an output is written").1 = last;
        }
        trace
    }

    fn add_op(&mut self, inputs: &[u64], outputs: &[u64]) {
        let at = self.ops.len();
        let [inputs, outputs] = [inputs, outputs].map(|list| list.iter().map(|&id| id as usize).collect());
        let op = Op { inputs, outputs, permits: Vec::new() };
        for &tensor in op.inputs.iter().chain(&op.outputs) {
            let root = self.tensors[tensor].root.0;
            self.tensors[root].used.get_or_insert((at, at)).1 = at;
        }
        self.ops.push(op);
    }

    fn live_at(&self, op: usize) -> Vec<usize> {
        let live = |&tensor: &usize| {
            self.tensors[tensor].used.is_some_and(|(first, last)| (first..=last).contains(&op))
        };
        (0..self.tensors.len()).filter(live).collect()
    }

    /// Whether `op` may write a new root over a root that ends there.
    fn may_replace(&self, op: usize, old: usize, new: usize) -> bool {
        let ends = self.tensors[old].used.is_some_and(|(_, last)| last == op) && !self.tensors[old].is_output;
        let begins = self.tensors[new].used.is_some_and(|(first, _)| first == op);
        let fits = |&(input, output): &(usize, usize)| {
            output == new
                && self.tensors[input].root == (old, 0)
                && self.tensors[new].size <= self.tensors[input].size
        };
        ends && begins && self.ops[op].permits.iter().any(fits)
    }

    /// The bytes of the heaviest operator, if every permit that can be taken is taken.
    fn heaviest(&self) -> u64 {
        let weight = |op: usize| {
            let live = self.live_at(op);
            let replaces = |&new: &usize| live.iter().any(|&old| self.may_replace(op, old, new));
            live.iter()
                .filter(|&tensor| !replaces(tensor))
                .map(|&tensor| self.tensors[tensor].size)
                .sum::<u64>()
        };
        (0..self.ops.len()).map(weight).max().unwrap()
    }

    /// Refuses offsets that give two live tensors the same byte.
    fn check(&self, offsets: &[u64], peak: u64) {
        assert_eq!(offsets.len(), self.tensors.len());
        let end = |tensor: usize| offsets[tensor] + self.tensors[tensor].size;
        for (at, tensor) in self.tensors.iter().enumerate() {
            let (root, delta) = tensor.root;
            assert_eq!(offsets[at], offsets[root] + delta, "tensor {at} in its root {root}");
            assert!(end(at) <= end(root) && end(root) <= peak, "tensor {at} ends in its root and the buffer");
            assert_eq!(offsets[root] % self.alignment, 0, "tensor {root}");
        }
        for op in 0..self.ops.len() {
            let live = self.live_at(op);
            for (rank, &a) in live.iter().enumerate() {
                for &b in &live[..rank] {
                    let apart = end(a) <= offsets[b] || end(b) <= offsets[a];
                    let replaced = self.may_replace(op, a, b) || self.may_replace(op, b, a);
                    let over = replaced && offsets[a] == offsets[b];
                    assert!(apart || over, "operator {op}: tensors {a} and {b} share bytes");
                }
            }
        }
    }
}

/// The small trace, and those of a folder that `USM_GGML_TRACES` names.
fn traces() -> Vec<PathBuf> {
    let mut files = vec![crate_dir().join("tests/ggml/tiny.trace")];
    if let Some(folder) = std::env::var_os("USM_GGML_TRACES") {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "trace")));
    }
    files
}

#[test]
fn graphs_of_ggml_are_planned_at_their_heaviest_operator() {
    let Some(cc) = cc() else { return };
    let program = program(cc, &crate_dir().join("tests/c/ggml.c"), &scratch("plan_ggml"));
    for file in traces() {
        let trace = Trace::read(&file);
        let text = run(Command::new(&program).arg(&file));
        let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let (offsets, report) = numbers.split_at(trace.tensors.len());
        trace.check(offsets, report[0]);
        let heaviest = trace.heaviest();
        assert_eq!(report, [heaviest, heaviest, 1], "{}", file.display());
        assert!(heaviest <= trace.theirs, "{}", file.display());
        println!("{}: {heaviest} of {}", file.display(), trace.theirs);
    }
}
