//! The C interface: the functions of `usm_plan.h`, whose comments are their contracts.

mod error;
mod export;
mod memory;
mod record;

use core::ffi::{c_char, c_int};
use std::path::Path;

use usm_pool::placement::Limits;
use usm_pool::{Buffer, Problem, Queue};

use crate::error::{Error, Result};
use crate::outcome::{Outcome, make};
use crate::{Hints, Input, graph_json};

use error::guarded;
use export::export;
use memory::{bytes, copied, give, place, write};
use record::Wanted;
pub use record::{Options, Report};

/// What messages call the graph.
const GRAPH: &str = "graph";

/// The plan of a graph.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "opaque to C")]
pub struct UsmPlan {
    offsets: Vec<u64>,
    report: Report,
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
            // SAFETY: null or a struct of the size that it says, by contract.
            let wanted = Wanted::of(unsafe { Options::read(options) }?)?;
            // SAFETY: null or a struct of the size that it says, by contract.
            let room = unsafe { Report::room(report) }?;
            let no = |field: &str, reason: &str| Err(Error::bad(reason).in_field(format_args!("options.{field}")));
            if wanted.plan.queue == Queue::OutOfOrder {
                return no("queue", "buffers have lifetimes, which only an in-order queue keeps; give a graph");
            }
            if wanted.reorder {
                return no("reorder", "buffers have no operators; give a graph");
            }
            place(offsets, count, "offsets")?;
            // SAFETY: null or `count` numbers, by contract.
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
            // SAFETY: room for `count`, by contract; `place` has looked.
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
            place(plan, 1, "plan")?;
            // SAFETY: room for one, by contract.
            unsafe { plan.write(core::ptr::null_mut()) };
            // SAFETY: null or a struct of the size that it says, by contract.
            let wanted = Wanted::of(unsafe { Options::read(options) }?)?;
            // SAFETY: null or so many bytes that nobody changes meanwhile, by contract.
            let json = unsafe { bytes(json.cast(), length, "json") }?;
            let hints = Hints { alignment: wanted.alignment, ..Hints::default() };
            let named = |error: Error| error.in_file(Path::new(GRAPH));
            let model = graph_json::parse(json, &hints).map_err(named)?;
            let made = planned(Input::Graph(model), &wanted, Path::new(GRAPH))?;
            // SAFETY: room for one, by contract.
            unsafe { plan.write(give(made)) };
            Ok(())
        })
    }

    /// Number of offsets.
    fn usm_plan_count(plan: *const UsmPlan) -> usize {
        // SAFETY: null or a live plan, by contract.
        unsafe { plan.as_ref() }.map_or(0, |plan| plan.offsets.len())
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
            // SAFETY: null or a live plan, by contract.
            let plan = unsafe { plan.as_ref() }.ok_or_else(|| null("plan"))?;
            // SAFETY: null or a struct of the size that it says, by contract.
            let room = unsafe { Report::room(report) }?;
            // SAFETY: null or `count` numbers, by contract.
            let values = unsafe { copied(values, count, "values") }?;
            if !values.is_empty() {
                let reason = format!("{} given, but the graph has 0 dimensions", values.len());
                return Err(Error::bad(reason).in_field("values"));
            }
            place(offsets, capacity, "offsets")?;
            if capacity < plan.offsets.len() {
                let reason = format!("room for {capacity}, but the plan has {}", plan.offsets.len());
                return Err(Error::bad(reason).in_field("offsets"));
            }
            // SAFETY: room for `capacity`, by contract, which is enough.
            unsafe { write(&plan.offsets, offsets) };
            // SAFETY: `room` was read from it.
            unsafe { plan.report.write(report, room) };
            Ok(())
        })
    }

    /// Gives a plan back.
    fn usm_plan_free(plan: *mut UsmPlan) {
        // SAFETY: null or a plan of `usm_plan_graph` that is given back once, by contract.
        unsafe { memory::free(plan) };
    }

    /// What was wrong.
    fn usm_plan_error(text: *mut c_char, capacity: usize) -> usize {
        // SAFETY: null or room for `capacity` bytes, by contract.
        unsafe { error::text(text.cast(), capacity) }
    }
}

fn null(name: &str) -> Error {
    Error::bad("null").in_field(name)
}

/// A checked plan within the capacity.
fn planned(input: Input, wanted: &Wanted, file: &Path) -> Result<UsmPlan> {
    let clock = wanted.plan.clock(wanted.start);
    let stop = || clock.must_stop();
    let options = wanted.plan.options(&clock, &stop);
    let outcome = make(input, &options, &Limits::new(None, None), wanted.reorder, file)?;
    outcome.check()?;
    let Outcome { plan, .. } = outcome;
    if let Some(capacity) = plan.capacity.filter(|_| !plan.feasible()) {
        return Err(Error::unable(format!(
            "no plan within {capacity} bytes was found: the best has {}, and none has less than {}",
            plan.peak, plan.lower_bound
        )));
    }
    Ok(UsmPlan { offsets: plan.rows.iter().map(|row| row.offset).collect(), report: Report::of(&plan) })
}
