//! Operators of onnxruntime (`com.microsoft`): quantised ones, and those that its optimiser fuses.
//! The shapes are those of its own documentation (`docs/ContribOperators.md`).

use super::super::call::{Answer, Call, Extent, Made, Refusal, broadcast, extent, wrong};
use super::{network, product};
use crate::onnx::element::FLOAT;

pub(super) fn results(call: &Call<'_>) -> Answer<Vec<Made>> {
    Ok(match call.node.op_type.as_str() {
        "BiasGelu" | "FastGelu" | "Gelu" | "QuickGelu" | "QLinearLeakyRelu" | "QLinearSigmoid"
        | "QLinearSoftmax" | "Inverse" | "GroupNorm" => vec![call.same(0)?],
        "QuantizeLinear" => vec![(call.data_type(2), call.dims(0)?.to_vec())],
        "DequantizeLinear" => vec![(call.data_type(1), call.dims(0)?.to_vec())],
        "QLinearAdd" | "QLinearMul" => {
            vec![(call.data_type(0), broadcast(call.dims(0)?, call.dims(3)?)?)]
        }
        "DynamicQuantizeMatMul" => vec![(call.data_type(0), product::mat_mul(call, 0, 1)?)],
        // The result has the type of the scales.
        "MatMulIntegerToFloat" => vec![(call.data_type(2), product::mat_mul(call, 0, 1)?)],
        "FusedMatMul" => vec![(call.data_type(0), fused(call)?)],
        "MatMulNBits" => {
            let dims = call.dims_of_rank(0, 1)?;
            let (_, rows) = dims.split_last().ok_or(Refusal::Input(0))?;
            let columns = Some(extent(call.number("N", 0))?);
            vec![(call.data_type(0), [rows, &[columns]].concat())]
        }
        // Its weights are stored with their last two extents changed.
        "DynamicQuantizeLSTM" => {
            let results = network::recurrent(call)?;
            results.into_iter().map(|(_, dims)| (FLOAT, dims)).collect()
        }
        "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => skip_normalization(call)?,
        "SimplifiedLayerNormalization" => vec![call.same(0)?],
        _ => return Err(Refusal::Unknown),
    })
}

fn fused(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let matrix = |at: usize, name: &str| -> Answer<Vec<Extent>> {
        let mut dims = call.dims_of_rank(at, 1)?.to_vec();
        let rank = dims.len();
        if call.flag(name) && rank > 1 {
            dims.swap(rank - 1, rank - 2);
        }
        Ok(dims)
    };
    if call.flag("transBatchA") || call.flag("transBatchB") {
        return wrong("a batch that is transposed is not known here");
    }
    product::matrices(&matrix(0, "transA")?, &matrix(1, "transB")?)
}

/// The result, two statistics and the sum of the inputs.
fn skip_normalization(call: &Call<'_>) -> Answer<Vec<Made>> {
    let same = call.same(0)?;
    let mut statistics = same.1.clone();
    statistics.pop();
    statistics.push(Some(1));
    Ok(vec![same.clone(), (FLOAT, statistics.clone()), (FLOAT, statistics), same])
}
