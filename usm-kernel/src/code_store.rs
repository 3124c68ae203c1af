//! Code that runtimes made of this crate's own kernels, kept for later processes.

use alloc::vec::Vec;

use spin::Once;

/// Where a program keeps the code that runtimes made of strided copies and conversions, so that the
/// next process loads it in place of compiling it.
#[derive(Clone, Copy, Debug)]
pub struct CodeStore {
    /// The code that was kept under these words.
    pub read: fn(&[&str]) -> Option<Vec<u8>>,
    /// Keeps code under these words: its source, the runtime and the device. It may fail.
    pub write: fn(&[&str], &[u8]),
}

static STORE: Once<CodeStore> = Once::new();

/// Keeps such code from now on. The first store of a process stays.
pub fn keep_code(store: CodeStore) {
    STORE.call_once(|| store);
}

pub(crate) fn store() -> Option<&'static CodeStore> {
    STORE.get()
}
