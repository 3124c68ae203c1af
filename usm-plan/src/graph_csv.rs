//! `NAME.graph.csv`: op,inputs,outputs (tensor ids separated by semicolons, operators in processing
//! order). `NAME.csv` has the tensors, `NAME.outputs` the ids of the graph's outputs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use usm_pool::{Graph, Op, Tensor, TensorKind};

use crate::buffers_csv::Buffers;
use crate::error::{Error, Result, read_file};
use crate::model::Hints;
use crate::number::number;
use crate::table;

const OP: usize = 0;
const INPUTS: usize = 1;
const OUTPUTS: usize = 2;

/// Reads the three files.
pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Graph> {
    let mut builder = Graph::builder();
    let mut written_tensors = BTreeSet::new();
    let mut index = 0_usize;
    table::read(path, ["op", "inputs", "outputs"], 3, hints, |row| {
        // A column of plain indices contains no names.
        let name = Some(row.text(OP)).filter(|name| *name != index.to_string()).unwrap_or("");
        index += 1;
        let outputs = row.numbers(OUTPUTS)?;
        written_tensors.extend(outputs.iter().copied());
        let op = Op::new(name).inputs(row.numbers(INPUTS)?).outputs(outputs);
        builder = core::mem::take(&mut builder).op(op);
        Ok(())
    })?;
    let tensors_path = sibling_file(path, "csv");
    let Buffers { buffers, lines, gaps } = Buffers::read(&tensors_path, hints)?;
    if let Some(&(buffer, ..)) = gaps.first() {
        let error = Error::bad("the lives of a graph's tensors have no gaps").at_line(lines[buffer]);
        return Err(error.in_field("gaps").in_file(&tensors_path));
    }
    for buffer in &buffers {
        let mut tensor = Tensor::new(buffer.id, buffer.size).alignment(buffer.alignment);
        if !written_tensors.contains(&buffer.id) {
            tensor = tensor.kind(TensorKind::Input);
        }
        builder = builder.tensor(tensor);
    }
    for id in output_ids(&sibling_file(path, "outputs"))? {
        builder = builder.output(id);
    }
    let graph = builder.build().map_err(|error| Error::bad(error).in_file(path))?;
    for (buffer, line) in buffers.iter().zip(lines) {
        let Some(tensor) = graph.tensor_index(buffer.id) else { continue };
        let life = graph.lifetime(tensor);
        if life != buffer.lifetime() {
            hints.report_remark(Some(format!(
                "{}:{line}: tensor {} lives [{}, {}) there, but [{}, {}) in the graph, which counts",
                tensors_path.display(),
                buffer.id,
                buffer.lower,
                buffer.upper,
                life.lower,
                life.upper
            )));
        }
    }
    Ok(graph)
}

/// `NAME.<extension>` for `NAME.graph.csv`.
fn sibling_file(path: &Path, extension: &str) -> PathBuf {
    path.with_extension("").with_extension(extension)
}

/// Tensor ids separated by semicolons, commas or white space.
fn output_ids(path: &Path) -> Result<Vec<u64>> {
    let bytes = read_file(path)?;
    let text = core::str::from_utf8(&bytes).map_err(|_| Error::bad("not UTF-8 text").in_file(path))?;
    let mut ids = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for part in text.split([';', ',', ' ', '\t', '\r']).filter(|part| !part.is_empty()) {
            ids.push(number(part).map_err(|reason| Error::bad(reason).in_file(path).at_line(line))?);
        }
    }
    Ok(ids)
}
