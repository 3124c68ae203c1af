//! The inputs of plans in Python: a file, the bytes of a model, a graph, or a table of buffers.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use usm_plan::Source;
use usm_plan::usm_pool::{Buffer, Problem};

use crate::array::Array;
use crate::plan::graph_text;
use crate::storage::snapshot::named;
use crate::text::argument;
use crate::text::error::Class;

/// The input of a plan.
pub(crate) enum PlanInput {
    File(PathBuf),
    Model(Vec<u8>),
    Graph(String),
    Table(Problem),
}

impl PlanInput {
    pub(crate) fn title(&self) -> String {
        let name = match self {
            Self::File(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Self::Model(_) => Some("model".to_owned()),
            Self::Graph(_) => Some("graph".to_owned()),
            Self::Table(_) => Some("table".to_owned()),
        };
        name.unwrap_or_default()
    }

    pub(crate) fn of(input: &Bound<'_, PyAny>, alignment: Option<u64>) -> PyResult<Self> {
        let py = input.py();
        if let Ok(dictionary) = input.cast::<PyDict>() {
            if dictionary.contains("tensors")? || dictionary.contains("ops")? {
                return Ok(Self::Graph(graph_text::text(dictionary)?));
            }
            return Ok(Self::Table(columns(dictionary, alignment)?));
        }
        if input.is_instance_of::<PyString>() || input.hasattr("__fspath__")? {
            let path = argument::file("input", input)?;
            // Python's own error, before anything is planned.
            return match std::fs::metadata(&path) {
                Err(_) if is_json(&path) => {
                    Err(Class::Request.error("input: a str is a path; for a graph pass json.loads(text)"))
                }
                Err(error) => Err(named(&error, path)),
                Ok(_) => Ok(Self::File(path)),
            };
        }
        if let Ok(bytes) = input.cast::<PyBytes>() {
            return Ok(Self::Model(bytes.as_bytes().to_vec()));
        }
        if input.is_instance(&py.get_type::<pyo3::types::PyByteArray>())? {
            return Ok(Self::Model(input.extract()?));
        }
        Ok(Self::Table(rows(input, alignment)?))
    }

    pub(crate) fn into_source(self) -> Source {
        match self {
            Self::File(path) => Source::file(path),
            Self::Model(bytes) => Source::model("input", bytes),
            Self::Graph(text) => Source::exact_text("input", text.into_bytes()),
            Self::Table(problem) => Source::table("input", problem),
        }
    }
}

/// Whether a text that names no file is the text of a graph.
fn is_json(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.trim_start().starts_with(['{', '[']))
}

/// A table of columns: `lower`, `upper`, `size`, and optionally `alignment` and `id`.
fn columns(table: &Bound<'_, PyDict>, alignment: Option<u64>) -> PyResult<Problem> {
    let column = |name: &str| -> PyResult<Option<Vec<u64>>> {
        let Some(column) = table.get_item(name)? else { return Ok(None) };
        let number = |(row, item): (usize, PyResult<Bound<'_, PyAny>>)| {
            item?.extract::<u64>().map_err(|error| add_row(table.py(), error, py_text(name), row))
        };
        plain(column)?.try_iter()?.enumerate().map(number).collect::<PyResult<_>>().map(Some)
    };
    const COLUMNS: [&str; 5] = ["lower", "upper", "size", "alignment", "id"];
    for (key, _) in table.iter() {
        let name = argument::text("table: a key", &key, "the name of a column (str)")?;
        if !COLUMNS.contains(&name) {
            let reason = format!("table: an unknown column {name:?}; there are {}", COLUMNS.join(", "));
            return Err(Class::Request.error(reason));
        }
    }
    let must = |name: &str| {
        let absent = || format!("table: no column {name:?}; a dict of a graph has \"tensors\" and \"ops\"");
        column(name)?.ok_or_else(|| Class::Request.error(absent()))
    };
    let (lower, upper, size) = (must("lower")?, must("upper")?, must("size")?);
    let (ids, alignments) = (column("id")?, column("alignment")?);
    let of = |length: usize, name: &str| match length == lower.len() {
        true => Ok(()),
        false => {
            let reason = format!("{name}: {length} rows, but lower has {}", lower.len());
            Err(Class::Request.error(reason))
        }
    };
    of(upper.len(), "upper")?;
    of(size.len(), "size")?;
    of(ids.as_ref().map_or(lower.len(), Vec::len), "id")?;
    of(alignments.as_ref().map_or(lower.len(), Vec::len), "alignment")?;
    let row = |row: usize| {
        let id = ids.as_ref().map_or(row as u64, |ids| ids[row]);
        let row_alignment = alignments.as_ref().map_or(alignment.unwrap_or(1), |column| column[row]);
        Buffer::new(id, lower[row], upper[row], size[row]).aligned(row_alignment)
    };
    problem((0..lower.len()).map(row).collect())
}

/// A table of rows: `(lower, upper, size)`, optionally with an alignment at the end.
fn rows(table: &Bound<'_, PyAny>, alignment: Option<u64>) -> PyResult<Problem> {
    let message =
        "a path, ONNX bytes, a dict as graph.json, or a table of (lower, upper, size[, alignment]) is wanted";
    let mut buffers = Vec::new();
    let table = &plain(table.clone())?;
    let rows = table.try_iter();
    let fits = "a path, ONNX bytes, a dict as graph.json, or a table of (lower, upper, size[, alignment])";
    let misfit =
        |error| argument::conversion_error(table.py(), error, || argument::type_error("input", table, fits));
    let rows = rows.map_err(misfit)?;
    for (index, row) in rows.enumerate() {
        let row = row?;
        let (lower, upper, size, align) = match row.extract::<(u64, u64, u64)>() {
            Ok((lower, upper, size)) => (lower, upper, size, alignment.unwrap_or(1)),
            Err(_) => match row.extract::<(u64, u64, u64, u64)>() {
                Ok(all) => all,
                Err(_) => {
                    let numbers: PyResult<Vec<u64>> =
                        row.try_iter().and_then(|row| row.map(|item| item?.extract()).collect());
                    match numbers.map_err(|error| add_row(table.py(), error, message.to_owned(), index))?[..]
                    {
                        [lower, upper, size] => (lower, upper, size, alignment.unwrap_or(1)),
                        [lower, upper, size, align] => (lower, upper, size, align),
                        ref other => {
                            let reason = format!("row {index}: {} numbers; {message}", other.len());
                            return Err(Class::Request.error(reason));
                        }
                    }
                }
            },
        };
        buffers.push(Buffer::new(index as u64, lower, upper, size).aligned(align));
    }
    problem(buffers)
}

/// An array of ours as lists, whose elements are numbers. Its own elements are arrays.
fn plain(values: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    match values.is_instance_of::<Array>() {
        true => values.call_method0("tolist"),
        false => Ok(values),
    }
}

fn problem(buffers: Vec<Buffer>) -> PyResult<Problem> {
    Problem::from_buffers(buffers).map_err(|error| Class::Request.error(format!("table: {error}")))
}

fn py_text(name: &str) -> String {
    format!("column {name:?}")
}

/// The same error with its row before it. What is no error of the conversion stays as it is.
fn add_row(py: Python<'_>, error: PyErr, what: String, row: usize) -> PyErr {
    let ours = Class::Request.error(format!("row {row}: {what}: {error}"));
    argument::conversion_error(py, error, || ours)
}
