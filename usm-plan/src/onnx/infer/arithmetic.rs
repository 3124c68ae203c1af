//! Arithmetic of known elements. It wraps around or rounds as the element type does.

use super::call::{Call, place};
use super::fold::{broadcast_place, indices};
use super::value::Value;
use crate::onnx::element::FLOAT;

/// Operators whose inputs are broadcast.
const BROADCAST: [&str; 20] = [
    "Add",
    "And",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Xor",
];

pub(super) fn reduce(call: &Call<'_>, op: &str, data_type: i32, dims: &[u64]) -> Option<Value> {
    let (own, value) = (call.extents(0).ok()?, call.value(0).ok()?);
    let axes = call.list_or_input("axes", 1).ok()?.filter(|axes| !axes.is_empty());
    let axes: Vec<usize> = match axes {
        Some(axes) => axes.iter().map(|&axis| place(axis, own.len()).ok()).collect::<Option<_>>()?,
        None if call.flag("noop_with_empty_axes") => return Some(value.clone()),
        None => (0..own.len()).collect(),
    };
    let left: Vec<u64> =
        own.iter().enumerate().map(|(at, &dim)| if axes.contains(&at) { 1 } else { dim }).collect();
    let count = dims.iter().product::<u64>() as usize;
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (flat, index) in indices(&own).enumerate() {
        rows.get_mut(broadcast_place(&left, &index))?.push(flat);
    }
    if let Some(numbers) = value.integers() {
        let result = |row: &Vec<usize>| -> Option<i128> {
            let mut each = row.iter().map(|&at| i128::from(numbers[at]));
            match op {
                "ReduceMax" => each.max(),
                "ReduceMin" => each.min(),
                "ReduceProd" => each.try_fold(1_i128, i128::checked_mul),
                "ReduceSum" => Some(each.sum()),
                _ => None,
            }
        };
        let results: Vec<i128> = rows.iter().map(result).collect::<Option<_>>()?;
        return Value::from_integers(data_type, results.into_iter());
    }
    let result = |row: &Vec<usize>| -> Option<f64> {
        let each = row.iter().map(|&at| value.real(at));
        match op {
            "ReduceMax" => each.reduce(f64::max),
            "ReduceMin" => each.reduce(f64::min),
            "ReduceProd" => Some(each.product()),
            "ReduceSum" => Some(each.sum()),
            // A mean of sums in 64 bits is not the runtime's to the last bit.
            _ => None,
        }
    };
    let results: Vec<f64> = rows.iter().map(result).collect::<Option<_>>()?;
    Value::from_reals(data_type, results.into_iter())
}

pub(super) fn unary(call: &Call<'_>, op: &str, data_type: i32) -> Option<Value> {
    let value = call.value(0).ok()?;
    if let Some(numbers) = value.integers() {
        let of: fn(i128) -> i128 = match op {
            "Neg" => |n| -n,
            "Abs" => i128::abs,
            "Not" => |n| i128::from(n == 0),
            "Relu" => |n| n.max(0),
            "Sign" => i128::signum,
            "Max" | "Min" | "Sum" | "Mean" => |n| n,
            _ => return None,
        };
        return Value::from_integers(data_type, numbers.iter().map(|&number| of(i128::from(number))));
    }
    // Only what every processor computes alike.
    let of: fn(f64) -> f64 = match op {
        "Neg" => |n| -n,
        "Abs" => f64::abs,
        "Floor" => f64::floor,
        "Ceil" => f64::ceil,
        "Round" => f64::round_ties_even,
        "Sqrt" => f64::sqrt,
        "Reciprocal" => |n| 1.0 / n,
        "Relu" => |n| n.max(0.0),
        "Sign" => |n| {
            if n > 0.0 {
                1.0
            } else if n < 0.0 {
                -1.0
            } else {
                0.0
            }
        },
        "Max" | "Min" | "Sum" | "Mean" => |n| n,
        _ => return None,
    };
    Value::from_reals(data_type, (0..value.len()).map(|at| of(value.real(at))))
}

/// Operators of two inputs, or of many that are taken one after the other.
pub(super) fn fold_all(call: &Call<'_>, op: &str, data_type: i32, dims: &[u64]) -> Option<Value> {
    // The oldest sets align the second input by an axis.
    if !BROADCAST.contains(&op) || call.version < 7 && call.flag("broadcast") {
        return None;
    }
    if !matches!(op, "Max" | "Min" | "Sum") && call.inputs.len() != 2 {
        return None;
    }
    let shapes: Vec<Vec<u64>> =
        (0..call.inputs.len()).map(|at| call.extents(at).ok()).collect::<Option<_>>()?;
    let values: Vec<&Value> = (0..call.inputs.len()).map(|at| call.value(at).ok()).collect::<Option<_>>()?;
    let lists: Option<Vec<&[i64]>> = values.iter().map(|value| value.integers()).collect();
    if let Some(lists) = lists {
        let element = |index: Vec<usize>| {
            let mut each = lists
                .iter()
                .zip(&shapes)
                .map(|(list, own)| list.get(broadcast_place(own, &index)).map(|&number| i128::from(number)));
            let first = each.next()??;
            each.try_fold(first, |all, next| integer(call, op, all, next?))
        };
        let all: Vec<i128> = indices(dims).map(element).collect::<Option<_>>()?;
        return Value::from_integers(data_type, all.into_iter());
    }
    let narrow = call.data_type(0) == FLOAT;
    let element = |index: Vec<usize>| {
        let mut each =
            values.iter().zip(&shapes).map(|(value, own)| value.real(broadcast_place(own, &index)));
        let first = each.next()?;
        each.try_fold(first, |all, next| {
            let result = real(op, all, next)?;
            Some(if narrow { f64::from(result as f32) } else { result })
        })
    };
    let all: Vec<f64> = indices(dims).map(element).collect::<Option<_>>()?;
    Value::from_reals(data_type, all.into_iter())
}

fn integer(call: &Call<'_>, op: &str, one: i128, other: i128) -> Option<i128> {
    Some(match op {
        "Add" | "Sum" => one + other,
        "Sub" => one - other,
        "Mul" => one.checked_mul(other)?,
        "Div" => one.checked_div(other)?,
        // The sign is the divisor's, or with `fmod` the dividend's.
        "Mod" if call.flag("fmod") => one.checked_rem(other)?,
        "Mod" => {
            let rest = one.checked_rem(other)?;
            if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest }
        }
        "Pow" => one.checked_pow(u32::try_from(other).ok()?)?,
        "Max" => one.max(other),
        "Min" => one.min(other),
        "And" => i128::from(one != 0 && other != 0),
        "Or" => i128::from(one != 0 || other != 0),
        "Xor" => i128::from((one != 0) != (other != 0)),
        "Equal" => i128::from(one == other),
        "Greater" => i128::from(one > other),
        "GreaterOrEqual" => i128::from(one >= other),
        "Less" => i128::from(one < other),
        "LessOrEqual" => i128::from(one <= other),
        "BitwiseAnd" => one & other,
        "BitwiseOr" => one | other,
        "BitwiseXor" => one ^ other,
        _ => return None,
    })
}

fn real(op: &str, one: f64, other: f64) -> Option<f64> {
    Some(match op {
        "Add" | "Sum" => one + other,
        "Sub" => one - other,
        "Mul" => one * other,
        "Div" => one / other,
        "Max" => one.max(other),
        "Min" => one.min(other),
        "Equal" => f64::from(one == other),
        "Greater" => f64::from(one > other),
        "GreaterOrEqual" => f64::from(one >= other),
        "Less" => f64::from(one < other),
        "LessOrEqual" => f64::from(one <= other),
        _ => return None,
    })
}
