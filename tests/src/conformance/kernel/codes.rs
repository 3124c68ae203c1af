//! Code of one function in every language that a device may take.

use usm_core::Context;
use usm_kernel::{Code, Programmable};

use super::{formats, no_code, runs_kernels};

/// One function in three languages. `cargo xtask spirv` makes the SPIR-V from the OpenCL C.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    pub(super) opencl_c: &'static str,
    pub(super) spir_v: &'static [u8],
    pub(super) cuda_c: &'static str,
}

/// The files of that name in the folder of device code.
macro_rules! codes {
    ($name:literal) => {
        Codes {
            opencl_c: include_str!(concat!("device/", $name, ".cl")),
            spir_v: include_bytes!(concat!("device/", $name, ".spv")),
            cuda_c: include_str!(concat!("device/", $name, ".cu")),
        }
    };
}
pub(super) use codes;

impl Codes {
    /// The codes that the context's device takes. Reports if there is none.
    pub(super) fn taken<B: Programmable>(self, context: &Context<B>) -> impl Iterator<Item = Code<'static>> {
        let formats = formats(context);
        let all = [Code::OpenClC(self.opencl_c), Code::SpirV(self.spir_v), Code::CudaC(self.cuda_c)];
        if runs_kernels(context) && !all.iter().any(|code| formats.contains(code.format())) {
            no_code(context, "functions of a module");
        }
        all.into_iter().filter(move |code| formats.contains(code.format()))
    }
}
