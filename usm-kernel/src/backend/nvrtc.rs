//! NVRTC, NVIDIA's run-time compiler of CUDA C: opened when the first source is built, if it is installed.

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use std::path::PathBuf;
use std::sync::OnceLock;

use usm_core::{BackendKind, Error, ErrorKind};

use super::table::table;
use crate::module::{BuildError, text};

type Program = *mut c_void;
type Code = c_int;

const SUCCESS: Code = 0;
const INVALID_OPTION: Code = 5;
const COMPILATION: Code = 6;

/// Names of the library, newest first. `USM_NVRTC_LIBRARY` names another file.
#[cfg(target_os = "windows")]
const NAMES: [&str; 3] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"];
#[cfg(not(target_os = "windows"))]
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

const VARIABLE: &str = "USM_NVRTC_LIBRARY";

table! {
    /// The functions that are used.
    Api in "libnvrtc.so" of Cuda:
    needed {
        create = "nvrtcCreateProgram"
            (*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> Code;
        destroy = "nvrtcDestroyProgram"(*mut Program) -> Code;
        compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char) -> Code;
        log_size = "nvrtcGetProgramLogSize"(Program, *mut usize) -> Code;
        log = "nvrtcGetProgramLog"(Program, *mut c_char) -> Code;
        ptx_size = "nvrtcGetPTXSize"(Program, *mut usize) -> Code;
        ptx = "nvrtcGetPTX"(Program, *mut c_char) -> Code;
    }
    optional {
        cubin_size = "nvrtcGetCUBINSize"(Program, *mut usize) -> Code;
        cubin = "nvrtcGetCUBIN"(Program, *mut c_char) -> Code;
    }
}

fn open() -> Result<&'static Api, BuildError> {
    static OPENED: OnceLock<Result<&'static Api, BuildError>> = OnceLock::new();
    OPENED.get_or_init(|| find().map(|api| &*Box::leak(Box::new(api)))).clone()
}

fn find() -> Result<Api, BuildError> {
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from);
    let files: Vec<PathBuf> = match named {
        Some(file) => alloc::vec![file],
        None => folders().flat_map(|folder| NAMES.map(|name| folder.join(name))).collect(),
    };
    let mut reason = None;
    for file in files {
        // SAFETY: loading runs the initialisers of the library, which depend on nothing of ours.
        let library = match unsafe { libloading::Library::new(&file) } {
            Ok(library) => library,
            // Of several places the first is the loader's own.
            Err(error) => {
                reason.get_or_insert_with(|| format!("{}: {error}", file.display()));
                continue;
            }
        };
        let find = |name: &core::ffi::CStr| {
            // SAFETY: the symbol is taken as an address and not called here.
            let found = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
            NonNull::new(*found)
        };
        // SAFETY: the signatures are those of `nvrtc.h`, unchanged in the versions of the names.
        let api = unsafe { Api::bind(find) };
        // Never closed: its functions are kept.
        core::mem::forget(library);
        return api;
    }
    // Once a process, as this function is called once.
    let reason = Box::leak(reason.unwrap_or_default().into_boxed_str());
    let library = "libnvrtc.so (NVRTC, which compiles CUDA C)";
    let missing = Error::from(ErrorKind::LibraryNotFound { library, reason });
    Err(missing.in_backend(BackendKind::Cuda).into())
}

/// The loader's own places, then those of a toolkit that the loader was not told of.
fn folders() -> impl Iterator<Item = PathBuf> {
    let named = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = named.chain([PathBuf::from("/usr/local/cuda")]);
    let inside = toolkits.flat_map(|toolkit| ["lib64", "bin"].map(|folder| toolkit.join(folder)));
    core::iter::once(PathBuf::new()).chain(inside)
}

struct Source {
    api: &'static Api,
    raw: Program,
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: owned, destroyed once. A failure could not be acted on.
        let _ = unsafe { (self.api.destroy)(&raw mut self.raw) };
    }
}

fn native(operation: &'static str, code: Code) -> BuildError {
    let error = Error::from(ErrorKind::Native { operation }).in_backend(BackendKind::Cuda);
    error.with_native(i64::from(code)).into()
}

fn check(operation: &'static str, code: Code) -> Result<(), BuildError> {
    if code == SUCCESS { Ok(()) } else { Err(native(operation, code)) }
}

type Sizes = unsafe extern "C" fn(Program, *mut usize) -> Code;
type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> Code;

impl Source {
    fn new(source: &str) -> Result<Self, BuildError> {
        let api = open()?;
        let source = text("source", source)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a text that ends in NUL, no name, no headers, room for the answer.
        let code =
            unsafe { (api.create)(&raw mut raw, source.as_ptr(), ptr::null(), 0, ptr::null(), ptr::null()) };
        check("nvrtcCreateProgram", code)?;
        Ok(Self { api, raw })
    }

    fn compile(&self, options: &[CString]) -> Code {
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: a live program, as many options as said.
        unsafe { (self.api.compile)(self.raw, options.len() as c_int, options.as_ptr()) }
    }

    fn bytes(&self, size: Sizes, take: Bytes, operation: &'static str) -> Result<Vec<u8>, BuildError> {
        let mut len = 0;
        // SAFETY: a live program, room for the answer.
        check(operation, unsafe { size(self.raw, &raw mut len) })?;
        let mut bytes = alloc::vec![0_u8; len];
        // SAFETY: a live program, room for as many bytes as it said.
        check(operation, unsafe { take(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn log(&self) -> String {
        let log = self.bytes(self.api.log_size, self.api.log, "nvrtcGetProgramLog").unwrap_or_default();
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_string()
    }
}

/// Machine code for a device of this compute capability; PTX where the compiler does not know the device. Machine code
/// spares the driver a compilation, and a compiler newer than the driver writes PTX that the driver does not read.
pub(super) fn compile(source: &str, options: &str, capability: (i32, i32)) -> Result<Vec<u8>, BuildError> {
    let program = Source::new(source)?;
    let asked =
        options.split_whitespace().map(|option| text("options", option)).collect::<Result<Vec<_>, _>>()?;
    let chosen = asked.iter().any(|option| {
        let option = option.to_bytes();
        [&b"--gpu-architecture"[..], b"-arch"].iter().any(|name| option.starts_with(name))
    });
    let mut for_device = asked.clone();
    if !chosen {
        let (major, minor) = capability;
        for_device.push(text("options", &alloc::format!("--gpu-architecture=sm_{major}{minor}"))?);
    }
    let mut code = program.compile(&for_device);
    let mut machine_code = true;
    if code == INVALID_OPTION && !chosen {
        machine_code = false;
        code = program.compile(&asked);
    }
    match code {
        SUCCESS => {}
        COMPILATION | INVALID_OPTION => {
            let (log, options, native) = (program.log(), options.to_string(), Some(i64::from(code)));
            return Err(BuildError::Compile { log, options, backend: BackendKind::Cuda, native });
        }
        code => return Err(native("nvrtcCompileProgram", code)),
    }
    let api = program.api;
    if let (true, Some(size), Some(take)) = (machine_code, api.cubin_size, api.cubin) {
        let cubin = program.bytes(size, take, "nvrtcGetCUBIN")?;
        if !cubin.is_empty() {
            return Ok(cubin);
        }
    }
    program.bytes(api.ptx_size, api.ptx, "nvrtcGetPTX")
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::eprintln;

    use super::*;
    use crate::executable::DeviceCode;
    use crate::sample::{Histogram, Matmul, Reduce, Reverse, Saxpy, ScanCarry, ScanParts};

    /// The compiler needs no device.
    fn available() -> bool {
        let found = open();
        if let Err(error) = &found {
            eprintln!("skipped: NVRTC: {error}");
        }
        found.is_ok()
    }

    #[test]
    fn the_samples_are_cuda_c() {
        if !available() {
            return;
        }
        let sources = [
            <Reverse as DeviceCode<1>>::CUDA_C,
            <Saxpy as DeviceCode<1>>::CUDA_C,
            <Reduce as DeviceCode<1>>::CUDA_C,
            <Histogram as DeviceCode<1>>::CUDA_C,
            <Matmul as DeviceCode<2>>::CUDA_C,
            <ScanParts as DeviceCode<1>>::CUDA_C,
            <ScanCarry as DeviceCode<1>>::CUDA_C,
        ];
        for source in sources {
            let code = compile(source.expect("a source"), "", (9, 0)).expect("code that compiles");
            assert_eq!(code.get(..4), Some(&b"\x7FELF"[..]), "machine code");
        }
    }

    #[test]
    fn an_unknown_device_gets_ptx() {
        if !available() {
            return;
        }
        let code = compile("extern \"C\" __global__ void k() {}", "", (99, 0)).expect("code that compiles");
        assert!(String::from_utf8_lossy(&code).contains(".entry k"));
    }

    #[test]
    fn a_refused_source_has_a_log() {
        if !available() {
            return;
        }
        let error =
            compile("extern \"C\" __global__ void k() { no_such_name; }", "", (9, 0)).expect_err("refused");
        assert!(matches!(&error, BuildError::Compile { log, .. } if log.contains("no_such_name")), "{error}");
    }
}
