//! Kernels on SYCL through dpctl's C library: OpenCL C and SPIR-V.
//!
//! - SYCL's fastest dimension is the last one, which is OpenCL's first, so code sees the same ids
//!   as natively on OpenCL.
//! - The library may print the compiler's log, but returns neither it nor compiled code. In
//!   contexts over OpenCL, `programs` builds with OpenCL's functions, which return both.
//! - Values of 1, 2, 4 and 8 bytes are scalars; other sizes need a raw argument, which exists since
//!   version 0.18.

#[cfg(feature = "opencl")]
mod programs;

use alloc::ffi::CString;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use crate::error::{self, native};
use crate::loader::Raw;
use crate::{Dpctl, DpctlContext, DpctlEvent, DpctlQueue, raw};
use usm_core::{BackendKind, Error, ErrorKind};

use usm_core::driver::table;
use usm_kernel::backend::driver::{FEW_ARGUMENTS, MOST_ARGUMENTS, text};
use usm_kernel::backend::{Grid, Programmable, Slot};
use usm_kernel::{BuildError, Code, Formats, FunctionInfo, Shape};

/// `DPCTLKernelArgType`; numbers 0 to 11 are the same in all generations of the library.
mod kind {
    use core::ffi::c_int;

    pub(super) const U8: c_int = 1;
    pub(super) const U16: c_int = 3;
    pub(super) const U32: c_int = 5;
    pub(super) const U64: c_int = 7;
    pub(super) const POINTER: c_int = 10;
    pub(super) const LOCAL: c_int = 11;
    pub(super) const RAW: c_int = 13;
}

table! {
    /// The functions for kernels.
    Api in "libDPCTLSyclInterface.so" of Sycl:
    needed {
        build_source = "DPCTLKernelBundle_CreateFromOCLSource"(Raw, Raw, *const c_char, *const c_char) -> Raw;
        bundle_delete = "DPCTLKernelBundle_Delete"(Raw);
        has_kernel = "DPCTLKernelBundle_HasKernel"(Raw, *const c_char) -> bool;
        kernel = "DPCTLKernelBundle_GetKernel"(Raw, *const c_char) -> Raw;
        kernel_delete = "DPCTLKernel_Delete"(Raw);
        argument_count = "DPCTLKernel_GetNumArgs"(Raw) -> usize;
        work_group_size = "DPCTLKernel_GetWorkGroupSize"(Raw) -> usize;
        preferred_multiple = "DPCTLKernel_GetPreferredWorkGroupSizeMultiple"(Raw) -> usize;
        private_size = "DPCTLKernel_GetPrivateMemSize"(Raw) -> usize;
        submit_range = "DPCTLQueue_SubmitRange"
            (Raw, Raw, *const Raw, *const c_int, usize, *const usize, usize, *const Raw, usize) -> Raw;
        submit_nd_range = "DPCTLQueue_SubmitNDRange"
            (Raw, Raw, *const Raw, *const c_int, usize, *const usize, *const usize, usize, *const Raw, usize) -> Raw;
    }
    optional {
        build_il = "DPCTLKernelBundle_CreateFromSpirv"(Raw, Raw, *const c_void, usize, *const c_char) -> Raw;
        /// Exists since the function above has its new signature.
        build_sycl = "DPCTLKernelBundle_CreateFromSYCLSource"();
        raw_argument = "DPCTLRawKernelArg_Create"(*const c_void, usize) -> Raw;
        raw_argument_delete = "DPCTLRawKernelArg_Delete"(Raw);
    }
}

/// A `sycl::kernel_bundle`.
#[derive(Debug)]
pub struct DpctlModule(Arc<Bundle>);

#[derive(Debug)]
struct Bundle {
    api: Api,
    raw: Raw,
    /// The program behind the bundle, if this crate built it.
    #[cfg(feature = "opencl")]
    program: Option<usm_opencl::OpenClModule>,
}

/// A `sycl::kernel`.
#[derive(Debug)]
pub struct DpctlFunction {
    bundle: Arc<Bundle>,
    raw: Raw,
}

// SAFETY: SYCL's runtime classes are counted references to thread-safe objects, and submitting does
// not change them.
unsafe impl Send for Bundle {}
// SAFETY: as above.
unsafe impl Sync for Bundle {}
// SAFETY: as above.
unsafe impl Send for DpctlFunction {}
// SAFETY: as above.
unsafe impl Sync for DpctlFunction {}

impl Drop for Bundle {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        // SAFETY: owned, deleted once.
        unsafe { (self.api.bundle_delete)(self.raw) };
    }
}

impl Drop for DpctlFunction {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        // SAFETY: owned, deleted once; the runtime keeps the kernel alive while a launch is in
        // flight.
        unsafe { (self.bundle.api.kernel_delete)(self.raw) };
    }
}

/// The struct behind `DPCTL_LOCAL_ACCESSOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LocalAccessor {
    dimensions: usize,
    element: c_int,
    sizes: [usize; 3],
}

fn unsupported(operation: &'static str) -> Error {
    error::of(ErrorKind::Unsupported { operation })
}

fn api(context: &DpctlContext) -> usm_core::Result<Api> {
    // SAFETY: the signatures are those of the public C headers of the versions that usm-core opens.
    unsafe { Api::bind(0, |name| raw::function(context, name)) }
}

// SAFETY: the library returns the event of the submission, or NULL if nothing was submitted; the
// runtime counts references.
unsafe impl Programmable for Dpctl {
    type Module = DpctlModule;
    type Function = DpctlFunction;

    fn formats(context: &DpctlContext) -> Formats {
        match api(context) {
            Ok(Api { build_il: Some(_), build_sycl: None, .. }) => Formats::OPENCL_C | Formats::SPIR_V,
            Ok(_) => Formats::OPENCL_C,
            Err(_) => Formats::empty(),
        }
    }

    fn build(context: &DpctlContext, code: &Code<'_>, options: &str) -> Result<DpctlModule, BuildError> {
        let api = api(context)?;
        #[cfg(feature = "opencl")]
        if let Some(programs) = programs::Programs::of(context) {
            return programs.bundle(api, |context| usm_opencl::OpenCl::build(context, code, options));
        }
        let (native_context, device) = (raw::context(context), raw::device(context));
        let native_options: CString = text("options", options)?;
        let result = match *code {
            Code::OpenClC(source) => {
                let source = text("source", source)?;
                // SAFETY: live context and device, strings that end in NUL.
                unsafe {
                    (api.build_source)(native_context, device, source.as_ptr(), native_options.as_ptr())
                }
            }
            Code::SpirV(words) => {
                let build = api.build_il.filter(|_| api.build_sycl.is_none());
                let build = build.ok_or_else(|| unsupported("SPIR-V with this version of the library"))?;
                let (start, len) = (words.as_ptr().cast(), words.len());
                // SAFETY: live context and device, as many bytes as passed, a string that ends in
                // NUL.
                unsafe { build(native_context, device, start, len, native_options.as_ptr()) }
            }
            _ => return Err(unsupported("this code").into()),
        };
        if result.is_null() {
            let log = log_of(context, code, options);
            let options = options.to_string();
            return Err(BuildError::Compile { log, options, backend: BackendKind::Sycl, native: None });
        }
        Ok(DpctlModule(Arc::new(Bundle {
            api,
            raw: result,
            #[cfg(feature = "opencl")]
            program: None,
        })))
    }

    #[cfg(feature = "opencl")]
    fn native(module: &DpctlModule) -> Option<alloc::vec::Vec<u8>> {
        usm_opencl::OpenCl::native(module.0.program.as_ref()?)
    }

    #[cfg(feature = "opencl")]
    fn build_native(context: &DpctlContext, code: &[u8]) -> Result<DpctlModule, BuildError> {
        let programs = programs::Programs::of(context);
        let programs = programs.ok_or_else(|| unsupported("code in binary form"))?;
        programs.bundle(api(context)?, |context| usm_opencl::OpenCl::build_native(context, code))
    }

    fn function(module: &DpctlModule, name: &CStr) -> Result<(DpctlFunction, FunctionInfo), BuildError> {
        let bundle = &module.0;
        // SAFETY: a live bundle, a name that ends in NUL.
        if !unsafe { (bundle.api.has_kernel)(bundle.raw, name.as_ptr()) } {
            let name = name.to_string_lossy().into_owned();
            return Err(BuildError::NoFunction { name, names: String::new() });
        }
        // SAFETY: as above.
        let raw = unsafe { (bundle.api.kernel)(bundle.raw, name.as_ptr()) };
        if raw.is_null() {
            return Err(native("DPCTLKernelBundle_GetKernel").into());
        }
        let function = DpctlFunction { bundle: Arc::clone(bundle), raw };
        let info = function.info();
        Ok((function, info))
    }

    unsafe fn launch(
        queue: &DpctlQueue,
        function: &DpctlFunction,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[DpctlEvent],
    ) -> usm_core::Result<DpctlEvent> {
        if arguments.len() <= FEW_ARGUMENTS {
            // SAFETY: the caller's promise.
            unsafe { function.launch::<FEW_ARGUMENTS>(queue, grid, arguments, after) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { function.launch::<MOST_ARGUMENTS>(queue, grid, arguments, after) }
        }
    }
}

/// The build log, which the library does not return. For OpenCL devices this repeats the build with
/// the same compiler, found by the device's name.
fn log_of(context: &DpctlContext, code: &Code<'_>, options: &str) -> String {
    #[cfg(feature = "opencl")]
    {
        use usm_core::Backend;
        use usm_core::backend::{ContextOps, DeviceOps};
        use usm_opencl::OpenCl;

        let name = context.shared().info().name;
        let Ok(backend) = OpenCl::load() else { return String::new() };
        let mut same = None;
        let _ = backend.for_each_device(&mut |device| {
            if device.info().name == name {
                same = same.or(Some(device));
            }
        });
        if let Some(context) = same.and_then(|device| backend.create_context(&device).ok()) {
            if let Err(BuildError::Compile { log, .. }) = OpenCl::build(&context, code, options) {
                return log;
            }
        }
    }
    let _ = (context, code, options);
    String::new()
}

/// The most work-items of a launch: DPC++ counts them in `int`.
const MOST_ITEMS: u64 = i32::MAX as u64;
const TOO_MANY_ITEMS: &str = "a range of more than 2147483647 work-items";

impl DpctlFunction {
    /// Launches with at most this many arguments.
    ///
    /// # Safety
    /// As [`Programmable::launch`].
    unsafe fn launch<const MOST: usize>(
        &self,
        queue: &DpctlQueue,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[DpctlEvent],
    ) -> usm_core::Result<DpctlEvent> {
        let items = grid.global().into_iter().try_fold(1_u64, u64::checked_mul);
        if items.is_none_or(|items| items > MOST_ITEMS) {
            // The runtime says only that the submission failed.
            return Err(unsupported(TOO_MANY_ITEMS));
        }
        let api = &self.bundle.api;
        let mut argument_list = ArgumentList::<MOST>::new(api);
        for argument in arguments {
            argument_list.push(argument)?;
        }
        let (values, kinds, count) = argument_list.finish();
        let narrow = |sizes: [u64; 3]| sizes.map(|size| size as usize);
        let (global, dimensions, kernel) = (narrow(grid.global()), grid.dimensions(), self.raw);
        let Some(local) = grid.local().map(narrow) else {
            let call = |queue, events, number| {
                let (submit, global) = (api.submit_range, global.as_ptr());
                // SAFETY: live queue, kernel and events, as many arguments and sizes as passed; the
                // caller's promise for the effects of the code.
                unsafe { submit(kernel, queue, values, kinds, count, global, dimensions, events, number) }
            };
            // SAFETY: the call submits to the queue that it gets, and returns the event of that
            // submission.
            return unsafe { raw::submit(queue, "DPCTLQueue_SubmitRange", after, call) };
        };
        let call = |queue, events, number| {
            let (submit, global, local) = (api.submit_nd_range, global.as_ptr(), local.as_ptr());
            // SAFETY: as above.
            unsafe { submit(kernel, queue, values, kinds, count, global, local, dimensions, events, number) }
        };
        // SAFETY: as above.
        unsafe { raw::submit(queue, "DPCTLQueue_SubmitNDRange", after, call) }
    }

    fn info(&self) -> FunctionInfo {
        let Bundle { api, .. } = &*self.bundle;
        let ask = |call: unsafe extern "C" fn(Raw) -> usize| {
            // SAFETY: a live kernel; the functions return 0 if the runtime throws.
            unsafe { call(self.raw) }
        };
        let mut info = FunctionInfo::new(ask(api.work_group_size) as u64);
        info.preferred_multiple = (ask(api.preferred_multiple) as u64).max(1);
        info.private_mem_size = ask(api.private_size) as u64;
        info.parameters = Some(alloc::vec![Shape::Unknown; ask(api.argument_count)]);
        info
    }
}

/// Arguments in the library's form.
struct ArgumentList<'a, const MOST: usize> {
    api: &'a Api,
    values: [Raw; MOST],
    kinds: [c_int; MOST],
    /// Storage for local arrays. Made only if there are any, because it is most of the size here.
    locals: [MaybeUninit<LocalAccessor>; MOST],
    count: usize,
    /// Whether `drop` has objects to delete.
    owns: bool,
}

impl<'a, const MOST: usize> ArgumentList<'a, MOST> {
    #[inline]
    fn new(api: &'a Api) -> Self {
        Self {
            api,
            values: [ptr::null_mut(); MOST],
            kinds: [0; MOST],
            locals: [const { MaybeUninit::uninit() }; MOST],
            count: 0,
            owns: false,
        }
    }

    #[inline]
    fn push(&mut self, argument: &Slot<'_>) -> Result<(), Error> {
        let index = self.count;
        if index == MOST {
            return Err(ErrorKind::SizeOverflow.into());
        }
        self.kinds[index] = match *argument {
            Slot::Pointer(address) => {
                self.values[index] = ptr::without_provenance_mut(address);
                kind::POINTER
            }
            Slot::Object(_) => return Err(unsupported("a buffer as an argument")),
            Slot::Value(bytes) => {
                self.values[index] = bytes.as_ptr().cast_mut().cast();
                match bytes.len() {
                    1 => kind::U8,
                    2 => kind::U16,
                    4 => kind::U32,
                    8 => kind::U64,
                    _ => {
                        let create = self.api.raw_argument.filter(|_| self.api.raw_argument_delete.is_some());
                        let create = create.ok_or_else(|| unsupported("an argument of this size"))?;
                        // SAFETY: as many bytes as passed, copied before the call returns.
                        let raw = unsafe { create(bytes.as_ptr().cast(), bytes.len()) };
                        if raw.is_null() {
                            return Err(native("DPCTLRawKernelArg_Create"));
                        }
                        self.values[index] = raw;
                        self.owns = true;
                        kind::RAW
                    }
                }
            }
            Slot::Local { bytes, alignment } => {
                // The widest element that divides the size; its alignment is the array's alignment.
                let (element, width) = match () {
                    () if alignment >= 8 && bytes % 8 == 0 => (kind::U64, 8),
                    () if alignment >= 4 && bytes % 4 == 0 => (kind::U32, 4),
                    () if alignment >= 2 && bytes % 2 == 0 => (kind::U16, 2),
                    () => (kind::U8, 1),
                };
                let sizes = [bytes / width, 1, 1];
                self.locals[index].write(LocalAccessor { dimensions: 1, element, sizes });
                kind::LOCAL
            }
            _ => return Err(unsupported("this sort of argument")),
        };
        self.count += 1;
        Ok(())
    }

    /// Points to the local arrays at their current address. Returns values, kinds and count of the
    /// arguments.
    fn finish(&mut self) -> (*const Raw, *const c_int, usize) {
        let locals = self.values.iter_mut().zip(&mut self.locals).zip(&self.kinds).take(self.count);
        for ((value, local), _) in locals.filter(|(_, kind)| **kind == kind::LOCAL) {
            *value = local.as_mut_ptr().cast();
        }
        (self.values.as_ptr(), self.kinds.as_ptr(), self.count)
    }
}

impl<const MOST: usize> Drop for ArgumentList<'_, MOST> {
    fn drop(&mut self) {
        let Some(delete) = self.api.raw_argument_delete.filter(|_| self.owns) else { return };
        for (value, _) in
            self.values.iter().zip(self.kinds).take(self.count).filter(|(_, kind)| *kind == kind::RAW)
        {
            // SAFETY: created here, deleted once; the submission has copied it.
            unsafe { delete(*value) };
        }
    }
}
