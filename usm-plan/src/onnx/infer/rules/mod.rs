//! The types and extents of operators' results, by the ONNX standard
//! (<https://onnx.ai/onnx/operators>).
//!
//! A rule reads the types and extents of the inputs, and elements where the result's extents are
//! elements of an input. It computes no element of a result: `fold.rs` does.

mod generate;
mod layout;
mod learned;
mod microsoft;
mod network;
mod product;
mod select;
mod window;

use crate::onnx::element::{BOOL, FLOAT, INT64, STRING, UINT8};

use super::call::{Answer, Call, Extent, Made, Refusal, broadcast, place, places, wrong};
pub(super) use generate::shape_range;

/// Types and extents of an operator's results.
pub(super) fn results(call: &Call<'_>) -> Answer<Vec<Made>> {
    match call.node.domain.as_str() {
        "" | "ai.onnx" => standard(call),
        "ai.onnx.ml" => learned::results(call),
        "ai.onnx.preview.training" => training(call),
        "com.microsoft" => microsoft::results(call),
        _ => Err(Refusal::Unknown),
    }
}

fn standard(call: &Call<'_>) -> Answer<Vec<Made>> {
    let op = call.node.op_type.as_str();
    if let Some(answer) = element_wise(call, op) {
        return Ok(vec![answer?]);
    }
    match op {
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax" | "ReduceMean"
        | "ReduceMin" | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => Ok(vec![reduce(call)?]),
        "ArgMax" | "ArgMin" => {
            let dims = call.dims(0)?;
            let axis = place(call.number("axis", 0), dims.len())?;
            Ok(vec![(INT64, reduced(dims, &[axis], call.number("keepdims", 1) != 0))])
        }
        "StringNormalizer" | "StringSplit" | "TfIdfVectorizer" | "RegexFullMatch" | "StringConcat" => {
            strings(call, op)
        }
        "ConcatFromSequence" | "Optional" | "OptionalGetElement" | "OptionalHasElement" | "SequenceAt"
        | "SequenceConstruct" | "SequenceEmpty" | "SequenceErase" | "SequenceInsert" | "SequenceLength"
        | "SequenceMap" | "SplitToSequence" => {
            wrong(format!("{op} makes or reads a sequence or an optional value, which has no fixed size"))
        }
        _ => layout::results(call, op)
            .or_else(|| select::results(call, op))
            .or_else(|| window::results(call, op))
            .or_else(|| product::results(call, op))
            .or_else(|| network::results(call, op))
            .or_else(|| generate::results(call, op))
            .unwrap_or(Err(Refusal::Unknown)),
    }
}

/// Operators with one result that has an element for each element of the inputs.
fn element_wise(call: &Call<'_>, op: &str) -> Option<Answer<Made>> {
    Some(match op {
        "Abs"
        | "Acos"
        | "Acosh"
        | "Asin"
        | "Asinh"
        | "Atan"
        | "Atanh"
        | "BitwiseNot"
        | "Ceil"
        | "Celu"
        | "Clip"
        | "Cos"
        | "Cosh"
        | "CumProd"
        | "CumSum"
        | "Elu"
        | "Erf"
        | "Exp"
        | "Floor"
        | "Gelu"
        | "HardSigmoid"
        | "HardSwish"
        | "Hardmax"
        | "Identity"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "LRN"
        | "LeakyRelu"
        | "Log"
        | "LogSoftmax"
        | "LpNormalization"
        | "MeanVarianceNormalization"
        | "Mish"
        | "Neg"
        | "Not"
        | "PRelu"
        | "RMSNormalization"
        | "Reciprocal"
        | "Relu"
        | "ReverseSequence"
        | "RotaryEmbedding"
        | "Round"
        | "Scatter"
        | "ScatterElements"
        | "ScatterND"
        | "Selu"
        | "Shrink"
        | "Sigmoid"
        | "Sign"
        | "Sin"
        | "Sinh"
        | "Softmax"
        | "Softplus"
        | "Softsign"
        | "Sqrt"
        | "Swish"
        | "Tan"
        | "Tanh"
        | "TensorScatter"
        | "ThresholdedRelu"
        | "Trilu" => call.same(0),
        "IsInf" | "IsNaN" => call.dims(0).map(|dims| (BOOL, dims.to_vec())),
        "Cast" => call.dims(0).map(|dims| (call.type_of("to", 0), dims.to_vec())),
        "CastLike" => call.dims(0).map(|dims| (call.data_type(1), dims.to_vec())),
        "BitCast" => bit_cast(call),
        "Bernoulli" | "EyeLike" | "RandomNormalLike" | "RandomUniformLike" => {
            call.dims(0).map(|dims| (call.type_of("dtype", call.data_type(0)), dims.to_vec()))
        }
        "Add" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "Div" | "Max" | "Mean" | "Min"
        | "Mod" | "Mul" | "Pow" | "Sub" | "Sum" => spread(call, 0).map(|dims| (call.data_type(0), dims)),
        "And" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "Or" | "Xor" => {
            spread(call, 0).map(|dims| (BOOL, dims))
        }
        "Where" => spread(call, 0).map(|dims| (call.data_type(1), dims)),
        "QuantizeLinear" => {
            let output_type = call.type_of("output_dtype", UINT8);
            let data_type = if call.has(2) { call.data_type(2) } else { output_type };
            call.dims(0).map(|dims| (data_type, dims.to_vec()))
        }
        "DequantizeLinear" => {
            call.dims(0).map(|dims| (call.type_of("output_dtype", call.data_type(1)), dims.to_vec()))
        }
        _ => return None,
    })
}

/// The extents of all inputs from one on, repeated along extents of 1.
fn spread(call: &Call<'_>, from: usize) -> Answer<Vec<Extent>> {
    let mut dims = call.dims(from)?.to_vec();
    // Before set 7, the second input was aligned by an axis and never the longer one.
    if call.version < 7 && call.flag("broadcast") {
        return Ok(dims);
    }
    for at in from + 1..call.inputs.len() {
        dims = broadcast(&dims, call.dims(at)?)?;
    }
    Ok(dims)
}

/// Another type of the same number of bits.
fn bit_cast(call: &Call<'_>) -> Answer<Made> {
    let (from, to) = (call.data_type(0), call.type_of("to", 0));
    let bits = crate::onnx::element::bits;
    if bits(from) != bits(to) {
        return wrong(format!("a BitCast from element type {from} to {to}, which has another size"));
    }
    Ok((to, call.dims(0)?.to_vec()))
}

fn reduce(call: &Call<'_>) -> Answer<Made> {
    let dims = call.dims(0)?;
    let keep = call.number("keepdims", 1) != 0;
    let axes = call.list_or_input("axes", 1)?.filter(|axes| !axes.is_empty());
    let axes = match axes {
        Some(axes) => places(&axes, dims.len())?,
        None if call.flag("noop_with_empty_axes") => Vec::new(),
        None => (0..dims.len()).collect(),
    };
    Ok((call.data_type(0), reduced(dims, &axes, keep)))
}

/// Extents with 1, or nothing, in place of those of the axes.
fn reduced(dims: &[Extent], axes: &[usize], keep: bool) -> Vec<Extent> {
    let left = dims.iter().enumerate().filter(|(axis, _)| keep || !axes.contains(axis));
    left.map(|(axis, &dim)| if axes.contains(&axis) { Some(1) } else { dim }).collect()
}

fn strings(call: &Call<'_>, op: &str) -> Answer<Vec<Made>> {
    let dims = || call.dims(0).map(<[Extent]>::to_vec);
    Ok(match op {
        "RegexFullMatch" => vec![(BOOL, dims()?)],
        "StringConcat" => vec![(STRING, spread(call, 0)?)],
        "TfIdfVectorizer" => {
            let largest = call.list("ngram_indexes").unwrap_or_default().iter().copied().max().unwrap_or(-1);
            let mut dims = dims()?;
            dims.pop();
            dims.push(u64::try_from(largest.saturating_add(1)).ok());
            vec![(FLOAT, dims)]
        }
        "StringSplit" => {
            let (parts, counts) = (dims()?, dims()?);
            vec![(STRING, parts.into_iter().chain([None]).collect()), (INT64, counts)]
        }
        _ => return Err(Refusal::Data("strings have no fixed size".to_owned())),
    })
}

/// Optimisers: the inputs after the rate and the step are groups, and the results the new values of
/// all groups but the gradients.
fn training(call: &Call<'_>) -> Answer<Vec<Made>> {
    let groups = match call.node.op_type.as_str() {
        "Adagrad" | "Momentum" => 3,
        "Adam" => 4,
        _ => return Err(Refusal::Unknown),
    };
    let count = call.inputs.len().saturating_sub(2) / groups;
    if count == 0 {
        return wrong(format!(
            "{} inputs, not a rate, a step and {groups} for each tensor",
            call.inputs.len()
        ));
    }
    (0..call.results()).map(|at| call.same(2 + at % count)).collect()
}
