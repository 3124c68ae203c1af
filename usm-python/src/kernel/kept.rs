//! The cache of compiled code, a folder of files.
//!
//! A file gets its final name when it is complete, so two processes may write the same one. Each
//! file has a checksum, by which a truncated or altered file is recognised.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io};

/// Maximum size of a file in bytes. Code of kernels is far smaller.
const LARGEST: u64 = 1 << 28;

/// The folder of the cache: `USM_KERNEL_CACHE`, or one in the user's folder for caches. `None` if
/// the variable is `off`.
pub(crate) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| match env::var_os("USM_KERNEL_CACHE") {
        Some(said) if said == "off" => None,
        Some(said) if !said.is_empty() => Some(PathBuf::from(said)),
        _ => {
            let caches =
                env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
            let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
            caches.or_else(home).map(|folder| folder.join("usm").join("kernels"))
        }
    });
    folder.as_deref()
}

/// Creates the folder. It must not be writable for other users, because its files are run.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        builder.mode(0o700).create(folder)?;
        let meta = fs::metadata(folder)?;
        if meta.mode() & 0o022 != 0 {
            return Err(io::Error::other("others may write to this folder, and its files are run"));
        }
        Ok(())
    }
    #[cfg(not(unix))]
    builder.create(folder)
}

/// The name of the code that this version of the package compiles from `parts`.
pub(crate) fn name_of(parts: impl Hash) -> String {
    let mut words = [0_u64; 2];
    for (seed, word) in words.iter_mut().enumerate() {
        let mut hasher = DefaultHasher::new();
        (seed, env!("CARGO_PKG_VERSION"), &parts).hash(&mut hasher);
        *word = hasher.finish();
    }
    format!("{:016x}{:016x}", words[0], words[1])
}

/// A number that is unique in this process.
pub(crate) fn unique_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The temporary name of a file while it is written.
pub(crate) fn temporary_name(name: &str) -> String {
    format!("{name}.{}.{}", std::process::id(), unique_number())
}

/// Length and hash of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} {:016x}", bytes.len(), hasher.finish())
}

/// The bytes of a file. Not of a device or a pipe, to read which might never end.
pub(crate) fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() || meta.len() > LARGEST {
        return Err(io::Error::other("no file of compiled code"));
    }
    fs::read(path)
}

/// The cached bytes of a name; `None` if they are missing or altered.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    let folder = folder()?;
    make_folder(folder).ok()?;
    let file = bytes_of(&folder.join(format!("{name}.bin"))).ok()?;
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let (sum, bytes) = (file.get(..end)?, file.get(end + 1..)?);
    (sum == checksum(bytes).as_bytes()).then(|| bytes.to_vec())
}

/// Caches bytes under a name. A full disk is not an error.
pub(crate) fn write(name: &str, bytes: &[u8]) {
    let Some(folder) = folder() else { return };
    let made = folder.join(temporary_name(name));
    let text = [checksum(bytes).as_bytes(), b"\n", bytes].concat();
    let kept = make_folder(folder).and_then(|()| fs::write(&made, text));
    if kept.and_then(|()| fs::rename(&made, folder.join(format!("{name}.bin")))).is_err() {
        let _ = fs::remove_file(&made);
    }
}
