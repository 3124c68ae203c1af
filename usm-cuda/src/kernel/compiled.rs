//! Code that a run-time compiler made, for the next context that builds the same source: copies of
//! strided arrays and conversions are compiled once for all devices of a machine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use usm_core::driver::sync::sleeping::Mutex;

/// Bytes of sources and code that are kept for one compiler.
const MOST: usize = 4 << 20;

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
pub(super) struct Compiled(Mutex<Vec<Entry>>);

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

impl Compiled {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The kept code, or what `compile` makes. A failure is not kept.
    pub(super) fn get_or_make<E>(
        &self,
        (source, options, target): (&str, &str, Target),
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<[u8]>, E> {
        let is_same =
            |entry: &Entry| entry.target == target && *entry.source == *source && *entry.options == *options;
        let mut kept = self.0.lock();
        if let Some(at) = kept.iter().position(is_same) {
            let entry = kept.remove(at);
            let code = Arc::clone(&entry.code);
            kept.push(entry);
            return Ok(code);
        }
        // Others compile meanwhile.
        drop(kept);
        let code: Arc<[u8]> = compile()?.into();
        let entry = Entry { source: source.into(), options: options.into(), target, code: Arc::clone(&code) };
        let mut kept = self.0.lock();
        // Two threads may have compiled the same.
        kept.retain(|entry| !is_same(entry));
        kept.push(entry);
        let mut bytes: usize = kept.iter().map(Entry::bytes).sum();
        let surplus = kept.iter().take_while(|entry| {
            let is_over = bytes > MOST;
            bytes -= entry.bytes();
            is_over
        });
        let surplus = surplus.count();
        kept.drain(..surplus);
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn make(kept: &Compiled, source: &str, options: &str, target: Target, code: Vec<u8>) -> (bool, Vec<u8>) {
        let mut has_compiled = false;
        let compile = || {
            has_compiled = true;
            Ok::<_, String>(code)
        };
        let code = kept.get_or_make((source, options, target), compile).expect("code");
        (has_compiled, code.to_vec())
    }

    #[test]
    fn the_same_source_is_compiled_once() {
        let (kept, target) = (Compiled::new(), Target::Capability([9, 0]));
        assert_eq!(make(&kept, "a", "", target, [1].into()), (true, [1].into()));
        assert_eq!(make(&kept, "a", "", target, [2].into()), (false, [1].into()));
        let others = [("b", "", target), ("a", "-G", target), ("a", "", Target::Capability([8, 0]))];
        for (source, options, target) in others.into_iter().chain([("a", "", Target::Device(9))]) {
            assert_eq!(make(&kept, source, options, target, [3].into()), (true, [3].into()));
        }
    }

    #[test]
    fn a_failure_is_not_kept() {
        let (kept, key) = (Compiled::new(), ("a", "", Target::Device(0)));
        assert_eq!(kept.get_or_make(key, || Err("no")), Err("no"));
        assert_eq!(make(&kept, "a", "", key.2, [1].into()), (true, [1].into()));
    }

    #[test]
    fn the_earliest_code_leaves_when_there_is_too_much() {
        let (kept, target) = (Compiled::new(), Target::Device(0));
        for name in ["a", "b", "c"] {
            assert!(make(&kept, name, "", target, alloc::vec![0; MOST / 3]).0);
        }
        // The third one took the room of the first, for the names count too.
        assert!(!make(&kept, "b", "", target, Vec::new()).0);
        assert!(make(&kept, "a", "", target, alloc::vec![0; MOST / 3]).0);
        assert!(make(&kept, "c", "", target, alloc::vec![0; MOST / 3]).0);
        // More than all of it is compiled each time.
        assert!(make(&kept, "d", "", target, alloc::vec![0; MOST]).0);
        assert!(make(&kept, "d", "", target, alloc::vec![0; MOST]).0);
        assert!(kept.0.lock().is_empty());
    }
}
