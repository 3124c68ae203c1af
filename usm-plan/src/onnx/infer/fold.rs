//! The elements of small results, where the elements of all inputs are known: exporters compute
//! shapes with such operators.
//!
//! An operator that is missing here has results without known elements, and nothing else. All
//! arithmetic wraps around or rounds as the element type does.

use super::arithmetic::{fold_all, reduce, unary};
use super::call::{Call, Made, place};
use super::rules::shape_range;
use super::value::{MOST_ELEMENTS, Value, is_integer};
use crate::onnx::element::{BOOL, DOUBLE, FLOAT, INT64};
use crate::onnx::slice::Selection;

/// The elements of the results. `None` if they are not known.
pub(super) fn values(call: &Call<'_>, result_types: &[Made]) -> Option<Vec<Value>> {
    if !matches!(call.node.domain.as_str(), "" | "ai.onnx") {
        return None;
    }
    let op = call.node.op_type.as_str();
    // These read no element.
    match op {
        "Shape" => {
            let dims = call.extents(0).ok()?;
            let dims = dims.get(shape_range(call, dims.len()))?.iter().map(|&dim| i128::from(dim));
            return Some(vec![Value::from_integers(INT64, dims)?]);
        }
        "Size" => {
            let count = call.extents(0).ok()?.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim))?;
            return Some(vec![Value::from_integers(INT64, [i128::from(count)].into_iter())?]);
        }
        _ => {}
    }
    let results: Vec<Vec<u64>> =
        result_types.iter().map(|(_, dims)| dims.iter().copied().collect()).collect::<Option<_>>()?;
    let small = |dims: &Vec<u64>| {
        dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim)).is_some_and(|n| n <= MOST_ELEMENTS)
    };
    let has_values = call.inputs.iter().flatten().all(|fact| fact.value.is_some());
    if !has_values || call.inputs.is_empty() || !results.iter().all(small) {
        return None;
    }
    if op == "Split" {
        return split(call, &results);
    }
    let (data_type, dims) = (result_types.first()?.0, results.first()?);
    let value = match op {
        "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" => call.value(0).ok()?.clone(),
        "Concat" => concat(call, data_type, dims)?,
        "ConstantOfShape" => {
            let count = dims.iter().product::<u64>() as usize;
            let element = match call.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
                Some(tensor) => Value::of(tensor)?.at(&[0])?,
                None => Value::Reals(vec![0.0]),
            };
            element.at(&vec![0; count])?
        }
        "Range" => range(call, data_type, dims)?,
        "Where" => select(call, dims)?,
        "Cast" | "CastLike" => cast(call, data_type)?,
        "CumSum" => running_sum(call, data_type, dims)?,
        "ScatterND" => scatter(call)?,
        "NonZero" => non_zero(call, dims)?,
        "ReduceMax" | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" => {
            reduce(call, op, data_type, dims)?
        }
        _ => match places(call, op, dims) {
            Some(places) => call.value(0).ok()?.at(&places)?,
            None if call.inputs.len() == 1 => unary(call, op, data_type)?,
            None => fold_all(call, op, data_type, dims)?,
        },
    };
    Some(vec![value])
}

/// The strides in elements of these extents.
pub(super) fn strides(dims: &[u64]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as usize;
    }
    strides
}

/// Every index of these extents, in row-major order.
pub(super) fn indices(dims: &[u64]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let steps = strides(dims);
    let count = dims.iter().product::<u64>() as usize;
    (0..count).map(move |flat| {
        dims.iter().zip(&steps).map(|(&dim, &step)| flat / step.max(1) % (dim as usize).max(1)).collect()
    })
}

/// The place of an element for an index of extents to which the input is broadcast.
pub(super) fn broadcast_place(own: &[u64], index: &[usize]) -> usize {
    let first = index.len().saturating_sub(own.len());
    let steps = strides(own);
    (0..own.len()).map(|axis| if own[axis] == 1 { 0 } else { index[first + axis] * steps[axis] }).sum()
}

/// A number that may count from the end, as a place among `count`.
fn from_end(at: i64, count: u64) -> Option<usize> {
    let at = if at < 0 { at.checked_add(i64::try_from(count).ok()?)? } else { at };
    usize::try_from(at).ok().filter(|&at| (at as u64) < count)
}

/// For operators whose results are elements of the first input: their places there.
fn places(call: &Call<'_>, op: &str, dims: &[u64]) -> Option<Vec<usize>> {
    let own = call.extents(0).ok()?;
    let steps = strides(&own);
    let flat = |index: &[usize]| -> usize { index.iter().zip(&steps).map(|(at, step)| at * step).sum() };
    Some(match op {
        "Expand" => indices(dims).map(|index| broadcast_place(&own, &index)).collect(),
        "Tile" => {
            let wrap = |index: Vec<usize>| {
                index.iter().zip(&own).map(|(&at, &dim)| at % (dim as usize).max(1)).collect::<Vec<_>>()
            };
            indices(dims).map(|index| flat(&wrap(index))).collect()
        }
        "Transpose" => {
            let rank = own.len();
            let reverse: Vec<i64> = (0..rank as i64).rev().collect();
            let order = call.list("perm").unwrap_or(&reverse);
            let order: Vec<usize> =
                order.iter().map(|&axis| place(axis, rank).ok()).collect::<Option<_>>()?;
            indices(dims)
                .map(|index| order.iter().zip(&index).map(|(&axis, &at)| steps[axis] * at).sum())
                .collect()
        }
        "Slice" => {
            let numbers = |name: &str| {
                let at = call.node.input.iter().skip(1).position(|input| input == name)?;
                call.integers(at + 1).ok().map(<[i64]>::to_vec)
            };
            let Selection { inside, .. } = Selection::of(call.node, &own, numbers)?;
            let (mut starts, mut by) = (vec![0_i64; own.len()], vec![1_i64; own.len()]);
            for (at, &axis) in inside.axes.iter().enumerate() {
                let axis = usize::try_from(axis).ok()?;
                (*starts.get_mut(axis)?, *by.get_mut(axis)?) = (inside.starts[at], inside.steps[at]);
            }
            let move_index = |index: Vec<usize>| -> Option<usize> {
                let each = index.iter().enumerate().map(|(axis, &at)| {
                    usize::try_from(starts[axis] + by[axis] * at as i64).ok().map(|at| at * steps[axis])
                });
                each.sum()
            };
            indices(dims).map(move_index).collect::<Option<_>>()?
        }
        "Gather" => {
            let axis = place(call.number("axis", 0), own.len()).ok()?;
            let (indices_in, shape) = (call.integers(1).ok()?, call.extents(1).ok()?);
            let inner = strides(&shape);
            let of = |index: Vec<usize>| {
                let (before, rest) = index.split_at(axis);
                let (middle, after) = rest.split_at(shape.len());
                let at: usize = middle.iter().zip(&inner).map(|(at, step)| at * step).sum();
                let at = from_end(*indices_in.get(at)?, own[axis])?;
                Some(flat(&[before, &[at], after].concat()))
            };
            indices(dims).map(of).collect::<Option<_>>()?
        }
        "GatherElements" => {
            let axis = place(call.number("axis", 0), own.len()).ok()?;
            let index_list = call.integers(1).ok()?;
            let of = |(mut index, &position): (Vec<usize>, &i64)| {
                *index.get_mut(axis)? = from_end(position, own[axis])?;
                Some(flat(&index))
            };
            indices(dims).zip(index_list).map(of).collect::<Option<_>>()?
        }
        "Compress" if call.attribute("axis").is_none() => {
            let flags = call.integers(1).ok()?.iter().enumerate();
            flags.filter(|&(_, &flag)| flag != 0).map(|(at, _)| at).collect()
        }
        _ => return None,
    })
}

fn concat(call: &Call<'_>, data_type: i32, dims: &[u64]) -> Option<Value> {
    let axis = place(call.number("axis", 1), dims.len()).ok()?;
    let mut parts = Vec::new();
    let mut begin = 0;
    for at in 0..call.inputs.len() {
        let own = call.extents(at).ok()?;
        parts.push((begin, strides(&own), call.value(at).ok()?));
        begin += own[axis] as usize;
    }
    let element = |mut index: Vec<usize>| {
        let (begin, steps, value) = parts.iter().rev().find(|(begin, ..)| *begin <= index[axis])?;
        index[axis] -= begin;
        let at: usize = index.iter().zip(steps).map(|(at, step)| at * step).sum();
        (at < value.len()).then_some((at, *value))
    };
    let elements: Vec<(usize, &Value)> = indices(dims).map(element).collect::<Option<_>>()?;
    gathered(data_type, &elements)
}

/// Elements of several values.
fn gathered(data_type: i32, elements: &[(usize, &Value)]) -> Option<Value> {
    if is_integer(data_type) {
        let number = |&(at, value): &(usize, &Value)| value.integers()?.get(at).copied();
        return Some(Value::Integers(elements.iter().map(number).collect::<Option<_>>()?));
    }
    matches!(data_type, FLOAT | DOUBLE)
        .then(|| Value::Reals(elements.iter().map(|&(at, value)| value.real(at)).collect()))
}

fn split(call: &Call<'_>, results: &[Vec<u64>]) -> Option<Vec<Value>> {
    let (own, value) = (call.extents(0).ok()?, call.value(0).ok()?);
    let axis = place(call.number("axis", 0), own.len()).ok()?;
    let steps = strides(&own);
    let mut begin = 0;
    let part = |dims: &Vec<u64>| {
        let first = begin * steps[axis];
        begin += dims[axis] as usize;
        let places: Vec<usize> = indices(dims)
            .map(|index| first + index.iter().zip(&steps).map(|(at, step)| at * step).sum::<usize>())
            .collect();
        value.at(&places)
    };
    results.iter().map(part).collect()
}

fn range(call: &Call<'_>, data_type: i32, dims: &[u64]) -> Option<Value> {
    let count = *dims.first()?;
    let (start, step) = (call.value(0).ok()?, call.value(2).ok()?);
    if let (Some(&[start]), Some(&[step])) = (start.integers(), step.integers()) {
        let numbers = (0..count).map(|at| i128::from(start) + i128::from(at) * i128::from(step));
        return Value::from_integers(data_type, numbers);
    }
    let (start, step) = (start.real(0), step.real(0));
    Value::from_reals(data_type, (0..count).map(|at| start + at as f64 * step))
}

fn select(call: &Call<'_>, dims: &[u64]) -> Option<Value> {
    let condition = call.integers(0).ok()?;
    let (condition_dims, shapes) = (call.extents(0).ok()?, [call.extents(1).ok()?, call.extents(2).ok()?]);
    let values = [call.value(1).ok()?, call.value(2).ok()?];
    let element = |index: Vec<usize>| {
        let from = usize::from(*condition.get(broadcast_place(&condition_dims, &index))? == 0);
        Some((broadcast_place(&shapes[from], &index), values[from]))
    };
    let elements: Vec<_> = indices(dims).map(element).collect::<Option<_>>()?;
    gathered(call.data_type(1), &elements)
}

fn cast(call: &Call<'_>, data_type: i32) -> Option<Value> {
    let value = call.value(0).ok()?;
    match value {
        // Any number but 0 is true.
        Value::Reals(numbers) if data_type == BOOL => {
            Some(Value::Integers(numbers.iter().map(|&number| i64::from(number != 0.0)).collect()))
        }
        // What becomes of numbers without a place is the runtime's choice.
        Value::Reals(numbers)
            if is_integer(data_type) && numbers.iter().any(|n| !(-9.2e18..9.2e18).contains(n)) =>
        {
            None
        }
        Value::Reals(numbers) => Value::from_reals(data_type, numbers.iter().copied()),
        Value::Integers(numbers) => Value::from_integers(data_type, numbers.iter().map(|&n| i128::from(n))),
    }
}

fn running_sum(call: &Call<'_>, data_type: i32, dims: &[u64]) -> Option<Value> {
    if call.flag("exclusive") || call.flag("reverse") {
        return None;
    }
    let axis = place(call.integer(1).ok()?, dims.len()).ok()?;
    let (numbers, steps) = (call.integers(0).ok()?, strides(dims));
    let mut sums: Vec<i128> = Vec::new();
    for (flat, index) in indices(dims).enumerate() {
        let before = if index[axis] == 0 { 0 } else { sums[flat - steps[axis]] };
        sums.push(before + i128::from(*numbers.get(flat)?));
    }
    Value::from_integers(data_type, sums.into_iter())
}

fn scatter(call: &Call<'_>) -> Option<Value> {
    if !matches!(call.text("reduction"), "" | "none") {
        return None;
    }
    let (own, lists) = (call.extents(0).ok()?, call.extents(1).ok()?);
    let (index_list, updates) = (call.integers(1).ok()?, call.value(2).ok()?);
    let depth = usize::try_from(*lists.last()?).ok().filter(|&depth| depth <= own.len())?;
    let steps = strides(&own);
    let row = own[depth..].iter().product::<u64>() as usize;
    let count = lists[..lists.len() - 1].iter().product::<u64>() as usize;
    let value = call.value(0).ok()?;
    let mut from: Vec<(usize, &Value)> = (0..value.len()).map(|at| (at, value)).collect();
    for list in 0..count {
        let index = index_list.get(list * depth..(list + 1) * depth)?;
        let places = index.iter().enumerate().map(|(axis, &at)| Some(from_end(at, own[axis])? * steps[axis]));
        let first = places.sum::<Option<usize>>()?;
        for at in 0..row {
            *from.get_mut(first + at)? = (list * row + at, updates);
        }
    }
    from.iter().all(|&(at, value)| at < value.len()).then(|| gathered(call.data_type(0), &from))?
}

fn non_zero(call: &Call<'_>, dims: &[u64]) -> Option<Value> {
    let (own, value) = (call.extents(0).ok()?, call.value(0).ok()?);
    let rows: Vec<Vec<usize>> =
        indices(&own).enumerate().filter(|(at, _)| value.real(*at) != 0.0).map(|(_, index)| index).collect();
    if dims.get(1) != Some(&(rows.len() as u64)) {
        return None;
    }
    Some(Value::Integers(
        (0..own.len()).flat_map(|axis| rows.iter().map(move |index| index[axis] as i64)).collect(),
    ))
}
