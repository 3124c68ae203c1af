//! The built-in compiler: machine code by Cranelift, without a compiler, assembler or file.

mod check;
mod expr;
mod function;
mod half;
mod lanes;
mod math;
mod operate;
mod pause;
mod stmt;
mod variables;

use core::ffi::c_void;
use core::fmt;
use core::mem::ManuallyDrop;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, Signature, UserFuncName, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::proof::Claims;
use usm_kernel_ir::{ArrayId, Kernel, Place};

use crate::host::Pause;

/// A function that runs some groups of a range.
type Run =
    unsafe extern "C" fn(*const *mut c_void, *const u64, *const u64, *const u64, *mut u8, *mut Pause) -> u64;

/// Machine code of a kernel.
pub struct Code {
    run: Run,
    module: ManuallyDrop<JITModule>,
}

// SAFETY: after it is made, the code is only read.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// The reason why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Error {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

impl Code {
    /// Compiles a verified kernel.
    ///
    /// # Errors
    /// A processor that Cranelift does not support.
    pub fn new(kernel: &Kernel) -> Result<Self, Error> {
        Self::of(kernel, None)
    }

    /// Compiles a verified kernel to code that checks the indices of these claims and accesses
    /// nothing outside: a function as [`checked::host_c`]
    /// describes it. The items of a phase with checks run one after the other, unless the only
    /// check is that of one atomic operation.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn checked(kernel: &Kernel, claims: &Claims) -> Result<Self, Error> {
        Self::of(kernel, Some(&checked::places(claims)))
    }

    fn of(kernel: &Kernel, places: Option<&[(ArrayId, Place)]>) -> Result<Self, Error> {
        let error_of = |error: &dyn fmt::Display| Error(format!("no machine code: {error}"));
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", "speed"),
            ("is_pic", "false"),
            ("use_colocated_libcalls", "false"),
            ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        ] {
            flags.set(name, value).map_err(|error| error_of(&error))?;
        }
        let isa = cranelift_native::builder().map_err(|error| error_of(&error))?;
        let isa = isa.finish(settings::Flags::new(flags)).map_err(|error| error_of(&error))?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let pointer = module.target_config().pointer_type();
        if pointer != types::I64 {
            return Err(error_of(&"pointers of 64 bits are needed"));
        }
        let mut signature = Signature::new(module.target_config().default_call_conv);
        signature.params = vec![AbiParam::new(pointer); 6];
        signature.returns.push(AbiParam::new(types::I64));
        let mut builder = FunctionBuilderContext::new();
        let signature_of_ask = pause::signature();
        let ask = module.declare_function("usm_ask", Linkage::Local, &signature_of_ask);
        let ask = ask.map_err(|error| error_of(&error))?;
        let mut context = Context::new();
        context.func.signature = signature_of_ask;
        context.func.name = UserFuncName::user(0, ask.as_u32());
        pause::write(&mut context.func, &mut builder, module.target_config());
        module.define_function(ask, &mut context).map_err(|error| error_of(&format!("{error:?}")))?;
        let name = "usm_run";
        let id = module.declare_function(name, Linkage::Export, &signature);
        let id = id.map_err(|error| error_of(&error))?;
        let mut context = Context::new();
        context.func.signature = signature;
        context.func.name = UserFuncName::user(0, id.as_u32());
        let state = (vectors(), places, module.declare_func_in_func(ask, &mut context.func));
        function::write(kernel, &mut context.func, &mut builder, module.target_config(), state);
        module.define_function(id, &mut context).map_err(|error| error_of(&format!("{error:?}")))?;
        module.finalize_definitions().map_err(|error| error_of(&error))?;
        let code = module.get_finalized_function(id);
        // SAFETY: the function was compiled with this signature, and its memory lives as long as
        // the module.
        let run = unsafe { core::mem::transmute::<*const u8, Run>(code) };
        Ok(Self { run, module: ManuallyDrop::new(module) })
    }

    /// Runs some groups in the calling thread: a function as
    /// [`host_c`](usm_kernel_ir::emit::host_c) describes it. Without `scratch` it only returns the
    /// size of that memory in bytes.
    ///
    /// # Safety
    /// All pointers are as that function requires; arrays have the given lengths, and no other code
    /// accesses them meanwhile; the kernel's indices are inside.
    #[must_use]
    pub unsafe fn run(
        &self,
        arrays: *const *mut c_void,
        values: *const u64,
        lengths: *const u64,
        sizes: *const u64,
        scratch: *mut u8,
    ) -> u64 {
        // SAFETY: the caller's promise; without a pause.
        unsafe { self.run_while(arrays, values, lengths, sizes, scratch, core::ptr::null_mut()) }
    }

    /// As [`run`](Self::run), with calls of [`Pause::ask`] in long loops, unless `pause` is null.
    ///
    /// # Safety
    /// As for `run`. The function of `pause` may be called with its address, and does not unwind.
    #[must_use]
    pub unsafe fn run_while(
        &self,
        arrays: *const *mut c_void,
        values: *const u64,
        lengths: *const u64,
        sizes: *const u64,
        scratch: *mut u8,
        pause: *mut Pause,
    ) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { (self.run)(arrays, values, lengths, sizes, scratch, pause) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: dropped once, and no call is running, because it would borrow the code.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() };
    }
}

/// Whether the processor has the vectors that sixteen items need. Only the x86 family was tested.
fn vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("sse4.2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}
