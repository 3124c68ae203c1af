//! `usm.plan` and `usm.Plan`: the planner of the command, for Python's inputs.

pub(crate) mod arena;
pub(crate) mod input;
pub(crate) mod pictures;
pub(crate) mod progress;
pub(crate) mod recompute;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyRange, PyRangeMethods as _, PyString};
use usm_plan::clock::Clock;
use usm_plan::graph_json::RangePlan;
use usm_plan::outcome;
use usm_plan::ranged::{NamedDimension, Wanted};
use usm_plan::shown::Shown;
use usm_plan::units;
use usm_plan::usm_pool::placement::Limits;
use usm_plan::usm_pool::range::Dimension;
use usm_plan::usm_pool::{Options, Queue, Row, Strategy};
use usm_plan::{Error, Hints, Outcome, Report};

use crate::device::queue::PyQueue;
use crate::plan::input::Given;
use crate::plan::progress::Line;
use crate::text::argument;
use crate::text::error::Class;

/// The interval at which a search checks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

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
/// a path, or the bytes of an ONNX model. Sizes, offsets and `capacity` are in bytes, `time_limit`
/// in seconds, and `threads` is the number of threads that search. With `reorder`, the operators of
/// a graph run in the order with the lowest peak that is found; those of an ONNX model do unless
/// `keep_order`. Raises `usm.RequestError` for an
/// input or option that is not valid, and `TypeError` for an input of another form.
///
/// >>> plan = usm.plan([(0, 2, 1024), (1, 3, 2048), (2, 4, 1024)])
/// >>> plan.offsets.tolist(), plan.peak, plan.optimal
/// ([2048, 0, 2048], 3072, True)
#[pyfunction]
#[pyo3(signature = (input, *, queue=None, strategy="auto", capacity=None, time_limit=None, alignment=None, dims=None, values=None, keep_order=false, views=true, threads=1, reorder=false))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
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
) -> PyResult<PyPlan> {
    let start = Instant::now();
    let queue = queue_of(queue)?;
    let strategy = Strategy::from_name(strategy).ok_or_else(|| {
        let names: Vec<&str> = Strategy::ALL.into_iter().map(Strategy::name).collect();
        Class::Request.error(format!("strategy: {strategy:?} is none of {}", names.join(", ")))
    })?;
    if let Some(Err(reason)) = alignment.map(units::alignment) {
        return Err(Class::Request.error(format!("alignment: {reason}")));
    }
    let said = time_limit.map(Duration::try_from_secs_f64).transpose();
    let said = said.map_err(|error| Class::Request.error(format!("time_limit: {error}")))?;
    let most = outcome::MOST_THREADS;
    if !(1..=most).contains(&threads) {
        return Err(Class::Request.error(format!("threads: {threads} is not from 1 to {most}")));
    }
    let given = Given::of(input, alignment)?;
    if queue == Queue::OutOfOrder && matches!(given, Given::Table(_)) {
        let reason = "queue: a table has lifetimes, which only an in-order queue keeps; give a graph";
        return Err(Class::Request.error(reason));
    }
    let (dims, ranges) = wanted_dims(dims)?;
    if matches!(given, Given::Table(_)) && !(dims.is_empty() && ranges.is_empty()) {
        return Err(Class::Request.error("dims: a table has no dimensions"));
    }
    if capacity.is_some() && !ranges.is_empty() {
        return Err(Class::Request.error("capacity: it is for one value of each dimension"));
    }
    let mut inputs = Vec::new();
    for (name, value) in argument::by_name("values", values, "a dict of numbers by the name of an input")? {
        let text = value.str()?;
        let text = argument::text(&format!("values: {}", Shown(&name)), &text, "a number")?.to_owned();
        inputs.push((name, text));
    }
    if reorder {
        let refuse = |reason: &str| Err(Class::Request.error(format!("reorder: {reason}")));
        if matches!(given, Given::Table(_)) {
            return refuse("a table has no operators; give a graph");
        }
        if queue == Queue::OutOfOrder {
            return refuse("an out-of-order queue has no order to change");
        }
        if keep_order {
            return refuse("keep_order says the contrary");
        }
        if !ranges.is_empty() {
            return refuse("the order of a plan for every value is that of the graph");
        }
    }
    if !inputs.is_empty() && matches!(given, Given::Table(_) | Given::Graph(_)) {
        return Err(Class::Request.error("values: only an ONNX model has inputs of a value"));
    }
    let wanted = outcome::Wanted { queue, strategy, capacity, time_limit: said, threads };
    let title = given.title();
    let watch = Watch {
        clock: wanted.clock(start),
        thread: thread::current().id(),
        asked: Mutex::new((Instant::now(), None)),
    };
    let line = Line::new(py);
    let (outcome, remarks) = py.detach(|| {
        let remarks = Mutex::new(Vec::new());
        let remark = |remark: &str| lock(&remarks).push(remark.to_owned());
        let hints = Hints {
            alignment,
            dims,
            values: inputs,
            keep_order,
            order_sets: Some(usm_plan::clock::order_sets(said)),
            no_views: !views,
            out_of_order: queue == Queue::OutOfOrder,
            remark: Some(&remark),
        };
        let stop = || {
            line.tick();
            watch.must_stop()
        };
        let better = |found| line.note(found);
        let mut options = wanted.options(&watch.clock, &stop);
        if line.is_shown() {
            options.progress = Some(&better);
        }
        let file = match &given {
            Given::File(path) => path.clone(),
            _ => PathBuf::from("input"),
        };
        if let Some(every) = given.every_value(&hints, &ranges, &options, &file).transpose() {
            let made = every.and_then(|every| {
                let greatest: Vec<u64> = every.dims().iter().map(|dim| dim.values.greatest()).collect();
                Ok((every.outcome(&greatest, &options, &file)?, Some(Arc::new(every))))
            });
            return (made, remarks.into_inner().unwrap_or_default());
        }
        let made = given.read(&hints).and_then(|input| {
            watch.clock.reserve(&input, &|_, _| ());
            let mut outcome = usm_plan::make(input, &options, &Limits::new(None, None), reorder, &file)?;
            outcome.stopped = watch.clock.stopped();
            outcome.check()?;
            Ok((outcome, None))
        });
        (made, remarks.into_inner().unwrap_or_default())
    });
    line.end(py);
    if let Some(raised) = lock(&watch.asked).1.take() {
        return Err(raised);
    }
    for remark in remarks {
        // Without control characters, of which zero is one.
        let text = std::ffi::CString::new(Shown(remark).to_string()).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    let (outcome, every) = outcome.map_err(refused)?;
    Ok(PyPlan { outcome, every, title })
}

/// The dimensions of one value, and those of many. A value is a number, a `range`, or the command's
/// text.
#[allow(clippy::type_complexity, reason = "two lists")]
fn wanted_dims(dims: Option<&Bound<'_, PyAny>>) -> PyResult<(Vec<(String, u64)>, Vec<(String, Dimension)>)> {
    let (mut ones, mut ranges) = (Vec::new(), Vec::new());
    let fits = "a number that is not negative, a range or a text such as \"64..2048:32\"";
    let every = format!("a dict with {fits} for each name");
    for (name, value) in argument::by_name("dims", dims, &every)? {
        let path = format!("dims: {}", Shown(&name));
        let refuse = |reason: String| Class::Request.error(format!("{path}: {reason}"));
        let misfit = |error| argument::number_error(&path, &value, error, fits);
        let wanted = if value.is_instance_of::<PyString>() {
            argument::text(&path, &value, fits)?.parse().map_err(refuse)?
        } else if let Ok(range) = value.cast::<PyRange>() {
            let ends = (range.start().map_err(misfit)?, range.stop().map_err(misfit)?);
            match (ends.0, ends.1, range.step().map_err(misfit)?) {
                // The end of a Python range is not one of its values.
                (low @ 0.., high, step @ 1..) if low < high => {
                    Wanted::Every(Dimension { low: low as u64, high: high as u64 - 1, step: step as u64 })
                }
                _ => return Err(refuse(format!("{value} has no value, or goes down"))),
            }
        } else {
            Wanted::One(value.extract().map_err(misfit)?)
        };
        match wanted {
            Wanted::One(value) => ones.push((name, value)),
            Wanted::Every(values) => ranges.push((name, values)),
        }
    }
    Ok((ones, ranges))
}

/// An error of the caller's input.
pub(crate) fn refused(error: Error) -> PyErr {
    Class::Request.error(error.with_field_named("--dim", "dims").to_string())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Ends a search at its time limit, or when Python has a signal.
pub(crate) struct Watch {
    pub(crate) clock: Clock<'static>,
    /// The caller's thread. Only the main thread can check for signals.
    pub(crate) thread: ThreadId,
    /// The time of the last check, and the exception that it raised.
    pub(crate) asked: Mutex<(Instant, Option<PyErr>)>,
}

impl Watch {
    pub(crate) fn must_stop(&self) -> bool {
        if self.clock.must_stop() {
            return true;
        }
        let mut asked = lock(&self.asked);
        if thread::current().id() == self.thread && asked.1.is_none() && asked.0.elapsed() >= SIGNALS {
            asked.1 = Python::attach(|py| py.check_signals()).err();
            asked.0 = Instant::now();
        }
        asked.1.is_some()
    }
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

    /// The plan for these values of the dimensions, without a search. Raises `usm.RequestError` for
    /// a plan of one value, and for a value outside of its range.
    #[pyo3(signature = (**dims))]
    fn at(&self, py: Python<'_>, dims: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let Some(every) = &self.every else {
            return Err(Class::Request.error("the plan is for one value; usm.plan(.., dims=) takes ranges"));
        };
        let number = |(name, value): (String, Bound<'_, PyAny>)| {
            let misfit =
                |error| argument::number_error(&name, &value, error, "a number that is not negative");
            let number = value.extract().map_err(misfit)?;
            Ok((name, number))
        };
        let dims = argument::by_name("dims", dims.map(|dims| dims.as_any()), "a dict")?;
        let said = dims.into_iter().map(number).collect::<PyResult<Vec<(String, u64)>>>()?;
        let outcome =
            py.detach(|| every.outcome(&every.values(&said)?, &Options::default(), Path::new(&self.title)));
        let outcome = outcome.map_err(refused)?;
        Ok(Self { outcome, every: Some(Arc::clone(every)), title: self.title.clone() })
    }

    fn __len__(&self) -> usize {
        self.outcome.plan.rows.len()
    }

    fn __repr__(&self) -> String {
        match self.misfit() {
            None => format!("<usm.Plan: {}>", self.outcome.plan),
            Some(misfit) => format!("<usm.Plan: {} buffers, {misfit}>", self.outcome.plan.buffers()),
        }
    }
}

impl PyPlan {
    fn numbers<'py>(&self, py: Python<'py>, of: impl Fn(&Row) -> u64) -> PyResult<Bound<'py, PyAny>> {
        let bytes: Vec<u8> = self.outcome.plan.rows.iter().flat_map(|row| of(row).to_ne_bytes()).collect();
        PyMemoryView::from(PyBytes::new(py, &bytes).as_any())?.call_method1("cast", ("Q",))
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
