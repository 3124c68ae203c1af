//! Kernels on CUDA: PTX and cubin by the driver, CUDA C by NVRTC if it is installed. HIP has code
//! objects instead of cubins, and hipRTC compiles CUDA C, which it reads as HIP.
//!
//! - The fastest dimension is `x`.
//! - A block has one dynamic region of shared memory. A local array is a parameter of type
//!   `unsigned int`: its offset in bytes in that region,
//!   `extern __shared__ unsigned char memory[]`.
//! - The driver does not keep the module of a running function alive; a module is unloaded after
//!   its launches.

mod code_cache;
mod compiler;
mod image;
mod vendor;

use alloc::ffi::CString;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::loader::Driver;
use crate::{Cuda, CudaContext, CudaEvent, CudaQueue, raw};
use usm_core::backend::ContextOps;
use usm_core::driver::After;
use usm_core::{Error, ErrorKind};

use self::vendor::Vendor;
use usm_core::driver::table;
use usm_kernel::backend::driver::MOST_ARGUMENTS;
use usm_kernel::backend::driver::text;
use usm_kernel::backend::{Grid, Programmable, Slot};
use usm_kernel::{BuildError, Code, Formats, FunctionInfo, Shape};

type Raw = *mut c_void;
type Status = i32;

const SUCCESS: Status = 0;
const INVALID_IMAGE: Status = 200;
const NO_BINARY_FOR_GPU: Status = 209;
const INVALID_PTX: Status = 218;
const UNSUPPORTED_PTX_VERSION: Status = 222;
const INVALID_SOURCE: Status = 300;
const NOT_FOUND: Status = 500;

/// `CUfunction_attribute`, `hipFunction_attribute`.
const MAX_THREADS_PER_BLOCK: i32 = 0;
const SHARED_SIZE_BYTES: i32 = 1;
const LOCAL_SIZE_BYTES: i32 = 3;
/// `CUjit_option`.
const ERROR_LOG_BUFFER: i32 = 5;
const ERROR_LOG_BUFFER_SIZE: i32 = 6;
/// Bytes of the driver's log.
const LOG: usize = 16 * 1024;
/// Alignment of the region of dynamic shared memory, and the minimum alignment of arrays in it.
const REGION_ALIGNMENT: usize = 16;

table! {
    /// The functions for kernels.
    Api in "libcuda.so.1" of Cuda | "libamdhip64.so" of Hip:
    needed {
        load = "cuModuleLoadDataEx" | "hipModuleLoadDataEx" (*mut Raw, *const c_void, u32, *const i32, *mut Raw) -> Status;
        unload = "cuModuleUnload" | "hipModuleUnload" (Raw) -> Status;
        function = "cuModuleGetFunction" | "hipModuleGetFunction" (*mut Raw, Raw, *const c_char) -> Status;
        attribute = "cuFuncGetAttribute" | "hipFuncGetAttribute" (*mut i32, i32, Raw) -> Status;
        device_attribute = "cuDeviceGetAttribute" | "hipDeviceGetAttribute" (*mut i32, i32, i32) -> Status;
        launch = "cuLaunchKernel" | "hipModuleLaunchKernel"
            (Raw, u32, u32, u32, u32, u32, u32, u32, Raw, *mut Raw, *mut Raw) -> Status;
    }
    optional {
        parameter = "cuFuncGetParamInfo"(Raw, usize, *mut usize, *mut usize) -> Status;
    }
}

/// A `CUmodule` or `hipModule_t`.
#[derive(Debug)]
pub struct CudaModule(Arc<LoadedModule>);

/// A `CUfunction` or `hipFunction_t`.
#[derive(Debug)]
pub struct CudaFunction {
    module: Arc<LoadedModule>,
    raw: Raw,
}

#[derive(Debug)]
struct LoadedModule {
    native: Option<Native>,
    was_launched: AtomicBool,
    /// The compiler's output, if there was a compilation.
    machine_code: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Native {
    vendor: &'static Vendor,
    api: Api,
    context: CudaContext,
    raw: Raw,
}

/// Dropped modules whose functions may still run, with the events to wait for.
static DROPPED_MODULES: After<Native, CudaEvent> = After::new();

// SAFETY: any thread may use the driver's handles while the context is current, which every call
// ensures.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}
// SAFETY: as above.
unsafe impl Send for CudaFunction {}
// SAFETY: as above.
unsafe impl Sync for CudaFunction {}

impl Drop for Native {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        let (unload, module) = (self.api.unload, self.raw);
        // SAFETY: owned, unloaded once, when none of its functions runs. A failure has no remedy.
        let _ = raw::with_current(&self.context, || unsafe { unload(module) });
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        let Some(native) = self.native.take() else { return };
        if !*self.was_launched.get_mut() {
            return drop(native);
        }
        // The crate does not record single launches, so this also waits for other work. A module
        // whose work may never finish is kept.
        match raw::pending(&native.context) {
            Ok(event) => DROPPED_MODULES.push(native, event),
            Err(_) => core::mem::forget(native),
        }
        DROPPED_MODULES.collect(drop);
    }
}

impl Vendor {
    fn compile_error(&self, log: String, options: &str, status: Status) -> BuildError {
        let (options, native) = (options.to_string(), Some(i64::from(status)));
        BuildError::Compile { log, options, backend: self.backend, native }
    }
}

impl Api {
    fn device(&self, context: &CudaContext, attribute: i32) -> i32 {
        let mut value = 0;
        // SAFETY: a device of the driver, space for the value; 0 stays if the attribute is unknown.
        let _ = unsafe { (self.device_attribute)(&raw mut value, attribute, raw::device(context)) };
        value
    }
}

// SAFETY: the event is recorded behind the launch on its stream; a refused launch was not
// submitted; the module is unloaded after its launches.
unsafe impl Programmable for Cuda {
    type Module = CudaModule;
    type Function = CudaFunction;

    fn formats(context: &CudaContext) -> Formats {
        Vendor::of(context).formats
    }

    fn build(context: &CudaContext, code: &Code<'_>, options: &str) -> Result<CudaModule, BuildError> {
        DROPPED_MODULES.collect(drop);
        let vendor = Vendor::of(context);
        // SAFETY: the signatures are those of `cuda.h` and `hip_runtime_api.h`; a function of CUDA
        // that changed has a new name.
        let api = unsafe { Api::bind(vendor.column, |name| raw::function(context, name)) }?;
        let image_in;
        let c_text: CString;
        let image: &[u8] = match *code {
            Code::CudaC(source) => {
                let capability =
                    vendor.capability.map(|numbers| numbers.map(|number| api.device(context, number)));
                let device = raw::device(context);
                // AMD's compiler compiles for the current device.
                image_in = raw::with_current(context, || {
                    vendor.compiler.compile_once(source, options, capability, device)
                })??;
                &image_in
            }
            Code::Ptx(assembly) => {
                if assembly.starts_with('\x7F') {
                    // The driver would read it as a binary, which contains its own length.
                    return Err(vendor.compile_error(
                        "text expected, this is binary".into(),
                        options,
                        INVALID_PTX,
                    ));
                }
                c_text = text("PTX", assembly)?;
                c_text.as_bytes_with_nul()
            }
            Code::Cubin(image) => {
                image::check(image).map_err(|reason| vendor.compile_error(reason, options, INVALID_IMAGE))?;
                image
            }
            _ => return Err(context.driver().unsupported("this code").into()),
        };
        let native = Native::load(vendor, api, context, image, options)?;
        let machine_code = matches!(code, Code::CudaC(_)).then(|| image.to_vec());
        Ok(CudaModule(Arc::new(LoadedModule {
            native: Some(native),
            was_launched: AtomicBool::new(false),
            machine_code,
        })))
    }

    fn native(module: &CudaModule) -> Option<Vec<u8>> {
        module.0.machine_code.clone()
    }

    fn build_native(context: &CudaContext, code: &[u8]) -> Result<CudaModule, BuildError> {
        let compile_error = |log: &str| Vendor::of(context).compile_error(log.into(), "", INVALID_IMAGE);
        let text = code.split_last().filter(|(last, _)| **last == 0).map(|(_, text)| text);
        match text.map(core::str::from_utf8) {
            Some(Ok(text)) if !text.starts_with('\x7F') => Self::build(context, &Code::Ptx(text), ""),
            _ if code.is_empty() => Err(compile_error("nothing is there")),
            _ => Self::build(context, &Code::Cubin(code), ""),
        }
    }

    fn function(module: &CudaModule, name: &CStr) -> Result<(CudaFunction, FunctionInfo), BuildError> {
        let raw_module = &module.0;
        let Some(native_module) = &raw_module.native else {
            return Err(Error::from(ErrorKind::DeviceLost).into());
        };
        let mut raw = ptr::null_mut();
        let status = raw::with_current(&native_module.context, || {
            // SAFETY: a live module, the context is current, a name that ends in NUL, space for the
            // value.
            unsafe { (native_module.api.function)(&raw mut raw, native_module.raw, name.as_ptr()) }
        })?;
        if status == NOT_FOUND {
            let name = name.to_string_lossy().into_owned();
            return Err(BuildError::NoFunction { name, names: String::new() });
        }
        if status != SUCCESS {
            return Err(native_module.vendor.native(native_module.vendor.function, status).into());
        }
        let info = native_module.describe(raw)?;
        Ok((CudaFunction { module: Arc::clone(raw_module), raw }, info))
    }

    unsafe fn launch(
        queue: &CudaQueue,
        function: &CudaFunction,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[CudaEvent],
    ) -> usm_core::Result<CudaEvent> {
        let Some(module) = &function.module.native else { return Err(ErrorKind::DeviceLost.into()) };
        let shape = Shape3::of(grid, module.context.shared().info().max_work_group_size)?;
        let mut parameters = Parameters::new();
        let (pointers, shared) = parameters.point_to(module.context.driver(), arguments)?;
        let (launch, raw_function) = (module.api.launch, function.raw);
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        function.module.was_launched.store(true, Ordering::Relaxed);
        let call = |stream| {
            // SAFETY: a live function on a stream of its context; the caller's promise for the
            // effects of the code, and that these are its parameters.
            unsafe { launch(raw_function, gx, gy, gz, bx, by, bz, shared, stream, pointers, ptr::null_mut()) }
        };
        // SAFETY: the call launches on the stream that it gets.
        unsafe { raw::submit(queue, module.vendor.launch, after, call) }
    }
}

impl Native {
    fn load(
        vendor: &'static Vendor,
        api: Api,
        context: &CudaContext,
        image: &[u8],
        options: &str,
    ) -> Result<Self, BuildError> {
        let mut log = alloc::vec![0_u8; LOG];
        let names = [ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE];
        let mut values: [Raw; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG)];
        let mut raw = ptr::null_mut();
        let status = raw::with_current(context, || {
            let (image, count) = (image.as_ptr().cast(), names.len() as u32);
            // SAFETY: the context is current; the image contains its own end; space for log and
            // value.
            unsafe { (api.load)(&raw mut raw, image, count, names.as_ptr(), values.as_mut_ptr()) }
        })?;
        match status {
            SUCCESS => Ok(Self { vendor, api, context: context.clone(), raw }),
            INVALID_IMAGE | NO_BINARY_FOR_GPU | INVALID_PTX | UNSUPPORTED_PTX_VERSION | INVALID_SOURCE => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
                Err(vendor.compile_error(String::from_utf8_lossy(&log[..end]).into_owned(), options, status))
            }
            status => Err(vendor.native(vendor.load, status).into()),
        }
    }

    fn describe(&self, function: Raw) -> Result<FunctionInfo, Error> {
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: a live function, space for the value; 0 stays if the attribute is unknown.
            let _ = unsafe { (self.api.attribute)(&raw mut value, which, function) };
            u64::try_from(value).unwrap_or(0)
        };
        raw::with_current(&self.context, || {
            let mut info = FunctionInfo::new(attribute(MAX_THREADS_PER_BLOCK));
            info.preferred_multiple =
                u64::try_from(self.api.device(&self.context, self.vendor.warp_size)).unwrap_or(1).max(1);
            info.local_mem_size = attribute(SHARED_SIZE_BYTES);
            info.private_mem_size = attribute(LOCAL_SIZE_BYTES);
            info.parameters = self.parameters(function);
            info
        })
    }

    /// Drivers since 12.4 report the size of each parameter.
    fn parameters(&self, function: Raw) -> Option<Vec<Shape>> {
        let ask = self.api.parameter?;
        let mut shapes = Vec::new();
        loop {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: a live function, space for both values; one past the last parameter is an
            // error.
            let status = unsafe { ask(function, shapes.len(), &raw mut offset, &raw mut bytes) };
            if status != SUCCESS || shapes.len() == MOST_ARGUMENTS {
                return Some(shapes);
            }
            shapes.push(Shape::Bytes(bytes));
        }
    }
}

/// Grid and block, `x` first.
struct Shape3 {
    grid: [u32; 3],
    block: [u32; 3],
}

impl Shape3 {
    /// One dimension with given groups, the usual launch.
    #[inline]
    fn one_dimensional(global: u64, local: u64) -> Result<Self, Error> {
        let narrow = |size: u64| u32::try_from(size).map_err(|_| Error::from(ErrorKind::SizeOverflow));
        // Most group sizes are powers of two, and a division costs as much as the rest of this
        // function.
        let groups =
            if local.is_power_of_two() { global >> local.trailing_zeros() } else { global / local.max(1) };
        Ok(Self { grid: [narrow(groups)?, 1, 1], block: [narrow(local)?, 1, 1] })
    }

    #[inline]
    fn of(grid: &Grid, most: u64) -> Result<Self, Error> {
        if let (1, Some([local, ..])) = (grid.dimensions(), grid.local()) {
            return Self::one_dimensional(grid.global()[0], local);
        }
        Self::of_any_dimensions(grid, most)
    }

    /// Without groups the block is the largest divisor of the fastest dimension that a block may
    /// have, at most 256. Only for code of others: kernels from one source come with groups.
    fn of_any_dimensions(grid: &Grid, most: u64) -> Result<Self, Error> {
        let global = grid.fastest_first(grid.global());
        let local = grid.local().map(|local| grid.fastest_first(local)).unwrap_or_else(|| {
            let most = most.clamp(1, 256);
            [(1..=most).rev().find(|size| global[0] % *size == 0).unwrap_or(1), 1, 1]
        });
        let narrow = |sizes: [u64; 3]| -> Result<[u32; 3], Error> {
            let mut extents = [0; 3];
            for (narrow, wide) in extents.iter_mut().zip(sizes) {
                *narrow = u32::try_from(wide).map_err(|_| ErrorKind::SizeOverflow)?;
            }
            Ok(extents)
        };
        // Beyond the slowest dimension both are 1, and a division costs as much as the rest of this
        // function.
        let groups =
            core::array::from_fn(
                |d| if d < grid.dimensions() { global[d] / local[d].max(1) } else { global[d] },
            );
        Ok(Self { grid: narrow(groups)?, block: narrow(local)? })
    }
}

/// Arguments of `cuLaunchKernel` and its twin: a pointer to each parameter.
struct Parameters {
    pointers: [MaybeUninit<Raw>; MOST_ARGUMENTS],
    /// Offsets of local arrays in the region.
    offsets: [MaybeUninit<u32>; MOST_ARGUMENTS],
}

impl Parameters {
    const fn new() -> Self {
        Self {
            pointers: [const { MaybeUninit::uninit() }; MOST_ARGUMENTS],
            offsets: [const { MaybeUninit::uninit() }; MOST_ARGUMENTS],
        }
    }

    /// Pointers to the parameters, valid until `self` or `arguments` moves; and the bytes of the
    /// region.
    #[inline]
    fn point_to(&mut self, driver: &Driver, arguments: &[Slot<'_>]) -> Result<(*mut Raw, u32), Error> {
        if arguments.len() > MOST_ARGUMENTS {
            return Err(ErrorKind::SizeOverflow.into());
        }
        let mut region = 0_usize;
        for (argument, (pointer, offset)) in
            arguments.iter().zip(self.pointers.iter_mut().zip(&mut self.offsets))
        {
            pointer.write(match argument {
                // No buffer of this backend has a handle.
                Slot::Pointer(address) | Slot::Object(address) => ptr::from_ref(address).cast_mut().cast(),
                Slot::Value(bytes) => bytes.as_ptr().cast_mut().cast(),
                Slot::Local { bytes, alignment } => {
                    // Both are powers of two.
                    let behind = (*alignment).max(REGION_ALIGNMENT) - 1;
                    let start = region.checked_add(behind).ok_or(ErrorKind::SizeOverflow)? & !behind;
                    region = start.checked_add(*bytes).ok_or(ErrorKind::SizeOverflow)?;
                    let start = u32::try_from(start).map_err(|_| ErrorKind::SizeOverflow)?;
                    ptr::from_mut(offset.write(start)).cast()
                }
                _ => return Err(driver.unsupported("this sort of argument")),
            });
        }
        let region = u32::try_from(region).map_err(|_| ErrorKind::SizeOverflow)?;
        Ok((self.pointers.as_mut_ptr().cast(), region))
    }
}
