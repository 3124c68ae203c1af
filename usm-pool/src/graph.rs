//! The operator graph: tensors, operators in processing order, outputs, views, in-place permits and
//! loops.

mod builder;
mod error;
mod order;

pub use builder::GraphBuilder;
pub use error::GraphError;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Lifetime;

/// The provider of a tensor's memory. Only activations are placed in the arena and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorKind {
    /// Produced and consumed by the graph: placed by the planner.
    Activation,
    /// Weights and other data that no operator writes.
    Constant,
    /// Survives from one run of the graph to the next.
    State,
    /// Passed in by the caller.
    Input,
}

impl TensorKind {
    /// The name used in graph files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activation => "activation",
            Self::Constant => "constant",
            Self::State => "state",
            Self::Input => "input",
        }
    }

    /// The kind of that name in graph files.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Activation, Self::Constant, Self::State, Self::Input]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A memory for the activations of a graph. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Space {
    /// Its name in reports; no two memories of a graph have the same.
    pub name: String,
    /// Bytes that it has for the plan.
    pub capacity: u64,
    /// Cost of a byte that an operator reads or writes, in any unit.
    pub cost: u64,
    /// Bytes of its largest allocation: no tensor lies across a multiple of them.
    pub chunk: Option<u64>,
}

impl Space {
    /// A memory that may be one allocation.
    #[must_use]
    pub fn new(name: impl Into<String>, capacity: u64, cost: u64) -> Self {
        Self { name: name.into(), capacity, cost, chunk: None }
    }

    /// The same in allocations of at most so many bytes.
    #[must_use]
    pub fn chunk(mut self, bytes: u64) -> Self {
        self.chunk = Some(bytes);
        self
    }
}

/// Description of one tensor for [`GraphBuilder::tensor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(crate) id: u64,
    pub(crate) size: u64,
    pub(crate) alignment: Option<u64>,
    pub(crate) padding: u64,
    pub(crate) kind: Option<TensorKind>,
    pub(crate) alias: Option<(u64, u64)>,
    pub(crate) name: Option<String>,
    pub(crate) dynamic: bool,
    pub(crate) memory: Option<usize>,
}

impl Tensor {
    /// A tensor of `size` bytes. For a dynamic tensor, give the upper bound and plan again when it
    /// grows.
    #[must_use]
    pub const fn new(id: u64, size: u64) -> Self {
        Self {
            id,
            size,
            alignment: None,
            padding: 0,
            kind: None,
            alias: None,
            name: None,
            dynamic: false,
            memory: None,
        }
    }

    /// Alignment of the offset in bytes; without it the builder's default holds (1 for a view).
    #[must_use]
    pub const fn alignment(mut self, bytes: u64) -> Self {
        self.alignment = Some(bytes);
        self
    }

    /// Bytes after the tensor that belong to it (for kernels that read past the end).
    #[must_use]
    pub const fn padding(mut self, bytes: u64) -> Self {
        self.padding = bytes;
        self
    }

    /// Sets the kind. The default is an input for a tensor that no operator produces, otherwise an
    /// activation.
    #[must_use]
    pub const fn kind(mut self, kind: TensorKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Makes the tensor a view of another one, `offset` bytes into it: no memory of its own.
    #[must_use]
    pub const fn alias_of(mut self, id: u64, offset: u64) -> Self {
        self.alias = Some((id, offset));
        self
    }

    /// Says that the size is the upper bound of a dynamic shape. Only the rules of OpenVINO's pool
    /// look at it.
    #[must_use]
    pub const fn dynamic(mut self, yes: bool) -> Self {
        self.dynamic = yes;
        self
    }

    /// Pins the tensor, with its views, to the memory of this number among those of the graph.
    #[must_use]
    pub const fn memory(mut self, number: usize) -> Self {
        self.memory = Some(number);
        self
    }

    /// Display name of the tensor: any text, shown beside the id. Several tensors may have the same
    /// name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Description of one operator for [`GraphBuilder::op`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub(crate) name: String,
    pub(crate) inputs: Vec<u64>,
    pub(crate) outputs: Vec<u64>,
    pub(crate) in_place: Vec<(u64, u64)>,
    pub(crate) cost: u64,
    pub(crate) workspace: u64,
}

impl Op {
    /// An operator without tensors. An empty name becomes `op<index>`, a repeated one gets
    /// `#<index>`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            in_place: Vec::new(),
            cost: 1,
            workspace: 0,
        }
    }

    /// Adds tensors that the operator reads. A tensor may be named twice.
    #[must_use]
    pub fn inputs(mut self, ids: impl IntoIterator<Item = u64>) -> Self {
        self.inputs.extend(ids);
        self
    }

    /// Adds tensors that the operator writes.
    #[must_use]
    pub fn outputs(mut self, ids: impl IntoIterator<Item = u64>) -> Self {
        self.outputs.extend(ids);
        self
    }

    /// Permits the operator to write `output` over its dying `input`: same address, same or smaller
    /// size. A permit covers one input. Another input whose bytes the output overwrites needs its
    /// own permit, also a view of the same bytes.
    #[must_use]
    pub fn in_place(mut self, input: u64, output: u64) -> Self {
        self.in_place.push((input, output));
        self
    }

    /// Bytes that the operator needs while it runs, and no longer. The graph gets a tensor for them
    /// that nobody reads, with the default alignment, the name `NAME.workspace` and the least free
    /// id above those of the declared tensors.
    #[must_use]
    pub const fn workspace(mut self, bytes: u64) -> Self {
        self.workspace = bytes;
        self
    }

    /// Duration for the critical path, in any unit (1 by default).
    #[must_use]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }
}

/// One tensor of a checked graph; other tensors and operators are named by index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorNode {
    /// The caller's id.
    pub id: u64,
    /// Display name.
    pub name: Option<String>,
    /// Size in bytes, padding included.
    pub size: u64,
    /// The part of `size` that is padding after the tensor, in bytes.
    pub padding: u64,
    /// Alignment of the offset in bytes.
    pub alignment: u64,
    /// The provider of the memory; a view has its root's kind.
    pub kind: TensorKind,
    /// For a view: index of the tensor it was declared on, and the offset into that one in bytes.
    pub alias: Option<(usize, u64)>,
    /// The tensor that owns the bytes (itself when it is no view).
    pub root: usize,
    /// Offset into the root in bytes.
    pub root_offset: u64,
    /// Operator that writes it.
    pub producer: Option<usize>,
    /// Operators that read it, ascending, each once.
    pub users: Vec<usize>,
    /// Whether the caller reads it after the run.
    pub is_output: bool,
    /// Whether the size is the upper bound of a dynamic shape.
    pub dynamic: bool,
    /// The only memory that it may lie in, by number; a view has its root's.
    pub memory: Option<usize>,
}

/// One operator of a checked graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpNode {
    /// Unique name.
    pub name: String,
    /// Indices of the tensors it reads, as given (a tensor used twice appears twice).
    pub inputs: Vec<usize>,
    /// Indices of the tensors it writes.
    pub outputs: Vec<usize>,
    /// Permits `(input, output)`: tensor indices.
    pub in_place: Vec<(usize, usize)>,
    /// Duration for the critical path.
    pub cost: u64,
}

/// A checked operator graph. Operators are in processing order, which is topological.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub(crate) tensors: Vec<TensorNode>,
    pub(crate) ops: Vec<OpNode>,
    pub(crate) outputs: Vec<usize>,
    /// Inclusive operator ranges whose body runs more than once.
    pub(crate) loops: Vec<(usize, usize)>,
    /// For each root: itself and all its views; empty for a view.
    pub(crate) families: Vec<Vec<usize>>,
    /// For each root whether operators write its bytes anew after others have used them.
    pub(crate) rewritten: Vec<bool>,
    pub(crate) index: BTreeMap<u64, usize>,
    pub(crate) memories: Vec<Space>,
}

impl Graph {
    /// Starts a graph.
    #[must_use]
    pub fn builder() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// All tensors, in the order they were given.
    #[must_use]
    pub fn tensors(&self) -> &[TensorNode] {
        &self.tensors
    }

    /// All operators in processing order.
    #[must_use]
    pub fn ops(&self) -> &[OpNode] {
        &self.ops
    }

    /// Indices of the tensors that the caller reads after the run.
    #[must_use]
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// Inclusive operator ranges that run more than once.
    #[must_use]
    pub fn loops(&self) -> &[(usize, usize)] {
        &self.loops
    }

    /// The memories that activations are placed in; empty for one without limit.
    #[must_use]
    pub fn memories(&self) -> &[Space] {
        &self.memories
    }

    /// Bytes of the tensor that operators read and write.
    pub(crate) fn traffic(&self, tensor: usize) -> u128 {
        let node = &self.tensors[tensor];
        let times = node.users.len() + usize::from(self.is_written(tensor));
        u128::from(node.size) * times as u128
    }

    /// Index of the tensor with this id.
    #[must_use]
    pub fn tensor_index(&self, id: u64) -> Option<usize> {
        self.index.get(&id).copied()
    }

    /// Display name of the tensor with this id, and of the operator that writes it.
    pub(crate) fn labels(&self, id: u64) -> (Option<&str>, Option<&str>) {
        let Some(node) = self.tensor_index(id).map(|tensor| &self.tensors[tensor]) else {
            return (None, None);
        };
        (node.name.as_deref(), node.producer.map(|op| self.ops[op].name.as_str()))
    }

    /// The tensors that share the bytes of `root` through views, `root` first; empty when `root` is
    /// a view itself.
    #[must_use]
    pub fn family(&self, root: usize) -> &[usize] {
        self.families.get(root).map_or(&[], Vec::as_slice)
    }

    /// The same graph with other tensor sizes, `(id, bytes without padding)`: for shapes that
    /// became known, or grew beyond the planned bound. A plan for larger sizes is valid for smaller
    /// ones too, so only growth needs a new plan.
    ///
    /// # Errors
    /// [`GraphError::UnknownTensor`], and errors of the new sizes: a view that exceeds its tensor,
    /// a size beyond 64 bits.
    ///
    /// ```
    /// use usm_pool::{Graph, Op, Options, Tensor, plan_graph};
    ///
    /// let planned = Graph::builder()
    ///     .tensor(Tensor::new(0, 1 << 20)) // at most so many bytes
    ///     .op(Op::new("decode").outputs([0]))
    ///     .output(0)
    ///     .build()?;
    /// let grown = planned.resized(&[(0, 3 << 20)])?;
    /// let (_, plan) = plan_graph(&grown, &Options::default())?;
    /// assert_eq!(plan.peak, 3 << 20);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn resized(&self, sizes: &[(u64, u64)]) -> Result<Self, GraphError> {
        let mut builder = GraphBuilder::from(self);
        for &(id, size) in sizes {
            let tensor = self.tensor_index(id).ok_or(GraphError::UnknownTensor { tensor: id })?;
            builder.resize(tensor, size);
        }
        builder.build()
    }

    /// The tensor's own lifetime on an in-order queue, views not counted in:
    /// `[producer, last user + 1)`; one operator when unused; an output lives to the number of
    /// operators. A view that no operator makes or reads has no life; as an output, that of the
    /// last operator.
    #[must_use]
    pub fn lifetime(&self, tensor: usize) -> Lifetime {
        let node = &self.tensors[tensor];
        let is_unused = node.producer.is_none() && node.users.is_empty();
        if node.alias.is_some() && is_unused {
            // It must not make its root's bytes older than their content.
            let end = if node.is_output { self.ops.len().max(1) as u64 } else { 0 };
            return Lifetime::new(end.saturating_sub(1), end);
        }
        let begin = match (node.producer, node.alias) {
            (Some(op), _) => op,
            // A view that no operator makes begins with its first reader; the root's bytes were
            // there before.
            (None, Some(_)) => node.users.first().copied().unwrap_or(0),
            // The caller filled it before the run.
            (None, None) => 0,
        };
        let mut lower = begin;
        let mut upper = node.users.last().map_or(begin, |&op| op).max(begin) + 1;
        for &(first, last) in &self.loops {
            let body = first..=last;
            let read_inside = node.users.iter().any(|op| body.contains(op));
            // Every iteration reads it again, so it must survive them all. Content from before the
            // run is older than a loop that begins with the run.
            let is_from_caller = node.producer.is_none() && node.alias.is_none();
            if (is_from_caller || begin < first) && read_inside {
                upper = upper.max(last + 1);
            }
            // Read before it is written: carried from one iteration to the next.
            if body.contains(&begin) && node.users.iter().any(|op| body.contains(op) && *op <= begin) {
                lower = lower.min(first);
                upper = upper.max(last + 1);
            }
        }
        if node.is_output {
            upper = upper.max(self.ops.len());
        }
        Lifetime::new(lower as u64, upper as u64)
    }
}
