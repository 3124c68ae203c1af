//! Operators whose results have extents that they are told, and signals.

use super::super::call::{Answer, Call, Extent, Made, Refusal, extent, place, wrong};
use super::super::value::Value;
use crate::onnx::element::{FLOAT, INT32, INT64, UINT8};

/// Most extents of a value whose shape is an input.
const MOST_EXTENTS: u64 = 64;

pub(super) fn results(call: &Call<'_>, op: &str) -> Option<Answer<Vec<Made>>> {
    let result = match op {
        "Shape" => shape(call),
        "Size" => Ok((INT64, Vec::new())),
        "ConstantOfShape" => constant_of_shape(call),
        "Range" => range(call),
        "RandomNormal" | "RandomUniform" => random(call),
        "Multinomial" => multinomial(call),
        "BlackmanWindow" | "HammingWindow" | "HannWindow" => call
            .integer(0)
            .and_then(extent)
            .map(|size| (call.type_of("output_datatype", FLOAT), vec![Some(size)])),
        "MelWeightMatrix" => mel(call),
        "DFT" => dft(call),
        "STFT" => stft(call),
        "ImageDecoder" => {
            let channels = if call.text("pixel_format") == "Grayscale" { 1 } else { 3 };
            Ok((UINT8, vec![None, None, Some(channels)]))
        }
        _ => return None,
    };
    Some(result.map(|result| vec![result]))
}

fn shape(call: &Call<'_>) -> Answer<Made> {
    let rank = call.dims(0)?.len();
    Ok((INT64, vec![Some(shape_range(call, rank).len() as u64)]))
}

/// The axes whose extents the operator Shape returns.
pub(in crate::onnx::infer) fn shape_range(call: &Call<'_>, rank: usize) -> core::ops::Range<usize> {
    let bound = |name: &str, default: i64| {
        let at = call.number(name, default);
        let at = if at < 0 { at.saturating_add(rank as i64) } else { at };
        usize::try_from(at).unwrap_or(0).min(rank)
    };
    let (start, end) = (bound("start", 0), bound("end", rank as i64));
    start..end.max(start)
}

fn constant_of_shape(call: &Call<'_>) -> Answer<Made> {
    let data_type = call.attribute("value").and_then(|attribute| attribute.t.as_ref());
    let data_type = data_type.map_or(FLOAT, |tensor| tensor.data_type);
    if let &[Some(rank)] = call.dims(0)?
        && rank > MOST_EXTENTS
    {
        return wrong(format!("{rank} extents, above {MOST_EXTENTS}"));
    }
    let dims = call.integers(0)?.iter().map(|&dim| extent(dim).map(Some));
    Ok((data_type, dims.collect::<Answer<_>>()?))
}

fn range(call: &Call<'_>) -> Answer<Made> {
    let count = match (call.value(0)?, call.value(1)?, call.value(2)?) {
        (Value::Integers(start), Value::Integers(limit), Value::Integers(step)) => {
            let (&[start], &[limit], &[step]) = (&start[..], &limit[..], &step[..]) else {
                return wrong("its bounds are not one number each");
            };
            let (room, step) = (i128::from(limit) - i128::from(start), i128::from(step));
            if step == 0 {
                return wrong("a step of 0");
            }
            // Rounded up, for both signs of the step.
            let count = room / step + i128::from(room % step != 0 && (room < 0) == (step < 0));
            u64::try_from(count.max(0)).map_err(|_| Refusal::Wrong(format!("{count} elements")))?
        }
        (start, limit, step) => {
            if [start, limit, step].iter().any(|value| value.len() != 1) {
                return wrong("its bounds are not one number each");
            }
            let count = ((limit.real(0) - start.real(0)) / step.real(0)).ceil();
            if !count.is_finite() || count >= 1.8e19 {
                return wrong(format!("{count} elements"));
            }
            count.max(0.0) as u64
        }
    };
    Ok((call.data_type(0), vec![Some(count)]))
}

fn random(call: &Call<'_>) -> Answer<Made> {
    let Some(dims) = call.list("shape") else { return wrong("it has no shape") };
    let dims = dims.iter().map(|&dim| extent(dim).map(Some)).collect::<Answer<_>>()?;
    Ok((call.type_of("dtype", FLOAT), dims))
}

fn multinomial(call: &Call<'_>) -> Answer<Made> {
    let batch = call.dims_of_rank(0, 1)?[0];
    Ok((call.type_of("dtype", INT32), vec![batch, Some(extent(call.number("sample_size", 1))?)]))
}

fn mel(call: &Call<'_>) -> Answer<Made> {
    let (bins, length) = (extent(call.integer(0)?)?, extent(call.integer(1)?)?);
    Ok((call.type_of("output_datatype", FLOAT), vec![Some(length / 2 + 1), Some(bins)]))
}

fn dft(call: &Call<'_>) -> Answer<Made> {
    let mut dims = call.dims_of_rank(0, 2)?.to_vec();
    let axis = if call.version >= 20 {
        if call.has(2) { call.integer(2)? } else { -2 }
    } else {
        call.number("axis", 1)
    };
    let (axis, last) = (place(axis, dims.len())?, dims.len() - 1);
    if call.has(1) {
        dims[axis] = Some(extent(call.integer(1)?)?);
    }
    let half = call.flag("onesided");
    if half && call.flag("inverse") {
        // Half of a spectrum becomes a real signal.
        dims[last] = Some(1);
        if !call.has(1) {
            dims[axis] = dims[axis].map(|bins| bins.saturating_sub(1).saturating_mul(2));
        }
    } else {
        if half {
            dims[axis] = dims[axis].map(|length| length / 2 + 1);
        }
        dims[last] = Some(2);
    }
    Ok((call.data_type(0), dims))
}

fn stft(call: &Call<'_>) -> Answer<Made> {
    let signal = call.dims_of_rank(0, 2)?;
    let (batch, length) = (signal[0], signal[1]);
    let step = extent(call.integer(1)?)?;
    let frame: Extent = if call.has(3) {
        Some(extent(call.integer(3)?)?)
    } else if call.has(2) {
        call.dims_of_rank(2, 1)?[0]
    } else {
        length
    };
    if step == 0 {
        return wrong("a frame_step of 0");
    }
    let frames = match (length, frame) {
        (Some(length), Some(frame)) if frame > length => {
            return wrong(format!("frames of {frame} in a signal of {length}"));
        }
        (Some(length), Some(frame)) => Some((length - frame) / step + 1),
        _ => None,
    };
    let bins = if call.number("onesided", 1) != 0 { frame.map(|frame| frame / 2 + 1) } else { frame };
    Ok((call.data_type(0), vec![batch, frames, bins, Some(2)]))
}
