//! The C interface: the functions of `usm_plan.h`, whose comments define their contracts.

mod build;
mod error;
mod export;
mod memory;
mod record;

use core::ffi::{c_char, c_int};
use std::path::Path;

use usm_pool::placement::Limits;
use usm_pool::{Buffer, Plan, Problem, Queue};

use crate::error::{Error, Result};
use crate::graph_json::RangePlan;
use crate::outcome::{Outcome, make};
use crate::{Hints, Input, graph_json};

pub use build::*;
use error::guarded;
use export::export;
use memory::{bytes, check_array, copied, into_c, write};
use record::Wanted;
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
    One(Made),
    /// One plan for every value of the graph's dimensions.
    Every(Box<RangePlan>),
}

impl Kind {
    fn count(&self) -> usize {
        match self {
            Self::One(made) => made.offsets.len(),
            Self::Every(plan) => plan.ids().len(),
        }
    }

    /// The offsets for some values, and their quality if the caller wants a report.
    fn offsets_for(&self, values: &[u64], report: bool) -> Result<Made> {
        let given = |dimensions: usize| match values.len() {
            given if given == dimensions => Ok(()),
            given => {
                let reason = format!("{given} given, but the graph has {dimensions} dimensions");
                Err(Error::bad(reason).in_field("values"))
            }
        };
        match self {
            Self::One(made) => given(0).map(|()| made.clone()),
            Self::Every(plan) => {
                given(plan.dims().len())?;
                let mut offsets = vec![0; plan.ids().len()];
                let at = plan.at(values, &mut offsets)?;
                let report = match report {
                    true => Report::at(plan, values, at.peak)?,
                    false => Report::default(),
                };
                Ok(Made { offsets, order: Vec::new(), report })
            }
        }
    }
}

/// Offsets and their quality.
#[derive(Clone, Debug)]
struct Made {
    offsets: Vec<u64>,
    /// Operators by their number in the caller's graph, in the order of the plan.
    order: Vec<u64>,
    report: Report,
}

impl Made {
    fn of(plan: &Plan) -> Self {
        let offsets = plan.rows.iter().map(|row| row.offset).collect();
        Self { offsets, order: Vec::new(), report: Report::of(plan) }
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
            let wanted = Wanted::of(unsafe { Options::read(options) }?)?;
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let room = unsafe { Report::known_words(report) }?;
            let no = |field: &str, reason: &str| Err(Error::bad(reason).in_field(format_args!("options.{field}")));
            if wanted.plan.queue == Queue::OutOfOrder {
                return no("queue", "buffers have lifetimes, which only an in-order queue keeps; give a graph");
            }
            if wanted.reorder {
                return no("reorder", "buffers have no operators; give a graph");
            }
            check_array(offsets, count, "offsets")?;
            // SAFETY: the contract demands null or `count` numbers.
            let lower = unsafe { copied(lower, count, "lower") }?;
            // SAFETY: as above.
            let upper = unsafe { copied(upper, count, "upper") }?;
            // SAFETY: as above.
            let size = unsafe { copied(size, count, "size") }?;
            let alignment = if alignment.is_null() {
                vec![wanted.alignment.unwrap_or(1); count]
            } else {
                // SAFETY: as above.
                unsafe { copied(alignment, count, "alignment") }?
            };
            let buffer = |i| Buffer::new(i as u64, lower[i], upper[i], size[i]).aligned(alignment[i]);
            let problem = Problem::from_buffers((0..count).map(buffer).collect()).map_err(Error::bad)?;
            let made = planned(Input::Buffers(problem), &wanted, Path::new("buffers"))?;
            // SAFETY: the contract demands room for `count`; `check_array` checked the pointer.
            unsafe { write(&made.offsets, offsets) };
            // SAFETY: `room` was read from it.
            unsafe { made.report.write(report, room) };
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
            let wanted = Wanted::of(unsafe { Options::read(options) }?)?;
            // SAFETY: the contract demands null or this many bytes, unchanged meanwhile.
            let json = unsafe { bytes(json.cast(), length, "json") }?;
            let named = |error: Error| error.in_file(Path::new(GRAPH));
            let kind = match graph_json::ranges(json).map_err(named)? {
                Some(planned) => {
                    let every = plan_every_value(json, planned, &wanted).map_err(named)?;
                    Kind::Every(Box::new(every))
                }
                None => {
                    let hints = Hints { alignment: wanted.alignment, ..Hints::default() };
                    let model = graph_json::parse(json, &hints).map_err(named)?;
                    Kind::One(planned(Input::Graph(model), &wanted, Path::new(GRAPH))?)
                }
            };
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
            let made = plan.kind.offsets_for(&values, !report.is_null())?;
            // SAFETY: room for `capacity`, by contract, which is enough.
            unsafe { write(&made.offsets, offsets) };
            // SAFETY: `room` was read from it.
            unsafe { made.report.write(report, room) };
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

fn null(name: &str) -> Error {
    Error::bad("null").in_field(name)
}

/// One plan for every value: the file's own, or the result of a search.
fn plan_every_value(json: &[u8], planned: bool, wanted: &Wanted) -> Result<RangePlan> {
    let no = |field: &str, reason: &str| Err(Error::bad(reason).in_field(format_args!("options.{field}")));
    if wanted.plan.capacity.is_some() {
        return no("capacity", "it is for one value of each dimension; the plan is one for all");
    }
    if wanted.reorder {
        return no("reorder", "the order of a plan for every value is that of the graph");
    }
    if planned {
        return RangePlan::parse(json, wanted.plan.queue, wanted.alignment);
    }
    let clock = wanted.plan.clock(wanted.start);
    let stop = || clock.must_stop();
    RangePlan::search(json, &wanted.plan.options(&clock, &stop), wanted.alignment)
}

/// A checked plan within the capacity.
fn planned(input: Input, wanted: &Wanted, file: &Path) -> Result<Made> {
    let clock = wanted.plan.clock(wanted.start);
    let stop = || clock.must_stop();
    let options = wanted.plan.options(&clock, &stop);
    clock.reserve(&input, &|_, _| ());
    let outcome = make(input, &options, &Limits::new(None, None), wanted.reorder, file)?;
    outcome.check()?;
    let order_optimal = u64::from(outcome.is_best_order());
    let Outcome { plan, graph, every_order, reordered, .. } = outcome;
    let order = match (reordered, graph) {
        (Some(found), _) => found.order.into_iter().map(|op| op as u64).collect(),
        (None, graph) => (0..graph.map_or(0, |graph| graph.ops().len()) as u64).collect(),
    };
    if let Some(capacity) = plan.capacity.filter(|_| !plan.feasible()) {
        return Err(Error::unable(format!(
            "no plan within {capacity} bytes was found: the best has {}, and none has less than {}",
            plan.peak, plan.lower_bound
        )));
    }
    let mut made = Made { order, ..Made::of(&plan) };
    made.report.order_optimal = order_optimal;
    made.report.order_bound = every_order.map_or(0, |bound| bound.bytes);
    Ok(made)
}
