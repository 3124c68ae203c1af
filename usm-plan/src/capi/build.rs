//! Graphs from numbers, without a text between: `usm_plan_graph_begin` to `usm_plan_graph_end`.

use core::ffi::c_int;
use std::path::Path;

use usm_pool::{Graph, Op, Space, Tensor, TensorKind};

use super::error::guarded;
use super::export::export;
use super::memory::{check_array, copied, free, into_c};
use super::record::Options;
use super::{GRAPH, Kind, PlanArrays, UsmPlan, null, planned};
use crate::error::{Error, Result};
use crate::model::GRAPH_ALIGNMENT;
use crate::request::Source;

/// A graph whose tensors and operators are still being told.
#[derive(Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "opaque to C")]
pub struct UsmPlanGraph {
    tensors: Vec<Tensor>,
    ops: Vec<Op>,
    outputs: Vec<u64>,
    memories: Vec<Space>,
}

/// The kinds of a tensor, in the header's order; the first is the library's choice.
const KINDS: [Option<TensorKind>; 5] = [
    None,
    Some(TensorKind::Activation),
    Some(TensorKind::Constant),
    Some(TensorKind::State),
    Some(TensorKind::Input),
];

impl UsmPlanGraph {
    /// Refuses a number that no tensor has yet.
    fn known(&self, tensor: u64, name: &str) -> Result<usize> {
        let count = self.tensors.len();
        let number = usize::try_from(tensor).ok().filter(|&tensor| tensor < count);
        number.ok_or_else(|| Error::bad(format!("{tensor} is none of {count} tensors")).in_field(name))
    }

    fn all_known(&self, tensors: &[u64], name: &str) -> Result<()> {
        match tensors.iter().position(|&tensor| tensor >= self.tensors.len() as u64) {
            Some(at) => self.known(tensors[at], &format!("{name}[{at}]")).map(drop),
            None => Ok(()),
        }
    }

    fn built(self, alignment: Option<u64>) -> Result<Graph> {
        let mut builder = Graph::builder().default_alignment(alignment.unwrap_or(GRAPH_ALIGNMENT));
        for tensor in self.tensors {
            builder = builder.tensor(tensor);
        }
        for op in self.ops {
            builder = builder.op(op);
        }
        for output in self.outputs {
            builder = builder.output(output);
        }
        for memory in self.memories {
            builder = builder.memory(memory);
        }
        builder.build().map_err(|error| Error::bad(error).in_file(Path::new(GRAPH)))
    }
}

/// The graph behind the caller's pointer.
///
/// # Safety
/// `graph` is null or a graph that no other thread uses.
unsafe fn open<'g>(graph: *mut UsmPlanGraph) -> Result<&'g mut UsmPlanGraph> {
    // SAFETY: the caller's contract.
    unsafe { graph.as_mut() }.ok_or_else(|| null("graph"))
}

export! {
    /// Begins a graph.
    fn usm_plan_graph_begin(graph: *mut *mut UsmPlanGraph) -> c_int {
        guarded(|| {
            check_array(graph, 1, "graph")?;
            // SAFETY: the contract demands room for one graph.
            unsafe { graph.write(into_c(UsmPlanGraph::default())) };
            Ok(())
        })
    }

    /// Adds a tensor.
    fn usm_plan_graph_tensor(graph: *mut UsmPlanGraph, size: u64, alignment: u64, kind: u64) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            let id = graph.tensors.len() as u64;
            let mut tensor = Tensor::new(id, size);
            if alignment != 0 {
                tensor = tensor.alignment(alignment);
            }
            let kind = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind));
            let reason = || Error::bad(format!("exceeds {}", KINDS.len() - 1)).in_field("kind");
            if let Some(kind) = kind.ok_or_else(reason)? {
                tensor = tensor.kind(*kind);
            }
            graph.tensors.push(tensor);
            Ok(())
        })
    }

    /// Adds an operator.
    fn usm_plan_graph_op(
        graph: *mut UsmPlanGraph,
        inputs: *const u64,
        input_count: usize,
        outputs: *const u64,
        output_count: usize,
        workspace: u64,
    ) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            // SAFETY: the contract demands null or this many numbers.
            let inputs = unsafe { copied(inputs, input_count, "inputs") }?;
            // SAFETY: as above.
            let outputs = unsafe { copied(outputs, output_count, "outputs") }?;
            graph.all_known(&inputs, "inputs")?;
            graph.all_known(&outputs, "outputs")?;
            graph.ops.push(Op::new("").inputs(inputs).outputs(outputs).workspace(workspace));
            Ok(())
        })
    }

    /// Permits an operator to work in place.
    fn usm_plan_graph_permit(graph: *mut UsmPlanGraph, op: u64, input: u64, output: u64) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            graph.known(input, "input")?;
            graph.known(output, "output")?;
            let count = graph.ops.len();
            let operator = usize::try_from(op).ok().and_then(|op| graph.ops.get_mut(op));
            let Some(operator) = operator else {
                return Err(Error::bad(format!("{op} is none of {count} operators")).in_field("op"));
            };
            *operator = operator.clone().in_place(input, output);
            Ok(())
        })
    }

    /// Makes a tensor a view.
    fn usm_plan_graph_view(graph: *mut UsmPlanGraph, tensor: u64, of: u64, offset: u64) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            let view = graph.known(tensor, "tensor")?;
            graph.known(of, "of")?;
            graph.tensors[view] = graph.tensors[view].clone().alias_of(of, offset);
            Ok(())
        })
    }

    /// Makes a tensor an output.
    fn usm_plan_graph_output(graph: *mut UsmPlanGraph, tensor: u64) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            graph.known(tensor, "tensor")?;
            graph.outputs.push(tensor);
            Ok(())
        })
    }

    /// Adds a memory.
    fn usm_plan_graph_memory(graph: *mut UsmPlanGraph, capacity: u64, cost: u64, chunk: u64) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            let mut space = Space::new(format!("memory {}", graph.memories.len()), capacity, cost);
            if chunk != 0 {
                space = space.chunk(chunk);
            }
            graph.memories.push(space);
            Ok(())
        })
    }

    /// Pins a tensor to a memory.
    fn usm_plan_graph_pin(graph: *mut UsmPlanGraph, tensor: u64, memory: u64) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a graph of this thread.
            let graph = unsafe { open(graph) }?;
            let number = graph.known(tensor, "tensor")?;
            let count = graph.memories.len();
            let memory = usize::try_from(memory).ok().filter(|&memory| memory < count);
            let reason = || Error::bad(format!("none of {count} memories")).in_field("memory");
            graph.tensors[number] = graph.tensors[number].clone().memory(memory.ok_or_else(reason)?);
            Ok(())
        })
    }

    /// Plans the graph and frees it.
    fn usm_plan_graph_end(
        graph: *mut *mut UsmPlanGraph,
        options: *const Options,
        plan: *mut *mut UsmPlan,
    ) -> c_int {
        guarded(|| {
            check_array(graph, 1, "graph")?;
            // SAFETY: the contract demands a place with null or a graph of this thread.
            let owner = unsafe { graph.replace(core::ptr::null_mut()) };
            if owner.is_null() {
                return Err(null("graph"));
            }
            // SAFETY: from `into_c` in `usm_plan_graph_begin`; its place is null from now on.
            let whole = core::mem::take(unsafe { open(owner) }?);
            // SAFETY: as above.
            unsafe { free(owner) };
            if plan.is_null() {
                return Ok(());
            }
            check_array(plan, 1, "plan")?;
            // SAFETY: the contract demands room for one plan.
            unsafe { plan.write(core::ptr::null_mut()) };
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let request = unsafe { Options::read(options) }?.request()?;
            let whole = whole.built(request.alignment)?;
            let kind = planned(request, Source::graph(GRAPH, whole))?;
            // SAFETY: room for one, by contract.
            unsafe { plan.write(into_c(UsmPlan { kind })) };
            Ok(())
        })
    }

    /// Writes the order of the operators.
    fn usm_plan_order(plan: *const UsmPlan, operators: *mut u64, capacity: usize) -> usize {
        // SAFETY: the contract demands null or a live plan, and room for `capacity`.
        unsafe { list(plan, |arrays| &arrays.order, operators, capacity) }
    }

    /// Writes the ordering edges.
    fn usm_plan_edges(plan: *const UsmPlan, operators: *mut u64, capacity: usize) -> usize {
        // SAFETY: the contract demands null or a live plan, and room for `capacity`.
        unsafe { list(plan, |arrays| &arrays.edges, operators, capacity) }
    }

    /// Writes the memory of each tensor.
    fn usm_plan_memories(plan: *const UsmPlan, memories: *mut u64, capacity: usize) -> usize {
        // SAFETY: the contract demands null or a live plan, and room for `capacity`.
        unsafe { list(plan, |arrays| &arrays.memories, memories, capacity) }
    }

    /// Writes the tensors in host memory.
    fn usm_plan_spilled(plan: *const UsmPlan, offsets: *mut u64, capacity: usize) -> usize {
        // SAFETY: the contract demands null or a live plan, and room for `capacity`.
        unsafe { list(plan, |arrays| &arrays.host_offsets, offsets, capacity) }
    }
}

/// Writes a list of a plan if there is room for it. Returns its length.
///
/// # Safety
/// `plan` is null or a live plan, and `to` is null or has room for `capacity` numbers.
unsafe fn list(
    plan: *const UsmPlan,
    of: impl FnOnce(&PlanArrays) -> &Vec<u64>,
    to: *mut u64,
    capacity: usize,
) -> usize {
    // SAFETY: the caller's contract.
    let Some(UsmPlan { kind: Kind::One(arrays) }) = (unsafe { plan.as_ref() }) else { return 0 };
    let list = of(arrays);
    if capacity >= list.len() && check_array(to, list.len(), "list").is_ok() {
        // SAFETY: the caller's contract; `capacity` is enough.
        unsafe { super::memory::write(list, to) };
    }
    list.len()
}
