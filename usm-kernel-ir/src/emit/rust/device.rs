//! The code of a kernel for devices, as constants.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::{SpirV, c, checked, function};
use super::Writer;
use crate::kernel::{Kernel, Parameter};
use crate::proof::Claims;
use crate::text;

impl Writer<'_> {
    pub(super) fn device_code(&mut self, kernel: &Kernel, claims: &Claims, spir_v: Option<&SpirV>) {
        let path = self.path;
        let d = kernel.dimensions;
        let lengths = kernel.lengths();
        let positions = lengths.iter().map(|id| match kernel.argument_of(*id) {
            (position, 1) => format!("__lengths[{position}] as u64"),
            (position, times) => format!("__lengths[{position}] as u64 * {times}"),
        });
        let numbers = positions.collect::<Vec<_>>().join(", ");
        let some = |text: String| format!("::core::option::Option::Some({text})");
        let bytes = |bytes: &[u8]| {
            let letters = bytes.iter().flat_map(|byte| core::ascii::escape_default(*byte)).map(char::from);
            some(format!("b\"{}\"", letters.collect::<String>()))
        };
        let none = "::core::option::Option::None";
        let module = spir_v.map_or(none.to_string(), |modules| bytes(&modules.plain));
        self.line(&format!("const FUNCTION: &'static str = {:?};", function(kernel)));
        self.line(&format!(
            "const IR: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", text::write(kernel)))
        ));
        self.line(&format!(
            "const OPENCL_C: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", c::opencl_c(kernel)))
        ));
        self.line(&format!(
            "const CUDA_C: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", c::cuda_c(kernel)))
        ));
        self.line(&format!("const SPIR_V: ::core::option::Option<&'static [u8]> = {module};"));
        let strides: Vec<_> =
            kernel.strides().into_iter().map(|id| self.place(Parameter::Value(id))).collect();
        if !strides.is_empty() {
            self.line(&format!("const STRIDES: &'static [usize] = &{strides:?};"));
        }
        if kernel.is_guarded() {
            self.line("const GUARDED: bool = true;");
        }
        if !claims.bounds.is_empty() {
            let lengths = checked::lengths(kernel, claims);
            let lengths: Vec<_> = lengths.iter().map(|id| kernel.argument_of(*id)).collect();
            let places = checked::places(claims);
            let places = places.iter().map(|(array, place)| self.checked_place(*array, *place));
            let places = places.collect::<Vec<_>>().join(", ");
            let module = spir_v.map_or(none.to_string(), |modules| bytes(&modules.checked));
            let code = format!(
                "{path}::generated::CheckedCode {{ function: {:?}, opencl_c: {}, cuda_c: {}, spir_v: {module}, ptx: {none}, lengths: &{lengths:?}, places: &[{places}] }}",
                checked::function(kernel),
                some(format!("{:?}", checked::opencl_c(kernel, claims))),
                some(format!("{:?}", checked::cuda_c(kernel, claims))),
            );
            self.line(&format!(
                "const CHECKED: ::core::option::Option<{path}::generated::CheckedCode> = {};",
                some(code)
            ));
        }
        self.line(&format!("type Numbers = [u64; {}];", lengths.len()));
        self.line(&format!(
            "fn numbers(&self, _: &{path}::NdRange<{d}>, __lengths: &[usize]) -> [u64; {}] {{ let _ = __lengths; [{numbers}] }}",
            lengths.len()
        ));
    }

    fn place(&self, target: Parameter) -> usize {
        self.kernel.parameters.iter().position(|parameter| *parameter == target).unwrap_or(0)
    }
}
