//! Operators that select elements of an input.

use super::super::call::{Answer, Call, Extent, Made, Refusal, extent, place, shown, wrong};
use super::super::value::Value;
use crate::onnx::element::INT64;

pub(super) fn results(call: &Call<'_>, op: &str) -> Option<Answer<Vec<Made>>> {
    Some(match op {
        "Compress" => compress(call),
        "Gather" => gather(call),
        "GatherElements" => call.dims(1).map(|dims| vec![(call.data_type(0), dims.to_vec())]),
        "GatherND" => gather_nd(call),
        "NonZero" => non_zero(call),
        "OneHot" => one_hot(call),
        "TopK" => top_k(call),
        "Unique" => unique(call),
        "NonMaxSuppression" => Ok(vec![(INT64, vec![None, Some(3)])]),
        _ => return None,
    })
}

fn gather(call: &Call<'_>) -> Answer<Vec<Made>> {
    let (dims, indices) = (call.dims_of_rank(0, 1)?, call.dims(1)?);
    let axis = place(call.number("axis", 0), dims.len())?;
    let dims = [&dims[..axis], indices, &dims[axis + 1..]].concat();
    Ok(vec![(call.data_type(0), dims)])
}

fn gather_nd(call: &Call<'_>) -> Answer<Vec<Made>> {
    let (dims, indices) = (call.dims(0)?, call.dims_of_rank(1, 1)?);
    let batch = usize::try_from(call.number("batch_dims", 0)).unwrap_or(usize::MAX);
    let (last, lists) = indices.split_last().ok_or(Refusal::Input(1))?;
    let Some(depth) = *last else { return Err(Refusal::Input(1)) };
    let first = usize::try_from(depth).ok().and_then(|depth| batch.checked_add(depth));
    let Some(rest) = first.and_then(|first| dims.get(first..)) else {
        return wrong(format!(
            "indices of {depth} numbers for {}, of which {batch} are batches",
            shown(dims)
        ));
    };
    Ok(vec![(call.data_type(0), [lists, rest].concat())])
}

fn compress(call: &Call<'_>) -> Answer<Vec<Made>> {
    let mut dims = call.dims(0)?.to_vec();
    let mut axis = None;
    if call.attribute("axis").is_some() {
        axis = Some(place(call.number("axis", 0), dims.len())?);
    }
    let count = match call.integers(1) {
        Ok(flags) => Some(flags.iter().filter(|&&flag| flag != 0).count() as u64),
        Err(Refusal::Data(_)) => None,
        Err(other) => return Err(other),
    };
    match axis {
        Some(axis) => dims[axis] = count,
        None => dims = vec![count],
    }
    Ok(vec![(call.data_type(0), dims)])
}

fn non_zero(call: &Call<'_>) -> Answer<Vec<Made>> {
    let rank = call.dims(0)?.len() as u64;
    let value = call.input(0)?.value.as_deref();
    let count = value.map(|value| (0..value.len()).filter(|&at| value.real(at) != 0.0).count() as u64);
    Ok(vec![(INT64, vec![Some(rank), count])])
}

fn one_hot(call: &Call<'_>) -> Answer<Vec<Made>> {
    let mut dims = call.dims(0)?.to_vec();
    let axis = place(call.number("axis", -1), dims.len() + 1)?;
    let depth = match call.value(1)? {
        Value::Integers(numbers) => numbers.first().copied(),
        Value::Reals(numbers) => numbers.first().map(|&number| number as i64),
    };
    dims.insert(axis, Some(extent(depth.unwrap_or(-1))?));
    Ok(vec![(call.data_type(2), dims)])
}

fn top_k(call: &Call<'_>) -> Answer<Vec<Made>> {
    let count = if call.version < 10 { call.number("k", -1) } else { call.integer(1)? };
    let mut dims = call.dims(0)?.to_vec();
    let axis = place(call.number("axis", -1), dims.len())?;
    let count = extent(count)?;
    if let Some(dim) = dims[axis].filter(|&dim| dim < count) {
        return wrong(format!("{count} elements of {dim}"));
    }
    dims[axis] = Some(count);
    Ok(vec![(call.data_type(0), dims.clone()), (INT64, dims)])
}

fn unique(call: &Call<'_>) -> Answer<Vec<Made>> {
    let mut dims = call.dims(0)?.to_vec();
    let along = call.attribute("axis").map(|attribute| place(attribute.i, dims.len())).transpose()?;
    let all = match along {
        Some(axis) => dims[axis],
        None => super::super::call::product(&dims)?,
    };
    let count: Extent = match (along, call.input(0)?.value.as_deref()) {
        (None, Some(value)) => {
            let mut bits: Vec<u64> = (0..value.len()).map(|at| value.real(at).to_bits()).collect();
            bits.sort_unstable();
            bits.dedup();
            Some(bits.len() as u64)
        }
        _ => None,
    };
    match along {
        Some(axis) => dims[axis] = count,
        None => dims = vec![count],
    }
    Ok(vec![(call.data_type(0), dims), (INT64, vec![count]), (INT64, vec![all]), (INT64, vec![count])])
}
