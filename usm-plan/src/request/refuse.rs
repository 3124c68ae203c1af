//! What a request may not be: each rule once, for every face.

use usm_pool::Queue;

use super::fields::{Field, Refuser};
use super::source::Form;
use super::{MOST_THREADS, Refusal, Request};
use crate::model::Input;
use crate::units;

const LIFETIMES: &str = "buffers have lifetimes, which only an in-order queue keeps; give a graph";
const OPERATORS: &str = "buffers have no operators; give a graph";

fn refuse(field: Field, reason: impl Into<String>) -> Result<(), Refusal> {
    Err(Refusal::new(field, reason))
}

impl Refuser {
    fn reason(self) -> &'static str {
        match self {
            Self::EveryValue => "it is for one value of each dimension; a plan for all is made here",
            Self::Memories => "the graph has memories of its own, and a plan says how each is used",
            Self::NoEdges => "it needs ordering edges; give their number",
            Self::Proof => "a proof is about one memory and the dependencies of the data alone",
            Self::ProofCheck => "the check of a proof makes no plan",
            Self::Recompute => "it is for one plan; each point of a curve is a graph of its own",
        }
    }

    /// Refuses the first field of the request that has no meaning beside this.
    pub(super) fn refuse(self, request: &Request) -> Result<(), Refusal> {
        let is_refused = |field: &&Field| {
            let (is_set, refusers) = request.refusers(**field);
            is_set && refusers.contains(&self)
        };
        match Field::ALL.iter().find(is_refused) {
            Some(field) => refuse(*field, self.reason()),
            None => Ok(()),
        }
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
        Refuser::Recompute.refuse(request)?;
    }
    if request.proof {
        Refuser::Proof.refuse(request)?;
    }
    if request.ordering_edges.is_none() {
        Refuser::NoEdges.refuse(request)?;
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
    Refuser::EveryValue.refuse(request)
}

/// Refuses fields that have no meaning for the content of an input.
pub(super) fn content(request: &Request, input: &Input) -> Result<(), Refusal> {
    match input {
        Input::Buffers(_) => table(request),
        Input::Graph(model) if !model.graph.memories().is_empty() => Refuser::Memories.refuse(request),
        Input::Graph(_) => Ok(()),
    }
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
