//! Every place that opens, writes, runs or loads a file. Another user of the machine may have made
//! a file where everybody may write, so each place has a reason why that does no harm, and the
//! reasons that are ours to keep have a test.

use std::collections::BTreeMap;
use std::fs;

use Reason::{Named, Own, Package, System, Temporary};

use crate::source::{self, Source, root};

/// Why a file of another user does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Only the user, by an argument or a variable, or the system's search path names it.
    Named,
    /// `OwnFolder` in `usm-kernel-jit/src/cache/folder.rs` has checked its folder, or checks it.
    Own,
    /// A file of the package itself, or the running program.
    Package,
    /// A fixed file of the system, such as `/proc/meminfo`.
    System,
    /// A new file or folder of this user in the folder for temporary ones.
    Temporary,
}

impl Reason {
    /// The file of the tests with a stranger's files.
    fn test(self) -> Option<&'static str> {
        match self {
            Own => Some("usm-python/tests/test_kernel_cache.py"),
            Temporary => Some("usm-cli/tests/command/strangers.rs"),
            Named | Package | System => None,
        }
    }
}

/// Words of code that opens a file or starts a program.
const OPENS: [&str; 21] = [
    "Library::new(",
    "Library::open(",
    "Library::open_at(",
    "dlopen(",
    "File::open(",
    "File::create",
    "OpenOptions::new(",
    "DirBuilder::new(",
    "create_dir",
    "fs::write(",
    "fs::read(",
    "read_to_string(",
    "read_dir(",
    "fs::rename(",
    "fs::remove",
    "fs::copy(",
    "temp_dir(",
    "Command::new(",
    "File::from_raw_fd(",
    "NamedTempFile",
    "tempfile",
];

/// The same in Python.
const OPENS_IN_PYTHON: [&str; 8] =
    [" open(", "tempfile", "subprocess.run", "CDLL", "makedirs", "mkdir", "os.replace", "os.open"];

/// File, number of lines that open something, reason.
const TABLE: &[(&str, usize, Reason)] = &[
    ("level-zero-sys/src/loader.rs", 1, Named),
    ("usm-cli/src/demo.rs", 2, Temporary),
    ("usm-cli/src/lib.rs", 1, Package),
    ("usm-cli/src/plan/recompute.rs", 1, Named),
    ("usm-cli/src/temporary.rs", 3, Temporary),
    ("usm-core/src/backend/host/heap.rs", 1, System),
    ("usm-core/src/driver/library.rs", 2, Named),
    ("usm-core/src/host_memory.rs", 1, System),
    ("usm-core/src/ipc/life.rs", 1, System),
    ("usm-core/src/process/system.rs", 2, Package),
    ("usm-cuda/src/kernel/compiler.rs", 1, Named),
    ("usm-cuda/src/loader.rs", 1, Named),
    ("usm-kernel-jit/src/cache/folder.rs", 9, Own),
    ("usm-kernel-jit/src/host/compiler.rs", 3, Own),
    ("usm-kernel-jit/src/host/mod.rs", 1, Own),
    ("usm-kernel-rust/src/manifest.rs", 1, Package),
    ("usm-level-zero/src/loader.rs", 1, Named),
    ("usm-nrt/src/helper/random.rs", 1, System),
    ("usm-opencl/src/loader.rs", 1, Named),
    ("usm-plan/src/error.rs", 2, Named),
    ("usm-plan/src/table.rs", 1, Named),
    ("usm-python/python/usm/_files.py", 7, Named),
    ("usm-python/python/usm/_onnxruntime.py", 5, Temporary),
    ("usm-python/src/nrt/library.rs", 1, Package),
    ("usm-python/src/plan/pictures.rs", 4, Temporary),
    ("usm-python/src/plan/recompute.rs", 1, Named),
    ("usm-python/src/storage/file.rs", 1, Named),
    ("usm-python/src/storage/snapshot.rs", 1, Named),
    ("usm-sycl/src/loader.rs", 2, Named),
];

fn count(files: Vec<Source>, words: &[&str]) -> BTreeMap<String, usize> {
    let opens = |line: &&String| words.iter().any(|word| line.contains(word)) && !line.contains("fn ");
    let counted = files.into_iter().map(|file| (file.lines.iter().filter(opens).count(), file.path));
    counted.filter(|(lines, _)| *lines > 0).map(|(lines, path)| (path, lines)).collect()
}

#[test]
fn every_file_that_is_opened_has_a_reason_why_a_strangers_does_no_harm() {
    let mut found = count(source::rust(), &OPENS);
    found.extend(count(source::python(), &OPENS_IN_PYTHON));
    let table: BTreeMap<_, _> = TABLE.iter().map(|(path, lines, _)| ((*path).to_owned(), *lines)).collect();
    let differs: Vec<_> = found.iter().filter(|(path, lines)| table.get(*path) != Some(lines)).collect();
    assert!(differs.is_empty(), "not so in the table of tests/tests/house/files.rs: {differs:#?}");
    let gone: Vec<_> = table.keys().filter(|path| !found.contains_key(*path)).collect();
    assert!(gone.is_empty(), "these open no file: {gone:?}");
}

#[test]
fn every_reason_that_is_ours_has_tests_with_a_strangers_files() {
    for (.., reason) in TABLE {
        let Some(file) = reason.test() else { continue };
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains("65534"), "{file} has no files of another user");
    }
}
