//! Operators that place the elements of an input anew.

use super::super::call::{
    Answer, Call, Extent, Made, broadcast, extent, place, places, product, shown, sum, times, wrong,
};
use crate::onnx::slice::Selection;

pub(super) fn results(call: &Call<'_>, op: &str) -> Option<Answer<Vec<Made>>> {
    let dims = match op {
        "Concat" => concat(call),
        "DepthToSpace" | "SpaceToDepth" => blocks(call, op),
        "Expand" => expand(call),
        "Flatten" => flatten(call),
        "Pad" => pad(call),
        "Reshape" => reshape(call),
        "Resize" | "Upsample" => resize(call),
        "Slice" => slice(call),
        "Split" => return Some(split(call)),
        "Squeeze" => squeeze(call),
        "Tile" => tile(call),
        "Transpose" => transpose(call),
        "Unsqueeze" => unsqueeze(call),
        "CenterCropPad" => center(call),
        "Col2Im" => col2im(call),
        _ => return None,
    };
    Some(dims.map(|dims| vec![(call.data_type(0), dims)]))
}

fn reshape(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let to = call.list_or_input("shape", 1)?;
    let Some(to) = to else { return wrong("it has no shape") };
    let from = call.dims(0)?;
    let as_it_is = call.flag("allowzero");
    let mut dims: Vec<Extent> = Vec::new();
    let mut rest = None;
    for (axis, &extent_code) in to.iter().enumerate() {
        dims.push(match extent_code {
            0 if as_it_is => Some(0),
            0 => match from.get(axis) {
                Some(&dim) => dim,
                None => {
                    return wrong(format!(
                        "the extent {axis} is that of the input, which has {}",
                        from.len()
                    ));
                }
            },
            -1 if rest.is_none() => {
                rest = Some(axis);
                Some(1)
            }
            -1 => return wrong("two extents are -1"),
            code => Some(extent(code)?),
        });
    }
    let (before, after) = (product(from)?, product(&dims)?);
    let (Some(before), Some(after)) = (before, after) else {
        rest.into_iter().for_each(|axis| dims[axis] = None);
        return Ok(dims);
    };
    let fits = match rest {
        // Nothing is left for what the other extents say.
        Some(_) if after == 0 => before == 0,
        Some(_) => before % after == 0,
        None => before == after,
    };
    if !fits {
        return wrong(format!("{before} elements of the shape {} are not those of {to:?}", shown(from)));
    }
    rest.into_iter().for_each(|axis| dims[axis] = Some(before.checked_div(after).unwrap_or(0)));
    Ok(dims)
}

fn flatten(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let dims = call.dims(0)?;
    let axis = call.number("axis", 1);
    let axis = if axis == dims.len() as i64 { dims.len() } else { place(axis, dims.len())? };
    Ok(vec![product(&dims[..axis])?, product(&dims[axis..])?])
}

fn squeeze(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let Some(axes) = call.list_or_input("axes", 1)? else {
        return Ok(call.extents(0)?.into_iter().filter(|&dim| dim != 1).map(Some).collect());
    };
    let dims = call.dims(0)?;
    let axes = places(&axes, dims.len())?;
    if let Some(axis) = axes.iter().find(|&&axis| dims[axis].is_some_and(|dim| dim != 1)) {
        return wrong(format!("the extent {axis} of {} is not 1", shown(dims)));
    }
    Ok(dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &dim)| dim).collect())
}

fn unsqueeze(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let Some(axes) = call.list_or_input("axes", 1)? else { return wrong("it has no axes") };
    let dims = call.dims(0)?;
    let rank = dims.len() + axes.len();
    let axes = places(&axes, rank)?;
    let mut rest = dims.iter();
    let all =
        (0..rank).map(|axis| if axes.contains(&axis) { Some(1) } else { rest.next().copied().flatten() });
    let all = all.collect();
    if rest.next().is_some() { wrong("an axis is given twice") } else { Ok(all) }
}

fn transpose(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let dims = call.dims(0)?;
    let Some(order) = call.list("perm") else { return Ok(dims.iter().rev().copied().collect()) };
    if order.len() != dims.len() || places(order, dims.len())?.len() != dims.len() {
        return wrong(format!("{order:?} is no order of the extents {}", shown(dims)));
    }
    order.iter().map(|&axis| Ok(dims[place(axis, dims.len())?])).collect()
}

fn expand(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let to = call.integers(1)?.iter().map(|&dim| extent(dim).map(Some)).collect::<Answer<Vec<_>>>()?;
    broadcast(call.dims(0)?, &to)
}

fn tile(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let dims = call.dims(0)?;
    if call.version < 6 {
        let (count, axis) = (call.integer(1)?, place(call.integer(2)?, dims.len())?);
        let mut dims = dims.to_vec();
        dims[axis] = times(dims[axis], Some(extent(count)?))?;
        return Ok(dims);
    }
    let counts = call.integers(1)?;
    if counts.len() != dims.len() {
        return wrong(format!("{} counts for {} extents", counts.len(), dims.len()));
    }
    dims.iter().zip(counts).map(|(&dim, &count)| times(dim, Some(extent(count)?))).collect()
}

fn concat(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let mut dims = call.dims(0)?.to_vec();
    let axis = place(call.number("axis", 1), dims.len())?;
    for at in 1..call.inputs.len() {
        let others = call.dims(at)?;
        let meets = |axis: usize| dims[axis].zip(others[axis]).is_none_or(|(one, other)| one == other);
        if others.len() != dims.len() || !(0..dims.len()).all(|other| other == axis || meets(other)) {
            return wrong(format!("{} does not meet {} along axis {axis}", shown(others), shown(&dims)));
        }
        for other in (0..dims.len()).filter(|&other| other != axis) {
            dims[other] = dims[other].or(others[other]);
        }
        dims[axis] = sum([dims[axis], others[axis]])?;
    }
    Ok(dims)
}

fn split(call: &Call<'_>) -> Answer<Vec<Made>> {
    let dims = call.dims(0)?;
    let axis = place(call.number("axis", 0), dims.len())?;
    let count = call.results();
    let parts: Vec<Extent> = match call.list_or_input("split", 1)? {
        Some(parts) => {
            let parts = parts.into_iter().map(|part| extent(part).map(Some)).collect::<Answer<Vec<_>>>()?;
            let all = sum(parts.iter().copied())?;
            if parts.len() < count || dims[axis].is_some_and(|dim| Some(dim) != all) {
                return wrong(format!(
                    "parts of {} do not make the extent {axis} of {}",
                    shown(&parts),
                    shown(dims)
                ));
            }
            parts
        }
        None => {
            let count = u64::try_from(call.number("num_outputs", count as i64)).unwrap_or(0).max(1);
            let part = |extent: u64, at: u64| {
                let each = extent.div_ceil(count);
                each.min(extent.saturating_sub(each.saturating_mul(at)))
            };
            (0..call.results() as u64).map(|at| dims[axis].map(|dim| part(dim, at))).collect()
        }
    };
    let with = |part: &Extent| {
        let mut dims = dims.to_vec();
        dims[axis] = *part;
        (call.data_type(0), dims)
    };
    Ok(parts.iter().take(count).map(with).collect())
}

fn slice(call: &Call<'_>) -> Answer<Vec<Extent>> {
    // Which bound is not known, if one is not.
    for at in 1..call.inputs.len().min(5) {
        if call.has(at) {
            call.integers(at)?;
        }
    }
    let dims = call.dims(0)?;
    let whole: Vec<u64> = dims.iter().map(|dim| dim.unwrap_or(0)).collect();
    let numbers = |name: &str| {
        let at = call.node.input.iter().skip(1).position(|input| input == name)?;
        call.integers(at + 1).ok().map(<[i64]>::to_vec)
    };
    let Some(Selection { dims: dims_in, .. }) = Selection::of(call.node, &whole, numbers) else {
        return wrong("its bounds are not those of its input");
    };
    let mut result: Vec<Extent> = dims_in.into_iter().map(Some).collect();
    for (axis, dim) in dims.iter().enumerate().filter(|(_, dim)| dim.is_none()) {
        result[axis] = *dim;
    }
    Ok(result)
}

fn pad(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let pads = match call.list("paddings") {
        Some(pads) => Some(pads.to_vec()),
        None => call.list_or_input("pads", 1)?,
    };
    let Some(pads) = pads else { return wrong("it has no pads") };
    let mut dims = call.dims(0)?.to_vec();
    let axes: Vec<usize> = if call.has(3) {
        call.integers(3)?.iter().map(|&axis| place(axis, dims.len())).collect::<Answer<_>>()?
    } else {
        (0..dims.len()).collect()
    };
    if pads.len() != 2 * axes.len() {
        return wrong(format!("{} pads for {} axes", pads.len(), axes.len()));
    }
    for (at, &axis) in axes.iter().enumerate() {
        let more = i128::from(pads[at]) + i128::from(pads[at + axes.len()]);
        let Some(dim) = dims[axis] else { continue };
        let padded_extent = u64::try_from(i128::from(dim) + more);
        dims[axis] =
            Some(padded_extent.or_else(|_| wrong(format!("the extent {dim} and {more} are less than 0")))?);
    }
    Ok(dims)
}

fn blocks(call: &Call<'_>, op: &str) -> Answer<Vec<Extent>> {
    let block = extent(call.number("blocksize", 0))?;
    let &[n, c, h, w] = call.dims(0)? else { return wrong("its input has not 4 extents") };
    let square = times(Some(block), Some(block))?;
    let quotient = |dim: Extent, by: Extent| match (dim, by) {
        (Some(dim), Some(by)) if by == 0 || dim % by != 0 => wrong(format!("{dim} is no multiple of {by}")),
        (Some(dim), Some(by)) => Ok(Some(dim / by)),
        _ => Ok(None),
    };
    let by = Some(block);
    Ok(if op == "DepthToSpace" {
        vec![n, quotient(c, square)?, times(h, by)?, times(w, by)?]
    } else {
        vec![n, times(c, square)?, quotient(h, by)?, quotient(w, by)?]
    })
}

fn center(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let mut dims = call.dims(0)?.to_vec();
    let to = call.integers(1)?;
    let axes: Vec<i64> = call.list("axes").map_or_else(|| (0..dims.len() as i64).collect(), <[i64]>::to_vec);
    if to.len() != axes.len() {
        return wrong(format!("{} extents for {} axes", to.len(), axes.len()));
    }
    for (&axis, &dim) in axes.iter().zip(to) {
        let axis = place(axis, dims.len())?;
        dims[axis] = Some(extent(dim)?);
    }
    Ok(dims)
}

fn col2im(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let &[n, columns, _] = call.dims(0)? else { return wrong("its input has not 3 extents") };
    let of =
        |at: usize| call.integers(at)?.iter().map(|&dim| extent(dim).map(Some)).collect::<Answer<Vec<_>>>();
    let (image, block) = (of(1)?, of(2)?);
    let channels = match (columns, product(&block)?) {
        (Some(columns), Some(block)) if block == 0 || columns % block != 0 => {
            return wrong(format!("{columns} is no multiple of {block}"));
        }
        (columns, block) => columns.zip(block).map(|(columns, block)| columns / block),
    };
    Ok([n, channels].into_iter().chain(image).collect())
}

fn resize(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let dims = call.dims(0)?;
    let (op, version) = (call.node.op_type.as_str(), call.version);
    let fill_value = |at: usize| {
        call.has(at)
            && call.inputs[at].as_ref().is_some_and(|fact| {
                // An empty list stands for none.
                fact.dims.as_deref() != Some(&[Some(0)])
            })
    };
    let reals = |at: usize| -> Answer<Vec<f64>> {
        let value = call.value(at)?;
        Ok((0..value.len()).map(|at| value.real(at)).collect())
    };
    let axes: Vec<usize> = match call.list("axes") {
        Some(axes) => axes.iter().map(|&axis| place(axis, dims.len())).collect::<Answer<_>>()?,
        None => (0..dims.len()).collect(),
    };
    let count = |list: usize| {
        if list == axes.len() {
            Ok(())
        } else {
            wrong(format!("{list} scales or sizes for {} axes", axes.len()))
        }
    };
    let mut to = dims.to_vec();
    if op == "Resize" && version >= 11 && fill_value(3) {
        let sizes = call.integers(3)?.iter().map(|&size| extent(size)).collect::<Answer<Vec<_>>>()?;
        count(sizes.len())?;
        let policy = call.text("keep_aspect_ratio_policy");
        let ratios = axes.iter().zip(&sizes).map(|(&axis, &size)| Some(size as f64 / dims[axis]? as f64));
        let ratio = match policy {
            "not_larger" => {
                ratios.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(f64::MAX, f64::min))
            }
            "not_smaller" => {
                ratios.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(0.0, f64::max))
            }
            _ => {
                axes.iter().zip(sizes).for_each(|(&axis, size)| to[axis] = Some(size));
                return Ok(to);
            }
        };
        for &axis in &axes {
            to[axis] = ratio.zip(dims[axis]).map(|(ratio, dim)| (ratio * dim as f64 + 0.5).floor() as u64);
        }
        return Ok(to);
    }
    let scales = match op {
        "Upsample" if version < 7 => {
            let scale = |name: &str| call.attribute(name).map_or(1.0, |attribute| f64::from(attribute.f));
            vec![1.0, 1.0, scale("height_scale"), scale("width_scale")]
        }
        "Upsample" if version < 9 => {
            let scales = call.attribute("scales").map(|a| a.floats.iter().map(|&scale| f64::from(scale)));
            scales.map(Iterator::collect).unwrap_or_default()
        }
        "Resize" if version >= 11 => reals(2)?,
        _ => reals(1)?,
    };
    count(scales.len())?;
    let crop = call.text("coordinate_transformation_mode") == "tf_crop_and_resize";
    let region = if crop { reals(1)? } else { Vec::new() };
    for (at, (&axis, &scale)) in axes.iter().zip(&scales).enumerate() {
        let part = match (region.get(at), region.get(at + axes.len())) {
            (Some(begin), Some(end)) => *end as f32 - *begin as f32,
            _ => 1.0,
        };
        // In 32 bits, as the standard's own inference and the runtimes compute it.
        let scaled_extent = dims[axis].map(|dim| (dim as f32 * part * scale as f32).floor());
        if scaled_extent.is_some_and(|dim| !(0.0..1.8e19).contains(&dim)) {
            return wrong(format!("a scale of {scale}"));
        }
        to[axis] = scaled_extent.map(|dim| dim as u64);
    }
    Ok(to)
}
