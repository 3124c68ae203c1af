//! Files that can be planned: the reader is chosen by the name of the file.

mod buffers_csv;
pub(crate) mod cfg_json;
mod graph_csv;
pub(crate) mod graph_json;
mod json;
pub(crate) mod onnx;
mod table;

use std::path::Path;

use usm_pool::{Graph, Problem};

use crate::error::{Error, Result};

pub(crate) use table::number;

/// What a file holds.
pub(crate) enum Input {
    /// Buffers with fixed lifetimes.
    Buffers(Problem),
    /// Operators and tensors.
    Graph(Graph),
}

/// What the user says about a file.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Alignment in bytes of tensors that do not say their own.
    pub(crate) alignment: Option<u64>,
    /// Values of symbolic dimensions, by name.
    pub(crate) dims: Vec<(String, u64)>,
}

/// Alignment in bytes of a tensor of a graph when neither file nor user says one.
const GRAPH_ALIGNMENT: u64 = 64;

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints) -> Result<Input> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |end: &str| name.ends_with(end);
    if !hints.dims.is_empty() && !is(".onnx") {
        return Err(Error::bad("only ONNX files have symbolic dimensions").in_field("--dim"));
    }
    if is(".onnx") {
        onnx::read(path, hints).map(Input::Graph)
    } else if is(".json") {
        graph_json::read(path, hints).map(Input::Graph)
    } else if is(".graph.csv") {
        graph_csv::read(path, hints).map(Input::Graph)
    } else if is(".csv") {
        buffers_csv::read(path, hints).map(Input::Buffers)
    } else {
        Err(Error::bad("neither .onnx nor .json nor .graph.csv nor .csv").in_file(path))
    }
}
