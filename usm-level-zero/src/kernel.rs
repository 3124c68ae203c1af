//! Kernels on Level Zero: SPIR-V.
//!
//! - The fastest dimension is `X`.
//! - A kernel object holds group size and arguments of its next launch, so launches of one function
//!   hold a lock from the first argument to the submission.
//! - The flags for indirect access are set on every kernel, because a GPU faults without them.
//! - The driver does not keep a running kernel alive; kernel and module are destroyed after their
//!   launches.

use alloc::ffi::CString;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use crate::error::{self, unsupported};
use crate::{LevelZero, LevelZeroContext, LevelZeroEvent, LevelZeroQueue, raw};
use level_zero_sys::*;
use usm_core::backend::ContextOps;
use usm_core::driver::After;
use usm_core::{BackendKind, ErrorKind};

use usm_core::driver::sync::sleeping::Mutex;
use usm_kernel::backend::driver::text;
use usm_kernel::backend::{Grid, Programmable, Slot};
use usm_kernel::{BuildError, Code, Formats, FunctionInfo, Shape};

/// A module.
#[derive(Debug)]
pub struct LevelZeroModule(Arc<Module>);

#[derive(Debug)]
struct Module {
    context: LevelZeroContext,
    raw: ze_module_handle_t,
}

/// A kernel object.
#[derive(Debug)]
pub struct LevelZeroFunction {
    kernel: Option<Kernel>,
    /// Held from the first argument to the submission. Whether there was a launch.
    was_launched: Mutex<bool>,
}

/// A kernel, destroyed before its module.
#[derive(Debug)]
struct Kernel {
    raw: ze_kernel_handle_t,
    module: Arc<Module>,
}

/// Dropped kernels that may still run, with the events to wait for.
static DROPPED_KERNELS: After<Kernel, LevelZeroEvent> = After::new();

// SAFETY: any thread may use the handles; setting a kernel's arguments is not thread safe, and the
// function's lock guards it.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Drop for Module {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        // SAFETY: owned, destroyed once, after its kernels, which keep it. A failure has no remedy.
        let _ = unsafe { raw::functions(&self.context).zeModuleDestroy(self.raw) };
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        // SAFETY: owned, destroyed once, when it no longer runs. A failure has no remedy.
        let _ = unsafe { self.functions().zeKernelDestroy(self.raw) };
    }
}

impl Drop for LevelZeroFunction {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        let Some(kernel) = self.kernel.take() else { return };
        if !*self.was_launched.get_mut() {
            return drop(kernel);
        }
        // The crate does not record single launches, so this also waits for other work. A kernel
        // whose work may never finish is kept.
        match raw::pending(&kernel.module.context) {
            Ok(event) => DROPPED_KERNELS.push(kernel, event),
            Err(_) => core::mem::forget(kernel),
        }
        DROPPED_KERNELS.collect(drop);
    }
}

// SAFETY: the launch signals the event of the submission after the kernel; a refused launch was not
// appended; kernel and module are destroyed after their launches.
unsafe impl Programmable for LevelZero {
    type Module = LevelZeroModule;
    type Function = LevelZeroFunction;

    fn formats(context: &LevelZeroContext) -> Formats {
        let mut properties = ze_device_module_properties_t::default();
        // SAFETY: a device of the loader, space for the value.
        let answer = unsafe {
            raw::functions(context).zeDeviceGetModuleProperties(raw::device(context), &raw mut properties)
        };
        let takes = answer.is_ok() && properties.spirvVersionSupported != 0;
        if takes { Formats::SPIR_V } else { Formats::empty() }
    }

    fn build(
        context: &LevelZeroContext,
        code: &Code<'_>,
        options: &str,
    ) -> Result<LevelZeroModule, BuildError> {
        DROPPED_KERNELS.collect(drop);
        let Code::SpirV(words) = *code else { return Err(unsupported("this code").into()) };
        let flags: CString = text("options", options)?;
        let description = ze_module_desc_t {
            format: ZE_MODULE_FORMAT_IL_SPIRV,
            inputSize: words.len(),
            pInputModule: words.as_ptr(),
            pBuildFlags: flags.as_ptr(),
            ..Default::default()
        };
        let functions = raw::functions(context);
        let (mut raw, mut log) = (ze_module_handle_t::NULL, ze_module_build_log_handle_t::NULL);
        // SAFETY: live context and device, as many bytes as passed, a string that ends in NUL,
        // space for both values.
        let answer = unsafe {
            let description = &raw const description;
            functions.zeModuleCreate(
                context.as_raw(),
                raw::device(context),
                description,
                &raw mut raw,
                &raw mut log,
            )
        };
        let log = take_log(functions, log);
        match answer {
            Ok(_) => Ok(LevelZeroModule(Arc::new(Module { context: context.clone(), raw }))),
            Err(Error::Call { result, .. }) if is_refusal(result) => {
                let (options, native) = (options.to_string(), Some(i64::from(result.0)));
                Err(BuildError::Compile { log, options, backend: BackendKind::LevelZero, native })
            }
            Err(error) => Err(error::call(error).into()),
        }
    }

    fn function(
        module: &LevelZeroModule,
        name: &CStr,
    ) -> Result<(LevelZeroFunction, FunctionInfo), BuildError> {
        let module = &module.0;
        let functions = raw::functions(&module.context);
        let description = ze_kernel_desc_t { pKernelName: name.as_ptr(), ..Default::default() };
        let mut raw = ze_kernel_handle_t::NULL;
        // SAFETY: a live module, a name that ends in NUL, space for the value.
        match unsafe { functions.zeKernelCreate(module.raw, &raw const description, &raw mut raw) } {
            Ok(_) => {}
            Err(Error::Call { result: ZE_RESULT_ERROR_INVALID_KERNEL_NAME, .. }) => {
                let name = name.to_string_lossy().into_owned();
                return Err(BuildError::NoFunction { name, names: module.kernel_names() });
            }
            Err(error) => return Err(error::call(error).into()),
        }
        let kernel = Kernel { raw, module: Arc::clone(module) };
        let indirect = ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
        // SAFETY: a live kernel.
        unsafe { functions.zeKernelSetIndirectAccess(raw, indirect) }.map_err(error::call)?;
        let info = kernel.info().map_err(error::call)?;
        Ok((LevelZeroFunction { kernel: Some(kernel), was_launched: Mutex::default() }, info))
    }

    unsafe fn launch(
        queue: &LevelZeroQueue,
        function: &LevelZeroFunction,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[LevelZeroEvent],
    ) -> usm_core::Result<LevelZeroEvent> {
        let Some(kernel) = &function.kernel else { return Err(ErrorKind::DeviceLost.into()) };
        let functions = kernel.functions();
        let mut was_launched = function.was_launched.lock();
        let groups = kernel.set_sizes(grid)?;
        for (index, argument) in arguments.iter().enumerate() {
            kernel.set(index as u32, argument)?;
        }
        *was_launched = true;
        let call = |list, signal, count, waits| {
            let (kernel, groups) = (kernel.raw, &raw const groups);
            // SAFETY: live list, kernel and events; the kernel has all its arguments and its lock
            // is held; the caller's promise for the effects of the code.
            match unsafe {
                functions.zeCommandListAppendLaunchKernel(list, kernel, groups, signal, count, waits)
            } {
                Ok(result) | Err(Error::Call { result, .. }) => result,
                Err(_) => ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
            }
        };
        // SAFETY: the call appends to the list that it gets, and signals the event that it gets
        // after the launch.
        unsafe { raw::submit(queue, "zeCommandListAppendLaunchKernel", after, call) }
    }
}

/// Whether the compiler or the linker refused the code.
fn is_refusal(result: ze_result_t) -> bool {
    matches!(
        result,
        ZE_RESULT_ERROR_MODULE_BUILD_FAILURE
            | ZE_RESULT_ERROR_MODULE_LINK_FAILURE
            | ZE_RESULT_ERROR_INVALID_NATIVE_BINARY
    )
}

/// Returns the text of a build log and destroys the log.
fn take_log(functions: &Functions, log: ze_module_build_log_handle_t) -> String {
    if log.is_null() {
        return String::new();
    }
    let mut len = 0;
    // SAFETY: a live log; this queries only its length.
    let code = unsafe { functions.zeModuleBuildLogGetString(log, &raw mut len, ptr::null_mut()) };
    let mut bytes = alloc::vec![0_u8; if code.is_ok() { len } else { 0 }];
    if !bytes.is_empty() {
        let place = bytes.as_mut_ptr().cast::<c_char>();
        // SAFETY: a live log, space for as many bytes as it reported.
        if unsafe { functions.zeModuleBuildLogGetString(log, &raw mut len, place) }.is_err() {
            bytes.clear();
        }
    }
    // SAFETY: owned, destroyed once. A failure has no remedy.
    let _ = unsafe { functions.zeModuleBuildLogDestroy(log) };
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_string()
}

impl Module {
    fn kernel_names(&self) -> String {
        let functions = raw::functions(&self.context);
        let mut count = 0;
        // SAFETY: a live module; this queries only the count.
        let code = unsafe { functions.zeModuleGetKernelNames(self.raw, &raw mut count, ptr::null_mut()) };
        let mut names = alloc::vec![ptr::null::<c_char>(); if code.is_ok() { count as usize } else { 0 }];
        if names.is_empty() {
            return String::new();
        }
        // SAFETY: a live module, space for as many names as it reported.
        if unsafe { functions.zeModuleGetKernelNames(self.raw, &raw mut count, names.as_mut_ptr()) }.is_err()
        {
            return String::new();
        }
        let texts = names.into_iter().take(count as usize).filter(|name| !name.is_null()).map(|name| {
            // SAFETY: a string of the driver that ends in NUL and lives as long as the module.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

impl Kernel {
    fn functions(&self) -> &'static Functions {
        raw::functions(&self.module.context)
    }

    fn info(&self) -> Result<FunctionInfo, Error> {
        let mut preferred_size = ze_kernel_preferred_group_size_properties_t::default();
        let mut properties = ze_kernel_properties_t {
            pNext: (&raw mut preferred_size).cast::<c_void>(),
            ..Default::default()
        };
        // SAFETY: a live kernel, space for both values.
        unsafe { self.functions().zeKernelGetProperties(self.raw, &raw mut properties) }?;
        let device = self.module.context.shared().info();
        let mut info = FunctionInfo::new(device.max_work_group_size);
        // Drivers that do not know the second structure do not write it.
        info.preferred_multiple = u64::from(preferred_size.preferredMultiple).max(1);
        info.local_mem_size = u64::from(properties.localMemSize);
        info.private_mem_size = u64::from(properties.privateMemSize);
        let required_size =
            [properties.requiredGroupSizeZ, properties.requiredGroupSizeY, properties.requiredGroupSizeX];
        info.required_group =
            (required_size != [0; 3]).then(|| required_size.map(|size| u64::from(size.max(1))));
        info.parameters = Some(alloc::vec![Shape::Unknown; properties.numKernelArgs as usize]);
        Ok(info)
    }

    /// Sets the group size and returns the number of groups. Without a given size the driver
    /// suggests one.
    fn set_sizes(&self, grid: &Grid) -> Result<ze_group_count_t, usm_core::Error> {
        let narrow = |sizes: [u64; 3]| -> Result<[u32; 3], usm_core::Error> {
            let mut extents = [0; 3];
            for (narrow, wide) in extents.iter_mut().zip(grid.fastest_first(sizes)) {
                *narrow = u32::try_from(wide).map_err(|_| ErrorKind::SizeOverflow)?;
            }
            Ok(extents)
        };
        let global = narrow(grid.global())?;
        let local = match grid.local() {
            Some(local) => narrow(local)?,
            None => self.suggested_group_size(global).map_err(error::call)?,
        };
        let [x, y, z] = local;
        // SAFETY: a live kernel whose lock is held.
        unsafe { self.functions().zeKernelSetGroupSize(self.raw, x, y, z) }.map_err(error::call)?;
        let [x, y, z] = core::array::from_fn(|d| global[d] / local[d].max(1));
        Ok(ze_group_count_t { groupCountX: x, groupCountY: y, groupCountZ: z })
    }

    /// The driver's suggestion if it divides the range, otherwise one item.
    fn suggested_group_size(&self, [x, y, z]: [u32; 3]) -> Result<[u32; 3], Error> {
        let mut sizes = [1_u32; 3];
        let [sx, sy, sz] = &mut sizes;
        // SAFETY: a live kernel, space for the values.
        unsafe { self.functions().zeKernelSuggestGroupSize(self.raw, x, y, z, sx, sy, sz) }?;
        let divides = |(size, all): (u32, u32)| if size != 0 && all % size == 0 { size } else { 1 };
        Ok(core::array::from_fn(|d| divides((sizes[d], [x, y, z][d]))))
    }

    fn set(&self, index: u32, argument: &Slot<'_>) -> usm_core::Result<ze_result_t> {
        let address;
        let (bytes, value): (usize, *const c_void) = match *argument {
            // No buffer of this backend has a handle.
            Slot::Pointer(pointer) | Slot::Object(pointer) => {
                address = pointer;
                (size_of::<usize>(), (&raw const address).cast())
            }
            Slot::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            Slot::Local { bytes, .. } => (bytes, ptr::null()),
            _ => return Err(error::unsupported("this sort of argument")),
        };
        // SAFETY: a live kernel whose lock is held; as many bytes as passed, copied before the call
        // returns; a local argument has a size and no value.
        let answer = unsafe { self.functions().zeKernelSetArgumentValue(self.raw, index, bytes, value) };
        answer.map_err(error::call)
    }
}
