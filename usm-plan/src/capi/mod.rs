//! The C interface: the functions of `usm_plan.h`, whose comments define their contracts.

mod build;
mod error;
mod export;
mod memory;
#[cfg(feature = "capi-models")]
mod model;
mod names;
mod record;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod target;

use core::ffi::{c_char, c_int};
use std::time::Instant;

use usm_pool::{Buffer, Memory, Plan, Problem, Row};

use crate::error::{Error, Result};
use crate::field::Field;
use crate::graph_json::RangePlan;
use crate::outcome::Outcome;
use crate::request::{Answer, Request, Source};

pub use build::*;
use error::guarded;
use export::export;
use memory::{bytes, check_array, copied, into_c, write};
#[cfg(feature = "capi-models")]
pub use model::*;
pub use names::*;
pub use record::{Options, Report};

/// The graph's name in messages.
const GRAPH: &str = "graph";

/// The plan of a graph.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "opaque to C")]
pub struct UsmPlan {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    One(Box<PlanArrays>),
    /// One plan for every value of the graph's dimensions.
    Every(Box<RangePlan>),
}

impl Kind {
    fn count(&self) -> usize {
        match self {
            Self::One(arrays) => arrays.offsets.len(),
            Self::Every(plan) => plan.ids().len(),
        }
    }

    /// The offsets for some values, and their quality if the caller wants a report.
    fn offsets_for(&self, values: &[u64], report: bool) -> Result<PlanArrays> {
        match self {
            Self::One(arrays) => check_count(values, 0).map(|()| PlanArrays::clone(arrays)),
            Self::Every(plan) => {
                check_count(values, plan.dims().len())?;
                let mut offsets = vec![0; plan.ids().len()];
                let report = if report {
                    let (at, bound, blocks) = plan.at_with_bound(values, &mut offsets)?;
                    Report::at(at.peak, bound, blocks)
                } else {
                    plan.at(values, &mut offsets)?;
                    Report::default()
                };
                Ok(PlanArrays { offsets, report, ..PlanArrays::default() })
            }
        }
    }
}

/// Whether there is a value for each dimension.
fn check_count(values: &[u64], dimensions: usize) -> Result<()> {
    match values.len() {
        length if length == dimensions => Ok(()),
        other => {
            let reason = format!("{other} given, but the graph has {dimensions} dimensions");
            Err(Error::bad(reason).in_field("values"))
        }
    }
}

/// Offsets and their quality.
#[derive(Clone, Debug, Default)]
struct PlanArrays {
    offsets: Vec<u64>,
    /// Operators by their number in the caller's graph, in the order of the plan.
    order: Vec<u64>,
    /// Pairs of operators, the earlier one first.
    edges: Vec<u64>,
    /// Numbers of the offsets that lie in host memory.
    host_offsets: Vec<u64>,
    /// The memory of each offset, by its number in the graph; empty without memories.
    memories: Vec<u64>,
    /// The tensor of each offset, by its name; empty if none has a name.
    names: Vec<String>,
    report: Report,
}

impl PlanArrays {
    fn of(plan: &Plan) -> Self {
        let offsets = plan.rows.iter().map(|row| row.offset).collect();
        let edges = plan.ordering_edges.iter().flat_map(|&(one, next)| [one as u64, next as u64]).collect();
        let host_rows = (0..).zip(&plan.rows).filter(|(_, row)| row.memory == Memory::Host);
        let host_offsets = host_rows.map(|(number, _)| number).collect();
        let number = |row: &Row| match row.memory {
            Memory::Own(number) => Some(u64::from(number)),
            _ => None,
        };
        let memories = plan.rows.iter().filter_map(number).collect();
        let report = Report::of(plan);
        Self { offsets, order: Vec::new(), edges, host_offsets, memories, names: Vec::new(), report }
    }
}

export! {
    /// Plans buffers.
    fn usm_plan_buffers(
        lower: *const u64,
        upper: *const u64,
        size: *const u64,
        alignment: *const u64,
        count: usize,
        options: *const Options,
        offsets: *mut u64,
        report: *mut Report,
    ) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let request = unsafe { Options::read(options) }?.request()?;
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let room = unsafe { Report::known_words(report) }?;
            if request.device_memory.is_some() || request.max_alloc.is_some() {
                let reason = "buffers have no plan that tells which are in host memory; give a graph";
                return Err(Error::bad(reason).in_option(Field::DeviceMemory));
            }
            check_array(offsets, count, "offsets")?;
            // SAFETY: the contract demands null or `count` numbers.
            let lower = unsafe { copied(lower, count, "lower") }?;
            // SAFETY: as above.
            let upper = unsafe { copied(upper, count, "upper") }?;
            // SAFETY: as above.
            let size = unsafe { copied(size, count, "size") }?;
            let alignment = if alignment.is_null() {
                vec![request.alignment.unwrap_or(1); count]
            } else {
                // SAFETY: as above.
                unsafe { copied(alignment, count, "alignment") }?
            };
            let buffer = |i| Buffer::new(i as u64, lower[i], upper[i], size[i]).aligned(alignment[i]);
            let problem = Problem::from_buffers((0..count).map(buffer).collect()).map_err(Error::bad)?;
            let Kind::One(arrays) = planned(request, Source::table("buffers", problem))? else {
                return Err(Error::bad("buffers have no dimensions"));
            };
            // SAFETY: the contract demands room for `count`; `check_array` checked the pointer.
            unsafe { write(&arrays.offsets, offsets) };
            // SAFETY: `room` was read from it.
            unsafe { arrays.report.write(report, room) };
            Ok(())
        })
    }

    /// Plans a graph.
    fn usm_plan_graph(
        json: *const c_char,
        length: usize,
        options: *const Options,
        plan: *mut *mut UsmPlan,
    ) -> c_int {
        guarded(|| {
            check_array(plan, 1, "plan")?;
            // SAFETY: the contract demands room for one plan.
            unsafe { plan.write(core::ptr::null_mut()) };
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let request = unsafe { Options::read(options) }?.request()?;
            // SAFETY: the contract demands null or this many bytes, unchanged meanwhile.
            let json = unsafe { bytes(json.cast(), length, "json") }?;
            let kind = planned(request, Source::text(GRAPH, json.to_vec()))?;
            // SAFETY: room for one, by contract.
            unsafe { plan.write(into_c(UsmPlan { kind })) };
            Ok(())
        })
    }

    /// Number of offsets.
    fn usm_plan_count(plan: *const UsmPlan) -> usize {
        // SAFETY: null or a live plan, by contract.
        unsafe { plan.as_ref() }.map_or(0, |plan| plan.kind.count())
    }

    /// Writes the offsets.
    fn usm_plan_at(
        plan: *const UsmPlan,
        values: *const u64,
        count: usize,
        offsets: *mut u64,
        capacity: usize,
        report: *mut Report,
    ) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a live plan.
            let plan = unsafe { plan.as_ref() }.ok_or_else(|| null("plan"))?;
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let room = unsafe { Report::known_words(report) }?;
            // SAFETY: the contract demands null or `count` numbers.
            let values = unsafe { copied(values, count, "values") }?;
            check_array(offsets, capacity, "offsets")?;
            let count = plan.kind.count();
            if capacity < count {
                let reason = format!("room for {capacity}, but the plan has {count}");
                return Err(Error::bad(reason).in_field("offsets"));
            }
            let arrays = plan.kind.offsets_for(&values, !report.is_null())?;
            // SAFETY: room for `capacity`, by contract, which is enough.
            unsafe { write(&arrays.offsets, offsets) };
            // SAFETY: `room` was read from it.
            unsafe { arrays.report.write(report, room) };
            Ok(())
        })
    }

    /// Writes the offsets for each value of a dimension up to a given one.
    fn usm_plan_at_every(
        plan: *const UsmPlan,
        values: *const u64,
        count: usize,
        dimension: usize,
        offsets: *mut u64,
        capacity: usize,
        peaks: *mut u64,
        steps: *mut usize,
    ) -> c_int {
        guarded(|| {
            // SAFETY: the contract demands null or a live plan.
            let plan = unsafe { plan.as_ref() }.ok_or_else(|| null("plan"))?;
            check_array(steps, 1, "steps")?;
            // SAFETY: the contract demands room for one number.
            unsafe { steps.write(0) };
            // SAFETY: the contract demands null or `count` numbers.
            let values = unsafe { copied(values, count, "values") }?;
            let Kind::Every(plan) = &plan.kind else {
                return Err(Error::bad("the plan has no dimensions").in_field("dimension"));
            };
            check_count(&values, plan.dims().len())?;
            let number = plan.steps_up_to(&values, dimension)?;
            // SAFETY: as above.
            unsafe { steps.write(number) };
            if offsets.is_null() && capacity == 0 {
                return Ok(());
            }
            check_array(offsets, capacity, "offsets")?;
            let all = plan.ids().len().checked_mul(number);
            let Some(all) = all.filter(|all| *all <= capacity) else {
                let reason = format!("room for {capacity}, but {number} values have {} each", plan.ids().len());
                return Err(Error::bad(reason).in_field("offsets"));
            };
            if all == 0 && peaks.is_null() {
                return Ok(());
            }
            let (mut every, mut tops) = (zeros(all)?, zeros(number)?);
            plan.at_every(&values, dimension, &mut every, &mut tops)?;
            // SAFETY: room for `capacity`, by contract, which is enough.
            unsafe { write(&every, offsets) };
            if !peaks.is_null() {
                // SAFETY: the contract demands null or room for as many numbers as there are steps.
                unsafe { write(&tops, peaks) };
            }
            Ok(())
        })
    }

    /// Frees a plan.
    fn usm_plan_free(plan: *mut UsmPlan) {
        // SAFETY: the contract demands null or a plan of `usm_plan_graph`, freed once.
        unsafe { memory::free(plan) };
    }

    /// The text of this thread's last failure.
    fn usm_plan_error(text: *mut c_char, capacity: usize) -> usize {
        // SAFETY: the contract demands null or room for `capacity` bytes.
        unsafe { error::text(text.cast(), capacity) }
    }
}

/// This many zeros, if the memory suffices.
fn zeros(count: usize) -> Result<Vec<u64>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(count).map_err(|error| Error::unable(error).in_field("steps"))?;
    zeros.resize(count, 0);
    Ok(zeros)
}

fn null(name: &str) -> Error {
    Error::bad("null").in_field(name)
}

/// A checked plan within the capacity.
fn planned(request: Request, source: Source) -> Result<Kind> {
    let outcome = match request.check(source)?.run_plain(&Instant::now())? {
        Answer::Every(plan) => return Ok(Kind::Every(plan)),
        Answer::One(outcome) | Answer::Recompute(outcome, ..) => outcome,
    };
    let order_optimal = u64::from(outcome.is_best_order());
    let Outcome { plan, graph, every_order, reorder, .. } = *outcome;
    let names = graph.as_ref().map_or_else(Vec::new, |graph| names::of(graph, &plan));
    let order = match (reorder, graph) {
        (Some(reorder), _) => reorder.order.into_iter().map(|op| op as u64).collect(),
        (None, graph) => (0..graph.map_or(0, |graph| graph.ops().len()) as u64).collect(),
    };
    if let Some(capacity) = plan.capacity.filter(|_| !plan.feasible()) {
        return Err(Error::unable(format!(
            "no plan within {capacity} bytes was found: the best has {}, and none has less than {}",
            plan.peak, plan.lower_bound
        )));
    }
    let mut arrays = PlanArrays { order, names, ..PlanArrays::of(&plan) };
    arrays.report.order_optimal = order_optimal;
    arrays.report.order_bound = every_order.map_or(0, |bound| bound.bytes);
    Ok(Kind::One(Box::new(arrays)))
}
