//! Shape inference by tract, on a graph without weights, in a process of its own.
//!
//! tract is made for models that a program runs, not for arbitrary files. It may panic,
//! allocate more memory than there is, or loop; the process in which that happens cannot catch it.
//! So the command starts itself again, limits the child's memory and time, and takes the child's
//! answer or its end as the result.

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use prost::Message as _;
use tract_onnx::prelude::{DatumType, InferenceModelExt as _, Tensor, TractResult};
use tract_onnx::tract_hir::internal::Factoid as _;
use usm_plan::onnx::Shape;
use usm_plan::onnx::infer::Inferred;

use crate::error::{Error, Exit, Result};

/// The hidden argument that selects the child's part.
pub(crate) const CHILD: &str = "infer-shapes";

/// Address space of the child in bytes.
const MEMORY: u64 = 2 << 30;

/// Time limit of the child.
const TIME: Duration = Duration::from_secs(120);

/// Infers the shapes of the operators' results in a model.
pub(crate) fn infer_shapes(model: &[u8]) -> Inferred {
    infer_in_child(model)
        .unwrap_or_else(|error| Inferred::nothing(format!("no process to infer shapes: {error}")))
}

fn infer_in_child(model: &[u8]) -> io::Result<Inferred> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (answer, remarks, ended) = thread::scope(|scope| {
        let begin = || thread::Builder::new();
        let begun = || {
            let remarks = begin().spawn_scoped(scope, || read(stderr))?;
            let answer = begin().spawn_scoped(scope, || read(stdout))?;
            begin().spawn_scoped(scope, || stdin.map(|mut stdin| stdin.write_all(model)))?;
            io::Result::Ok((answer, remarks))
        };
        let (answer, remarks) = begun().inspect_err(|_| {
            // The threads that were started end with the child.
            let _ = child.kill().and_then(|()| child.wait());
        })?;
        let ended = wait(&mut child);
        io::Result::Ok((answer.join().unwrap_or_default(), remarks.join().unwrap_or_default(), ended))
    })?;
    Ok(match serde_json::from_slice(&answer) {
        Ok(inferred) if ended? => inferred,
        _ => Inferred::nothing(failure_reason(&String::from_utf8_lossy(&remarks))),
    })
}

fn read(pipe: Option<impl io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A child that dies leaves half an answer, which does not parse.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}

/// Waits for the child and kills it at its time limit. Returns whether it succeeded.
fn wait(child: &mut Child) -> io::Result<bool> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if start.elapsed() >= TIME {
            child.kill()?;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// The reason from a child without an answer: for a panic its message without the trace.
fn failure_reason(remarks: &str) -> String {
    let mut lines = remarks.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let message = if first.contains("panicked at") { lines.next().unwrap_or(first) } else { first };
    match message {
        "" => format!(
            "the inference library ended without an answer, within {} s and {} GiB",
            TIME.as_secs(),
            MEMORY >> 30
        ),
        message => format!("the inference library failed: {message}"),
    }
}

/// The child's part: reads a model from standard input and writes the inferred shapes to standard
/// output.
pub(crate) fn run_child() -> Result<Exit> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::As).maximum;
        let current = Some(maximum.map_or(MEMORY, |maximum| maximum.min(MEMORY)));
        // Without the limit the child is less safe but still correct.
        let _ = setrlimit(Resource::As, Rlimit { current, maximum });
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(Error::bad)?;
    let model = tract_onnx::pb::ModelProto::decode(&*bytes).map_err(Error::bad)?;
    let inferred = infer(&model).unwrap_or_else(|error| Inferred::nothing(format!("{error:#}")));
    crate::output::json(&inferred)?;
    Ok(Exit::Done)
}

fn infer(model: &tract_onnx::pb::ModelProto) -> TractResult<Inferred> {
    let mut parsed = tract_onnx::onnx().parse(model, None)?;
    // In obstinate mode: shapes behind an unknown operator may still be known from other inputs.
    let complaint = parsed.model.analyse(true).err().map(|error| format!("{error:#}"));
    let mut inferred = Inferred { complaint, ..Inferred::default() };
    for name in model.graph.iter().flat_map(|graph| &graph.node).flat_map(|node| &node.output) {
        let Some(&outlet) = parsed.outlets_by_name.get(name) else { continue };
        let fact = parsed.model.outlet_fact(outlet)?;
        let value = fact.value.concretize();
        if let Some(truth) = value.as_ref().and_then(|value| truth_value(value)) {
            inferred.truths.insert(name.clone(), truth);
        }
        if let Some(numbers) = value.as_ref().and_then(|value| integers(value)) {
            inferred.numbers.insert(name.clone(), numbers);
        }
        let (Some(dims), Some(bits)) =
            (fact.shape.as_concrete_finite()?, fact.datum_type.concretize().and_then(bits))
        else {
            continue;
        };
        inferred
            .shapes
            .insert(name.clone(), Shape { bits, dims: dims.iter().map(|&dim| dim as u64).collect() });
    }
    Ok(inferred)
}

/// The truth value of a tensor with one element.
fn truth_value(value: &Tensor) -> Option<bool> {
    let view = value.as_plain_ram()?;
    match view.as_slice::<bool>().ok()? {
        [truth] => Some(*truth),
        _ => None,
    }
}

/// The elements of a tensor with few integers.
fn integers(value: &Tensor) -> Option<Vec<i64>> {
    const FEW: usize = 16;
    let integers = [DatumType::I64, DatumType::I32, DatumType::TDim].contains(&value.datum_type());
    if !integers || value.len() > FEW {
        return None;
    }
    let numbers = value.cast_to::<i64>().ok()?;
    numbers.as_plain_ram()?.as_slice::<i64>().ok().map(<[i64]>::to_vec)
}

/// Size of one element in bits; `None` for types without a fixed size.
fn bits(datum_type: DatumType) -> Option<u64> {
    match datum_type {
        // Extents, int64 in the file.
        DatumType::TDim => Some(64),
        DatumType::String | DatumType::Blob => None,
        other => Some(other.size_of() as u64 * 8),
    }
}
