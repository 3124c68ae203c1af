//! Code in contexts over OpenCL: built by OpenCL's functions, then wrapped as SYCL's objects.
//!
//! The C library's own functions build a `cl_program` and pass it to a function of SYCL, but they
//! take no compiled code and return none. This module does the same with a program that usm-opencl
//! builds, whose compiled code can be read. A context in which this is not possible uses the C
//! library's functions.

use alloc::sync::Arc;
use core::ffi::{c_char, c_int};

use super::{Api, Bundle, DpctlModule};
use crate::DpctlContext;
use crate::error::native;
use crate::loader::{Library, Raw};
use usm_core::BackendKind;
use usm_core::backend::{Backend as _, ContextOps};
use usm_core::driver::table;
use usm_kernel::BuildError;
use usm_opencl::{OpenCl, OpenClContext, OpenClModule};

/// The generations of SYCL that have the functions of [`Sycl`] as described there, by the sources
/// that `docs/adr/0049` names. A symbol does not name its result type.
const GENERATIONS: core::ops::RangeInclusive<u32> = 2024..=2026;

/// Size of a `sycl::kernel_bundle`, which is a `std::shared_ptr`.
const BUNDLE: usize = 2 * size_of::<usize>();

/// `sycl::bundle_state::executable`.
const EXECUTABLE: c_char = 2;
/// `sycl::backend::opencl`.
const OPENCL: c_char = 1;

/// Functions of C++ that the C library itself imports. They may throw, which unwinds to the caller
/// of this crate, so that the process ends or the caller's C++ catches it.
#[derive(Clone, Copy)]
struct Sycl {
    /// `sycl::device::getNative() const`: a `cl_device_id`.
    device_native: unsafe extern "C-unwind" fn(Raw) -> Raw,
    /// `sycl::context::getNative() const`: a `cl_context` with a reference for the caller.
    context_native: unsafe extern "C-unwind" fn(Raw) -> Raw,
    /// `sycl::detail::make_kernel_bundle(program, const context&, keep_ownership, state, backend)`.
    /// The first parameter is the place of the result, by the convention of x86-64.
    make_bundle: unsafe extern "C-unwind" fn(Raw, Raw, Raw, bool, c_char, c_char) -> Raw,
    /// `operator new(size_t)`, whose memory `DPCTLKernelBundle_Delete` frees.
    allocate: unsafe extern "C-unwind" fn(usize) -> Raw,
}

impl Sycl {
    fn of(library: &Library) -> Option<Self> {
        if !(cfg!(all(target_os = "linux", target_arch = "x86_64"))
            && GENERATIONS.contains(&library.generation()))
        {
            return None;
        }
        // SAFETY: in these generations the function has this signature.
        let device_native = unsafe { library.typed_function(c"_ZNK4sycl3_V16device9getNativeEv") }?;
        // SAFETY: as above.
        let context_native = unsafe { library.typed_function(c"_ZNK4sycl3_V17context9getNativeEv") }?;
        let name =
            c"_ZN4sycl3_V16detail18make_kernel_bundleEmRKNS0_7contextEbNS0_12bundle_stateENS0_7backendE";
        // SAFETY: as above.
        let make_bundle = unsafe { library.typed_function(name) }?;
        // SAFETY: the signature of the C++ standard.
        let allocate = unsafe { library.typed_function(c"_Znwm") }?;
        Some(Self { device_native, context_native, make_bundle, allocate })
    }
}

table! {
    /// Functions that count references.
    References in "libOpenCL.so.1" of OpenCl:
    needed {
        retain_program = "clRetainProgram"(Raw) -> c_int;
        release_context = "clReleaseContext"(Raw) -> c_int;
    }
    optional {}
}

/// Makes modules of OpenCL programs.
pub(super) struct Programs<'c> {
    context: &'c DpctlContext,
    sycl: Sycl,
    opencl: OpenClContext,
    references: References,
}

impl<'c> Programs<'c> {
    /// `None` if the context is not over OpenCL, has several devices, or one that usm-opencl does
    /// not list, or if a function is missing.
    pub(super) fn of(context: &'c DpctlContext) -> Option<Self> {
        let of_opencl = context.shared().info().selector_backend == BackendKind::OpenCl;
        if !of_opencl || !context.has_sole_device() {
            return None;
        }
        let sycl = Sycl::of(context.library())?;
        let backend = OpenCl::load().ok()?;
        // SAFETY: a live `sycl::device` over OpenCL.
        let device = unsafe { (sycl.device_native)(context.device().handle().raw()) };
        // Another library than SYCL's may be open here, which must not get SYCL's objects. Only
        // the same driver lists the same device.
        let mut is_listed = false;
        backend.for_each_device(&mut |known| is_listed |= known.as_raw() == device).ok()?;
        if !is_listed {
            return None;
        }
        // SAFETY: a live `sycl::context` over OpenCL.
        let native = unsafe { (sycl.context_native)(context.native().raw()) };
        // SAFETY: a live `cl_context` of a driver that usm-opencl's library opened. A failure is
        // that of taking a reference or of a query; the context then lives as long as the process.
        let opencl = unsafe { OpenClContext::from_raw(&backend, native) }.ok()?;
        let find = |name: &core::ffi::CStr| usm_opencl::raw::function(&opencl, name);
        // SAFETY: the signatures of the OpenCL specification.
        let references = unsafe { References::bind(0, find) }.ok()?;
        // SAFETY: the reference of `getNative`; `opencl` has its own.
        let _ = unsafe { (references.release_context)(native) };
        Some(Self { context, sycl, opencl, references })
    }

    /// The module of the program that `build` makes.
    pub(super) fn bundle(
        &self,
        api: Api,
        build: impl FnOnce(&OpenClContext) -> Result<OpenClModule, BuildError>,
    ) -> Result<DpctlModule, BuildError> {
        let program = build(&self.opencl).map_err(|error| match error {
            BuildError::Compile { log, options, native, .. } => {
                BuildError::Compile { log, options, backend: BackendKind::Sycl, native }
            }
            error => error,
        })?;
        let raw = program.as_raw();
        // SAFETY: a live program. SYCL gets this reference, because it does not keep ours.
        if unsafe { (self.references.retain_program)(raw) } != 0 {
            return Err(native("clRetainProgram").into());
        }
        // SAFETY: a size that is not zero. The result is not NULL, by the C++ standard.
        let bundle = unsafe { (self.sycl.allocate)(BUNDLE) };
        let context = self.context.native().raw();
        // SAFETY: space for the result; a built program of the live context, with a reference that
        // SYCL may release.
        unsafe { (self.sycl.make_bundle)(bundle, raw, context, false, EXECUTABLE, OPENCL) };
        Ok(DpctlModule(Arc::new(Bundle { api, raw: bundle, program: Some(program) })))
    }
}
