//! Folders of the set-up. Each contains the list that it was made from, so a changed list makes it
//! again.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const STAMP: &str = "usm-stamp.txt";

/// Whether the folder was finished from exactly this list.
pub(crate) fn is_fresh(folder: &Path, list: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == list)
}

/// Whether the folder was finished from a list whose lines are all in this one.
pub(crate) fn is_part(folder: &Path, list: &str) -> bool {
    let packages: Vec<&str> = list.lines().collect();
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text.lines().all(|line| packages.contains(&line)))
}

/// Marks the folder as finished.
pub(crate) fn stamp(folder: &Path, list: &str) -> Result<(), String> {
    let path = folder.join(STAMP);
    // A copy of the folder made of links keeps its own list.
    let _ = fs::remove_file(&path);
    fs::write(&path, list).map_err(|error| at(&path, &error))
}

/// Keeps the set-up folder for this process until it ends, however it ends. Two runs would install
/// into it at the same time.
pub(crate) fn claim(folder: &Path) -> Result<(), String> {
    static CLAIMED: Mutex<Option<File>> = Mutex::new(None);
    let mut owner = CLAIMED.lock().unwrap_or_else(|error| error.into_inner());
    if owner.is_none() {
        *owner = Some(lock(folder)?);
    }
    Ok(())
}

fn lock(folder: &Path) -> Result<File, String> {
    let path = folder.join("lock");
    fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    let file = File::create(&path).map_err(|error| at(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(format!("{} is in use by another run of cargo xtask: wait until it ends", folder.display()))
        }
        Err(TryLockError::Error(error)) => Err(at(&path, &error)),
    }
}

/// Removes a folder if it exists.
pub(crate) fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(folder, &error)),
        _ => Ok(()),
    }
}

/// Every file with this extension under a folder, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
            let path = entry.map_err(|error| at(&folder, &error))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Files of so many bytes are compared by [`share_copies`].
const LARGE: u64 = 1 << 20;

/// Gives large files of a folder with the same bytes one place on the disk. Packages of Python have
/// no links: a library is in them once for each of its names. Returns the bytes saved.
pub(crate) fn share_copies(folder: &Path) -> io::Result<u64> {
    let mut by_size = BTreeMap::<u64, Vec<PathBuf>>::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let about = path.symlink_metadata()?;
        if about.is_file() && about.len() >= LARGE {
            by_size.entry(about.len()).or_default().push(path);
        }
    }
    let mut saved_bytes = 0;
    for (size, mut paths) in by_size {
        paths.sort();
        while let Some(path) = paths.pop() {
            let mut twin = None;
            for other in &paths {
                if is_same(&path, other)? {
                    twin = Some(other);
                    break;
                }
            }
            let Some(twin) = twin else { continue };
            // In one step: whoever looks meanwhile sees one of the two.
            let link = path.with_extension("link.tmp");
            fs::hard_link(twin, &link)?;
            fs::rename(&link, &path)?;
            // Links to one file already: `rename` then leaves both names.
            let _ = fs::remove_file(&link);
            saved_bytes += size;
        }
    }
    Ok(saved_bytes)
}

/// Whether two files of one length have the same bytes.
fn is_same(one: &Path, two: &Path) -> io::Result<bool> {
    let mut one = BufReader::with_capacity(1 << 20, File::open(one)?);
    let mut two = BufReader::with_capacity(1 << 20, File::open(two)?);
    loop {
        let (left, right) = (one.fill_buf()?, two.fill_buf()?);
        let count = left.len().min(right.len());
        if count == 0 || left[..count] != right[..count] {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(count);
        two.consume(count);
    }
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

/// An error with its path.
pub(crate) fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_runs_at_a_time() {
        let folder = scratch("lock");
        let first = lock(&folder).expect("free");
        assert!(lock(&folder).is_err_and(|error| error.contains("in use by another run")));
        drop(first);
        lock(&folder).expect("free again");
        remove(&folder).expect("removed");
    }

    #[test]
    fn copies_share_their_place_and_others_do_not() {
        let folder = scratch("share-copies");
        let large = vec![7u8; LARGE as usize + 5];
        let mut other = large.clone();
        other[LARGE as usize] = 8;
        for (name, bytes) in [("a.so", &large), ("a.so.1", &large), ("b.so", &other)] {
            fs::write(folder.join(name), bytes).expect("written");
        }
        fs::write(folder.join("small"), "s").expect("written");
        for _ in 0..2 {
            assert_eq!(share_copies(&folder).expect("a folder"), large.len() as u64);
            assert_eq!(files(&folder, "tmp"), Ok(vec![]));
        }
        // What one name writes, the other one reads.
        fs::write(folder.join("a.so"), "new").expect("written");
        assert_eq!(read(&folder.join("a.so.1")).as_deref(), Ok("new"));
        assert_eq!(fs::read(folder.join("b.so")).expect("read"), other);
        remove(&folder).expect("removed");
    }

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("usm-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }
}
