//! The folder in which code is kept that a compiler made.
//!
//! A file gets its name when it is whole, so two processes may write the same one, and what was cut
//! or altered afterwards does not have its sum.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io};

/// Where code is kept: `USM_KERNEL_CACHE`, or the user's folder for caches; nothing where that says
/// `off`.
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

/// A folder that nobody else may write to, because its files are run.
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

/// A name for what a compiler makes of `parts`, by this version of the package.
pub(crate) fn name_of(parts: impl Hash) -> String {
    let mut words = [0_u64; 2];
    for (seed, word) in words.iter_mut().enumerate() {
        let mut hasher = DefaultHasher::new();
        (seed, env!("CARGO_PKG_VERSION"), &parts).hash(&mut hasher);
        *word = hasher.finish();
    }
    format!("{:016x}{:016x}", words[0], words[1])
}

/// A number that no other thread of the process got.
pub(crate) fn fresh() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A file's own name while it is written.
pub(crate) fn own(name: &str) -> String {
    format!("{name}.{}.{}", std::process::id(), fresh())
}

/// Length and hash of bytes.
pub(crate) fn sum_of(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} {:016x}", bytes.len(), hasher.finish())
}

/// What is kept under a name, as it was written.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    let folder = folder()?;
    make_folder(folder).ok()?;
    let file = fs::read(folder.join(format!("{name}.bin"))).ok()?;
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let (sum, bytes) = (file.get(..end)?, file.get(end + 1..)?);
    (sum == sum_of(bytes).as_bytes()).then(|| bytes.to_vec())
}

/// Keeps bytes under a name, where there is a folder; a full disk costs time and nothing else.
pub(crate) fn write(name: &str, bytes: &[u8]) {
    let Some(folder) = folder() else { return };
    let made = folder.join(own(name));
    let text = [sum_of(bytes).as_bytes(), b"\n", bytes].concat();
    let kept = make_folder(folder).and_then(|()| fs::write(&made, text));
    if kept.and_then(|()| fs::rename(&made, folder.join(format!("{name}.bin")))).is_err() {
        let _ = fs::remove_file(&made);
    }
}
