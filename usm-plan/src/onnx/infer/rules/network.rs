//! Layers of networks, and their losses.

use super::super::call::{Answer, Call, Extent, Made, Refusal, extent, place, sum, times, wrong};
use crate::onnx::element::{BOOL, FLOAT, UINT8};

pub(super) fn results(call: &Call<'_>, op: &str) -> Option<Answer<Vec<Made>>> {
    Some(match op {
        "BatchNormalization" => batch_normalization(call),
        "LayerNormalization" => layer_normalization(call),
        "Dropout" => call.dims(0).map(|dims| {
            // The oldest sets have a mask of the input's type.
            let mask = if call.version < 10 { call.data_type(0) } else { BOOL };
            vec![(call.data_type(0), dims.to_vec()), (mask, dims.to_vec())]
        }),
        "DynamicQuantizeLinear" => {
            call.dims(0).map(|dims| vec![(UINT8, dims.to_vec()), (FLOAT, Vec::new()), (UINT8, Vec::new())])
        }
        "GRU" | "LSTM" | "RNN" => recurrent(call),
        "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss" => loss(call),
        "Attention" => attention(call),
        "LinearAttention" => linear_attention(call),
        "CausalConvWithState" => causal_conv(call),
        "SwiGLU" => call.same(0).map(|result| vec![result]),
        _ => return None,
    })
}

fn batch_normalization(call: &Call<'_>) -> Answer<Vec<Made>> {
    let mut results = vec![call.same(0)?];
    // Means and variances: of the channels. The inputs 3 and 4 have their type and extents.
    for at in 1..call.results() {
        results.push(call.same(if at % 2 == 1 { 3 } else { 4 })?);
    }
    Ok(results)
}

fn layer_normalization(call: &Call<'_>) -> Answer<Vec<Made>> {
    let dims = call.dims(0)?;
    let axis = place(call.number("axis", -1), dims.len())?;
    let statistics: Vec<Extent> =
        dims.iter().enumerate().map(|(at, &dim)| if at < axis { dim } else { Some(1) }).collect();
    let of = call.type_of("stash_type", FLOAT);
    Ok(vec![call.same(0)?, (of, statistics.clone()), (of, statistics)])
}

pub(super) fn recurrent(call: &Call<'_>) -> Answer<Vec<Made>> {
    let &[first, second, _] = call.dims(0)? else { return wrong("its input has not 3 extents") };
    let weights = call.dims_of_rank(2, 3)?;
    let cell_size = match call.attribute("hidden_size") {
        Some(attribute) => Some(extent(attribute.i)?),
        None => weights[2],
    };
    let directions = Some(if call.text("direction") == "bidirectional" { 2 } else { 1 });
    let data_type = call.data_type(0);
    let (steps, last) = if call.flag("layout") {
        (vec![first, second, directions, cell_size], vec![first, directions, cell_size])
    } else {
        (vec![first, directions, second, cell_size], vec![directions, second, cell_size])
    };
    Ok(vec![(data_type, steps), (data_type, last.clone()), (data_type, last)])
}

fn loss(call: &Call<'_>) -> Answer<Vec<Made>> {
    let (scores, target) = (call.same(0)?, call.dims(1)?);
    let each = call.text("reduction") == "none";
    let loss = (call.data_type(0), if each { target.to_vec() } else { Vec::new() });
    Ok(vec![loss, scores])
}

/// Extents of the heads of an input: batch, heads, steps and the size of a head.
fn heads(call: &Call<'_>, at: usize, heads: &str) -> Answer<[Extent; 4]> {
    match *call.dims(at)? {
        [batch, heads, steps, size] => Ok([batch, heads, steps, size]),
        [batch, steps, all] => {
            let heads = extent(call.number(heads, 0))?;
            match all {
                Some(all) if heads == 0 || all % heads != 0 => wrong(format!("{heads} heads of {all}")),
                all => Ok([batch, Some(heads), steps, all.map(|all| all / heads)]),
            }
        }
        ref dims => wrong(format!("its input {at} has {} extents, not 3 or 4", dims.len())),
    }
}

fn attention(call: &Call<'_>) -> Answer<Vec<Made>> {
    let [batch, own, steps, _] = heads(call, 0, "q_num_heads")?;
    let [_, others, read, key] = heads(call, 1, "kv_num_heads")?;
    let [_, _, _, size] = heads(call, 2, "kv_num_heads")?;
    let all = if call.has(4) {
        let past = call.dims_of_rank(4, 4)?;
        sum([past[2], read])?
    } else {
        read
    };
    let data_type = call.data_type(0);
    let result = if call.dims(0)?.len() == 4 {
        vec![batch, own, steps, size]
    } else {
        vec![batch, steps, times(own, size)?]
    };
    Ok(vec![
        (data_type, result),
        (call.data_type(1), vec![batch, others, all, key]),
        (call.data_type(2), vec![batch, others, all, size]),
        (data_type, vec![batch, own, steps, all]),
    ])
}

fn linear_attention(call: &Call<'_>) -> Answer<Vec<Made>> {
    let [batch, own, steps, _] = heads(call, 0, "q_num_heads")?;
    let [_, others, _, key] = heads(call, 1, "kv_num_heads")?;
    let [_, _, _, size] = heads(call, 2, "kv_num_heads")?;
    let state = if call.has(3) { call.data_type(3) } else { call.data_type(0) };
    Ok(vec![
        (call.data_type(0), vec![batch, steps, times(own, size)?]),
        (state, vec![batch, others, key, size]),
    ])
}

fn causal_conv(call: &Call<'_>) -> Answer<Vec<Made>> {
    let &[batch, channels, _] = call.dims(0)? else { return wrong("its input has not 3 extents") };
    let kernel = *call.dims_of_rank(1, 3)?.last().ok_or(Refusal::Input(1))?;
    let state = kernel.map(|kernel| kernel.saturating_sub(1));
    Ok(vec![call.same(0)?, (call.data_type(0), vec![batch, channels, state])])
}
