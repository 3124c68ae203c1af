//! Plans of ONNX models.

use core::ffi::{CStr, c_char, c_int};

use super::error::guarded;
use super::export::export;
use super::memory::{bytes, check_array, into_c};
use super::record::Options;
use super::{UsmPlan, null, planned};
use crate::error::{Error, Result};
use crate::request::Source;

/// The model's name in messages.
const MODEL: &str = "model";

/// A dimension or an input with its value, in the header's layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the header's layout")]
pub struct UsmPlanValue {
    name: *const c_char,
    value: *const c_char,
}

/// The caller's pairs of names and values. `list` is the name of the array in messages.
///
/// # Safety
/// `from` is null or has `count` pairs of null or texts with a final 0.
unsafe fn pairs(from: *const UsmPlanValue, count: usize, list: &str) -> Result<Vec<(String, String)>> {
    check_array(from, count, list)?;
    let text = |at: *const c_char, number: usize, field: &str| {
        let place = format!("{list}[{number}].{field}");
        if at.is_null() {
            return Err(null(&place));
        }
        // SAFETY: the contract demands a text with a final 0.
        let text = unsafe { CStr::from_ptr(at) }.to_str();
        text.map(str::to_owned).map_err(|error| Error::bad(error).in_field(&place))
    };
    let pair = |number: usize| {
        // SAFETY: the contract demands `count` pairs; null and misalignment were refused.
        let pair = unsafe { from.add(number).read() };
        Ok((text(pair.name, number, "name")?, text(pair.value, number, "value")?))
    };
    (0..count).map(pair).collect()
}

export! {
    /// Plans an ONNX model.
    fn usm_plan_model(
        onnx: *const u8,
        length: usize,
        dims: *const UsmPlanValue,
        dim_count: usize,
        inputs: *const UsmPlanValue,
        input_count: usize,
        options: *const Options,
        plan: *mut *mut UsmPlan,
    ) -> c_int {
        guarded(|| {
            check_array(plan, 1, "plan")?;
            // SAFETY: the contract demands room for one plan.
            unsafe { plan.write(core::ptr::null_mut()) };
            // SAFETY: the contract demands null or a struct of the size in its first word.
            let mut request = unsafe { Options::read(options) }?.request()?;
            // SAFETY: the contract demands null or this many pairs of texts.
            let dims = unsafe { pairs(dims, dim_count, "dims") }?;
            for (number, (name, values)) in dims.into_iter().enumerate() {
                let place = || format!("dims[{number}].value");
                let values = values.parse().map_err(|error: String| Error::bad(error).in_field(place()))?;
                request.dims.push((name, values));
            }
            // SAFETY: as above.
            request.values = unsafe { pairs(inputs, input_count, "inputs") }?;
            // SAFETY: the contract demands null or this many bytes, unchanged meanwhile.
            let onnx = unsafe { bytes(onnx, length, "onnx") }?;
            let kind = planned(request, Source::model(MODEL, onnx.to_vec()))?;
            // SAFETY: room for one, by contract.
            unsafe { plan.write(into_c(UsmPlan { kind })) };
            Ok(())
        })
    }
}
