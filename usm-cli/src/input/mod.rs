//! Files that can be planned: the reader is chosen by the name of the file.

mod buffers_csv;
pub(crate) mod cfg_json;
mod graph_csv;
pub(crate) mod graph_json;
mod json;
pub(crate) mod onnx;
mod table;
#[cfg(any(test, fuzzing))]
pub(crate) mod target;

use std::io::{self, Read as _};
use std::path::Path;

use usm_pool::planner::reorder::Reordered;
use usm_pool::{Graph, Problem};

use crate::error::{Error, Result};

pub(crate) use table::{bytes, number};

/// What a file holds.
pub(crate) enum Input {
    /// Buffers with fixed lifetimes.
    Buffers(Problem),
    /// Operators and tensors.
    Graph(Model),
}

/// A graph, and what the reader did to its order.
#[derive(Debug)]
pub(crate) struct Model {
    /// The graph, in the order in which it is to be planned.
    pub(crate) graph: Graph,
    /// The order that the reader chose for the peak; none for files that say theirs.
    pub(crate) reordered: Option<Reordered>,
}

impl From<Graph> for Model {
    fn from(graph: Graph) -> Self {
        Self { graph, reordered: None }
    }
}

/// What the user says about a file.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Alignment in bytes of tensors that do not say their own.
    pub(crate) alignment: Option<u64>,
    /// Values of symbolic dimensions, by name.
    pub(crate) dims: Vec<(String, u64)>,
    /// The operators of an ONNX file stay in its order.
    pub(crate) keep_order: bool,
    /// Every tensor of an ONNX file has bytes of its own.
    pub(crate) no_views: bool,
    /// The queue that will run the plan keeps no order, so none is chosen.
    pub(crate) out_of_order: bool,
}

/// Alignment in bytes of a tensor of a graph when neither file nor user says one.
const GRAPH_ALIGNMENT: u64 = 64;

/// What messages call an input: `-` is the standard one.
pub(crate) fn called(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("standard input") } else { path }
}

/// Reads standard input: a graph.json where it begins with a brace, else buffers as CSV.
fn read_standard(hints: &Hints) -> Result<Input> {
    let mut text = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut text)
        .map_err(|error| Error::bad(format!("cannot be read: {error}")))?;
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        graph_json::parse(&text, hints).map(Model::from).map(Input::Graph)
    } else {
        buffers_csv::parse(&text, hints).map(Input::Buffers)
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints) -> Result<Input> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |end: &str| name.ends_with(end);
    if !hints.dims.is_empty() && !is(".onnx") {
        return Err(Error::bad("only ONNX files have symbolic dimensions").in_field("--dim"));
    }
    if path.as_os_str() == "-" {
        read_standard(hints).map_err(|error| error.in_file(called(path)))
    } else if is(".onnx") {
        onnx::read(path, hints).map(Input::Graph)
    } else if is(".json") {
        graph_json::read(path, hints).map(Model::from).map(Input::Graph)
    } else if is(".graph.csv") {
        graph_csv::read(path, hints).map(Model::from).map(Input::Graph)
    } else if is(".csv") {
        buffers_csv::read(path, hints).map(Input::Buffers)
    } else {
        Err(Error::bad("neither .onnx nor .json nor .graph.csv nor .csv").in_file(path))
    }
}
