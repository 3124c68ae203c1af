//! A folder of files that are run: it belongs to this user, and nobody else may write to it.
//!
//! What was checked is what is used. A folder is opened and then checked, and on Linux every path
//! into it goes through the opened folder, so whoever may write to a folder above it cannot put
//! another one in its place. In it only this user, or root, can replace a file after its check. On
//! other systems a path leads through the folders above, which then must be safe too.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::{env, fmt};

use super::{LARGEST, unique_number};

/// An opened folder that passed the checks.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    /// Keeps the path of [`at`](Self::at) valid.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no path goes through it there"))]
    handle: Option<File>,
    path: PathBuf,
}

/// Why a folder or a file is not used.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// Somebody else owns it, may write to it or has linked it: the reason.
    #[cfg_attr(not(unix), allow(dead_code, reason = "files have no owner of this sort there"))]
    Unsafe(String),
    Io(io::Error),
}

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsafe(reason) => f.write_str(reason),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl OwnFolder {
    /// Opens a folder, and creates it, and those above it, for this user alone.
    ///
    /// # Errors
    /// The folder exists and is not safe, or cannot be created or opened.
    pub(crate) fn open(path: &Path) -> Result<Self, Unfit> {
        if fs::symlink_metadata(path).is_err() {
            builder().recursive(true).create(path)?;
        }
        Ok(Self { handle: open_checked(path, Metadata::is_dir)?, path: path.to_owned() })
    }

    /// A new, empty folder among the temporary ones.
    ///
    /// # Errors
    /// None can be created, or somebody replaced it at once.
    pub(crate) fn temporary() -> Result<Self, Unfit> {
        const ATTEMPTS: u32 = 64;
        let mut attempts = 0;
        loop {
            let path = env::temp_dir().join(format!("usm-kernel-{}", random_word()));
            // Fails where anything has that name: a folder of somebody else, a link to one.
            match builder().create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS => {
                    attempts += 1;
                }
                Err(error) => return Err(error.into()),
                Ok(()) => return Ok(Self { handle: open_checked(&path, Metadata::is_dir)?, path }),
            }
        }
    }

    /// The path by which this process finds a file of the folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.opened_path().join(name)
    }

    /// The path of the folder itself, also for a program that is started in it.
    pub(crate) fn opened_path(&self) -> PathBuf {
        #[cfg(target_os = "linux")]
        if let Some(file) = &self.handle {
            use std::os::fd::AsRawFd;
            return PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        }
        self.path.clone()
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// It is missing, too large, no file, or not safe.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, Unfit> {
        let path = self.at(name);
        let mut file = match open_checked(&path, Metadata::is_file)? {
            Some(file) => file,
            None => File::open(path)?,
        };
        if file.metadata()?.len() > LARGEST {
            return Err(io::Error::other("no file of compiled code").into());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file under a temporary name and then renames it, so that another process finds the
    /// whole file or none.
    ///
    /// # Errors
    /// Those of the system, such as a full disk.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.at(&format!("{name}.{}.{}", std::process::id(), unique_number()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let result = options.open(&temporary).and_then(|mut file| file.write_all(bytes));
        let outcome = result.and_then(|()| fs::rename(&temporary, self.at(name)));
        if outcome.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        outcome
    }

    /// Removes the folder, which has at most these files.
    pub(crate) fn remove(self, files: &[&str]) {
        for file in files {
            let _ = fs::remove_file(self.at(file));
        }
        // Removes nothing but an empty folder, whatever has its name by now.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Creates folders for this user alone.
fn builder() -> DirBuilder {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "the mode is set on Unix alone"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// A word that others cannot guess.
fn random_word() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}", RandomState::new().hash_one((std::process::id(), unique_number())))
}

/// Opens a folder or a file that belongs to this user and that nobody else may write to. The last
/// step of its path is no symbolic link. `None` on a system whose files have no owner of this sort.
#[cfg(unix)]
fn open_checked(path: &Path, is_expected: fn(&Metadata) -> bool) -> Result<Option<File>, Unfit> {
    use std::os::unix::fs::MetadataExt;

    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    let refuse = |reason: String| Err(Unfit::Unsafe(reason));
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return refuse("it is a symbolic link".to_owned());
    }
    if !is_expected(&metadata) {
        return refuse("it is another kind of file".to_owned());
    }
    let file = File::open(path)?;
    let meta = file.metadata()?;
    // Otherwise somebody replaced it between the two calls, by a link for instance.
    if (meta.dev(), meta.ino()) != (metadata.dev(), metadata.ino()) {
        return refuse("somebody replaced it meanwhile".to_owned());
    }
    if meta.uid() != geteuid() {
        return refuse(format!("it belongs to user {}, this is user {}", meta.uid(), geteuid()));
    }
    if meta.mode() & 0o022 != 0 {
        return refuse(format!("others may write to it (mode {:o})", meta.mode() & 0o7777));
    }
    Ok(Some(file))
}

#[cfg(not(unix))]
fn open_checked(path: &Path, is_expected: fn(&Metadata) -> bool) -> Result<Option<File>, Unfit> {
    match is_expected(&fs::metadata(path)?) {
        true => Ok(None),
        false => Err(io::Error::other("it is another kind of file").into()),
    }
}
