//! What a request may not be: each rule once, for every face.

use usm_pool::Queue;

use super::source::Form;
use super::{MOST_THREADS, Refusal, Request};
use crate::field::Field;
use crate::model::Input;
use crate::units;

const LIFETIMES: &str = "buffers have lifetimes, which only an in-order queue keeps; give a graph";
const OPERATORS: &str = "buffers have no operators; give a graph";
const ONE_VALUE: &str = "it is for one value of each dimension; a plan for all is made here";
const ONE_PLAN: &str = "it is for one plan; each point of a curve is a graph of its own";
const OWN_MEMORIES: &str = "the graph has memories of its own, and a plan says how each is used";
const ONE_MEMORY: &str = "a proof is about one memory and the dependencies of the data alone";

fn refuse(field: Field, reason: impl Into<String>) -> Result<(), Refusal> {
    Err(Refusal::new(field, reason))
}

/// Refuses the first of these fields that the request sets, with one reason for all.
fn refuse_first(request: &Request, fields: &[Field], reason: &str) -> Result<(), Refusal> {
    match fields.iter().find(|field| is_set(request, **field)) {
        Some(field) => refuse(*field, reason),
        None => Ok(()),
    }
}

/// Whether a request sets a field that some plans refuse.
fn is_set(request: &Request, field: Field) -> bool {
    match field {
        Field::Capacity => request.capacity.is_some(),
        Field::DeviceMemory => request.device_memory.is_some(),
        Field::MaxAlloc => request.max_alloc.is_some(),
        Field::OrderingEdges => request.ordering_edges.is_some(),
        Field::KeepCriticalPath => request.keep_critical_path,
        Field::Reorder => request.reorder,
        Field::Curve => request.curve,
        Field::Compare => request.compare,
        Field::Proof => request.proof,
        Field::CurveRecompute => request.recompute.is_some(),
        // Every plan may have these.
        Field::Input
        | Field::Queue
        | Field::Strategy
        | Field::TimeLimit
        | Field::Threads
        | Field::Alignment
        | Field::Dims
        | Field::Values
        | Field::KeepOrder
        | Field::Views
        | Field::Budget
        | Field::BytesPerCost => false,
    }
}

/// Refuses values that a field cannot have, and fields that contradict each other.
pub(super) fn contradictions(request: &Request) -> Result<(), Refusal> {
    if !(1..=MOST_THREADS).contains(&request.threads) {
        let reason = format!("{} is not a number from 1 to {MOST_THREADS}", request.threads);
        return refuse(Field::Threads, reason);
    }
    if let Some(Err(reason)) = request.alignment.map(units::alignment) {
        return refuse(Field::Alignment, reason);
    }
    if let Some(recompute) = &request.recompute {
        recompute.check_rate()?;
        let fields = [
            Field::Capacity,
            Field::DeviceMemory,
            Field::MaxAlloc,
            Field::Proof,
            Field::Curve,
            Field::Compare,
        ];
        refuse_first(request, &fields, ONE_PLAN)?;
    }
    if request.proof {
        let fields = [Field::DeviceMemory, Field::MaxAlloc, Field::OrderingEdges];
        refuse_first(request, &fields, ONE_MEMORY)?;
    }
    if request.ordering_edges.is_none() {
        let fields = [Field::KeepCriticalPath, Field::Curve];
        refuse_first(request, &fields, "it needs ordering edges; give their number")?;
    }
    let out_of_order = request.queue == Queue::OutOfOrder;
    if request.ordering_edges.is_some() && !out_of_order {
        return refuse(Field::OrderingEdges, "an in-order queue has one order already");
    }
    if request.reorder && out_of_order {
        let reason = "an out-of-order queue has no order to change; add ordering edges to it";
        return refuse(Field::Reorder, reason);
    }
    if request.reorder && request.keep_order {
        return refuse(Field::Reorder, "the order is to be kept too");
    }
    if request.recompute.is_some() && out_of_order {
        let reason = "operators run again in one order; an out-of-order queue has none";
        return refuse(Field::Queue, reason);
    }
    Ok(())
}

/// Refuses fields that have no meaning for an input of this form. An input of unknown form is
/// checked again when it is read.
pub(super) fn misfits(request: &Request, form: Form) -> Result<(), Refusal> {
    if !request.values.is_empty() && form != Form::Model {
        return Err(Refusal::new(Field::Values, "only an ONNX model has inputs of a value").of_input());
    }
    if request.is_for_ranges() {
        if !matches!(form, Form::Model | Form::Text) {
            let reason = "only a model.onnx or a graph.json with dims is planned for every value";
            return Err(Refusal::new(Field::Dims, reason).of_input());
        }
        every_value(request)?;
    }
    match form {
        Form::Table => table(request),
        _ => Ok(()),
    }
}

/// Refuses fields that have no meaning for a plan of every value.
pub(super) fn every_value(request: &Request) -> Result<(), Refusal> {
    let fields = [
        Field::Capacity,
        Field::DeviceMemory,
        Field::MaxAlloc,
        Field::OrderingEdges,
        Field::Reorder,
        Field::Proof,
        Field::Compare,
        Field::CurveRecompute,
    ];
    refuse_first(request, &fields, ONE_VALUE)
}

/// Refuses fields that have no meaning for the content of an input.
pub(super) fn content(request: &Request, input: &Input) -> Result<(), Refusal> {
    match input {
        Input::Buffers(_) => table(request),
        Input::Graph(model) if !model.graph.memories().is_empty() => memories(request),
        Input::Graph(_) => Ok(()),
    }
}

/// Refuses fields that have no meaning for a graph with memories of its own.
fn memories(request: &Request) -> Result<(), Refusal> {
    let fields = [
        Field::Capacity,
        Field::DeviceMemory,
        Field::MaxAlloc,
        Field::Proof,
        Field::Curve,
        Field::Compare,
        Field::CurveRecompute,
    ];
    refuse_first(request, &fields, OWN_MEMORIES)
}

/// Refuses fields that have no meaning for a table of buffers.
fn table(request: &Request) -> Result<(), Refusal> {
    let refuse = |field, reason: &str| Err(Refusal::new(field, reason).of_input());
    if !request.dims.is_empty() {
        return refuse(Field::Dims, "tables have no dimensions");
    }
    if request.queue == Queue::OutOfOrder {
        return refuse(Field::Queue, LIFETIMES);
    }
    if request.reorder {
        return refuse(Field::Reorder, OPERATORS);
    }
    if request.recompute.is_some() {
        return refuse(Field::CurveRecompute, OPERATORS);
    }
    Ok(())
}
