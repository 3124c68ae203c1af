//! Products of matrices.

use std::collections::BTreeMap;

use super::super::call::{Answer, Call, Extent, Made, broadcast, shown, wrong};
use crate::onnx::element::INT32;

pub(super) fn results(call: &Call<'_>, op: &str) -> Option<Answer<Vec<Made>>> {
    let result = match op {
        "MatMul" => mat_mul(call, 0, 1).map(|dims| (call.data_type(0), dims)),
        "MatMulInteger" => mat_mul(call, 0, 1).map(|dims| (INT32, dims)),
        "QLinearMatMul" => mat_mul(call, 0, 3).map(|dims| (call.data_type(7), dims)),
        "Gemm" => gemm(call).map(|dims| (call.data_type(0), dims)),
        "Einsum" => einsum(call).map(|dims| (call.data_type(0), dims)),
        "Det" => determinant(call),
        _ => return None,
    };
    Some(result.map(|result| vec![result]))
}

/// The extents of the product of two inputs, as NumPy's `matmul` has them.
pub(super) fn mat_mul(call: &Call<'_>, one: usize, other: usize) -> Answer<Vec<Extent>> {
    matrices(call.dims_of_rank(one, 1)?, call.dims_of_rank(other, 1)?)
}

/// As [`mat_mul`], of these extents.
pub(super) fn matrices(one: &[Extent], other: &[Extent]) -> Answer<Vec<Extent>> {
    let (row, column) = (one.len() == 1, other.len() == 1);
    let left = if row { [&[Some(1)], one].concat() } else { one.to_vec() };
    let right = if column { [other, &[Some(1)]].concat() } else { other.to_vec() };
    let (left_at, right_at) = (left.len() - 2, right.len() - 2);
    if let (Some(inner), Some(outer)) = (left[left_at + 1], right[right_at])
        && inner != outer
    {
        return wrong(format!("a product of {} and {}: {inner} is not {outer}", shown(one), shown(other)));
    }
    let mut dims = broadcast(&left[..left_at], &right[..right_at])?;
    dims.extend((!row).then_some(left[left_at]));
    dims.extend((!column).then_some(right[right_at + 1]));
    Ok(dims)
}

fn gemm(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let matrix = |at: usize, flag_name: &str| match *call.dims(at)? {
        [rows, columns] if call.flag(flag_name) => Ok([columns, rows]),
        [rows, columns] => Ok([rows, columns]),
        ref dims => wrong(format!("its input {at} of the shape {} is no matrix", shown(dims))),
    };
    let ([rows, inner], [outer, columns]) = (matrix(0, "transA")?, matrix(1, "transB")?);
    match (inner, outer) {
        (Some(inner), Some(outer)) if inner != outer => {
            wrong(format!("the inner extents are {inner} and {outer}"))
        }
        _ => Ok(vec![rows, columns]),
    }
}

fn determinant(call: &Call<'_>) -> Answer<Made> {
    let dims = call.dims_of_rank(0, 2)?;
    Ok((call.data_type(0), dims[..dims.len() - 2].to_vec()))
}

fn einsum(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let equation: String = call.text("equation").chars().filter(|c| !c.is_whitespace()).collect();
    let (terms, result) = match equation.split_once("->") {
        Some((terms, result)) => (terms.to_owned(), Some(result.to_owned())),
        None => (equation.clone(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != call.inputs.len() {
        return wrong(format!("{equation:?} has {} terms for {} inputs", terms.len(), call.inputs.len()));
    }
    let (mut extents, mut counts) = (BTreeMap::<char, Extent>::new(), BTreeMap::<char, usize>::new());
    let mut more: Vec<Extent> = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        let dims = call.dims(at)?;
        let letter_count = term.chars().filter(char::is_ascii_alphabetic).count();
        let (before, after) = term.split_once("...").unwrap_or((term, ""));
        let spare = dims.len().checked_sub(letter_count);
        let Some(spare) = spare.filter(|&spare| spare == 0 || term.contains("...")) else {
            return wrong(format!("{term:?} has not the {} extents of {}", dims.len(), shown(dims)));
        };
        let first = before.chars().count();
        let own = [&dims[..first.min(dims.len())], &dims[(first + spare).min(dims.len())..]].concat();
        more = broadcast(&more, &dims[first.min(dims.len())..(first + spare).min(dims.len())])?;
        for (name, dim) in before.chars().chain(after.chars()).zip(own) {
            *counts.entry(name).or_default() += 1;
            let extent = extents.entry(name).or_insert(dim);
            match (*extent, dim) {
                (Some(1) | None, dim) => *extent = dim,
                (Some(one), Some(other)) if other != 1 && other != one => {
                    return wrong(format!("{name} is {one} and {other}"));
                }
                _ => {}
            }
        }
    }
    let result = result.unwrap_or_else(|| {
        let single_letters = counts.iter().filter(|&(_, &count)| count == 1).map(|(&name, _)| name);
        let spare = if equation.contains("...") { "..." } else { "" };
        format!("{spare}{}", single_letters.collect::<String>())
    });
    let (before, after) = result.split_once("...").map_or((&result[..], ""), |parts| parts);
    let of = |names: &str| {
        let dim = |name: char| match extents.get(&name) {
            Some(&dim) => Ok(dim),
            None => wrong(format!("{name:?} of {result:?} is in no term")),
        };
        names.chars().map(dim).collect::<Answer<Vec<_>>>()
    };
    let spare = if result.contains("...") { more } else { Vec::new() };
    Ok([of(before)?, spare, of(after)?].concat())
}
