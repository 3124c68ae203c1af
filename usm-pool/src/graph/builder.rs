//! From descriptions with ids to a checked graph with indices.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Graph, GraphError, Op, OpNode, Space, Tensor, TensorKind, TensorNode};

/// More memories, or parts of one, than any machine has.
const MOST_MEMORIES: usize = 64;

/// Collects tensors and operators; ids may be named before they are declared.
/// [`GraphBuilder::build`] checks everything.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    tensors: Vec<Tensor>,
    ops: Vec<Op>,
    outputs: Vec<u64>,
    loops: Vec<(usize, usize)>,
    default_alignment: u64,
    memories: Vec<Space>,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self {
            tensors: Vec::new(),
            ops: Vec::new(),
            outputs: Vec::new(),
            loops: Vec::new(),
            default_alignment: 64,
            memories: Vec::new(),
        }
    }
}

/// The descriptions of a built graph, with all defaults filled in.
impl From<&Graph> for GraphBuilder {
    fn from(graph: &Graph) -> Self {
        let ids = |tensors: &[usize]| tensors.iter().map(|&t| graph.tensors[t].id).collect::<Vec<_>>();
        let tensor = |node: &TensorNode| Tensor {
            id: node.id,
            // The builder has added the padding.
            size: node.size - node.padding,
            alignment: Some(node.alignment),
            padding: node.padding,
            kind: node.alias.is_none().then_some(node.kind),
            alias: node.alias.map(|(of, offset)| (graph.tensors[of].id, offset)),
            name: node.name.clone(),
            dynamic: node.dynamic,
            memory: node.memory.filter(|_| node.alias.is_none()),
        };
        let op = |node: &OpNode| Op {
            name: node.name.clone(),
            inputs: ids(&node.inputs),
            outputs: ids(&node.outputs),
            in_place: node
                .in_place
                .iter()
                .map(|&(from, to)| (graph.tensors[from].id, graph.tensors[to].id))
                .collect(),
            cost: node.cost,
            // A built graph has a tensor for it.
            workspace: 0,
        };
        Self {
            tensors: graph.tensors.iter().map(tensor).collect(),
            ops: graph.ops.iter().map(op).collect(),
            outputs: ids(&graph.outputs),
            loops: graph.loops.clone(),
            memories: graph.memories.clone(),
            ..Self::default()
        }
    }
}

impl GraphBuilder {
    /// Alignment in bytes of tensors without one (initially 64; views have 1).
    #[must_use]
    pub fn default_alignment(mut self, bytes: u64) -> Self {
        self.default_alignment = bytes;
        self
    }

    /// Adds a tensor.
    #[must_use]
    pub fn tensor(mut self, tensor: Tensor) -> Self {
        self.tensors.push(tensor);
        self
    }

    /// Adds the next operator in processing order.
    #[must_use]
    pub fn op(mut self, op: Op) -> Self {
        self.ops.push(op);
        self
    }

    /// Adds a tensor that the caller reads after the run.
    #[must_use]
    pub fn output(mut self, id: u64) -> Self {
        self.outputs.push(id);
        self
    }

    /// Makes operators `first..=last` the body of a loop. Tensors from before the loop that the
    /// body reads live through all iterations. The body may also read a tensor that a later
    /// operator of the body wrote in the previous iteration; the first iteration reads the content
    /// from before the loop. An operator of the body that replaces a tensor from before the loop
    /// writes a view of it; no operator reads the tensor after that in the same iteration.
    #[must_use]
    pub fn loop_body(mut self, first: usize, last: usize) -> Self {
        self.loops.push((first, last));
        self
    }

    /// Adds a memory. With one or more, every activation lies in one of them.
    #[must_use]
    pub fn memory(mut self, memory: Space) -> Self {
        self.memories.push(memory);
        self
    }

    /// Gives the tensor at this index another size.
    pub(super) fn resize(&mut self, tensor: usize, bytes: u64) {
        self.tensors[tensor].size = bytes;
    }

    /// Checks and resolves everything.
    ///
    /// # Errors
    /// [`GraphError`] with the tensor or operator and the numbers.
    pub fn build(mut self) -> Result<Graph, GraphError> {
        self.add_workspaces();
        let mut index = BTreeMap::new();
        for (i, tensor) in self.tensors.iter().enumerate() {
            if index.insert(tensor.id, i).is_some() {
                return Err(GraphError::DuplicateTensor { tensor: tensor.id });
            }
        }
        self.check_loops()?;
        let mut tensors = self.tensor_nodes()?;
        let ops = self.op_nodes(&index)?;
        let families = self.resolve_views(&index, &mut tensors)?;
        self.link(&ops, &mut tensors)?;
        self.inherit_kinds(&mut tensors, &families)?;
        self.check_memories(&mut tensors)?;
        let mut outputs = Vec::new();
        for &id in &self.outputs {
            let &tensor = index.get(&id).ok_or(GraphError::UnknownGraphOutput { tensor: id })?;
            if !tensors[tensor].is_output {
                tensors[tensor].is_output = true;
                outputs.push(tensor);
            }
        }
        let rewritten = Vec::new();
        let Self { loops, memories, .. } = self;
        let mut graph = Graph { tensors, ops, outputs, loops, families, rewritten, index, memories };
        graph.rewritten = graph.find_rewritten();
        graph.check_iterations()?;
        Ok(graph)
    }

    /// A tensor that nobody reads for each operator with a workspace.
    fn add_workspaces(&mut self) {
        if self.ops.iter().all(|op| op.workspace == 0) {
            return;
        }
        let ids: BTreeSet<u64> = self.tensors.iter().map(|tensor| tensor.id).collect();
        let mut next = ids.last().copied().unwrap_or(0);
        for (at, op) in self.ops.iter_mut().enumerate() {
            let bytes = core::mem::take(&mut op.workspace);
            if bytes == 0 {
                continue;
            }
            // After the greatest id the search begins again at 0.
            next = next.wrapping_add(1);
            while ids.contains(&next) {
                next = next.wrapping_add(1);
            }
            let name = if op.name.is_empty() { format!("op{at}") } else { op.name.clone() };
            self.tensors.push(Tensor::new(next, bytes).name(format!("{name}.workspace")));
            op.outputs.push(next);
        }
    }

    fn check_loops(&self) -> Result<(), GraphError> {
        for (i, &(first, last)) in self.loops.iter().enumerate() {
            let cuts = self.loops[..i].iter().any(|&(f, l)| {
                let disjoint = last < f || l < first;
                let is_nested = (f <= first && last <= l) || (first <= f && l <= last);
                !disjoint && !is_nested
            });
            if first > last || last >= self.ops.len() || cuts {
                return Err(GraphError::BadLoop { first, last, ops: self.ops.len() });
            }
        }
        Ok(())
    }

    /// Checks memories and pins, and gives views the pins of their roots.
    fn check_memories(&self, tensors: &mut [TensorNode]) -> Result<(), GraphError> {
        let count = self.memories.len();
        if count > MOST_MEMORIES {
            return Err(GraphError::TooManyMemories { count, most: MOST_MEMORIES });
        }
        for (memory, space) in self.memories.iter().enumerate() {
            if let Some(first) = self.memories[..memory].iter().position(|other| other.name == space.name) {
                return Err(GraphError::SameMemory { memory, first });
            }
            let chunk = space.chunk.unwrap_or(space.capacity);
            if space.capacity == 0 || chunk == 0 {
                return Err(GraphError::EmptyMemory { memory });
            }
            if space.capacity.div_ceil(chunk) > MOST_MEMORIES as u64 {
                return Err(GraphError::SmallChunk { memory, chunk, most: MOST_MEMORIES });
            }
        }
        for tensor in 0..tensors.len() {
            let node = &tensors[tensor];
            if let Some(memory) = node.memory {
                let id = node.id;
                if memory >= count {
                    return Err(GraphError::UnknownMemory { tensor: id, memory, count });
                }
                if node.alias.is_some() {
                    return Err(GraphError::PinnedView { tensor: id, of: tensors[node.root].id });
                }
                if node.kind != TensorKind::Activation {
                    return Err(GraphError::PinnedElsewhere { tensor: id, kind: node.kind });
                }
            }
        }
        for tensor in 0..tensors.len() {
            tensors[tensor].memory = tensors[tensors[tensor].root].memory;
        }
        Ok(())
    }

    fn tensor_nodes(&self) -> Result<Vec<TensorNode>, GraphError> {
        let mut nodes = Vec::with_capacity(self.tensors.len());
        for (i, tensor) in self.tensors.iter().enumerate() {
            let default = if tensor.alias.is_some() { 1 } else { self.default_alignment };
            let alignment = tensor.alignment.unwrap_or(default);
            if !alignment.is_power_of_two() {
                return Err(GraphError::BadAlignment { tensor: tensor.id, alignment });
            }
            let size = tensor.size.checked_add(tensor.padding).ok_or(GraphError::SizeOverflow {
                tensor: tensor.id,
                size: tensor.size,
                padding: tensor.padding,
            })?;
            nodes.push(TensorNode {
                id: tensor.id,
                name: tensor.name.clone(),
                size,
                padding: tensor.padding,
                alignment,
                // Provisional: a tensor without producer becomes an input when the operators are
                // known.
                kind: tensor.kind.unwrap_or(TensorKind::Activation),
                alias: None,
                root: i,
                root_offset: 0,
                producer: None,
                users: Vec::new(),
                is_output: false,
                dynamic: tensor.dynamic,
                memory: tensor.memory,
            });
        }
        Ok(nodes)
    }

    fn op_nodes(&self, index: &BTreeMap<u64, usize>) -> Result<Vec<OpNode>, GraphError> {
        let mut names = BTreeSet::new();
        let is_named = self.ops.iter().any(|op| !op.name.is_empty());
        let mut nodes = Vec::with_capacity(self.ops.len());
        for (op, spec) in self.ops.iter().enumerate() {
            let find = |ids: &[u64], error: fn(usize, u64) -> GraphError| {
                ids.iter()
                    .map(|id| index.get(id).copied().ok_or(error(op, *id)))
                    .collect::<Result<Vec<_>, _>>()
            };
            let inputs = find(&spec.inputs, |op, tensor| GraphError::UnknownInput { op, tensor })?;
            let outputs = find(&spec.outputs, |op, tensor| GraphError::UnknownOutput { op, tensor })?;
            let mut in_place = Vec::new();
            for &(input, output) in &spec.in_place {
                let from = index.get(&input).filter(|tensor| inputs.contains(tensor));
                let to = index.get(&output).filter(|tensor| outputs.contains(tensor));
                let from = *from.ok_or(GraphError::InPlaceInput { op, tensor: input })?;
                let to = *to.ok_or(GraphError::InPlaceOutput { op, tensor: output })?;
                in_place.push((from, to));
            }
            let name = unique_name(&spec.name, op, &names);
            // Without names of the caller, all are different.
            if is_named {
                names.insert(name.clone());
            }
            nodes.push(OpNode { name, inputs, outputs, in_place, cost: spec.cost });
        }
        Ok(nodes)
    }

    /// Fills in producers and users, and checks that every read comes after the write.
    fn link(&self, ops: &[OpNode], tensors: &mut [TensorNode]) -> Result<(), GraphError> {
        for (op, node) in ops.iter().enumerate() {
            for &t in &node.outputs {
                // State may be written many times; it is outside of the arena and orders nothing,
                // and so are its views.
                if self.tensors[tensors[t].root].kind == Some(TensorKind::State) {
                    continue;
                }
                let tensor = &mut tensors[t];
                // An operator that makes a view of its input writes nothing.
                if tensor.kind == TensorKind::Input && tensor.alias.is_none() {
                    return Err(GraphError::WrittenInput { op, tensor: tensor.id });
                }
                match tensor.producer {
                    Some(first) if first != op => {
                        return Err(GraphError::TwoProducers { tensor: tensor.id, first, second: op });
                    }
                    _ => tensor.producer = Some(op),
                }
            }
            for &t in &node.inputs {
                if tensors[t].users.last() != Some(&op) {
                    tensors[t].users.push(op);
                }
            }
        }
        for (spec, tensor) in self.tensors.iter().zip(tensors.iter_mut()) {
            match tensor.producer {
                Some(producer) => {
                    let is_carried = |op: usize| {
                        self.loops.iter().any(|&(first, last)| {
                            (first..=last).contains(&op) && (first..=last).contains(&producer)
                        })
                    };
                    let early_read = tensor.users.iter().find(|&&op| op <= producer && !is_carried(op));
                    if let Some(&op) = early_read {
                        return Err(GraphError::ReadBeforeWrite { op, tensor: tensor.id, producer });
                    }
                }
                None if spec.kind.is_none() => tensor.kind = TensorKind::Input,
                None => {}
            }
        }
        Ok(())
    }

    /// Follows every chain of views to its root and collects the families.
    fn resolve_views(
        &self,
        index: &BTreeMap<u64, usize>,
        tensors: &mut [TensorNode],
    ) -> Result<Vec<Vec<usize>>, GraphError> {
        for (i, spec) in self.tensors.iter().enumerate() {
            let Some((of, offset)) = spec.alias else {
                continue;
            };
            let &parent = index.get(&of).ok_or(GraphError::UnknownRoot { tensor: spec.id, of })?;
            let (size, of_size) = (tensors[i].size, tensors[parent].size);
            if offset.checked_add(size).is_none_or(|end| end > of_size) {
                return Err(GraphError::ViewOutside { tensor: spec.id, offset, size, of, of_size });
            }
            tensors[i].alias = Some((parent, offset));
        }
        // `depth_first` with an explicit stack: a chain may be as long as the graph.
        let mut is_resolved: Vec<bool> = tensors.iter().map(|tensor| tensor.alias.is_none()).collect();
        let mut on_chain = alloc::vec![false; tensors.len()];
        let mut chain = Vec::new();
        for start in 0..tensors.len() {
            let mut at = start;
            while !is_resolved[at] {
                if on_chain[at] {
                    return Err(GraphError::ViewCycle { tensor: tensors[at].id });
                }
                on_chain[at] = true;
                chain.push(at);
                let Some((parent, _)) = tensors[at].alias else {
                    break;
                };
                at = parent;
            }
            while let Some(i) = chain.pop() {
                if let Some((parent, offset)) = tensors[i].alias {
                    tensors[i].root = tensors[parent].root;
                    // No overflow: every view ends inside its parent, so the sum is at most the
                    // root's size.
                    tensors[i].root_offset = tensors[parent].root_offset.saturating_add(offset);
                }
                is_resolved[i] = true;
            }
        }
        let mut families: Vec<Vec<usize>> = (0..tensors.len()).map(|_| Vec::new()).collect();
        for (i, tensor) in tensors.iter().enumerate() {
            if tensor.alias.is_none() {
                families[i].insert(0, i);
            } else {
                families[tensor.root].push(i);
            }
        }
        Ok(families)
    }

    /// Gives views the kind of their root, and their alignment to the root.
    fn inherit_kinds(&self, tensors: &mut [TensorNode], families: &[Vec<usize>]) -> Result<(), GraphError> {
        for family in families.iter().filter(|family| family.len() > 1) {
            let Some(&root) = family.iter().find(|&&t| tensors[t].alias.is_none()) else {
                continue;
            };
            let is_written = family.iter().any(|&t| tensors[t].producer.is_some());
            if is_written && self.tensors[root].kind.is_none() {
                // The graph writes its bytes, even if only through views (concatenation in place).
                tensors[root].kind = TensorKind::Activation;
            }
            for &view in family {
                let (kind, of) = (tensors[root].kind, tensors[root].id);
                let node = &tensors[view];
                if self.tensors[view].kind.is_some_and(|own_kind| own_kind != kind) {
                    return Err(GraphError::ViewKind { tensor: node.id, of });
                }
                if node.root_offset % node.alignment != 0 {
                    return Err(GraphError::ViewMisaligned {
                        tensor: node.id,
                        offset: node.root_offset,
                        alignment: node.alignment,
                    });
                }
                let alignment = node.alignment;
                tensors[view].kind = kind;
                tensors[root].alignment = tensors[root].alignment.max(alignment);
            }
        }
        Ok(())
    }
}

fn unique_name(base: &str, op: usize, names: &BTreeSet<String>) -> String {
    let mut name = if base.is_empty() { format!("op{op}") } else { String::from(base) };
    while names.contains(&name) {
        name = format!("{name}#{op}");
    }
    name
}
