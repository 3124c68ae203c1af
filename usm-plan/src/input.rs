//! Input files; the name of a file selects its reader.

use std::io::{self, Read as _};
use std::path::Path;

use crate::error::{Error, Result};
use crate::model::{Hints, Input, Model};
use crate::{buffers_csv, graph_csv, graph_json, onnx};

pub use crate::number::number;

/// The name of an input in messages; `-` is standard input.
pub fn called(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("standard input") } else { path }
}

/// Reads standard input: a graph.json if it begins with a brace, otherwise buffers as CSV.
fn read_standard(hints: &Hints<'_>) -> Result<Input> {
    let mut text = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut text)
        .map_err(|error| Error::bad(format!("cannot be read: {error}")))?;
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        graph_json::parse(&text, hints).map(Input::Graph)
    } else {
        buffers_csv::parse(&text, hints).map(Input::Buffers)
    }
}

/// Reads a file.
pub fn read(path: &Path, hints: &Hints<'_>) -> Result<Input> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |end: &str| name.ends_with(end);
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
