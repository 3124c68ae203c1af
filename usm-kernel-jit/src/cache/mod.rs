//! The cache of compiled code, a folder of files.
//!
//! A file gets its final name when it is complete, so two processes may write the same one. Each
//! file has a checksum, by which a truncated or altered file is recognised. A folder or a file that
//! somebody else could have written is not used: see `OwnFolder`.

mod folder;

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use usm_kernel::backend::CodeStore;

pub(crate) use self::folder::{OwnFolder, Unfit};

/// Maximum size of a file in bytes. Code of kernels is far smaller.
const LARGEST: u64 = 1 << 28;

/// The path of the cache: `USM_KERNEL_CACHE`, or one in the user's folder for caches. `None` if the
/// variable is `off`.
fn path() -> Option<&'static Path> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = PATH.get_or_init(|| match env::var_os("USM_KERNEL_CACHE") {
        Some(word) if word == "off" => None,
        Some(path) if !path.is_empty() => Some(PathBuf::from(path)),
        _ => {
            let caches =
                env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
            let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
            caches.or_else(home).map(|folder| folder.join("usm").join("kernels"))
        }
    });
    path.as_deref()
}

/// The folder of the cache, opened and checked anew for each use; `None` if there is no safe one.
pub(crate) fn folder() -> Option<OwnFolder> {
    OwnFolder::open(path()?).ok()
}

/// Reads the settings.
pub(crate) fn prepare() {
    let _ = path();
}

/// The warning, once in a process, that nothing is kept because the folder is not safe.
pub fn warning() -> Option<String> {
    static CHECKED: AtomicBool = AtomicBool::new(false);
    let path = path()?;
    if CHECKED.swap(true, Ordering::Relaxed) {
        return None;
    }
    let Err(Unfit::Unsafe(reason)) = OwnFolder::open(path) else { return None };
    Some(format!(
        "compiled kernels are not kept: the folder {} is not safe: {reason}. USM_KERNEL_CACHE names \
         another folder, or is \"off\"",
        path.display()
    ))
}

/// The name of the code that this version compiles from `parts`.
pub(crate) fn name_of(parts: impl Hash) -> String {
    let mut words = [0_u64; 2];
    for (seed, word) in words.iter_mut().enumerate() {
        let mut hasher = DefaultHasher::new();
        (seed, env!("CARGO_PKG_VERSION"), &parts).hash(&mut hasher);
        *word = hasher.finish();
    }
    format!("{:016x}{:016x}", words[0], words[1])
}

/// Keeps the code of strided copies and conversions too.
pub fn keep_code_of_copies() {
    usm_kernel::backend::keep_code(CodeStore {
        read: |words| read(&name_of(words)),
        write: |words, code| write(&name_of(words), code),
    });
}

/// A number that is unique in this process.
pub(crate) fn unique_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Length and hash of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} {:016x}", bytes.len(), hasher.finish())
}

/// The cached bytes of a name; `None` if they are missing or altered.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    let file = folder()?.read(&format!("{name}.bin")).ok()?;
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let (sum, bytes) = (file.get(..end)?, file.get(end + 1..)?);
    (sum == checksum(bytes).as_bytes()).then(|| bytes.to_vec())
}

/// Caches bytes under a name. A full disk is not an error.
pub(crate) fn write(name: &str, bytes: &[u8]) {
    let Some(folder) = folder() else { return };
    let _ = folder.write(&format!("{name}.bin"), &[checksum(bytes).as_bytes(), b"\n", bytes].concat());
}

/// Whether a file is unchanged. Loading a truncated file would crash the process.
pub(crate) fn is_whole(folder: &OwnFolder, file: &str, sum: &str) -> bool {
    let (sum_text, bytes) = (folder.read(sum), folder.read(file));
    matches!((sum_text, bytes), (Ok(sum), Ok(bytes)) if sum == checksum(&bytes).as_bytes())
}
