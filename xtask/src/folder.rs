//! Folders of the set-up. Each contains the list that it was made from, so a changed list makes it
//! again.

use std::fs;
use std::path::{Path, PathBuf};

const STAMP: &str = "usm-stamp.txt";

/// Whether the folder was finished from exactly this list.
pub(crate) fn is_fresh(folder: &Path, list: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == list)
}

/// Whether the folder was finished from a list whose lines are all in this one.
pub(crate) fn is_part(folder: &Path, list: &str) -> bool {
    let wanted: Vec<&str> = list.lines().collect();
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text.lines().all(|line| wanted.contains(&line)))
}

/// Marks the folder as finished.
pub(crate) fn stamp(folder: &Path, list: &str) -> Result<(), String> {
    let path = folder.join(STAMP);
    // A copy of the folder made of links keeps its own list.
    let _ = fs::remove_file(&path);
    fs::write(&path, list).map_err(|error| at(&path, &error))
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
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
            let path = entry.map_err(|error| at(&folder, &error))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

/// An error with its path.
pub(crate) fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
