//! Machine code of the host: by an installed C compiler, with a cache, or by the built-in one.

mod compiler;
mod groups;
mod run;

use std::ffi::c_void;
use std::path::Path;
use std::{env, fmt, ptr};

use libloading::Library;
use usm_kernel_ir::proof::Claims;
use usm_kernel_ir::{Kernel, emit};

use crate::cache;
use crate::program::{ALL, Open, Program};

pub use self::groups::Groups;
pub use self::run::{HostLaunch, RunError, Watch};

/// What the code calls in long loops. The structure may be the first field of another one, in which
/// the function finds its state.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// Returns the iterations of loops before its next call, or 0 to end the run in the middle of
    /// its work. It gets the address of this structure.
    pub ask: unsafe extern "C" fn(*mut Pause) -> u64,
    /// The iterations before the first call of a run. The code puts each answer here.
    pub rounds: u64,
}

/// The function that [`emit::host_c`] describes.
type Run =
    unsafe extern "C" fn(*const *mut c_void, *const u64, *const u64, *const u64, *mut u8, *mut Pause) -> u64;

/// Machine code of a kernel.
#[derive(Debug)]
pub enum HostCode {
    /// Code of a C compiler.
    Compiler(CompilerCode),
    /// Code of the built-in compiler.
    #[cfg(feature = "builtin")]
    Builtin(Box<crate::machine::Code>),
}

/// Code of a C compiler: the function, and the library that must stay loaded.
#[derive(Debug)]
pub struct CompilerCode {
    run: Run,
    _library: Library,
}

impl fmt::Display for HostCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compiler(_) => "the C compiler",
            #[cfg(feature = "builtin")]
            Self::Builtin(_) => "the built-in compiler",
        })
    }
}

/// The arguments of a run.
#[derive(Debug)]
pub(crate) struct RunArguments<'g> {
    /// Addresses of the arrays among the parameters, and of the record of code that checks.
    pub(crate) arrays: &'g [*mut c_void],
    /// Bits of the scalars.
    pub(crate) values: &'g [u64],
    /// Lengths of all arrays, in elements.
    pub(crate) lengths: &'g [u64],
    /// The groups of this run and their sizes, from [`Groups`].
    pub(crate) sizes: [u64; 12],
}

/// How kernels run on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The C compiler if there is one, else the built-in one.
    Best,
    Builtin,
    Compiler,
}

impl HostCode {
    /// Compiles a kernel, with checks of these indices, or reads it from the cache. `disjoint`
    /// states that no two arrays share memory. `None` for a processor that no compiler here
    /// supports: the interpreter remains.
    ///
    /// The variable `USM_KERNEL_HOST` chooses the compiler: `cc` or `builtin`.
    ///
    /// # Errors
    /// Another value of that variable; with `cc`, the reason why the kernel could not be compiled.
    pub fn new(kernel: &Kernel, checks: Option<&Claims>, disjoint: bool) -> Result<Option<Self>, String> {
        let way = match env::var("USM_KERNEL_HOST").as_deref() {
            Err(_) | Ok("") => Way::Best,
            Ok("builtin") => Way::Builtin,
            Ok("cc") => Way::Compiler,
            Ok(other) => return Err(format!("USM_KERNEL_HOST is {other:?}: \"builtin\" or \"cc\"")),
        };
        if way != Way::Builtin && cfg!(all(unix, target_pointer_width = "64")) {
            let code = match compiler::path() {
                Some(compiler) => {
                    let text = match checks {
                        Some(bounds) => emit::checked::host_c(kernel, bounds, disjoint),
                        None => emit::host_c(kernel, disjoint),
                    };
                    Self::compile_text(&text, compiler)
                }
                None => Err("USM_KERNEL_HOST is \"cc\", and there is no cc, gcc or clang".to_owned()),
            };
            match code {
                Err(reason) if way == Way::Compiler => return Err(reason),
                // The built-in compiler takes over.
                Err(_) => {}
                Ok(code) => return Ok(Some(code)),
            }
        }
        Ok(Self::builtin(kernel, checks))
    }

    #[cfg(feature = "builtin")]
    fn builtin(kernel: &Kernel, checks: Option<&Claims>) -> Option<Self> {
        let code = match checks {
            Some(bounds) => crate::machine::Code::checked(kernel, bounds),
            None => crate::machine::Code::new(kernel),
        };
        code.ok().map(|code| Self::Builtin(Box::new(code)))
    }

    #[cfg(not(feature = "builtin"))]
    const fn builtin(_: &Kernel, _: Option<&Claims>) -> Option<Self> {
        None
    }

    fn compile_text(text: &str, compiler: &Path) -> Result<Self, String> {
        let name = compiler::name_of(text, compiler);
        let Some(folder) = cache::folder() else {
            let (folder, file) = compiler::compile(text, compiler, &name)?;
            let code = Self::load(&folder.at(&file));
            folder.remove(&[&file]);
            return code;
        };
        let (file, sum) = (format!("{name}.so"), format!("{name}.sum"));
        if cache::is_whole(&folder, &file, &sum)
            && let Ok(code) = Self::load(&folder.at(&file))
        {
            return Ok(code);
        }
        let (temporary, output) = compiler::compile(text, compiler, &name)?;
        let bytes = temporary.read(&output).map_err(|unfit| format!("{output}: {unfit}"));
        temporary.remove(&[&output]);
        let bytes = bytes?;
        let result = folder.write(&file, &bytes);
        let result = result.and_then(|()| folder.write(&sum, cache::checksum(&bytes).as_bytes()));
        result.map_err(|error| format!("{file}: {error}"))?;
        Self::load(&folder.at(&file))
    }

    /// Loads a file of an [`OwnFolder`](cache::OwnFolder). The loader takes a library of the same
    /// name for the same, so files of different code have different names.
    fn load(file: &Path) -> Result<Self, String> {
        let name = |error: libloading::Error| {
            // The system's message: that of the error's source, if it has one.
            let source = std::error::Error::source(&error);
            let message = source.map_or_else(|| error.to_string(), ToString::to_string);
            format!("{}: {message}", file.display())
        };
        let _loading = usm_core::ends::Loading::begin().map_err(|error| error.to_string())?;
        // SAFETY: the compiler made the file from the kernel, which has no initialisers, and nobody
        // but this user could write it.
        let library = unsafe { Library::new(file) }.map_err(name)?;
        // SAFETY: the generated text defines the function with this type.
        let run = unsafe { library.get::<Run>(emit::HOST_FUNCTION.as_bytes()) }.map(|run| *run);
        Ok(Self::Compiler(CompilerCode { run: run.map_err(name)?, _library: library }))
    }

    /// Memory for the groups of a launch, for all of its parts in turn.
    pub(crate) fn scratch(&self, arguments: &RunArguments<'_>) -> Result<Vec<u8>, String> {
        // SAFETY: with a null pointer the function only returns the size in bytes.
        let bytes = unsafe { self.call(arguments, ptr::null_mut(), ptr::null_mut()) };
        let words = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(128));
        let mut memory: Vec<u8> = Vec::new();
        let reserved = words.map(|words| memory.try_reserve_exact(words));
        if !matches!(reserved, Some(Ok(()))) {
            return Err(format!("{bytes} bytes of local memory are not there"));
        }
        memory.resize(words.unwrap_or(0), 0);
        Ok(memory)
    }

    /// Runs a part of a launch in this thread, as long as `pause` lets it.
    ///
    /// # Safety
    /// The function of `pause` may be called with its address. The arrays are live and have the
    /// given lengths. No other work uses them, and the kernel's indices are inside of them. The
    /// memory is the [`scratch`](Self::scratch) of this launch.
    pub(crate) unsafe fn run(&self, arguments: &RunArguments<'_>, memory: &mut [u8], pause: *mut Pause) {
        let start = memory.as_ptr().align_offset(64).min(64);
        // SAFETY: the caller's promise; the memory has the size that the function requested,
        // aligned.
        unsafe { self.call(arguments, memory.as_mut_ptr().wrapping_add(start), pause) };
    }

    /// # Safety
    /// As [`run`](Self::run), unless `scratch` is null.
    unsafe fn call(&self, arguments: &RunArguments<'_>, scratch: *mut u8, pause: *mut Pause) -> u64 {
        let RunArguments { arrays, values, lengths, sizes } = arguments;
        let (arrays, values, lengths) = (arrays.as_ptr(), values.as_ptr(), lengths.as_ptr());
        match self {
            Self::Compiler(CompilerCode { run, .. }) => {
                // SAFETY: the caller's promise.
                unsafe { run(arrays, values, lengths, sizes.as_ptr(), scratch, pause) }
            }
            #[cfg(feature = "builtin")]
            Self::Builtin(code) => {
                // SAFETY: the caller's promise.
                unsafe { code.run_while(arrays, values, lengths, sizes.as_ptr(), scratch, pause) }
            }
        }
    }
}

/// Finds the compiler and reads the settings. Later builds then ask the environment nothing, which
/// suits a program that forks.
pub fn prepare() {
    compiler::prepare();
    cache::prepare();
}

/// The machine code of one program, by the indices that it checks.
#[derive(Debug, Default)]
pub struct HostCodes(Vec<(Open, Entry)>);

/// Machine code; `None` where the kernel is interpreted.
type Entry = Result<Option<std::sync::Arc<HostCode>>, String>;

/// The most sets of indices for which one kernel has machine code of its own. Further launches
/// check all indices.
const SETS: usize = 4;

impl HostCodes {
    /// Code that checks at least these indices, the indices that it checks, and whether it was
    /// compiled just now.
    ///
    /// # Errors
    /// As [`HostCode::new`].
    pub fn get(&mut self, program: &Program, open: Open, disjoint: bool) -> (Entry, Open, bool) {
        let has = |open| self.0.iter().position(|(other, _)| *other == open);
        let open = if open == 0 || has(open).is_some() || self.0.len() < SETS { open } else { ALL };
        if let Some(place) = has(open) {
            return (self.0[place].1.clone(), open, false);
        }
        let claims = (open != 0).then(|| program.claims_of(open));
        let code = HostCode::new(program.kernel(), claims.as_ref(), disjoint);
        let code = code.map(|code| code.map(std::sync::Arc::new));
        self.0.push((open, code.clone()));
        (code, open, true)
    }

    /// Whether [`get`](Self::get) compiles nothing.
    #[must_use]
    pub fn has(&self, open: Open) -> bool {
        self.0.iter().any(|(other, _)| *other == open)
    }
}
