//! `Plan.recompute_curve`: peak against the time of operators that run again and of copies.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_plan::clock::Clock;
use usm_plan::request::{PointFacts, Recompute, text};
use usm_plan::usm_pool::planner::recompute::Curve;
use usm_plan::usm_pool::{Options, Strategy, svg};
use usm_plan::{Error, Watch as _};

use crate::plan::request::time_limit;
use crate::plan::watch::Watch;
use crate::plan::{PyPlan, refused};
use crate::storage::snapshot::named;
use crate::text::argument::{self, numbers};
use crate::text::error::Class;
use crate::text::html::bundle;

numbers! {
    budget = "budget": Option<u64>, "a number of bytes, not negative,";
    bytes_per_cost = "bytes_per_cost": Option<f64>, "a number of bytes in one unit of cost";
    point = "point": usize, "the number of a point";
}

/// Peak against added time: points that each are a graph of their own.
#[pyclass(frozen, module = "usm", name = "RecomputeCurve")]
#[derive(Debug)]
pub(crate) struct PyRecomputeCurve {
    curve: Curve,
    title: String,
}

#[pymethods]
impl PyPlan {
    /// Searches for graphs with a lower peak that run operators again, and with ``bytes_per_cost``
    /// copy tensors to another memory and back. That is the number of bytes that a copy moves in
    /// one unit of the operators' cost. The order of the operators stays. With ``budget``, in
    /// bytes, the curve has the one graph of the least time that fits. ``time_limit`` is in
    /// seconds; by default the search ends after 10. Raises ``usm.RequestError`` for a table, an
    /// out-of-order queue, loops, an operator without a cost beside others that have one, and a
    /// budget that no graph was found for.
    ///
    /// >>> sizes = enumerate([512, 64, 512, 64, 64])
    /// >>> graph = {"tensors": [{"id": id, "size": size} for id, size in sizes], "outputs": [4],
    /// ...          "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]},
    /// ...                  {"inputs": [1], "outputs": [2]}, {"inputs": [2], "outputs": [3]},
    /// ...                  {"inputs": [0, 3], "outputs": [4]}]}
    /// >>> curve = usm.plan(graph).recompute_curve()
    /// >>> [(point["peak"], point["time"]) for point in curve.points]
    /// [(1088, 0), (640, 1)]
    #[pyo3(signature = (*, budget=None, bytes_per_cost=None, time_limit=None))]
    fn recompute_curve(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = budget)] budget: Option<u64>,
        #[pyo3(from_py_with = bytes_per_cost)] bytes_per_cost: Option<f64>,
        #[pyo3(from_py_with = time_limit)] time_limit: Option<f64>,
    ) -> PyResult<PyRecomputeCurve> {
        let start = Instant::now();
        let limit = time_limit.map(Duration::try_from_secs_f64).transpose();
        let limit = limit.map_err(|error| Class::Request.error(format!("time_limit: {error}")))?;
        let request = Recompute { budget, bytes_per_cost };
        let job = request
            .check(self.outcome())
            .map_err(|refusal| refused(Error::from(refusal).in_field("input")))?;
        let watch = Watch::new(py, start);
        let curve = py.detach(|| {
            let is_interrupted = || watch.is_interrupted();
            let clock = Clock::new(start, limit, Strategy::Auto).or_when(&is_interrupted);
            let stop = || clock.must_stop();
            let mut options = Options::default();
            options.stop = Some(&stop);
            job.run(&options, &stop)
        });
        watch.end(py)?;
        Ok(PyRecomputeCurve { curve: curve.map_err(refused)?, title: self.title().to_owned() })
    }
}

bundle!(PyRecomputeCurve, "image/svg+xml", |curve, _| Ok(curve._repr_svg_()));

#[pymethods]
impl PyRecomputeCurve {
    /// The points, each with a lower peak and more time than the one before: a dict with ``peak``
    /// in bytes, ``time`` in units of cost, and the names of the ``repeated`` operators and of the
    /// ``copies`` in its graph.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let dict = |point| {
            let PointFacts { peak, time, repeated: operators, copies } = PointFacts::from(point);
            let dict = PyDict::new(py);
            dict.set_item("peak", peak)?;
            dict.set_item("time", time)?;
            dict.set_item("repeated", operators)?;
            dict.set_item("copies", copies)?;
            Ok(dict)
        };
        self.curve.points.iter().map(dict).collect()
    }

    /// No change of the graph in its order has a peak below this many bytes.
    #[getter]
    fn bound(&self) -> u64 {
        self.curve.bound
    }

    /// The graph of a point, as ``usm.plan`` takes it. ``IndexError`` if there is no such point.
    fn graph<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = point)] point: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(point_found) = self.curve.points.get(point) else {
            let reason = format!("point: {point} of {} points", self.curve.points.len());
            return Err(pyo3::exceptions::PyIndexError::new_err(reason));
        };
        let text = text(point_found).map_err(refused)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Writes the picture of the curve. ``OSError`` if the file cannot be written.
    fn to_svg(&self, py: Python<'_>, #[pyo3(from_py_with = argument::path)] path: PathBuf) -> PyResult<()> {
        let picture = self._repr_svg_();
        py.detach(|| std::fs::write(&path, picture)).map_err(|error| named(&error, path))
    }

    /// The picture in notebooks: added time across, peak up.
    fn _repr_svg_(&self) -> String {
        svg::recompute_curve(&self.curve, &self.title)
    }

    fn __len__(&self) -> usize {
        self.curve.points.len()
    }

    fn __repr__(&self) -> String {
        let least = self.curve.points.last().map_or(0, |point| point.plan.peak);
        let most = self.curve.points.first().map_or(0, |point| point.plan.peak);
        let count = self.curve.points.len();
        format!("<usm.RecomputeCurve: {count} points, peaks from {most} down to {least} bytes>")
    }
}
