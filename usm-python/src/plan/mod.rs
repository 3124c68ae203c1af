//! `usm.Plan`: what the planner of the command answers to Python.

pub(crate) mod arena;
pub(crate) mod every;
pub(crate) mod graph_text;
pub(crate) mod input;
pub(crate) mod pictures;
pub(crate) mod progress;
pub(crate) mod recompute;
pub(crate) mod request;
pub(crate) mod watch;

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView};
use usm_plan::graph_json::RangePlan;
use usm_plan::ranged::NamedDimension;
use usm_plan::usm_pool::Row;
use usm_plan::{Error, Field, Outcome, Report};

use crate::storage::reserve;
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

/// A read-only view of the bytes of numbers.
fn numbers_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyMemoryView>> {
    PyMemoryView::from(reserve::bytes(py, bytes)?.as_any())
}

/// An error of the caller's input.
pub(crate) fn refused(error: Error) -> PyErr {
    Class::Request.error(error.spelled(Field::keyword).to_string())
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
