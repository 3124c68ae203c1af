//! Kernels on OpenCL: OpenCL C, and SPIR-V if the device takes it.
//!
//! - A `cl_kernel` holds the arguments of its next launch, so launches of one function hold a lock
//!   from the first argument to the submission.
//! - The flags for indirect access are set on every function, so a pointer inside a structure in
//!   USM memory works on every device. Without them it works on a CPU and faults on a GPU.
//! - The runtime keeps kernel and program alive while a launch is in flight.

use alloc::ffi::CString;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use crate::error::{self, SUCCESS, Status, check, native};
use crate::loader::Raw;
use crate::{OpenCl, OpenClContext, OpenClEvent, OpenClQueue, raw};
use usm_core::backend::ContextOps;
use usm_core::{BackendKind, Error};

use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::table;
use usm_kernel::backend::driver::text;
use usm_kernel::backend::{Grid, Programmable, Slot};
use usm_kernel::{BuildError, Code, Formats, FunctionInfo, Shape};

const BUILD_PROGRAM_FAILURE: Status = -11;
const INVALID_BUILD_OPTIONS: Status = -43;
const INVALID_KERNEL_NAME: Status = -46;
const INVALID_ARG_SIZE: Status = -51;

/// Constants of the headers.
mod info {
    pub(super) const PROGRAM_BUILD_LOG: u32 = 0x1183;
    pub(super) const PROGRAM_BINARY_SIZES: u32 = 0x1165;
    pub(super) const PROGRAM_BINARIES: u32 = 0x1166;
    pub(super) const PROGRAM_KERNEL_NAMES: u32 = 0x1168;
    pub(super) const KERNEL_NUM_ARGS: u32 = 0x1191;
    pub(super) const KERNEL_ARG_ADDRESS_QUALIFIER: u32 = 0x1196;
    pub(super) const KERNEL_WORK_GROUP_SIZE: u32 = 0x11B0;
    pub(super) const KERNEL_COMPILE_WORK_GROUP_SIZE: u32 = 0x11B1;
    pub(super) const KERNEL_LOCAL_MEM_SIZE: u32 = 0x11B2;
    pub(super) const KERNEL_PREFERRED_MULTIPLE: u32 = 0x11B3;
    pub(super) const KERNEL_PRIVATE_MEM_SIZE: u32 = 0x11B4;
    pub(super) const DEVICE_IL_VERSION: u32 = 0x105B;
    /// `CL_KERNEL_EXEC_INFO_INDIRECT_{HOST,DEVICE,SHARED}_ACCESS_INTEL`.
    pub(super) const INDIRECT: [u32; 3] = [0x4200, 0x4201, 0x4202];
}

/// `CL_KERNEL_ARG_ADDRESS_*`.
const ADDRESS_GLOBAL: u32 = 0x119B;
const ADDRESS_LOCAL: u32 = 0x119C;
const ADDRESS_CONSTANT: u32 = 0x119D;

table! {
    /// The functions for kernels.
    Api in "libOpenCL.so.1" of OpenCl:
    needed {
        create_source = "clCreateProgramWithSource"(Raw, u32, *const *const c_char, *const usize, *mut Status) -> Raw;
        build = "clBuildProgram"(Raw, u32, *const Raw, *const c_char, Raw, Raw) -> Status;
        build_info = "clGetProgramBuildInfo"(Raw, Raw, u32, usize, Raw, *mut usize) -> Status;
        program_info = "clGetProgramInfo"(Raw, u32, usize, Raw, *mut usize) -> Status;
        release_program = "clReleaseProgram"(Raw) -> Status;
        create_kernel = "clCreateKernel"(Raw, *const c_char, *mut Status) -> Raw;
        kernel_info = "clGetKernelInfo"(Raw, u32, usize, Raw, *mut usize) -> Status;
        kernel_device_info = "clGetKernelWorkGroupInfo"(Raw, Raw, u32, usize, Raw, *mut usize) -> Status;
        release_kernel = "clReleaseKernel"(Raw) -> Status;
        set_argument = "clSetKernelArg"(Raw, u32, usize, *const c_void) -> Status;
        enqueue = "clEnqueueNDRangeKernel"
            (Raw, Raw, u32, *const usize, *const usize, *const usize, u32, *const Raw, *mut Raw) -> Status;
        device_info = "clGetDeviceInfo"(Raw, u32, usize, Raw, *mut usize) -> Status;
    }
    optional {
        create_il = "clCreateProgramWithIL"(Raw, *const c_void, usize, *mut Status) -> Raw;
        create_binary = "clCreateProgramWithBinary"
            (Raw, u32, *const Raw, *const usize, *const *const u8, *mut Status, *mut Status) -> Raw;
        argument_info = "clGetKernelArgInfo"(Raw, u32, u32, usize, Raw, *mut usize) -> Status;
        set_execution_info = "clSetKernelExecInfo"(Raw, u32, usize, *const c_void) -> Status;
    }
}

table! {
    /// The functions of the USM extension that kernels need.
    UsmApi in "the platform's cl_intel_unified_shared_memory" of OpenCl:
    needed {
        set_pointer = "clSetKernelArgMemPointerINTEL"(Raw, u32, *const c_void) -> Status;
    }
    optional {}
}

/// A `cl_program`.
#[derive(Debug)]
pub struct OpenClModule(Arc<Program>);

#[derive(Debug)]
struct Program {
    api: Api,
    /// `None` if the platform lacks the extension: pointers cannot be arguments then.
    usm: Option<UsmApi>,
    context: OpenClContext,
    raw: Raw,
}

impl OpenClModule {
    pub(crate) fn program(&self) -> raw::cl_program {
        self.0.raw
    }
}

/// A `cl_kernel`. In cache lines of its own, because each launch writes it and the runtime's
/// threads write its neighbours in the heap.
#[derive(Debug)]
#[repr(align(64))]
pub struct OpenClFunction {
    program: Arc<Program>,
    raw: Raw,
    /// Held from the first argument to the submission.
    turn: Mutex<()>,
}

// SAFETY: the runtime's calls are thread safe, except for setting arguments, which the function's
// lock guards.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}
// SAFETY: as above.
unsafe impl Send for OpenClFunction {}
// SAFETY: as above.
unsafe impl Sync for OpenClFunction {}

impl Drop for Program {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        // SAFETY: owned, released once. A failure has no remedy.
        let _ = unsafe { (self.api.release_program)(self.raw) };
    }
}

impl Drop for OpenClFunction {
    fn drop(&mut self) {
        let Ok(_inside) = usm_core::driver::process::ask() else { return };
        // SAFETY: owned, released once; the runtime keeps it alive while a launch is in flight.
        let _ = unsafe { (self.program.api.release_kernel)(self.raw) };
    }
}

fn api(context: &OpenClContext) -> usm_core::Result<Api> {
    // SAFETY: the signatures are those of the OpenCL specification, which never changes one.
    unsafe { Api::bind(0, |name| raw::function(context, name)) }
}

/// A string of the runtime; the first call asks for its length.
fn string(ask: impl Fn(usize, Raw, *mut usize) -> Status) -> String {
    let mut len = 0;
    if ask(0, ptr::null_mut(), &raw mut len) != SUCCESS {
        return String::new();
    }
    let mut bytes = alloc::vec![0_u8; len];
    if ask(len, bytes.as_mut_ptr().cast(), ptr::null_mut()) != SUCCESS {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_string()
}

fn supports_il(api: &Api, context: &OpenClContext) -> bool {
    let device = raw::device(context);
    let ask = |size, place, len| {
        // SAFETY: a live device, space for as many bytes as passed.
        unsafe { (api.device_info)(device, info::DEVICE_IL_VERSION, size, place, len) }
    };
    api.create_il.is_some() && string(ask).contains("SPIR-V")
}

// SAFETY: the enqueue function returns a new event, which completes after the kernel; an error
// status means that nothing was enqueued; the runtime counts references to kernel and program.
unsafe impl Programmable for OpenCl {
    type Module = OpenClModule;
    type Function = OpenClFunction;

    fn formats(context: &OpenClContext) -> Formats {
        match api(context) {
            Ok(api) if supports_il(&api, context) => Formats::OPENCL_C | Formats::SPIR_V,
            Ok(_) => Formats::OPENCL_C,
            Err(_) => Formats::empty(),
        }
    }

    fn build(context: &OpenClContext, code: &Code<'_>, options: &str) -> Result<OpenClModule, BuildError> {
        let api = api(context)?;
        let program = Program::create(api, context, code)?;
        program.build(code, options)?;
        Ok(OpenClModule(Arc::new(program)))
    }

    fn native(module: &OpenClModule) -> Option<Vec<u8>> {
        module.0.binary()
    }

    fn build_native(context: &OpenClContext, code: &[u8]) -> Result<OpenClModule, BuildError> {
        let program = Program::create_of_binary(api(context)?, context, code)?;
        program.build(&Code::SpirV(&[]), "")?;
        Ok(OpenClModule(Arc::new(program)))
    }

    fn function(module: &OpenClModule, name: &CStr) -> Result<(OpenClFunction, FunctionInfo), BuildError> {
        let program = &module.0;
        let mut status = SUCCESS;
        // SAFETY: a built program, a name that ends in NUL.
        let raw = unsafe { (program.api.create_kernel)(program.raw, name.as_ptr(), &raw mut status) };
        if status == INVALID_KERNEL_NAME {
            let name = name.to_string_lossy().into_owned();
            return Err(BuildError::NoFunction { name, names: program.kernel_names() });
        }
        check("clCreateKernel", status)?;
        let function = OpenClFunction { program: Arc::clone(program), raw, turn: Mutex::new(()) };
        function.allow_indirect_access()?;
        let info = function.info();
        Ok((function, info))
    }

    unsafe fn launch(
        queue: &OpenClQueue,
        function: &OpenClFunction,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[OpenClEvent],
    ) -> usm_core::Result<OpenClEvent> {
        let sizes = |sizes: [u64; 3]| grid.fastest_first(sizes).map(|size| size as usize);
        let global = sizes(grid.global());
        let local = grid.local().map(sizes);
        let local = local.as_ref().map_or(ptr::null(), |local| local.as_ptr());
        let (enqueue, kernel, dimensions) =
            (function.program.api.enqueue, function.raw, grid.dimensions() as u32);
        let _turn = function.turn.lock();
        for (index, argument) in arguments.iter().enumerate() {
            function.set(index as u32, argument)?;
        }
        let call = |queue, count, list, event| {
            let (offset, global) = (ptr::null(), global.as_ptr());
            // SAFETY: live queue, kernel and events; the kernel has all its arguments and its lock
            // is held; the sizes have as many elements as dimensions; the caller's promise for the
            // effects of the code.
            unsafe { enqueue(queue, kernel, dimensions, offset, global, local, count, list, event) }
        };
        // SAFETY: the call enqueues to the queue that it gets, and writes the event of that
        // operation.
        unsafe { raw::submit(queue, "clEnqueueNDRangeKernel", after, call) }
    }
}

impl Program {
    fn create(api: Api, context: &OpenClContext, code: &Code<'_>) -> Result<Self, BuildError> {
        let native_context = context.as_raw();
        let mut status = SUCCESS;
        let (operation, raw) = match *code {
            Code::OpenClC(source) => {
                let (start, len) = (source.as_ptr().cast::<c_char>(), source.len());
                // SAFETY: live context; one string of that length.
                let raw = unsafe {
                    (api.create_source)(native_context, 1, &raw const start, &raw const len, &raw mut status)
                };
                ("clCreateProgramWithSource", raw)
            }
            Code::SpirV(words) => {
                let create = api.create_il.ok_or_else(|| error::unsupported("SPIR-V"))?;
                // SAFETY: live context; as many bytes as passed.
                let raw =
                    unsafe { create(native_context, words.as_ptr().cast(), words.len(), &raw mut status) };
                ("clCreateProgramWithIL", raw)
            }
            _ => return Err(error::unsupported("this code").into()),
        };
        check(operation, status)?;
        // SAFETY: the signature is that of the extension's specification.
        let usm = unsafe { UsmApi::bind(0, |name| raw::extension_function(context, name)) }.ok();
        Ok(Self { api, usm, context: context.clone(), raw })
    }

    fn create_of_binary(api: Api, context: &OpenClContext, code: &[u8]) -> Result<Self, BuildError> {
        let create = api.create_binary.ok_or_else(|| error::unsupported("code in binary form"))?;
        let (native_context, device) = (context.as_raw(), raw::device(context));
        let (start, len) = (code.as_ptr(), code.len());
        let (mut of_binary, mut status) = (SUCCESS, SUCCESS);
        // SAFETY: live context and device; one binary of that length.
        let raw = unsafe {
            create(
                native_context,
                1,
                &raw const device,
                &raw const len,
                &raw const start,
                &raw mut of_binary,
                &raw mut status,
            )
        };
        check("clCreateProgramWithBinary", status)?;
        // SAFETY: the signature is that of the extension's specification.
        let usm = unsafe { UsmApi::bind(0, |name| raw::extension_function(context, name)) }.ok();
        Ok(Self { api, usm, context: context.clone(), raw })
    }

    /// The built code for the context's only device.
    fn binary(&self) -> Option<Vec<u8>> {
        let ask = self.api.program_info;
        let (mut size, mut written_len) = (0_usize, 0_usize);
        // SAFETY: live program, space for one number and for their bytes; more numbers than fit are
        // an error.
        let status = unsafe {
            let place = (&raw mut size).cast();
            ask(self.raw, info::PROGRAM_BINARY_SIZES, size_of::<usize>(), place, &raw mut written_len)
        };
        if status != SUCCESS || written_len != size_of::<usize>() || size == 0 {
            return None;
        }
        let mut bytes = alloc::vec![0_u8; size];
        let mut start = bytes.as_mut_ptr();
        // SAFETY: live program; one pointer to as many bytes as the runtime asked for.
        let status = unsafe {
            let place = (&raw mut start).cast();
            ask(self.raw, info::PROGRAM_BINARIES, size_of::<usize>(), place, ptr::null_mut())
        };
        (status == SUCCESS).then_some(bytes)
    }

    /// Source is built with the names and qualifiers of its parameters. SPIR-V always has them.
    fn build(&self, code: &Code<'_>, options: &str) -> Result<(), BuildError> {
        let options_in = match code {
            Code::OpenClC(_) => alloc::format!("-cl-kernel-arg-info {options}"),
            _ => options.to_string(),
        };
        let native_options: CString = text("options", &options_in)?;
        let device = raw::device(&self.context);
        // SAFETY: live program and device; without a callback the call returns when the build is
        // complete.
        let status = unsafe {
            let call = self.api.build;
            call(self.raw, 1, &raw const device, native_options.as_ptr(), ptr::null_mut(), ptr::null_mut())
        };
        match status {
            SUCCESS => Ok(()),
            BUILD_PROGRAM_FAILURE | INVALID_BUILD_OPTIONS => {
                let log = string(|size, place, len| {
                    // SAFETY: live program and device, space for as many bytes as passed.
                    unsafe {
                        (self.api.build_info)(self.raw, device, info::PROGRAM_BUILD_LOG, size, place, len)
                    }
                });
                let (options, native) = (options.to_string(), Some(i64::from(status)));
                Err(BuildError::Compile { log, options, backend: BackendKind::OpenCl, native })
            }
            status => Err(native("clBuildProgram", status).into()),
        }
    }

    fn kernel_names(&self) -> String {
        let names = string(|size, place, len| {
            // SAFETY: live program, space for as many bytes as passed.
            unsafe { (self.api.program_info)(self.raw, info::PROGRAM_KERNEL_NAMES, size, place, len) }
        });
        names.replace(';', ", ")
    }
}

impl OpenClFunction {
    fn allow_indirect_access(&self) -> Result<(), Error> {
        let Some(set) = self.program.api.set_execution_info.filter(|_| self.program.usm.is_some()) else {
            return Ok(());
        };
        let yes: u32 = 1;
        for flag in info::INDIRECT {
            // SAFETY: live kernel; a `cl_bool`.
            let status = unsafe { set(self.raw, flag, size_of::<u32>(), (&raw const yes).cast()) };
            check("clSetKernelExecInfo", status)?;
        }
        Ok(())
    }

    fn info(&self) -> FunctionInfo {
        let api = &self.program.api;
        let device = raw::device(&self.program.context);
        let mut group = [0_usize; 3];
        let ask = |what, size, place: Raw| {
            // SAFETY: live kernel and device, space for as many bytes as passed.
            let status =
                unsafe { (api.kernel_device_info)(self.raw, device, what, size, place, ptr::null_mut()) };
            status == SUCCESS
        };
        let number = |what, default: u64| {
            // All of these have 8 bytes if `size_t` has; on 32-bit targets the byte counts still
            // have 8.
            let bytes = match what {
                info::KERNEL_LOCAL_MEM_SIZE | info::KERNEL_PRIVATE_MEM_SIZE => 8,
                _ => size_of::<usize>(),
            };
            let mut value = 0_u64;
            if ask(what, bytes, (&raw mut value).cast()) { value } else { default }
        };
        let mut answer = FunctionInfo::new(number(
            info::KERNEL_WORK_GROUP_SIZE,
            self.program.context.shared().info().max_work_group_size,
        ));
        answer.preferred_multiple = number(info::KERNEL_PREFERRED_MULTIPLE, 1).max(1);
        answer.local_mem_size = number(info::KERNEL_LOCAL_MEM_SIZE, 0);
        answer.private_mem_size = number(info::KERNEL_PRIVATE_MEM_SIZE, 0);
        let bytes = size_of_val(&group);
        let code = ask(info::KERNEL_COMPILE_WORK_GROUP_SIZE, bytes, (&raw mut group).cast());
        if code && group != [0; 3] {
            let [x, y, z] = group.map(|size| size as u64);
            answer.required_group = Some([z, y, x]);
        }
        let mut count = 0_u32;
        // SAFETY: live kernel, space for the value.
        let status = unsafe {
            let place = (&raw mut count).cast();
            (api.kernel_info)(self.raw, info::KERNEL_NUM_ARGS, size_of::<u32>(), place, ptr::null_mut())
        };
        if status == SUCCESS {
            answer.parameters = Some((0..count).map(|index| self.shape(index)).collect::<Vec<_>>());
        }
        answer
    }

    fn shape(&self, index: u32) -> Shape {
        let mut qualifier = 0_u32;
        let Some(ask) = self.program.api.argument_info else { return Shape::Unknown };
        // SAFETY: live kernel, a parameter of it, space for the value.
        let status = unsafe {
            let place = (&raw mut qualifier).cast();
            let what = info::KERNEL_ARG_ADDRESS_QUALIFIER;
            ask(self.raw, index, what, size_of::<u32>(), place, ptr::null_mut())
        };
        match qualifier {
            ADDRESS_GLOBAL | ADDRESS_CONSTANT if status == SUCCESS => Shape::Pointer,
            ADDRESS_LOCAL if status == SUCCESS => Shape::Local,
            // Only the runtime knows a value's size, and checks it when the argument is set.
            _ => Shape::Unknown,
        }
    }

    fn set(&self, index: u32, argument: &Slot<'_>) -> Result<(), Error> {
        let set = self.program.api.set_argument;
        let (operation, status) = match *argument {
            Slot::Pointer(address) => {
                let memory_error = || error::unsupported("unified shared memory on this platform");
                let usm = self.program.usm.as_ref().ok_or_else(memory_error)?;
                // SAFETY: live kernel; the address is not read here.
                let status =
                    unsafe { (usm.set_pointer)(self.raw, index, ptr::without_provenance::<c_void>(address)) };
                ("clSetKernelArgMemPointerINTEL", status)
            }
            Slot::Object(handle) => {
                // SAFETY: live kernel; a `cl_mem`, which the runtime keeps alive from the
                // submission on.
                let status = unsafe { set(self.raw, index, size_of::<usize>(), (&raw const handle).cast()) };
                ("clSetKernelArg", status)
            }
            Slot::Value(bytes) => {
                // SAFETY: live kernel; as many bytes as passed, copied before the call returns.
                ("clSetKernelArg", unsafe { set(self.raw, index, bytes.len(), bytes.as_ptr().cast()) })
            }
            Slot::Local { bytes, .. } => {
                // SAFETY: live kernel; a local argument has a size and no value.
                ("clSetKernelArg", unsafe { set(self.raw, index, bytes, ptr::null()) })
            }
            _ => return Err(error::unsupported("this sort of argument")),
        };
        if status == INVALID_ARG_SIZE {
            return Err(native("clSetKernelArg with the size of the argument", status));
        }
        check(operation, status)
    }
}
