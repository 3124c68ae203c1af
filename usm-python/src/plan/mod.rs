//! `usm.plan` and `usm.Plan`: the planner of the command, for Python's inputs.

pub(crate) mod arena;
pub(crate) mod every;
pub(crate) mod graph_text;
pub(crate) mod input;
pub(crate) mod pictures;
pub(crate) mod progress;
pub(crate) mod recompute;
pub(crate) mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyRange, PyRangeMethods as _, PyString};
use usm_plan::escape::EscapedText;
use usm_plan::graph_json::RangePlan;
use usm_plan::ranged::{NamedDimension, Values};
use usm_plan::request::EveryValue;
use usm_plan::usm_pool::range::Dimension;
use usm_plan::usm_pool::{Options, Queue, Row, Strategy};
use usm_plan::{Answer, Error, Field, Outcome, Report, Request};

use crate::device::handles::PyQueue;
use crate::plan::input::PlanInput;
use crate::plan::watch::Watch;
use crate::storage::reserve;
use crate::text::argument;
use crate::text::error::Class;

/// The offset of every tensor in an arena, in bytes, with a proof of its quality.
#[pyclass(frozen, weakref, module = "usm", name = "Plan")]
#[derive(Debug)]
pub(crate) struct PyPlan {
    outcome: Outcome,
    /// The plan for every value of the dimensions; `outcome` is for one of them.
    every: Option<Arc<RangePlan>>,
    /// The title of pictures.
    title: String,
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
    #[pyo3(from_py_with = argument::capacity)] capacity: Option<u64>,
    #[pyo3(from_py_with = argument::time_limit)] time_limit: Option<f64>,
    #[pyo3(from_py_with = argument::plan_alignment)] alignment: Option<u64>,
    dims: Option<&Bound<'_, PyAny>>,
    values: Option<&Bound<'_, PyAny>>,
    keep_order: bool,
    views: bool,
    #[pyo3(from_py_with = argument::threads)] threads: usize,
    reorder: bool,
    #[pyo3(from_py_with = argument::device_memory)] device_memory: Option<u64>,
    #[pyo3(from_py_with = argument::max_alloc)] max_alloc: Option<u64>,
    #[pyo3(from_py_with = argument::ordering_edges)] ordering_edges: Option<usize>,
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

/// A read-only view of the bytes of numbers.
fn numbers_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyMemoryView>> {
    PyMemoryView::from(reserve::bytes(py, bytes)?.as_any())
}

/// An error of the caller's input.
pub(crate) fn refused(error: Error) -> PyErr {
    Class::Request.error(error.spelled(Field::keyword).to_string())
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

#[pymethods]
impl PyPlan {
    /// The offset of each tensor from the start of the arena, in bytes: a read-only buffer of
    /// 64-bit numbers. None if the plan is not feasible.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.feasible().then(|| self.numbers(py, |row| row.offset)).transpose()
    }

    /// The size of each tensor in bytes, in the order of `offsets`: a read-only buffer of 64-bit
    /// numbers.
    #[getter]
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numbers(py, |row| row.size)
    }

    /// The ids of the tensors, in the order of `offsets`.
    #[getter]
    fn ids(&self) -> Vec<u64> {
        self.outcome.plan.rows.iter().map(|row| row.id).collect()
    }

    /// The names of the tensors, in the order of `offsets`; None for a tensor without a name.
    #[getter]
    pub(crate) fn names(&self) -> Vec<Option<&str>> {
        let graph = self.outcome.graph.as_ref();
        let name = |id| graph?.tensors()[graph?.tensor_index(id)?].name.as_deref();
        self.outcome.plan.rows.iter().map(|row| name(row.id)).collect()
    }

    /// The size of the arena, in bytes. None if the plan is not feasible.
    #[getter]
    fn peak(&self) -> Option<u64> {
        self.feasible().then_some(self.outcome.plan.peak)
    }

    /// A size that no plan can be below, in bytes.
    #[getter]
    fn lower_bound(&self) -> u64 {
        self.outcome.plan.lower_bound
    }

    /// Whether `peak` equals `lower_bound`. False if the plan is not feasible.
    #[getter]
    fn optimal(&self) -> bool {
        self.feasible() && self.outcome.plan.optimal()
    }

    /// Whether no other order of the operators has a lower peak. False if no order was searched
    /// for.
    #[getter]
    fn order_optimal(&self) -> bool {
        self.outcome.is_best_order()
    }

    /// "proven" for an order of the least peak, "heuristic" if that is not shown: there may be a
    /// better one, or the bound is too low. None if no order was searched for.
    #[getter]
    fn order_optimality(&self) -> Option<&'static str> {
        self.outcome.order_optimality()
    }

    /// A size that no plan of any order of the operators can be below, in bytes. None if no order
    /// was searched for.
    #[getter]
    fn order_bound(&self) -> Option<u64> {
        self.outcome.every_order.as_ref().map(|bound| bound.bytes)
    }

    /// Whether a plan that fits the requested capacity was found. If not, nothing is placed:
    /// `offsets` and `peak` are None. No such plan exists if `lower_bound` exceeds the capacity.
    #[getter]
    fn feasible(&self) -> bool {
        self.outcome.plan.feasible()
    }

    /// The ids of the tensors that lie in host memory, beyond `device_memory` or `max_alloc`.
    #[getter]
    fn spilled(&self) -> Vec<u64> {
        self.outcome.plan.spilled.clone()
    }

    /// The name of the memory that each tensor lies in, in the order of `offsets`: one of the
    /// graph's `"memories"`, or `"device"` and `"host"`.
    #[getter]
    fn memories(&self) -> Vec<&str> {
        let Outcome { graph, plan, .. } = &self.outcome;
        plan.rows.iter().map(|row| row.memory.name_in(graph.as_ref())).collect()
    }

    /// The operators (earlier, later) by name that the executor must order by events, in addition
    /// to the dependencies of the data.
    #[getter]
    fn ordering_edges(&self) -> Vec<(&str, &str)> {
        let Outcome { graph, plan, .. } = &self.outcome;
        let name = |op: usize| graph.as_ref().map_or("", |graph| graph.ops()[op].name.as_str());
        plan.ordering_edges.iter().map(|&(earlier, second)| (name(earlier), name(second))).collect()
    }

    /// The proof of a lower bound as text, which `usm plan --check` replays; None without
    /// `usm.plan(.., proof=True)`.
    #[getter]
    fn proof(&self) -> Option<&str> {
        self.outcome.proof.as_ref().map(|(text, _)| text.as_str())
    }

    /// The operators by name, in the order in which they must run; None for a table.
    #[getter]
    fn order(&self) -> Option<Vec<&str>> {
        self.outcome.graph.as_ref().map(|graph| graph.ops().iter().map(|op| op.name.as_str()).collect())
    }

    /// The proof that no plan needs less than `lower_bound`.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item("certificate")
    }

    /// The document that `usm plan --json` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = Report::of(&self.outcome).json().map_err(refused)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Checks the plan again, by code that the planners do not share. Raises `usm.RequestError`,
    /// also for a plan that is not feasible.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let outcome = self.feasible_outcome()?;
        py.detach(|| outcome.check()).map_err(refused)
    }

    /// The dimensions of a plan for every value: a dict with `name`, `of`, `low`, `high` and `step`
    /// for each. Empty for a plan of one value.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let dims = self.every.iter().flat_map(|every| every.dims());
        let dict = |dim: &NamedDimension| {
            let dict = PyDict::new(py);
            dict.set_item("name", &dim.name)?;
            dict.set_item("of", dim.of.as_ref().unwrap_or(&dim.name))?;
            dict.set_item("low", dim.values.low)?;
            dict.set_item("high", dim.values.greatest())?;
            dict.set_item("step", dim.values.step)?;
            Ok(dict)
        };
        dims.map(dict).collect()
    }

    /// The text of the graph.json that `usm plan --range-plan` writes, which `usm.plan`, the
    /// command and C read again. None for a plan of one value.
    #[getter]
    fn range_plan(&self) -> PyResult<Option<String>> {
        self.every.as_ref().map(|every| every.text()).transpose().map_err(refused)
    }

    fn __len__(&self) -> usize {
        self.outcome.plan.rows.len()
    }

    fn __repr__(&self) -> String {
        match self.misfit() {
            None => format!("<usm.Plan: {}>", self.outcome),
            Some(misfit) => format!("<usm.Plan: {} buffers, {misfit}>", self.outcome.plan.buffers()),
        }
    }
}

impl PyPlan {
    fn numbers<'py>(&self, py: Python<'py>, of: impl Fn(&Row) -> u64) -> PyResult<Bound<'py, PyAny>> {
        let bytes: Vec<u8> = self.outcome.plan.rows.iter().flat_map(|row| of(row).to_ne_bytes()).collect();
        numbers_of(py, &bytes)?.call_method1("cast", ("Q",))
    }

    /// The plan, for a picture.
    ///
    /// # Errors
    /// A plan that does not fit the capacity places nothing.
    pub(crate) fn feasible_outcome(&self) -> PyResult<&Outcome> {
        match self.misfit() {
            None => Ok(&self.outcome),
            Some(misfit) => Err(Class::Request.error(format!("nothing was placed: {misfit}"))),
        }
    }

    /// How a plan does not fit the requested capacity; `None` if it does.
    fn misfit(&self) -> Option<String> {
        let plan = &self.outcome.plan;
        let capacity = plan.capacity.filter(|_| !plan.feasible())?;
        let (peak, bound) = (plan.peak, plan.lower_bound);
        Some(match bound > capacity {
            true => format!("no plan can fit in {capacity} bytes, because the lower bound is {bound}"),
            false => format!("no plan was found that fits in {capacity} bytes; the best has {peak}"),
        })
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }
}
