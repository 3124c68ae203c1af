//! A hipRTC over NVRTC (`USM_NVRTC_LIBRARY`), so that this driver gets text that it can execute. It
//! has the signatures and results of `hiprtc.h`. Two threads inside it at once count as misuse,
//! because AMD's release 5.2 crashes then.

use alloc::ffi::CString;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::state::lock;

type Program = *mut c_void;
type Texts = *const *const c_char;
type Result = c_int;

/// `HIPRTC_ERROR_INTERNAL_ERROR`
const INTERNAL: Result = 11;
/// `HIPRTC_ERROR_COMPILATION`. hipRTC also returns it for an unknown option, where NVRTC has
/// another code.
const COMPILATION: Result = 6;
const INVALID_OPTION: Result = 5;

/// The number of threads inside hipRTC.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Looks up the NVRTC function of that name.
fn nvrtc<F: Copy>(name: &CStr) -> Option<F> {
    static OPENED: OnceLock<usize> = OnceLock::new();
    let library = *OPENED.get_or_init(|| {
        let named = std::env::var("USM_NVRTC_LIBRARY").unwrap_or_else(|_| "libnvrtc.so".into());
        let Ok(named) = CString::new(named) else { return 0 };
        // SAFETY: a text that ends with a zero.
        unsafe { libc::dlopen(named.as_ptr(), libc::RTLD_NOW) as usize }
    });
    if library == 0 {
        return None;
    }
    // SAFETY: an open library, a text that ends with a zero.
    let found = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
    // SAFETY: the callers name the type of the function.
    (!found.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Calls the NVRTC counterpart. Reports misuse if another thread is inside hipRTC.
fn call_nvrtc<F: Copy>(name: &CStr, call: impl FnOnce(F) -> Result) -> Result {
    if INSIDE.fetch_add(1, Ordering::AcqRel) != 0 {
        lock().misuse(format_args!("two threads are in hipRTC"));
    }
    let result = nvrtc(name).map_or(INTERNAL, call);
    INSIDE.fetch_sub(1, Ordering::AcqRel);
    result
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut Program,
    source: *const c_char,
    name: *const c_char,
    headers: c_int,
    header_texts: Texts,
    header_names: Texts,
) -> Result {
    type Call =
        unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, Texts, Texts) -> Result;
    call_nvrtc::<Call>(c"nvrtcCreateProgram", |call| {
        // SAFETY: the caller's promise.
        unsafe { call(program, source, name, headers, header_texts, header_names) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hiprtcDestroyProgram(program: *mut Program) -> Result {
    type Call = unsafe extern "C" fn(*mut Program) -> Result;
    // SAFETY: the caller's promise.
    call_nvrtc::<Call>(c"nvrtcDestroyProgram", |call| unsafe { call(program) })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hiprtcCompileProgram(
    program: Program,
    count: c_int,
    options: Texts,
) -> Result {
    type Call = unsafe extern "C" fn(Program, c_int, Texts) -> Result;
    let options = if count == 0 { ptr::null() } else { options };
    // SAFETY: the caller's promise.
    match call_nvrtc::<Call>(c"nvrtcCompileProgram", |call| unsafe { call(program, count, options) }) {
        INVALID_OPTION => COMPILATION,
        result => result,
    }
}

/// Queries of a program: a size, or that many bytes.
macro_rules! answers {
    ($($name:ident($answer:ident: $type:ty) = $twin:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(program: Program, $answer: $type) -> Result {
            type Call = unsafe extern "C" fn(Program, $type) -> Result;
            // SAFETY: the caller's promise.
            call_nvrtc::<Call>($twin, |call| unsafe { call(program, $answer) })
        }
    )*};
}

answers! {
    hiprtcGetProgramLogSize(size: *mut usize) = c"nvrtcGetProgramLogSize";
    hiprtcGetProgramLog(log: *mut c_char) = c"nvrtcGetProgramLog";
    hiprtcGetCodeSize(size: *mut usize) = c"nvrtcGetPTXSize";
    hiprtcGetCode(code: *mut c_char) = c"nvrtcGetPTX";
}
