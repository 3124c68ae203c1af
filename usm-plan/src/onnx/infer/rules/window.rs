//! Convolutions, pools, and other operators whose results have an element for each position of a
//! window.

use super::super::call::{Answer, Call, Extent, Made, Refusal, extent, shown, times, wrong};
use crate::onnx::element::{INT32, INT64};

pub(super) fn results(call: &Call<'_>, op: &str) -> Option<Answer<Vec<Made>>> {
    Some(match op {
        "Conv" | "DeformConv" => conv(call, 1).map(|dims| vec![(call.data_type(0), dims)]),
        "ConvInteger" => conv(call, 1).map(|dims| vec![(INT32, dims)]),
        "QLinearConv" => conv(call, 3).map(|dims| vec![(call.data_type(7), dims)]),
        "ConvTranspose" => conv_transpose(call).map(|dims| vec![(call.data_type(0), dims)]),
        "AveragePool" | "LpPool" | "MaxPool" => pool(call),
        "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => global(call),
        "MaxUnpool" => max_unpool(call),
        "MaxRoiPool" | "RoiAlign" => regions(call, op),
        "GridSample" => grid_sample(call),
        "AffineGrid" => affine_grid(call),
        _ => return None,
    })
}

/// The attributes of a window, an entry for each axis.
struct Window<'a> {
    kernel: Vec<Extent>,
    strides: Vec<u64>,
    dilations: Vec<u64>,
    /// What is added before and after.
    pads: Vec<(i64, i64)>,
    auto: &'a str,
    ceil: bool,
}

impl<'a> Window<'a> {
    /// `weights`: the kernel's extents where no attribute states them.
    fn of(call: &'a Call<'_>, rank: usize, weights: Option<&[Extent]>) -> Answer<Self> {
        let list = |name: &str, default: u64| -> Answer<Vec<u64>> {
            let Some(list) = call.list(name) else { return Ok(vec![default; rank]) };
            if list.len() != rank {
                return wrong(format!("{} {name} for {rank} axes", list.len()));
            }
            list.iter().map(|&number| extent(number)).collect()
        };
        let kernel = match (call.list("kernel_shape"), weights) {
            (Some(_), _) => list("kernel_shape", 1)?.into_iter().map(Some).collect(),
            (None, Some(weights)) => weights.to_vec(),
            (None, None) => return wrong("it has no kernel_shape"),
        };
        if kernel.len() != rank {
            return wrong(format!("a kernel of {} for {rank} axes", shown(&kernel)));
        }
        let pads = call.list("pads").map_or_else(|| vec![0; 2 * rank], <[i64]>::to_vec);
        if pads.len() != 2 * rank {
            return wrong(format!("{} pads for {rank} axes", pads.len()));
        }
        let (strides, dilations) = (list("strides", 1)?, list("dilations", 1)?);
        if strides.contains(&0) {
            return wrong("a stride of 0");
        }
        let pads = (0..rank).map(|axis| (pads[axis], pads[axis + rank])).collect();
        let auto = call.text("auto_pad");
        Ok(Self { kernel, strides, dilations, pads, auto, ceil: call.flag("ceil_mode") })
    }

    /// The kernel's extent with the gaps of its dilation.
    fn span(&self, axis: usize) -> Extent {
        let kernel = self.kernel[axis]?;
        kernel.checked_sub(1)?.checked_mul(self.dilations[axis])?.checked_add(1)
    }

    /// The number of positions along an axis of this extent.
    fn count(&self, axis: usize, dim: Extent) -> Answer<Extent> {
        let (Some(dim), Some(span)) = (dim, self.span(axis)) else { return Ok(None) };
        let stride = i128::from(self.strides[axis]);
        let (dim, span) = (i128::from(dim), i128::from(span));
        let (before, after) = match self.auto {
            "SAME_UPPER" | "SAME_LOWER" => return Ok(u64::try_from((dim + stride - 1) / stride).ok()),
            "VALID" => (0, 0),
            _ => (i128::from(self.pads[axis].0), i128::from(self.pads[axis].1)),
        };
        let room = dim + before + after - span;
        if room < 0 {
            return wrong(format!(
                "a window of {span} on an extent of {dim} with pads of {before} and {after}"
            ));
        }
        let mut count = if self.ceil { (room + stride - 1) / stride } else { room / stride } + 1;
        // The last window begins inside the input or the pads before it.
        if self.ceil && (count - 1) * stride >= dim + before {
            count -= 1;
        }
        u64::try_from(count).map(Some).map_err(|_| Refusal::Wrong(format!("{count} positions of a window")))
    }

    fn counts(&self, dims: &[Extent]) -> Answer<Vec<Extent>> {
        dims.iter().enumerate().map(|(axis, &dim)| self.count(axis, dim)).collect()
    }

    /// The extent from which a window makes this one.
    fn origin(&self, axis: usize, dim: Extent, more: u64) -> Answer<Extent> {
        let (Some(dim), Some(span)) = (dim, self.span(axis)) else { return Ok(None) };
        let stride = i128::from(self.strides[axis]);
        if matches!(self.auto, "SAME_UPPER" | "SAME_LOWER") {
            return Ok(u64::try_from(i128::from(dim) * stride).ok());
        }
        let (before, after) = if self.auto == "VALID" { (0, 0) } else { self.pads[axis] };
        let extent = stride * (i128::from(dim) - 1) + i128::from(more) + i128::from(span)
            - i128::from(before)
            - i128::from(after);
        u64::try_from(extent).map(Some).map_err(|_| Refusal::Wrong(format!("an extent of {extent}")))
    }
}

/// A convolution, whose weights are this input.
fn conv(call: &Call<'_>, weights: usize) -> Answer<Vec<Extent>> {
    let (dims, weights) = (call.dims_of_rank(0, 2)?, call.dims_of_rank(weights, 2)?);
    let window = Window::of(call, dims.len() - 2, Some(&weights[2..]))?;
    let group = extent(call.number("group", 1))?;
    if let (Some(channels), Some(own)) = (dims[1], weights[1])
        && own.checked_mul(group) != Some(channels)
    {
        return wrong(format!("{channels} channels for weights of {own} in {group} groups"));
    }
    Ok([&[dims[0], weights[0]], &window.counts(&dims[2..])?[..]].concat())
}

fn conv_transpose(call: &Call<'_>) -> Answer<Vec<Extent>> {
    let (dims, weights) = (call.dims_of_rank(0, 2)?, call.dims_of_rank(1, 2)?);
    let rank = dims.len() - 2;
    let window = Window::of(call, rank, Some(&weights[2..]))?;
    let channels = times(weights[1], Some(extent(call.number("group", 1))?))?;
    let mut result = vec![dims[0], channels];
    if let Some(spatial_dims) = call.list("output_shape") {
        // Some exporters state the batch and the channels too.
        let Some(output_shape) = spatial_dims.len().checked_sub(rank).map(|first| &spatial_dims[first..])
        else {
            return wrong(format!("an output_shape of {} for {rank} axes", spatial_dims.len()));
        };
        for &dim in output_shape {
            result.push(Some(extent(dim)?));
        }
        return Ok(result);
    }
    let more = call.list("output_padding").unwrap_or_default();
    for (axis, &dim) in dims[2..].iter().enumerate() {
        result.push(window.origin(axis, dim, extent(more.get(axis).copied().unwrap_or(0))?)?);
    }
    Ok(result)
}

fn pool(call: &Call<'_>) -> Answer<Vec<Made>> {
    let dims = call.dims_of_rank(0, 2)?;
    let window = Window::of(call, dims.len() - 2, None)?;
    let dims = [&dims[..2], &window.counts(&dims[2..])?[..]].concat();
    Ok(vec![(call.data_type(0), dims.clone()), (INT64, dims)])
}

fn global(call: &Call<'_>) -> Answer<Vec<Made>> {
    let dims = call.dims_of_rank(0, 2)?;
    let dims = dims.iter().enumerate().map(|(axis, &dim)| if axis < 2 { dim } else { Some(1) }).collect();
    Ok(vec![(call.data_type(0), dims)])
}

fn max_unpool(call: &Call<'_>) -> Answer<Vec<Made>> {
    let dims = call.dims_of_rank(0, 2)?;
    if call.has(2) {
        let output_dims =
            call.integers(2)?.iter().map(|&dim| extent(dim).map(Some)).collect::<Answer<_>>()?;
        return Ok(vec![(call.data_type(0), output_dims)]);
    }
    let window = Window::of(call, dims.len() - 2, None)?;
    let spatial = dims[2..].iter().enumerate().map(|(axis, &dim)| window.origin(axis, dim, 0));
    let dims = [&dims[..2], &spatial.collect::<Answer<Vec<_>>>()?[..]].concat();
    Ok(vec![(call.data_type(0), dims)])
}

fn regions(call: &Call<'_>, op: &str) -> Answer<Vec<Made>> {
    let (dims, regions) = (call.dims_of_rank(0, 2)?, call.dims_of_rank(1, 1)?);
    let (height, width) = if op == "RoiAlign" {
        (call.number("output_height", 1), call.number("output_width", 1))
    } else {
        match call.list("pooled_shape") {
            Some(&[height, width]) => (height, width),
            _ => return wrong("its pooled_shape is not 2 extents"),
        }
    };
    let dims = vec![regions[0], dims[1], Some(extent(height)?), Some(extent(width)?)];
    Ok(vec![(call.data_type(0), dims)])
}

fn grid_sample(call: &Call<'_>) -> Answer<Vec<Made>> {
    let (dims, grid) = (call.dims_of_rank(0, 2)?, call.dims_of_rank(1, 2)?);
    let dims = [&dims[..2], &grid[1..grid.len() - 1]].concat();
    Ok(vec![(call.data_type(0), dims)])
}

fn affine_grid(call: &Call<'_>) -> Answer<Vec<Made>> {
    let size = call.integers(1)?.iter().map(|&dim| extent(dim).map(Some)).collect::<Answer<Vec<_>>>()?;
    let [n, _, spatial @ ..] = &size[..] else { return wrong("its size has not 4 or 5 extents") };
    let dims = [&[*n], spatial, &[Some(spatial.len() as u64)]].concat();
    Ok(vec![(call.data_type(0), dims)])
}
