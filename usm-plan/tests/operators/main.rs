//! Shapes and constants beside ONNX's own tests of its operators, which come with the Python
//! package `onnx`: each has a model, inputs, and the true results.
//!
//! `USM_PYTHON` is the interpreter that has the package.
#![allow(clippy::std_instead_of_alloc, reason = "models: std is always there")]

#[path = "../../src/onnx/proto.rs"]
#[allow(dead_code, unreachable_pub)]
mod proto;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use prost::Message as _;
use proto::{
    Dim, Dimension, GraphProto, ModelProto, TensorProto, TensorShapeProto, TensorType, Type, TypeProto,
    ValueInfoProto,
};
use usm_plan::Hints;
use usm_plan::onnx::{Value, ValueInfo, known_values};

/// The operators of cases with a result of unknown extents although all elements of the inputs are
/// known: the data or its meaning decides, the inputs are of a type that is not computed with, or
/// the operator is refused by its name.
const UNKNOWN: [&str; 12] = [
    "FlexAttention",
    "ImageDecoder",
    "Loop",
    "NonMaxSuppression",
    "Optional",
    "Range",
    "Scan",
    "Sequence",
    "StringNormalizer",
    "StringSplit",
    "Unique",
    "ZipMap",
];

/// Least numbers of shapes and of results with elements that the cases have: as many were known
/// when the cases were those of onnx 1.23.
const LEAST: (usize, usize) = (4100, 500);

/// The cases: a model, and its inputs and true results by name.
struct Case {
    name: String,
    model: ModelProto,
    given: Vec<TensorProto>,
    right: BTreeMap<String, TensorProto>,
}

fn cases() -> Vec<Case> {
    let Some(python) = std::env::var_os("USM_PYTHON") else {
        skip::missing("python", "USM_PYTHON names no interpreter");
        return Vec::new();
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("onnx-operators");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operators/cases.py");
    let ran = Command::new(python).arg(script).arg(&folder).output().expect("the interpreter runs");
    if !ran.status.success() {
        skip::missing("onnx", String::from_utf8_lossy(&ran.stderr).trim().replace('\n', " "));
        return Vec::new();
    }
    let files = std::fs::read_dir(&folder).expect("the script writes a folder");
    let files = files.map(|file| file.expect("a file").path());
    let mut cases: Vec<Case> = files
        .filter(|path| path.extension().is_some_and(|end| end == "onnx"))
        .map(|path| case(&path))
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

fn case(path: &std::path::Path) -> Case {
    let mut model = ModelProto::decode(&*std::fs::read(path).expect("a case")).expect("a model");
    let graph = model.graph.as_mut().expect("a graph");
    let (right, others): (Vec<_>, Vec<_>) = core::mem::take(&mut graph.initializer)
        .into_iter()
        .partition(|tensor| tensor.name.starts_with("true/"));
    let inputs: BTreeSet<&String> = graph.input.iter().map(|input| &input.name).collect();
    let (given, own): (Vec<_>, Vec<_>) = others.into_iter().partition(|tensor| inputs.contains(&tensor.name));
    graph.initializer = own;
    let right = right.into_iter().map(|tensor| (tensor.name["true/".len()..].to_owned(), tensor)).collect();
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Case { name, model, given, right }
}

fn described(tensor: &TensorProto) -> ValueInfoProto {
    let dim = |&extent: &i64| Dimension { value: Some(Dim::Value(extent)) };
    let shape = Some(TensorShapeProto { dim: tensor.dims.iter().map(dim).collect() });
    let r#type = Type::Tensor(TensorType { elem_type: tensor.data_type, shape });
    ValueInfoProto { name: tensor.name.clone(), r#type: Some(TypeProto { value: Some(r#type) }) }
}

/// What is known of the results, with the inputs as inputs of a shape, or as constants.
fn known(case: &Case, constants: bool) -> Result<BTreeMap<String, ValueInfo>, String> {
    let mut model = case.model.clone();
    let graph = model.graph.as_mut().expect("a graph");
    // The script leaves out the data of others.
    let has_data = |tensor: &&TensorProto| tensor.dims.iter().product::<i64>() <= 4096;
    for tensor in &case.given {
        if let Some(input) = graph.input.iter_mut().find(|input| input.name == tensor.name) {
            *input = described(tensor);
        }
    }
    if constants {
        graph.initializer.extend(case.given.iter().filter(has_data).cloned());
    }
    // Nothing is stated: every shape is inferred.
    graph.value_info.clear();
    graph.output.iter_mut().for_each(|output| output.r#type = None);
    known_values(&model.encode_to_vec(), &Hints::default()).map_err(|error| error.to_string())
}

/// The elements of a small tensor, as the library returns them.
fn elements(tensor: &TensorProto) -> Option<Value> {
    let graph = GraphProto { initializer: vec![tensor.clone()], ..GraphProto::default() };
    let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
    known_values(&model.encode_to_vec(), &Hints::default()).ok()?.remove(&tensor.name)?.value
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Integers(one), Value::Integers(other)) => one == other,
        (Value::Reals(one), Value::Reals(other)) => {
            let near = |(one, other): (&f64, &f64)| {
                one == other || (one.is_nan() && other.is_nan()) || (one - other).abs() <= 1e-6 * other.abs()
            };
            one.len() == other.len() && one.iter().zip(other).all(near)
        }
        _ => false,
    }
}

/// Every extent and every element that is known is the true one. With its inputs' elements, every
/// operator of the standard has a known shape, but for those that are refused by name.
#[test]
fn operators_have_the_shapes_and_constants_of_the_standard() {
    let (mut shapes, mut values, mut unknown) = (0, 0, BTreeMap::<String, Vec<&str>>::new());
    let mut wrong: Vec<String> = Vec::new();
    let cases = cases();
    for case in &cases {
        let operators: Vec<&str> =
            case.model.graph.iter().flat_map(|graph| &graph.node).map(|node| node.op_type.as_str()).collect();
        for constants in [false, true] {
            let found = match known(case, constants) {
                Ok(found) => found,
                Err(error) => {
                    unknown.entry(error).or_default().push(&case.name);
                    continue;
                }
            };
            for (name, right) in &case.right {
                let Some(known) = found.get(name).filter(|known| known.data_type != 0) else {
                    if constants {
                        unknown.entry(operators.join(" ")).or_default().push(&case.name);
                    }
                    continue;
                };
                let dims: Vec<Option<u64>> = right.dims.iter().map(|&dim| u64::try_from(dim).ok()).collect();
                let fits = known.dims.len() == dims.len()
                    && known.dims.iter().zip(&dims).all(|(known, dim)| known.is_none() || known == dim);
                if !fits || known.data_type != right.data_type {
                    wrong.push(format!(
                        "{}: {name} is {} {:?}, truly {} {dims:?}",
                        case.name, known.data_type, known.dims, right.data_type
                    ));
                } else if known.dims.contains(&None) {
                    if constants {
                        unknown.entry(operators.join(" ")).or_default().push(&case.name);
                    }
                } else {
                    shapes += 1;
                }
                if let Some(value) = &known.value {
                    values += 1;
                    if elements(right).is_none_or(|right| !is_same(value, &right)) {
                        wrong.push(format!(
                            "{}: {name} is {value:?}, truly {:?}",
                            case.name,
                            elements(right)
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    unknown.retain(|operators, _| !UNKNOWN.iter().any(|name| operators.contains(name)));
    assert!(unknown.is_empty(), "unknown: {unknown:#?}");
    println!("{} cases: {shapes} shapes, {values} results with elements", cases.len());
    assert!(cases.is_empty() || (shapes >= LEAST.0 && values >= LEAST.1), "only {shapes} and {values}");
}
