//! `usm.plan`: its keywords, and the request that they make.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyRange, PyRangeMethods as _, PyString};
use usm_plan::escape::EscapedText;
use usm_plan::graph_json::RangePlan;
use usm_plan::ranged::Values;
use usm_plan::request::EveryValue;
use usm_plan::usm_pool::range::Dimension;
use usm_plan::usm_pool::{Options, Queue, Strategy};
use usm_plan::{Answer, Error, Outcome, Request};

use crate::device::handles::PyQueue;
use crate::plan::input::PlanInput;
use crate::plan::watch::Watch;
use crate::plan::{PyPlan, refused};
use crate::text::argument::{self, numbers};
use crate::text::error::Class;

numbers! {
    capacity = "capacity": Option<u64>, "a number of bytes, not negative,";
    time_limit = "time_limit": Option<f64>, "a number of seconds";
    alignment = "alignment": Option<u64>, "a number of bytes, a power of two,";
    device_memory = "device_memory": Option<u64>, "a number of bytes, not negative,";
    max_alloc = "max_alloc": Option<u64>, "a number of bytes, not negative,";
    ordering_edges = "ordering_edges": Option<usize>, "a number that is not negative or None";
}

/// Plans where each tensor or buffer lies in one arena, and checks the plan.
///
/// `input` is a table of rows `(lower, upper, size[, alignment])`, a dict of columns or of a graph,
/// a path, or the bytes of an ONNX model. Sizes, offsets, `capacity`, `device_memory` and
/// `max_alloc` are in bytes, `time_limit` in seconds, and `threads` is the number of threads that
/// search. With `reorder`, the operators of a graph run in the order with the lowest peak that is
/// found; those of an ONNX model do unless `keep_order`. Tensors beyond `device_memory`, or in an
/// arena beyond `max_alloc`, go to host memory: `Plan.spilled`. On an out-of-order queue up to
/// `ordering_edges` edges are added, which `Plan.ordering_edges` lists. `curve`, `compare` and
/// `proof` add their parts to `Plan.to_dict()`. Raises `usm.RequestError` for an input or option
/// that is not valid, and `TypeError` for an input of another form.
///
/// >>> plan = usm.plan([(0, 2, 1024), (1, 3, 2048), (2, 4, 1024)])
/// >>> plan.offsets.tolist(), plan.peak, plan.optimal
/// ([2048, 0, 2048], 3072, True)
#[pyfunction]
#[pyo3(signature = (input, *, queue=None, strategy="auto", capacity=None, time_limit=None, alignment=None, dims=None, values=None, keep_order=false, views=true, threads=1, reorder=false, device_memory=None, max_alloc=None, ordering_edges=None, keep_critical_path=false, curve=false, compare=false, proof=false))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
#[allow(clippy::fn_params_excessive_bools, reason = "keywords of Python")]
pub(crate) fn plan(
    py: Python<'_>,
    input: &Bound<'_, PyAny>,
    queue: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::strategy)] strategy: &str,
    #[pyo3(from_py_with = capacity)] capacity: Option<u64>,
    #[pyo3(from_py_with = time_limit)] time_limit: Option<f64>,
    #[pyo3(from_py_with = alignment)] alignment: Option<u64>,
    dims: Option<&Bound<'_, PyAny>>,
    values: Option<&Bound<'_, PyAny>>,
    keep_order: bool,
    views: bool,
    #[pyo3(from_py_with = argument::threads)] threads: usize,
    reorder: bool,
    #[pyo3(from_py_with = device_memory)] device_memory: Option<u64>,
    #[pyo3(from_py_with = max_alloc)] max_alloc: Option<u64>,
    #[pyo3(from_py_with = ordering_edges)] ordering_edges: Option<usize>,
    keep_critical_path: bool,
    curve: bool,
    compare: bool,
    proof: bool,
) -> PyResult<PyPlan> {
    let start = Instant::now();
    let strategy = Strategy::from_name(strategy).ok_or_else(|| {
        let names: Vec<&str> = Strategy::ALL.into_iter().map(Strategy::name).collect();
        Class::Request.error(format!("strategy: {strategy:?} is none of {}", names.join(", ")))
    })?;
    let time_limit = time_limit.map(Duration::try_from_secs_f64).transpose();
    let time_limit = time_limit.map_err(|error| Class::Request.error(format!("time_limit: {error}")))?;
    let request = Request {
        queue: queue_of(queue)?,
        strategy,
        capacity,
        time_limit,
        threads,
        alignment,
        dims: dimensions(dims)?,
        every_value: EveryValue::OfPlans,
        values: numbers(values)?,
        reorder,
        keep_order,
        views,
        device_memory,
        max_alloc,
        ordering_edges,
        keep_critical_path,
        curve,
        compare,
        proof,
        recompute: None,
    };
    let plan_input = PlanInput::of(input, alignment)?;
    let title = plan_input.title();
    let job = request
        .check(plan_input.into_source())
        .map_err(|refusal| refused(Error::from(refusal).in_field("input")))?;
    let watch = Watch::new(py, start);
    let answer = py.detach(|| job.run(&watch).and_then(|answer| with_greatest(answer, &title)));
    watch.end(py)?;
    let (outcome, every) = answer.map_err(refused)?;
    Ok(PyPlan { outcome, every, title })
}

/// The plan of an answer; that for the greatest values, and all, of a plan for every value.
fn with_greatest(answer: Answer, title: &str) -> Result<(Outcome, Option<Arc<RangePlan>>), Error> {
    match answer {
        Answer::One(outcome) | Answer::Recompute(outcome, ..) => Ok((*outcome, None)),
        Answer::Every(every) => {
            let greatest: Vec<u64> = every.dims().iter().map(|dim| dim.values.greatest()).collect();
            let outcome = every.outcome(&greatest, &Options::default(), Path::new(title))?;
            Ok((outcome, Some(Arc::from(every))))
        }
    }
}

/// Values of a model's inputs by name, as text.
fn numbers(values: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, String)>> {
    let values = argument::by_name("values", values, "a dict of numbers by the name of an input")?;
    let text = |(name, value): (String, Bound<'_, PyAny>)| {
        let place = format!("values: {}", EscapedText(&name));
        let text = value.str()?;
        let text = argument::text(&place, &text, "a number")?.to_owned();
        Ok((name, text))
    };
    values.into_iter().map(text).collect()
}

/// The values of dimensions by name. A value is a number, a `range`, or the command's text.
fn dimensions(dims: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, Values)>> {
    let mut dimensions = Vec::new();
    let fits = "a number that is not negative, a range or a text such as \"64..2048:32\"";
    let every = format!("a dict with {fits} for each name");
    for (name, value) in argument::by_name("dims", dims, &every)? {
        let path = format!("dims: {}", EscapedText(&name));
        let refuse = |reason: String| Class::Request.error(format!("{path}: {reason}"));
        let misfit = |error| argument::number_error(&path, &value, error, fits);
        let values = if value.is_instance_of::<PyString>() {
            argument::text(&path, &value, fits)?.parse().map_err(refuse)?
        } else if let Ok(range) = value.cast::<PyRange>() {
            let ends = (range.start().map_err(misfit)?, range.stop().map_err(misfit)?);
            match (ends.0, ends.1, range.step().map_err(misfit)?) {
                // The end of a Python range is not one of its values.
                (low @ 0.., high, step @ 1..) if low < high => {
                    Values::Every(Dimension { low: low as u64, high: high as u64 - 1, step: step as u64 })
                }
                _ => return Err(refuse(format!("{value} has no value, or goes down"))),
            }
        } else {
            Values::One(value.extract().map_err(misfit)?)
        };
        dimensions.push((name, values));
    }
    Ok(dimensions)
}

fn queue_of(queue: Option<&Bound<'_, PyAny>>) -> PyResult<Queue> {
    let Some(queue) = queue else { return Ok(Queue::InOrder) };
    let in_order = match queue.cast::<PyQueue>() {
        Ok(queue) => queue.get().is_in_order(),
        Err(_) => match argument::text("queue", queue, "\"in-order\", \"out-of-order\" or a usm.Queue")? {
            "in-order" => true,
            "out-of-order" => false,
            other => {
                let reason = format!("queue: {other:?} is neither \"in-order\" nor \"out-of-order\"");
                return Err(Class::Request.error(reason));
            }
        },
    };
    Ok(if in_order { Queue::InOrder } else { Queue::OutOfOrder })
}
