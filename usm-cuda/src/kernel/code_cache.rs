//! Code of a run-time compiler, for the next context that builds the same source: copies of strided
//! arrays and conversions are compiled once for all devices of a machine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use usm_core::driver::sync::sleeping::Mutex;

/// The most bytes of sources and code in the cache of a compiler.
const CAPACITY: usize = 4 << 20;

/// What the code was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The compute capability.
    Capability([i32; 2]),
    /// The device, which the compiler queries itself.
    Device(i32),
}

/// The latest code of one compiler, the last used one last.
#[derive(Debug)]
pub(super) struct CodeCache(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    source: Box<str>,
    options: Box<str>,
    target: Target,
    code: Arc<[u8]>,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.source.len() + self.options.len() + self.code.len()
    }
}

impl CodeCache {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The code of the cache, or what `compile` makes. A failure does not enter the cache, nor does
    /// code from other files: they may change between two builds.
    pub(super) fn get_or_make<E>(
        &self,
        (source, options, target): (&str, &str, Target),
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<[u8]>, E> {
        let is_same =
            |entry: &Entry| entry.target == target && *entry.source == *source && *entry.options == *options;
        if [source, options].iter().any(|text| text.contains("include")) {
            return Ok(compile()?.into());
        }
        let mut entries = self.0.lock();
        if let Some(at) = entries.iter().position(is_same) {
            let entry = entries.remove(at);
            let code = Arc::clone(&entry.code);
            entries.push(entry);
            return Ok(code);
        }
        // Others compile meanwhile.
        drop(entries);
        let code: Arc<[u8]> = compile()?.into();
        let entry = Entry { source: source.into(), options: options.into(), target, code: Arc::clone(&code) };
        let mut entries = self.0.lock();
        // Two threads may have compiled the same.
        entries.retain(|entry| !is_same(entry));
        entries.push(entry);
        let mut bytes: usize = entries.iter().map(Entry::bytes).sum();
        let surplus = entries.iter().take_while(|entry| {
            let is_over = bytes > CAPACITY;
            bytes -= entry.bytes();
            is_over
        });
        let surplus = surplus.count();
        entries.drain(..surplus);
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn make(
        cache: &CodeCache,
        source: &str,
        options: &str,
        target: Target,
        code: Vec<u8>,
    ) -> (bool, Vec<u8>) {
        let mut has_compiled = false;
        let compile = || {
            has_compiled = true;
            Ok::<_, String>(code)
        };
        let code = cache.get_or_make((source, options, target), compile).expect("code");
        (has_compiled, code.to_vec())
    }

    #[test]
    fn the_same_source_is_compiled_once() {
        let (cache, target) = (CodeCache::new(), Target::Capability([9, 0]));
        assert_eq!(make(&cache, "a", "", target, [1].into()), (true, [1].into()));
        assert_eq!(make(&cache, "a", "", target, [2].into()), (false, [1].into()));
        let others = [("b", "", target), ("a", "-G", target), ("a", "", Target::Capability([8, 0]))];
        for (source, options, target) in others.into_iter().chain([("a", "", Target::Device(9))]) {
            assert_eq!(make(&cache, source, options, target, [3].into()), (true, [3].into()));
        }
    }

    #[test]
    fn code_from_other_files_is_compiled_each_time() {
        let (cache, target) = (CodeCache::new(), Target::Capability([9, 0]));
        for (source, options) in [("#include \"a.h\"", ""), ("a", "--pre-include=a.h"), ("a", "-include a.h")]
        {
            for code in [1, 2] {
                assert_eq!(make(&cache, source, options, target, [code].into()), (true, [code].into()));
            }
        }
    }

    #[test]
    fn a_failure_does_not_enter_the_cache() {
        let (cache, key) = (CodeCache::new(), ("a", "", Target::Device(0)));
        assert_eq!(cache.get_or_make(key, || Err("no")), Err("no"));
        assert_eq!(make(&cache, "a", "", key.2, [1].into()), (true, [1].into()));
    }

    #[test]
    fn the_earliest_code_leaves_when_there_is_too_much() {
        let (cache, target) = (CodeCache::new(), Target::Device(0));
        for name in ["a", "b", "c"] {
            assert!(make(&cache, name, "", target, alloc::vec![0; CAPACITY / 3]).0);
        }
        // The third one took the room of the first, for the names count too.
        assert!(!make(&cache, "b", "", target, Vec::new()).0);
        assert!(make(&cache, "a", "", target, alloc::vec![0; CAPACITY / 3]).0);
        assert!(make(&cache, "c", "", target, alloc::vec![0; CAPACITY / 3]).0);
        // More than all of it is compiled each time.
        assert!(make(&cache, "d", "", target, alloc::vec![0; CAPACITY]).0);
        assert!(make(&cache, "d", "", target, alloc::vec![0; CAPACITY]).0);
        assert!(cache.0.lock().is_empty());
    }
}
