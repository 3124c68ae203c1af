//! Files in the folder for temporary ones, which all users of a machine share.

use core::hash::BuildHasher;
use std::fs::{self, File};
use std::hash::RandomState;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a new file and gives it the name `STEM.EXTENSION`; if that is another user's, a name of
/// this user's own. A file of this user is replaced. Nothing is written through a link or into a
/// file that is there already, because anybody may have made it. Returns the file's path.
pub(crate) fn write(folder: &Path, stem: &str, extension: &str, text: &str) -> io::Result<PathBuf> {
    let (file_path, file) = create(folder, stem, extension)?;
    let write_result = { &file }.write_all(text.as_bytes());
    if write_result.is_err() {
        let _ = fs::remove_file(&file_path);
    }
    write_result?;
    let own = user_of(&file).map(|user| format!("{stem}-{user}.{extension}"));
    // Replaces the entry of the folder, never what the entry links to. In a folder such as /tmp the
    // system lets nobody replace the entry of another user.
    for name in [Some(format!("{stem}.{extension}")), own].into_iter().flatten() {
        let path = folder.join(name);
        if fs::rename(&file_path, &path).is_ok() {
            return Ok(path);
        }
    }
    Ok(file_path)
}

/// A new file with a name that was free.
fn create(folder: &Path, stem: &str, extension: &str) -> io::Result<(PathBuf, File)> {
    const ATTEMPTS: u32 = 64;
    let mut attempt = 0;
    loop {
        let word = RandomState::new().hash_one(attempt) as u32;
        let path = folder.join(format!("{stem}-{word:08x}.{extension}"));
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            result => return result.map(|file| (path, file)),
        }
    }
}

/// The user of this process, as the owner of a file that it has created.
#[cfg(unix)]
fn user_of(file: &File) -> Option<u32> {
    file.metadata().ok().map(|meta| std::os::unix::fs::MetadataExt::uid(&meta))
}

#[cfg(not(unix))]
fn user_of(_: &File) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of a test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("usm-temporary-{name}-{}", std::process::id()));
            fs::create_dir(&path).expect("a new folder");
            Self(path)
        }

        fn count(&self) -> usize {
            fs::read_dir(&self.0).expect("a folder").count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_of_the_same_user_is_replaced() {
        let folder = Folder::new("replaced");
        for text in ["one", "two"] {
            let path = write(&folder.0, "it", "svg", text).expect("written");
            assert_eq!(path, folder.0.join("it.svg"));
            assert_eq!(fs::read_to_string(path).expect("a file"), text);
        }
        assert_eq!(folder.count(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_a_link() {
        let folder = Folder::new("link");
        let other = folder.0.join("other");
        fs::write(&other, "other").expect("written");
        std::os::unix::fs::symlink(&other, folder.0.join("it.svg")).expect("a link");
        let path = write(&folder.0, "it", "svg", "mine").expect("written");
        assert_eq!(fs::read_to_string(path).expect("a file"), "mine");
        assert_eq!(fs::read_to_string(other).expect("a file"), "other");
    }

    /// A folder stands for what the user may not replace.
    #[test]
    fn a_name_that_is_taken_gives_way_to_one_of_the_users_own() {
        let folder = Folder::new("taken");
        fs::create_dir(folder.0.join("it.svg")).expect("a folder");
        fs::write(folder.0.join("it.svg").join("inside"), "").expect("written");
        let paths = [(); 2].map(|()| write(&folder.0, "it", "svg", "mine").expect("written"));
        assert!(paths.iter().all(|path| fs::read_to_string(path).is_ok_and(|text| text == "mine")));
        assert!(!cfg!(unix) || (paths[0] == paths[1] && folder.count() == 2), "{paths:?}");
    }

    #[test]
    fn an_error_leaves_nothing() {
        let folder = Folder::new("missing");
        assert!(write(&folder.0.join("missing"), "it", "svg", "mine").is_err());
        assert_eq!(folder.count(), 0);
    }
}
