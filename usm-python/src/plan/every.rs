//! `Plan.at` and `Plan.at_every`: plans for other values of the dimensions, without a search.

use std::path::Path;
use std::sync::Arc;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_plan::escape::EscapedText;
use usm_plan::graph_json::RangePlan;
use usm_plan::usm_pool::Options;

use crate::plan::{PyPlan, numbers_of, refused};
use crate::storage::reserve;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// Plans between two looks for Ctrl-C.
const BETWEEN: usize = 256;

#[pymethods]
impl PyPlan {
    /// The plan for these values of the dimensions, without a search. Raises `usm.RequestError` for
    /// a plan of one value, and for a value outside of its range.
    #[pyo3(signature = (**dims))]
    fn at(&self, py: Python<'_>, dims: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let every = self.for_every_value()?;
        let arguments = said(dims)?;
        let outcome = py.detach(|| {
            every.outcome(&every.values(&arguments)?, &Options::default(), Path::new(self.title()))
        });
        let outcome = outcome.map_err(refused)?;
        Ok(Self { outcome, every: Some(Arc::clone(every)), title: self.title().to_owned() })
    }

    /// The offsets for every value of one dimension up to the given one, and the peaks: two
    /// read-only buffers of 64-bit numbers, in bytes. The least value comes first, and the offsets
    /// of each value are a row, in the order of `ids`. The other dimensions have the given values.
    /// Raises `usm.RequestError` as `at` does, and for a dimension that the plan does not have.
    ///
    /// >>> graph = {"dims": [{"name": "n", "low": 1, "high": 512}],
    /// ...          "tensors": [{"id": 0, "size": "64*n"}, {"id": 1, "size": 128}],
    /// ...          "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]}], "outputs": [1]}
    /// >>> offsets, peaks = usm.plan(graph, dims={"n": "1..512"}).at_every("n", n=3)
    /// >>> offsets.tolist(), peaks.tolist()
    /// ([[128, 0], [128, 0], [128, 0]], [192, 256, 320])
    #[pyo3(signature = (dimension, /, **dims))]
    fn at_every<'py>(
        &self,
        py: Python<'py>,
        dimension: &Bound<'py, PyAny>,
        dims: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let name = argument::text("dimension", dimension, "the name of a dimension")?;
        let every = self.for_every_value()?;
        let number = every.dims().iter().position(|dim| dim.name == name || dim.of.as_deref() == Some(name));
        let Some(number) = number else {
            let names: Vec<&str> = every.dims().iter().map(|dim| dim.name.as_str()).collect();
            let reason = format!("dimension: {} is none of {}", EscapedText(name), names.join(", "));
            return Err(Class::Request.error(reason));
        };
        let mut values = every.values(&said(dims)?).map_err(refused)?;
        let steps = every.steps_up_to(&values, number).map_err(refused)?;
        let (count, of) = (every.ids().len(), every.dims()[number].values);
        let (mut rows, mut peaks) = (room(count.checked_mul(steps))?, room(Some(steps))?);
        let mut offsets = reserve::reserved(count).or_raise()?;
        offsets.resize(count, 0);
        for first in (0..steps).step_by(BETWEEN) {
            py.check_signals()?;
            let last = steps.min(first + BETWEEN);
            let outcome = py.detach(|| {
                (first..last).try_for_each(|step| {
                    values[number] = of.low + step as u64 * of.step;
                    let at = every.at(&values, &mut offsets)?;
                    peaks.extend(at.peak.to_ne_bytes());
                    rows.extend(offsets.iter().flat_map(|offset| offset.to_ne_bytes()));
                    Ok(())
                })
            });
            outcome.map_err(refused)?;
        }
        let peaks = numbers_of(py, &peaks)?.call_method1("cast", ("Q",))?;
        let rows = numbers_of(py, &rows)?;
        let rows = match count {
            // A view has no rows without numbers.
            0 => rows.call_method1("cast", ("Q",))?,
            _ => rows.call_method1("cast", ("Q", (steps, count)))?,
        };
        Ok((rows, peaks))
    }
}

impl PyPlan {
    fn for_every_value(&self) -> PyResult<&Arc<RangePlan>> {
        let one_value =
            || Class::Request.error("the plan is for one value; usm.plan(.., dims=) takes ranges");
        self.every.as_ref().ok_or_else(one_value)
    }
}

/// The values of dimensions by name.
fn said(dims: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, u64)>> {
    let number = |(name, value): (String, Bound<'_, PyAny>)| {
        let misfit = |error| argument::number_error(&name, &value, error, "a number that is not negative");
        let number = value.extract().map_err(misfit)?;
        Ok((name, number))
    };
    let dims = argument::by_name("dims", dims.map(|dims| dims.as_any()), "a dict")?;
    dims.into_iter().map(number).collect()
}

/// Room for so many numbers.
fn room(numbers: Option<usize>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let reserved = numbers.and_then(|numbers| numbers.checked_mul(size_of::<u64>()));
    match reserved.map(|size| bytes.try_reserve_exact(size)) {
        Some(Ok(())) => Ok(bytes),
        _ => Err(PyMemoryError::new_err("no memory for the offsets of so many values")),
    }
}
