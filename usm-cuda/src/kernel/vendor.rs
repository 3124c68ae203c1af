//! Differences between CUDA and HIP for kernels besides the names in the tables: constants and
//! words.
//!
//! From the headers `cuda.h`, `hip_runtime_api.h` and `hiprtc.h`. Error codes and attributes of
//! functions are the same in both.

use crate::CudaContext;
use usm_core::backend::ContextOps;
use usm_core::{BackendKind, Error, ErrorKind};

use super::compiler::{self, Compiler};
use usm_kernel::Formats;

#[derive(Debug)]
pub(super) struct Vendor {
    /// Index of the vendor's name in a row of the tables.
    pub(super) column: usize,
    pub(super) backend: BackendKind,
    pub(super) formats: Formats,
    /// Device attributes: lanes of a warp or wavefront, and for CUDA's compiler the two numbers of
    /// the compute capability.
    pub(super) warp_size: i32,
    pub(super) capability: Option<[i32; 2]>,
    pub(super) compiler: &'static Compiler,
    /// Function names in errors.
    pub(super) load: &'static str,
    pub(super) function: &'static str,
    pub(super) launch: &'static str,
}

static NVIDIA: Vendor = Vendor {
    column: 0,
    backend: BackendKind::Cuda,
    formats: Formats::PTX.union(Formats::CUBIN).union(Formats::CUDA_C),
    warp_size: 10,
    capability: Some([75, 76]),
    compiler: &compiler::NVRTC,
    load: "cuModuleLoadDataEx",
    function: "cuModuleGetFunction",
    launch: "cuLaunchKernel",
};

static AMD: Vendor = Vendor {
    column: 1,
    backend: BackendKind::Hip,
    formats: Formats::CUBIN.union(Formats::CUDA_C),
    warp_size: 87,
    // AMD's compiler queries the device itself.
    capability: None,
    compiler: &compiler::HIPRTC,
    load: "hipModuleLoadDataEx",
    function: "hipModuleGetFunction",
    launch: "hipModuleLaunchKernel",
};

impl Vendor {
    pub(super) fn of(context: &CudaContext) -> &'static Self {
        match context.shared().info().backend {
            BackendKind::Hip => &AMD,
            _ => &NVIDIA,
        }
    }

    pub(super) fn native(&self, operation: &'static str, status: i32) -> Error {
        let error = Error::from(ErrorKind::Native { operation });
        error.in_backend(self.backend).with_native(i64::from(status))
    }
}
