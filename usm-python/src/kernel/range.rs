//! The range of a launch: sizes of the range and of a group, from the brackets.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use crate::process::once::name;
use crate::text::error::Class;

/// Sizes of a launch, one for each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) global: Vec<u64>,
    /// Sizes of a group, if the caller gives them.
    pub(crate) local: Option<Vec<u64>>,
    /// Whether it is a `usm.Range` alone, which has no groups, as in SYCL.
    pub(crate) is_plain_range: bool,
}

impl Sizes {
    /// Reads `[global]` or `[global, local]` of numbers or tuples, a `usm.Range` or a
    /// `usm.NdRange`.
    pub(crate) fn of(index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = index.py();
        if let Some((global, local)) = nd_range(index)? {
            return Self::new(sizes(&global, "global")?, Some(sizes(&local, "local")?));
        }
        let is_pair = index.is_exact_instance_of::<PyTuple>() && index.len()? == 2;
        if !is_pair {
            let is_single = index.is_exact_instance_of::<PyTuple>() && index.len()? == 1;
            let global = if is_single { index.get_item(0)? } else { index.clone() };
            let is_plain_range = global.is_instance_of::<PyTuple>()
                && !global.is_exact_instance_of::<PyTuple>()
                && global.hasattr(name!(py, "_usm_range"))?;
            return Ok(Self { is_plain_range, ..Self::new(sizes(&global, "global")?, None)? });
        }
        let (global, local) = (index.get_item(0)?, index.get_item(1)?);
        // An attribute that is missing costs an exception.
        let is_usual = local.is_exact_instance_of::<PyInt>() || local.is_exact_instance_of::<PyTuple>();
        let is_default =
            local.is_none() || !is_usual && local.hasattr(name!(py, "_usm_default_local_size"))?;
        let empty = local.cast::<PyTuple>().is_ok_and(|sizes| sizes.is_empty());
        let local = if is_default || empty { None } else { Some(sizes(&local, "local")?) };
        let is_number = |size: &Bound<'_, PyAny>| size.is_instance_of::<PyInt>();
        let numbers = local.is_some() && is_number(&global) && is_number(&index.get_item(1)?);
        Self::new(sizes(&global, "global")?, local).map_err(|error| match numbers {
            // Other packages mean two dimensions.
            true => Class::Kernel.error(format!(
                "{}; `k[n, m]` is a range of n items in groups of m: write `k[(n, m), None]` or \
                 `k[usm.Range(n, m)]` for two dimensions",
                error.value(py)
            )),
            false => error,
        })
    }

    fn new(global: Vec<u64>, local: Option<Vec<u64>>) -> PyResult<Self> {
        let refuse = |message| Err(Class::Kernel.error(message));
        if !(1..=3).contains(&global.len()) {
            return refuse(format!("a range has 1, 2 or 3 dimensions, {} are given", global.len()));
        }
        if let Some(local) = &local {
            if local.len() != global.len() {
                return refuse(format!(
                    "the range {global:?} has {} dimensions, the local size {local:?} has {}",
                    global.len(),
                    local.len()
                ));
            }
            for (dimension, (whole, group)) in global.iter().zip(local).enumerate() {
                if *group == 0 {
                    return refuse(format!("local size 0 in dimension {dimension}: at least 1 is needed"));
                }
                if whole % group != 0 {
                    let remedy = format!(
                        "launch {} and leave the last ones out by a condition",
                        whole.div_ceil(*group).saturating_mul(*group)
                    );
                    // A smaller first number is that of blocks, which CUDA's launches begin with.
                    let of_blocks = match whole < group {
                        true => format!("; {whole} groups are {} work-items", whole.saturating_mul(*group)),
                        false => String::new(),
                    };
                    return refuse(format!(
                        "local size {group} does not divide {whole} work-items in dimension {dimension}: \
                         {remedy}{of_blocks}"
                    ));
                }
            }
        }
        let items = global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        if items.is_none_or(|items| items > i64::MAX as u64) {
            return refuse(format!("the range {global:?} has more than {} work-items", i64::MAX));
        }
        Ok(Self { global, local, is_plain_range: false })
    }
}

/// The global and the local part of a `usm.NdRange`.
fn nd_range<'py>(index: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let py = index.py();
    if index.is_instance_of::<PyTuple>() || index.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    let Some(global) = index.getattr_opt(name!(py, "global_range"))? else { return Ok(None) };
    Ok(Some((global, index.getattr(name!(py, "local_range"))?)))
}

fn sizes(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u64>> {
    let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(vec![size(object, what)?]) };
    tuple.iter().map(|one| size(&one, what)).collect()
}

fn size(object: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    let index = || {
        object.call_method0(name!(object.py(), "__index__")).map_err(|error| {
            if error.is_instance_of::<pyo3::exceptions::PyAttributeError>(object.py()) {
                let class = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
                Class::Kernel.error(format!("{what} size: {class} is no integer"))
            } else {
                error
            }
        })
    };
    let number = if object.is_exact_instance_of::<PyInt>() { object.clone() } else { index()? };
    number
        .extract()
        .map_err(|_| Class::Kernel.error(format!("{what} size {number}: 0 to 2**63 - 1 are sizes")))
}
