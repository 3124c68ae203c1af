//! Files that can be planned: the reader is chosen by the name of the file.

use core::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use usm_pool::planner::reorder::Reordered;
use usm_pool::{Graph, Problem};

use crate::error::{Error, Result};
use crate::onnx::infer::Inferred;
use crate::ranged::Planned;
use crate::{buffers_csv, graph_csv, graph_json, onnx};

pub use crate::table::{bytes, number};

/// What a file holds.
#[derive(Debug)]
pub enum Input {
    /// Buffers with fixed lifetimes.
    Buffers(Problem),
    /// Operators and tensors.
    Graph(Model),
}

/// A graph, and what the reader did to its order.
#[derive(Debug)]
pub struct Model {
    /// The graph, in the order in which it is to be planned.
    pub graph: Graph,
    /// The order that the reader chose for the peak; none for files that say theirs.
    pub reordered: Option<Reordered>,
    /// The plans of a file that has them; nothing is searched then.
    pub planned: Option<Planned>,
}

impl From<Graph> for Model {
    fn from(graph: Graph) -> Self {
        Self { graph, reordered: None, planned: None }
    }
}

/// From the bytes of a model without weights to the shapes of what its operators give.
pub type Infer = dyn Fn(&[u8]) -> Inferred;

/// What the user says about a file.
#[derive(Clone, Default)]
pub struct Hints<'a> {
    /// Alignment in bytes of tensors that do not say their own.
    pub alignment: Option<u64>,
    /// Values of dimensions, by name.
    pub dims: Vec<(String, u64)>,
    /// Values of inputs of an ONNX file, by name, as text: one number each.
    pub values: Vec<(String, String)>,
    /// The operators of an ONNX file stay in its order.
    pub keep_order: bool,
    /// Every tensor of an ONNX file has bytes of its own.
    pub no_views: bool,
    /// The queue that will run the plan keeps no order, so none is chosen.
    pub out_of_order: bool,
    /// Told what is no error: columns and keys that are not used, lives that differ.
    pub remark: Option<&'a dyn Fn(&str)>,
    /// Infers shapes that an ONNX file does not state: from the bytes of a model without weights.
    pub infer: Option<&'a Infer>,
    /// What to do about a shape that is not stated, where nothing infers it.
    pub remedy: &'a str,
}

impl Hints<'_> {
    /// Passes a remark on.
    pub(crate) fn remark(&self, remark: Option<String>) {
        if let (Some(tell), Some(remark)) = (self.remark, remark) {
            tell(&remark);
        }
    }
}

impl fmt::Debug for Hints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alignment, dims, values, keep_order, no_views, out_of_order, .. } = self;
        f.debug_struct("Hints")
            .field("alignment", alignment)
            .field("dims", dims)
            .field("values", values)
            .field("keep_order", keep_order)
            .field("no_views", no_views)
            .field("out_of_order", out_of_order)
            .finish_non_exhaustive()
    }
}

/// Alignment in bytes of a tensor of a graph when neither file nor user says one.
pub(crate) const GRAPH_ALIGNMENT: u64 = 64;

/// What messages call an input: `-` is the standard one.
pub fn called(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("standard input") } else { path }
}

/// Reads standard input: a graph.json where it begins with a brace, else buffers as CSV.
fn read_standard(hints: &Hints<'_>) -> Result<Input> {
    let mut text = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut text)
        .map_err(|error| Error::bad(format!("cannot be read: {error}")))?;
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        graph_json::parse(&text, hints).map(Input::Graph)
    } else if !hints.dims.is_empty() {
        Err(Error::bad("tables have no dimensions").in_field("--dim"))
    } else {
        buffers_csv::parse(&text, hints).map(Input::Buffers)
    }
}

/// Reads a file.
pub fn read(path: &Path, hints: &Hints<'_>) -> Result<Input> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |end: &str| name.ends_with(end);
    if !hints.dims.is_empty() && is(".csv") {
        return Err(Error::bad("tables have no dimensions").in_field("--dim").in_file(path));
    }
    if !hints.values.is_empty() && !is(".onnx") {
        return Err(Error::bad("only an ONNX model has inputs of a value").in_field("--value").in_file(path));
    }
    if path.as_os_str() == "-" {
        read_standard(hints).map_err(|error| error.in_file(called(path)))
    } else if is(".onnx") {
        onnx::read(path, hints).map(Input::Graph)
    } else if is(".json") {
        graph_json::read(path, hints).map(Input::Graph)
    } else if is(".graph.csv") {
        graph_csv::read(path, hints).map(Model::from).map(Input::Graph)
    } else if is(".csv") {
        buffers_csv::read(path, hints).map(Input::Buffers)
    } else {
        Err(Error::bad("neither .onnx nor .json nor .graph.csv nor .csv").in_file(path))
    }
}
