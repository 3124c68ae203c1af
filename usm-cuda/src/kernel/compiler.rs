//! The vendors' run-time compilers of CUDA C: NVRTC, and AMD's hipRTC, which reads it as HIP. The
//! first build of source opens them, if installed.

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use usm_core::driver::library::{self, File};
use usm_core::{BackendKind, Error, ErrorKind};

use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::table;
use usm_kernel::BuildError;
use usm_kernel::backend::driver::text;

use super::code_cache::{CodeCache, Target};

type Program = *mut c_void;
type Code = c_int;

/// The codes are the same in `nvrtc.h` and `hiprtc.h`.
const SUCCESS: Code = 0;
const INVALID_OPTION: Code = 5;
const COMPILATION: Code = 6;

/// The compiler of one vendor.
#[derive(Debug)]
pub(super) struct Compiler {
    column: usize,
    backend: BackendKind,
    /// The library, in errors.
    library: &'static str,
    /// File names, newest first.
    files: &'static [&'static str],
    /// Environment variable for another file.
    variable: &'static str,
    /// Places of a toolkit that the loader does not search: environment variables and one folder,
    /// and the subfolders.
    toolkits: (&'static [&'static str], &'static str, &'static [&'static str]),
    /// Function names in errors: create, compile, log and code.
    operations: [&'static str; 4],
    library_api: OnceLock<Result<&'static Api, BuildError>>,
    /// Held during compilation if two threads must not compile concurrently: hipRTC 5.2 crashes.
    one_at_a_time: Option<Mutex<()>>,
    code_cache: CodeCache,
}

pub(super) static NVRTC: Compiler = Compiler {
    column: 0,
    backend: BackendKind::Cuda,
    library: "libnvrtc.so (NVRTC, which compiles CUDA C)",
    #[cfg(target_os = "windows")]
    files: &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"],
    #[cfg(not(target_os = "windows"))]
    files: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"],
    variable: "USM_NVRTC_LIBRARY",
    toolkits: (&["CUDA_PATH", "CUDA_HOME"], "/usr/local/cuda", &["lib64", "bin"]),
    operations: ["nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLog", "nvrtcGetPTX"],
    library_api: OnceLock::new(),
    one_at_a_time: None,
    code_cache: CodeCache::new(),
};

pub(super) static HIPRTC: Compiler = Compiler {
    column: 1,
    backend: BackendKind::Hip,
    library: "libhiprtc.so (hipRTC, which compiles HIP)",
    #[cfg(target_os = "windows")]
    files: &["hiprtc0702.dll", "hiprtc0701.dll", "hiprtc0700.dll", "hiprtc0604.dll", "hiprtc0602.dll"],
    // In older versions the runtime itself contains the compiler.
    #[cfg(not(target_os = "windows"))]
    files: &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", "libamdhip64.so", "libamdhip64.so.5"],
    variable: "USM_HIPRTC_LIBRARY",
    toolkits: (&["ROCM_PATH", "HIP_PATH"], "/opt/rocm", &["lib", "bin"]),
    operations: ["hiprtcCreateProgram", "hiprtcCompileProgram", "hiprtcGetProgramLog", "hiprtcGetCode"],
    library_api: OnceLock::new(),
    one_at_a_time: Some(Mutex::new(())),
    code_cache: CodeCache::new(),
};

table! {
    /// The functions that this crate uses.
    Api in "libnvrtc.so" of Cuda | "libhiprtc.so" of Hip:
    needed {
        create = "nvrtcCreateProgram" | "hiprtcCreateProgram"
            (*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> Code;
        destroy = "nvrtcDestroyProgram" | "hiprtcDestroyProgram" (*mut Program) -> Code;
        compile = "nvrtcCompileProgram" | "hiprtcCompileProgram" (Program, c_int, *const *const c_char) -> Code;
        log_size = "nvrtcGetProgramLogSize" | "hiprtcGetProgramLogSize" (Program, *mut usize) -> Code;
        log = "nvrtcGetProgramLog" | "hiprtcGetProgramLog" (Program, *mut c_char) -> Code;
        code_size = "nvrtcGetPTXSize" | "hiprtcGetCodeSize" (Program, *mut usize) -> Code;
        code = "nvrtcGetPTX" | "hiprtcGetCode" (Program, *mut c_char) -> Code;
    }
    optional {
        cubin_size = "nvrtcGetCUBINSize" (Program, *mut usize) -> Code;
        cubin = "nvrtcGetCUBIN" (Program, *mut c_char) -> Code;
    }
}

impl Compiler {
    fn open(&'static self) -> Result<&'static Api, BuildError> {
        self.library_api.get_or_init(|| self.find().map(|api| &*Box::leak(Box::new(api)))).clone()
    }

    fn find(&self) -> Result<Api, BuildError> {
        if let Some(file) = library::named_by(self.variable) {
            return Ok(library::of_variable(self.variable, &file, self.open_file(&file))?);
        }
        let files: Vec<PathBuf> =
            self.folders().flat_map(|folder| self.files.iter().map(move |name| folder.join(name))).collect();
        Ok(library::open_first(&files, |file| self.open_file(file))?)
    }

    fn open_file(&self, file: &Path) -> usm_core::Result<Api> {
        let ours = |kind: ErrorKind| Error::from(kind).in_backend(self.backend);
        // SAFETY: loading runs the library's initialisers, which depend on nothing in this crate.
        let library = unsafe { File::open(self.library, file) }.map_err(ours)?;
        // SAFETY: the signatures are those of `nvrtc.h` and `hiprtc.h`, unchanged in the versions
        // of the names.
        let api = unsafe { Api::bind(self.column, |name| library.function(name)) }?;
        library.keep_open();
        Ok(api)
    }

    /// The loader's own places, then those of a toolkit.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let (variables, usual, inside) = self.toolkits;
        let folders = variables.iter().filter_map(std::env::var_os).map(PathBuf::from);
        let toolkits = folders.chain([PathBuf::from(usual)]);
        let inside = toolkits.flat_map(move |toolkit| inside.iter().map(move |folder| toolkit.join(folder)));
        core::iter::once(PathBuf::new()).chain(inside)
    }

    fn native(&self, operation: &'static str, code: Code) -> BuildError {
        let error = Error::from(ErrorKind::Native { operation }).in_backend(self.backend);
        error.with_native(i64::from(code)).into()
    }

    fn check(&self, operation: &'static str, code: Code) -> Result<(), BuildError> {
        if code == SUCCESS { Ok(()) } else { Err(self.native(operation, code)) }
    }

    /// [`compile`](Self::compile), once for each source, for the device of this number.
    pub(super) fn compile_once(
        &'static self,
        source: &str,
        options: &str,
        capability: Option<[i32; 2]>,
        device: i32,
    ) -> Result<Arc<[u8]>, BuildError> {
        let target = capability.map_or(Target::Device(device), Target::Capability);
        let compile = || self.compile(source, options, capability);
        self.code_cache.get_or_make((source, options, target), compile)
    }

    /// Machine code for a device of this compute capability; PTX if the compiler does not know the
    /// device. Machine code saves the driver a compilation, and a compiler newer than the driver
    /// writes PTX that the driver cannot read. A compiler that queries this thread's device itself
    /// gets no capability.
    pub(super) fn compile(
        &'static self,
        source: &str,
        options: &str,
        capability: Option<[i32; 2]>,
    ) -> Result<Vec<u8>, BuildError> {
        let [_, compile, _, code_of] = self.operations;
        let _one_at_a_time = self.one_at_a_time.as_ref().map(Mutex::lock);
        let program = Source::new(self, source)?;
        let options_in = options
            .split_whitespace()
            .map(|option| text("options", option))
            .collect::<Result<Vec<_>, _>>()?;
        let has_target = options_in.iter().any(|option| {
            let option = option.to_bytes();
            [&b"--gpu-architecture"[..], b"-arch"].iter().any(|name| option.starts_with(name))
        });
        let mut for_device = options_in.clone();
        let capability = capability.filter(|_| !has_target);
        if let Some([major, minor]) = capability {
            for_device.push(text("options", &alloc::format!("--gpu-architecture=sm_{major}{minor}"))?);
        }
        let mut code = program.compile(&for_device);
        let mut machine_code = true;
        if code == INVALID_OPTION && capability.is_some() {
            machine_code = false;
            code = program.compile(&options_in);
        }
        match code {
            SUCCESS => {}
            COMPILATION | INVALID_OPTION => {
                let (log, options, native) = (program.log(), options.to_string(), Some(i64::from(code)));
                return Err(BuildError::Compile { log, options, backend: self.backend, native });
            }
            code => return Err(self.native(compile, code)),
        }
        let api = program.api;
        if let (true, Some(size), Some(take)) = (machine_code, api.cubin_size, api.cubin) {
            let cubin = program.bytes(size, take, "nvrtcGetCUBIN")?;
            if !cubin.is_empty() {
                return Ok(cubin);
            }
        }
        program.bytes(api.code_size, api.code, code_of)
    }
}

struct Source {
    compiler: &'static Compiler,
    api: &'static Api,
    raw: Program,
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: owned, destroyed once. A failure has no remedy.
        let _ = unsafe { (self.api.destroy)(&raw mut self.raw) };
    }
}

type Sizes = unsafe extern "C" fn(Program, *mut usize) -> Code;
type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> Code;

impl Source {
    fn new(compiler: &'static Compiler, source: &str) -> Result<Self, BuildError> {
        let api = compiler.open()?;
        let source = text("source", source)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a string that ends in NUL, no name, no headers, space for the value.
        let code =
            unsafe { (api.create)(&raw mut raw, source.as_ptr(), ptr::null(), 0, ptr::null(), ptr::null()) };
        compiler.check(compiler.operations[0], code)?;
        Ok(Self { compiler, api, raw })
    }

    fn compile(&self, options: &[CString]) -> Code {
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: a live program, as many options as passed.
        unsafe { (self.api.compile)(self.raw, options.len() as c_int, options.as_ptr()) }
    }

    fn bytes(&self, size: Sizes, take: Bytes, operation: &'static str) -> Result<Vec<u8>, BuildError> {
        let mut len = 0;
        // SAFETY: a live program, space for the value.
        self.compiler.check(operation, unsafe { size(self.raw, &raw mut len) })?;
        let mut bytes = alloc::vec![0_u8; len];
        // SAFETY: a live program, space for as many bytes as it reported.
        self.compiler.check(operation, unsafe { take(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn log(&self) -> String {
        let log =
            self.bytes(self.api.log_size, self.api.log, self.compiler.operations[2]).unwrap_or_default();
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_string()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::sync::LazyLock;

    use super::*;
    use usm_kernel::DeviceCode;
    use usm_kernel::sample::{add_carries, histogram, matmul, reduce, reverse, saxpy, scan};

    /// AMD's own: `USM_HIPRTC_LIBRARY` may name that of the tests' driver.
    static AMD: LazyLock<Compiler> = LazyLock::new(|| like(&HIPRTC, HIPRTC.files, "USM_AMD_LIBRARY"));

    fn like(other: &Compiler, files: &'static [&'static str], variable: &'static str) -> Compiler {
        let &Compiler { column, backend, library, toolkits, operations, .. } = other;
        let (opened, one_at_a_time) = (OnceLock::new(), Some(Mutex::new(())));
        let code_cache = CodeCache::new();
        Compiler {
            column,
            backend,
            library,
            files,
            variable,
            toolkits,
            operations,
            library_api: opened,
            one_at_a_time,
            code_cache,
        }
    }

    /// The installed compilers, with options for a device, which need not exist.
    #[track_caller]
    fn installed() -> Vec<(&'static Compiler, &'static str, Option<[i32; 2]>)> {
        let all = [(&NVRTC, "", Some([9, 0])), (&*AMD, "--offload-arch=gfx906", None)];
        let there = |(compiler, ..): &(&'static Compiler, _, _)| match compiler.open() {
            Ok(_) => true,
            // The case below covers AMD's compiler, because it knows the place.
            Err(error) if compiler.column == AMD.column => {
                assert!(std::env::var_os(AMD.variable).is_none(), "{error}");
                false
            }
            Err(error) => {
                skip::missing("nvrtc", error);
                false
            }
        };
        all.into_iter().filter(there).collect()
    }

    #[test]
    fn the_samples_are_cuda_c_and_hip() {
        let sources = [
            <reverse as DeviceCode<1>>::CUDA_C,
            <saxpy as DeviceCode<1>>::CUDA_C,
            <reduce as DeviceCode<1>>::CUDA_C,
            <histogram as DeviceCode<1>>::CUDA_C,
            <matmul as DeviceCode<2>>::CUDA_C,
            <scan as DeviceCode<1>>::CUDA_C,
            <add_carries as DeviceCode<1>>::CUDA_C,
        ];
        for (compiler, options, capability) in installed() {
            for source in sources {
                let source = source.expect("a source");
                let code = compiler.compile(source, options, capability).expect("code that compiles");
                assert_eq!(code.get(..4), Some(&b"\x7FELF"[..]), "machine code");
                assert_eq!(crate::kernel::image::check(&code), Ok(()));
            }
        }
    }

    /// AMD's own compiler from Debian, in a process that finds its dependencies.
    #[test]
    #[cfg(target_os = "linux")]
    fn amd_s_compiler_takes_the_samples() {
        let folder = std::env::var_os("USM_DEBIAN_LIBRARIES").map(PathBuf::from).unwrap_or_default();
        let library = folder.join("libamdhip64.so.5");
        if !library.exists() {
            return skip::missing("hip", format_args!("hipRTC of AMD: no {}", library.display()));
        }
        let mut other = std::process::Command::new(std::env::current_exe().expect("this program"));
        other.args(["compiler::tests::the_samples", "compiler::tests::a_refused", "--nocapture"]);
        // Before this process's own value, because under the sanitizer NVIDIA's compiler finds its
        // parts there too.
        let before = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = core::iter::once(folder).chain(std::env::split_paths(&before));
        let folders = std::env::join_paths(folders).expect("folders");
        let ran =
            other.env("LD_LIBRARY_PATH", folders).env("USM_AMD_LIBRARY", library).output().expect("runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        let found = String::from_utf8_lossy(&ran.stdout).contains("2 passed");
        assert!(ran.status.success() && found, "{said}");
    }

    #[test]
    fn an_unknown_device_gets_ptx() {
        for (compiler, options, capability) in installed() {
            let Some(_) = capability else { continue };
            let source = "extern \"C\" __global__ void k() {}";
            let code = compiler.compile(source, options, Some([99, 0])).expect("code that compiles");
            assert!(String::from_utf8_lossy(&code).contains(".entry k"));
        }
    }

    #[test]
    fn a_refused_source_has_a_log() {
        for (compiler, options, capability) in installed() {
            let source = "extern \"C\" __global__ void k() { no_such_name; }";
            let error = compiler.compile(source, options, capability).expect_err("refused");
            assert!(
                matches!(&error, BuildError::Compile { log, backend, .. } if log.contains("no_such_name") && *backend == compiler.backend),
                "{error}"
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_names_the_first_missing_one() {
        for (compiler, symbol) in [(&NVRTC, "nvrtcCreateProgram"), (&HIPRTC, "hiprtcCreateProgram")] {
            // Every Linux has the C library, and it is no compiler.
            let one_at_a_time = like(compiler, &["libc.so.6"], "USM_TEST_NO_SUCH_VARIABLE");
            let error = one_at_a_time.find().expect_err("no compiler");
            assert!(error.to_string().contains(symbol), "{error}");
        }
    }

    #[test]
    fn a_missing_compiler_is_named_with_the_reason_of_the_system() {
        const FILE: &str = "usm-test-no-such-compiler.so";
        for compiler in [&NVRTC, &HIPRTC] {
            let one_at_a_time = like(compiler, &[FILE, "usm-test-another.so"], "USM_TEST_NO_SUCH_VARIABLE");
            let error = one_at_a_time.find().expect_err("no compiler");
            let BuildError::Runtime(Error { kind, backend, .. }) = error else { panic!("{error}") };
            let ErrorKind::LibraryNotFound { library, reason } = kind else { panic!("{kind}") };
            assert_eq!((library, backend), (compiler.library, Some(compiler.backend)));
            assert!(reason.starts_with(&alloc::format!("{FILE}: ")), "{reason}");
            #[cfg(target_os = "linux")]
            assert_eq!(reason.matches(FILE).count(), 1, "{reason}");
        }
    }
}
