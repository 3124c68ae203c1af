//! Machine code of the host: by an installed C compiler, with a cache, or by our own compiler.

use std::ffi::c_void;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fmt, fs, ptr};

use libloading::Library;
use pyo3::prelude::*;
use usm_kernel_ir::proof::Claims;
use usm_kernel_ir::{Kernel, emit};
use usm_kernel_jit::Pause;

use super::disk_cache;
use super::folder::OwnFolder;
use crate::nrt::library::message_of;

/// The function that [`emit::host_c`] describes.
type Run =
    unsafe extern "C" fn(*const *mut c_void, *const u64, *const u64, *const u64, *mut u8, *mut Pause) -> u64;

/// Machine code of a kernel.
#[derive(Debug)]
pub(crate) enum Compiled {
    /// Code of the C compiler: the function, and the library that must stay loaded.
    Compiler(Run, #[expect(dead_code, reason = "kept to be dropped")] Library),
    Builtin(Box<usm_kernel_jit::Code>),
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compiler(..) => "the C compiler",
            Self::Builtin(_) => "the built-in compiler",
        })
    }
}

/// The arguments of a run.
#[derive(Debug)]
pub(crate) struct Given<'g> {
    /// Addresses of the arrays among the parameters, and of the record of code that checks.
    pub(crate) arrays: &'g [*mut c_void],
    /// Bits of the scalars.
    pub(crate) values: &'g [u64],
    /// Lengths of all arrays, in elements.
    pub(crate) lengths: &'g [u64],
    /// The groups of this run and their sizes, from [`Groups`].
    pub(crate) sizes: [u64; 12],
}

/// Divides a launch into numbered parts, so that threads share them and that it can be interrupted
/// between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    /// Three global sizes and three local ones, the fastest dimension first.
    sizes: [u64; 6],
    /// Groups in each dimension.
    counts: [u64; 3],
    /// Groups of a part in each dimension.
    steps: [u64; 3],
    /// Parts in each dimension.
    parts: [u64; 3],
    /// The most parts of a run.
    most: u64,
}

/// The most items of a run, which has at least one group. It takes less than a millisecond for
/// usual kernels, and much longer than a call.
const RUN: u64 = 1 << 16;
/// The most items of a part, and the number of parts of a launch that has enough items.
const PART: u64 = 1 << 13;
const PARTS: u64 = 512;
/// The least items of a part: those that our own compiler runs at once.
const LEAST: u64 = 16;
/// The most items that are one part, because a call takes as long as they do.
const ALONE: u64 = 256;

impl Groups {
    /// Sizes of a launch, the fastest dimension first. Without `local` the kernel needs no groups,
    /// and the last group of a dimension may be shorter.
    pub(crate) fn new(global: [u64; 3], local: Option<[u64; 3]>) -> Self {
        let all = global.iter().fold(1_u64, |all, size| all.saturating_mul(*size));
        let items = if all <= ALONE { all } else { (all / PARTS).clamp(LEAST, PART) };
        let local = local.unwrap_or_else(|| fitting_part(global, items));
        let counts: [u64; 3] = std::array::from_fn(|axis| global[axis].div_ceil(local[axis].max(1)));
        let of_group = local.iter().fold(1_u64, |all, size| all.saturating_mul(*size)).max(1);
        let steps = fitting_part(counts, items / of_group);
        let parts = std::array::from_fn(|axis| counts[axis].div_ceil(steps[axis]));
        let of_part = steps.iter().fold(of_group, |all, step| all.saturating_mul(*step));
        let sizes = std::array::from_fn(|place| if place < 3 { global[place] } else { local[place - 3] });
        Self { sizes, counts, steps, parts, most: (RUN / of_part).max(1) }
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> u64 {
        self.parts.iter().fold(1, |all, count| all.saturating_mul(*count))
    }

    /// Takes the parts of the next run from the front of `parts`: some of a row, or whole rows.
    pub(crate) fn take_run(&self, parts: &mut Range<u64>) -> Option<[u64; 12]> {
        let left = (parts.end.saturating_sub(parts.start)).min(self.most);
        if left == 0 {
            return None;
        }
        let [x, y, _] = self.parts;
        let first = [parts.start % x, parts.start / x % y, parts.start / x / y];
        let run = if first[0] != 0 || left < x {
            [left.min(x - first[0]), 1, 1]
        } else if first[1] != 0 || left / x < y {
            [x, (left / x).min(y - first[1]), 1]
        } else {
            [x, y, left / x / y]
        };
        parts.start += run.iter().product::<u64>();
        let start = |axis: usize| first[axis] * self.steps[axis];
        let end =
            |axis: usize| (first[axis] + run[axis]).saturating_mul(self.steps[axis]).min(self.counts[axis]);
        Some(std::array::from_fn(|place| match place {
            0..6 => self.sizes[place],
            6..9 => start(place - 6),
            _ => end(place - 9),
        }))
    }
}

/// The part of these sizes, the fastest dimension first, that has at most so many elements, and at
/// least one.
fn fitting_part(sizes: [u64; 3], most: u64) -> [u64; 3] {
    let mut left = most.max(1);
    sizes.map(|size| {
        let taken = size.clamp(1, left);
        left = if taken == size { left / taken } else { 1 };
        taken
    })
}

/// How kernels run on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The C compiler if there is one, else our own.
    Best,
    Builtin,
    Compiler,
}

impl Compiled {
    /// Compiles a kernel, with checks of these indices, or reads it from the cache. `None` for a
    /// processor that no compiler here supports.
    ///
    /// # Errors
    /// With `USM_KERNEL_HOST=cc`, the reason why the kernel could not be compiled.
    pub(crate) fn of(kernel: &Kernel, checks: Option<&Claims>, apart: bool) -> Result<Option<Self>, String> {
        let way = match env::var("USM_KERNEL_HOST").as_deref() {
            Err(_) | Ok("") => Way::Best,
            Ok("builtin") => Way::Builtin,
            Ok("cc") => Way::Compiler,
            Ok(other) => return Err(format!("USM_KERNEL_HOST is {other:?}: \"builtin\" or \"cc\"")),
        };
        if way != Way::Builtin && cfg!(all(unix, target_pointer_width = "64")) {
            let made = match compiler() {
                Some(compiler) => {
                    let text = match checks {
                        Some(bounds) => emit::checked::host_c(kernel, bounds, apart),
                        None => emit::host_c(kernel, apart),
                    };
                    Self::compile_text(&text, compiler)
                }
                None => Err("USM_KERNEL_HOST is \"cc\", and there is no cc, gcc or clang".to_owned()),
            };
            match made {
                Err(reason) if way == Way::Compiler => return Err(reason),
                // Our own compiler takes over.
                Err(_) => {}
                Ok(compiled) => return Ok(Some(compiled)),
            }
        }
        let made = match checks {
            Some(bounds) => usm_kernel_jit::Code::checked(kernel, bounds),
            None => usm_kernel_jit::Code::new(kernel),
        };
        Ok(made.ok().map(|code| Self::Builtin(Box::new(code))))
    }

    fn compile_text(text: &str, compiler: &Path) -> Result<Self, String> {
        let name = name_of(text, compiler);
        let Some(folder) = disk_cache::folder() else {
            let (folder, file) = compile(text, compiler, &name)?;
            let made = Self::load(&folder.at(&file));
            folder.remove(&[&file]);
            return made;
        };
        let (file, sum) = (format!("{name}.so"), format!("{name}.sum"));
        if is_whole(&folder, &file, &sum)
            && let Ok(loaded) = Self::load(&folder.at(&file))
        {
            return Ok(loaded);
        }
        let (temporary, made) = compile(text, compiler, &name)?;
        let bytes = temporary.read(&made).map_err(|unfit| format!("{made}: {unfit}"));
        temporary.remove(&[&made]);
        let bytes = bytes?;
        let kept = folder.write(&file, &bytes);
        let kept = kept.and_then(|()| folder.write(&sum, disk_cache::checksum(&bytes).as_bytes()));
        kept.map_err(|error| format!("{file}: {error}"))?;
        Self::load(&folder.at(&file))
    }

    /// Loads a file of an [`OwnFolder`]. The loader takes a library of the same name for the same,
    /// so files of different code have different names.
    fn load(file: &Path) -> Result<Self, String> {
        let name = |error: libloading::Error| format!("{}: {}", file.display(), message_of(&error));
        let _loading = usm_core::ends::Loading::begin().map_err(|error| error.to_string())?;
        // SAFETY: the compiler made the file from the kernel, which has no initialisers, and nobody
        // but this user could write it.
        let library = unsafe { Library::new(file) }.map_err(name)?;
        // SAFETY: the generated text defines the function with this type.
        let run = unsafe { library.get::<Run>(emit::HOST_FUNCTION.as_bytes()) }.map(|run| *run);
        Ok(Self::Compiler(run.map_err(name)?, library))
    }

    /// Memory for the groups of a launch, for all of its parts in turn.
    pub(crate) fn scratch(&self, given: &Given<'_>) -> Result<Vec<u8>, String> {
        // SAFETY: with a null pointer the function only returns the size in bytes.
        let bytes = unsafe { self.call(given, ptr::null_mut(), ptr::null_mut()) };
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
    pub(crate) unsafe fn run(&self, given: &Given<'_>, memory: &mut [u8], pause: *mut Pause) {
        let start = memory.as_ptr().align_offset(64).min(64);
        // SAFETY: the caller's promise; the memory has the size that the function requested,
        // aligned.
        unsafe { self.call(given, memory.as_mut_ptr().wrapping_add(start), pause) };
    }

    /// # Safety
    /// As [`run`](Self::run), unless `scratch` is null.
    unsafe fn call(&self, given: &Given<'_>, scratch: *mut u8, pause: *mut Pause) -> u64 {
        let arrays = given.arrays.as_ptr();
        let (values, lengths, sizes) = (given.values.as_ptr(), given.lengths.as_ptr(), given.sizes.as_ptr());
        match self {
            // SAFETY: the caller's promise.
            Self::Compiler(run, _) => unsafe { run(arrays, values, lengths, sizes, scratch, pause) },
            // SAFETY: the caller's promise.
            Self::Builtin(code) => unsafe { code.run_while(arrays, values, lengths, sizes, scratch, pause) },
        }
    }
}

/// The first C compiler on `PATH`.
fn compiler() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let path = env::var_os("PATH")?;
        // Not in the current folder, which a relative one may name: it may be anybody's.
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        let mut files = folders.flat_map(|folder| ["cc", "gcc", "clang"].map(|name| folder.join(name)));
        files.find(|file| file.is_file())
    });
    found.as_deref()
}

/// Finds the compiler, the cache and the machine while the caller is attached to the interpreter,
/// so that no thread of it forks meanwhile.
///
/// # Errors
/// As [`disk_cache::prepare`].
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    let _ = (compiler(), machine());
    disk_cache::prepare(py)
}

/// The cache name of the code that a compiler makes from a text on this machine.
fn name_of(text: &str, compiler: &Path) -> String {
    disk_cache::name_of((text, compiler, machine()))
}

/// The abilities of the processor.
fn machine() -> &'static String {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let lines =
            information.lines().filter(|line| line.starts_with("flags") || line.starts_with("Features"));
        lines.take(1).collect()
    })
}

/// Compiles to a file in a folder of its own, and returns both.
fn compile(text: &str, compiler: &Path, name: &str) -> Result<(OwnFolder, String), String> {
    let folder = OwnFolder::temporary()
        .map_err(|unfit| format!("a folder in {}: {unfit}", env::temp_dir().display()))?;
    let file = format!("{name}.{}.so", disk_cache::unique_number());
    match run(text, compiler, &folder, &file) {
        Ok(()) => Ok((folder, file)),
        Err(reason) => {
            folder.remove(&[&file]);
            Err(format!("{}: {reason}", compiler.display()))
        }
    }
}

/// Runs the compiler in this folder.
fn run(text: &str, compiler: &Path, folder: &OwnFolder, file: &str) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command
        .args(
            "-x c -std=gnu11 -O3 -march=native -fPIC -shared -w -fwrapv -fsigned-char -fno-math-errno"
                .split(' '),
        )
        .args(["-fno-trapping-math", "-fno-strict-aliasing", "-o"])
        .arg(file)
        .args(["-", "-lm"])
        .current_dir(folder.opened_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that stops reading reports the reason itself.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Whether a file is unchanged. Loading a truncated file would crash the process.
fn is_whole(folder: &OwnFolder, file: &str, sum: &str) -> bool {
    let (written, bytes) = (folder.read(sum), folder.read(file));
    matches!((written, bytes), (Ok(sum), Ok(bytes)) if sum == disk_cache::checksum(&bytes).as_bytes())
}
