//! Every static with a lock. A child of a fork has one thread; a lock that another thread of its
//! parent held stays locked there. So each lock has a reason why the child does not wait for it,
//! and each reason has a test that forks.

use std::fs;

use Reason::{Attached, Delayed, ForkOnce, Free, Held, Refused, Tried, Waited};

use crate::source::{self, root};

/// Why no child waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The handlers of the fork take it before the fork, and release it in both processes.
    Held,
    /// Taken inside `delay_forks`, for a few instructions, so that no fork happens meanwhile.
    Delayed,
    /// `ForkOnce`, which knows the process of the thread that makes the value.
    ForkOnce,
    /// Taken only inside a call of a runtime (`work`, `ask`, `Opening`, `Build`), which refuses the
    /// child of a process that has, or was opening, a runtime.
    Refused,
    /// Taken only by threads that have the interpreter, for a few instructions that do not give it
    /// away, so `os.fork` of another thread waits for it.
    Attached,
    /// Taken inside `fork::enter`, for which the fork waits.
    Waited,
    /// Only tried: a thread that finds it taken does without.
    Tried,
    /// No lock: the type only looks as if it had one.
    Free,
}

impl Reason {
    const ALL: [Self; 8] = [Held, Delayed, ForkOnce, Refused, Attached, Waited, Tried, Free];

    /// The test that forks while a thread holds such a lock: its file and its name.
    fn test(self) -> Option<(&'static str, &'static str)> {
        match self {
            Held => Some(("usm-nrt/tests/c_abi.rs", "fn a_fork_finds_no_lock_held()")),
            Delayed => Some((
                "usm-core/src/process/exit.rs",
                "fn children_exit_although_threads_register_handlers()",
            )),
            ForkOnce => Some((
                "usm-core/src/process/fork_once.rs",
                "fn a_child_forked_while_a_thread_makes_the_value_gets_its_own_or_an_error()",
            )),
            Refused => Some((
                "usm/tests/forks.rs",
                "fn a_child_forked_while_a_thread_opens_a_runtime_gets_an_error_and_the_host()",
            )),
            Attached => Some((
                "usm-python/tests/test_forks.py",
                "def test_a_child_forked_while_threads_use_every_part_answers",
            )),
            Waited => {
                Some(("usm-python/tests/test_numba_processes.py", "def test_no_lock_is_held_after_a_fork"))
            }
            Tried => Some(("usm-kernel/src/inspection.rs", "fn nobody_waits_for_the_list()")),
            Free => None,
        }
    }
}

/// File, static, reason.
const TABLE: &[(&str, &str, Reason)] = &[
    ("usm/src/runtimes.rs", "RUNTIMES", ForkOnce),
    ("usm-cli/src/memory.rs", "ALLOCATOR", Free),
    ("usm-array/src/fork.rs", "PLACES", Free),
    ("usm-array/src/fork.rs", "DEPTH", Free),
    ("usm-core/src/after.rs", "LEAKED", Delayed),
    ("usm-core/src/process.rs", "LEASE", Free),
    ("usm-core/src/sync.rs", "NEXT", Free),
    ("usm-core/src/threads.rs", "POOL", ForkOnce),
    ("usm-core/src/driver/ledgers.rs", "LEDGERS", Refused),
    ("usm-core/src/driver/library.rs", "KEPT", Refused),
    ("usm-core/src/driver/poll.rs", "BUSY", Refused),
    ("usm-core/src/driver/waiter.rs", "WAIT_QUEUE", Refused),
    ("usm-core/src/ipc/life.rs", "LIVES", Held),
    ("usm-core/src/process/exit.rs", "MEMBERS", Refused),
    ("usm-core/src/process/fork.rs", "LOCKS", Held),
    ("usm-core/src/process/fork.rs", "ARENAS", Held),
    ("usm-core/src/process/system.rs", "AT_EXIT", Delayed),
    ("usm-cuda/src/pool.rs", "POOLS", Refused),
    ("usm-cuda/src/kernel/compiler.rs", "NVRTC", Refused),
    ("usm-cuda/src/kernel/compiler.rs", "HIPRTC", Refused),
    ("usm-cuda/src/kernel/mod.rs", "DROPPED_MODULES", Refused),
    ("usm-kernel/src/inspection.rs", "INSPECTORS", Tried),
    ("usm-level-zero/src/kernel.rs", "DROPPED_KERNELS", Refused),
    ("usm-level-zero/src/memory.rs", "CONTEXTS", Refused),
    ("usm-nrt/src/allocator.rs", "INSTALLING", Held),
    ("usm-nrt/src/misuse.rs", "DEAD", Held),
    ("usm-nrt/src/misuse.rs", "STANDARD", Held),
    ("usm-nrt/src/symbols.rs", "GATE", Held),
    ("usm-nrt/src/track.rs", "REGISTRY", Held),
    ("usm-nrt/src/api/mod.rs", "API", Free),
    ("usm-nrt/src/api/numba.rs", "NUMBA_API", Free),
    ("usm-nrt/src/block/slab.rs", "CENTRAL", Held),
    ("usm-nrt/src/helper/random.rs", "STATES", Free),
    ("usm-nrt/src/local/shared.rs", "COUNTERS", Free),
    ("usm-nrt/src/local/shelf.rs", "SHELVES", Free),
    ("usm-nrt/src/local/shelf.rs", "CLOSING", Held),
    ("usm-nrt/src/local/thread.rs", "SHARDS", Free),
    ("usm-nrt/src/local/thread.rs", "LATE_COUNTERS", Free),
    ("usm-nrt/src/local/thread.rs", "EXIT", Free),
    ("usm-opencl/src/buffer.rs", "ZEROS", Refused),
    ("usm-opencl/src/device.rs", "ONE_AT_A_TIME", Refused),
    ("usm-opencl/src/queue.rs", "DROPPED_QUEUES", Refused),
    ("usm-pool/src/pool/threads.rs", "LOCALS", Free),
    ("usm-pool/src/pool/threads.rs", "CLOSING", Delayed),
    ("usm-pool/src/pool/threads.rs", "EXIT", Free),
    ("usm-pool/src/pool/threads.rs", "NEXT", Free),
    ("usm-python/src/storage/source.rs", "OPEN", Attached),
    ("usm-python/src/storage/pool.rs", "ALL", Attached),
    ("usm-python/src/array/travel.rs", "WARNED", Attached),
    ("usm-python/src/process/attribute.rs", "FOUND", Attached),
    ("usm-python/src/device/defaults.rs", "OPEN", Attached),
    ("usm-python/src/nrt/library.rs", "RUNTIME", Attached),
    ("usm-python/src/nrt/origin.rs", "ORIGINS", Waited),
    ("usm-python/src/nrt/origin.rs", "CHECK", ForkOnce),
    ("usm-python/src/nrt/source.rs", "SOURCES", Attached),
    ("usm-python/src/nrt/route.rs", "CALL_DTOR", Attached),
    ("usm-python/src/nrt/route.rs", "RELEASE", Attached),
    ("usm-python/src/nrt/trace.rs", "FUNCTIONS", ForkOnce),
    ("usm-python/src/storage/origin.rs", "NOTES", Delayed),
    ("usm-python/src/device/runtime.rs", "KNOWN", ForkOnce),
    ("usm-python/src/device/runtime.rs", "CONTEXTS", Attached),
    ("usm-python/src/device/runtime.rs", "MADE", Attached),
    ("usm-python/src/device/runtime.rs", "HOST", Attached),
    ("usm-python/src/device/runtime.rs", "STREAM", Attached),
    ("usm-python/src/exchange/sycl.rs", "CLASSES", Attached),
    ("usm-python/src/exchange/sycl_queues.rs", "SEEN", Attached),
    ("usm-python/src/storage/track.rs", "OPEN", Attached),
    ("usm-python/src/exchange/dlpack/exchange.rs", "TABLE", Free),
    ("usm-kernel-jit/src/host/compiler.rs", "PATH", Attached),
    ("usm-kernel-jit/src/host/compiler.rs", "MACHINE", Attached),
    ("usm-kernel-jit/src/cache/mod.rs", "PATH", Attached),
    ("usm-sycl/src/queue.rs", "DROPPED_QUEUES", Refused),
];

/// Types without a lock. A cell without `Sync` is a value of one thread.
const LOCK_FREE: [&str; 17] = [
    "Atomic",
    "[Atomic",
    "core::sync::atomic::Atomic",
    "[core::sync::atomic::Atomic",
    "&",
    "[bool",
    "[u",
    "bool",
    "Cell<",
    "RefCell<",
    "u",
    "ExternalAllocator",
    "Once<",
    "LazyCell<",
    "$crate::process::once::LazyCell<",
    "Vendor",
    "fn",
];

/// Types that take their lock inside such a call themselves, so that each is [`Refused`].
const REFUSED: [&str; 1] = ["LibraryCache<"];

/// The statics whose type may have a lock, as `(file, name, type)`.
fn statics() -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for file in source::rust() {
        for line in &file.lines {
            let Some((before, rest)) = line.split_once("static ") else { continue };
            let is_item = before.is_empty() || (before.starts_with("pub") && before.ends_with(' '));
            let Some((name, ty)) = rest.split_once(':').filter(|_| is_item) else { continue };
            let is_name =
                |name: &str| name.chars().all(|one| one.is_ascii_uppercase() || "_0123456789".contains(one));
            let ty = ty.split(" = ").next().unwrap_or_default().trim().trim_end_matches(" =");
            let mut known = LOCK_FREE.iter().chain(&REFUSED);
            if is_name(name) && !known.any(|known| ty.starts_with(known)) {
                all.push((file.path.clone(), name.to_owned(), ty.to_owned()));
            }
        }
    }
    all
}

#[test]
fn every_static_with_a_lock_has_a_reason_why_no_forked_child_waits_for_it() {
    let found = statics();
    let is_listed =
        |file: &str, name: &str| TABLE.iter().any(|(path, known, _)| (*path, *known) == (file, name));
    let missing: Vec<_> = found.iter().filter(|(file, name, _)| !is_listed(file, name)).collect();
    assert!(missing.is_empty(), "not in the table of tests/tests/house/statics.rs: {missing:#?}");
    for (path, name, _) in TABLE {
        let is_found = found.iter().any(|(file, found, _)| (file.as_str(), found.as_str()) == (*path, *name));
        assert!(is_found, "{path} has no static {name} with a lock: remove it from the table");
    }
}

#[test]
fn every_reason_has_a_test_that_forks() {
    for reason in Reason::ALL {
        let Some((file, test)) = reason.test() else { continue };
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(test), "{reason:?}: {file} has no {test}");
    }
}

/// PyO3's cells give the interpreter away while they hold their lock, so that another thread forks.
#[test]
fn no_cell_of_pyo3_is_used() {
    for file in source::rust().iter().filter(|file| file.path.starts_with("usm-python/src")) {
        for line in file.lines.iter().filter(|line| !line.trim_start().starts_with("//")) {
            let found = ["PyOnceLock", "GILOnceCell", "intern!(", "pyo3::intern"];
            let found = found.iter().find(|name| line.contains(**name));
            assert_eq!(found, None, "{}: `{line}`: use process::once", file.path);
        }
    }
}

/// A cell or lock of the standard library that is made in a function's body is a static too.
#[test]
fn foreign_code_fills_no_cell_of_the_standard_library() {
    let foreign =
        ["dlopen", "Library::new", ".devices()", "spawn(", "import(", "build_global", "call_method"];
    for file in source::rust() {
        for (number, line) in file.lines.iter().enumerate() {
            let fills =
                ["get_or_init(", "get_or_try_init(", "call_once("].iter().any(|call| line.contains(call));
            let body = file.lines[number..].iter().take(4).map(String::as_str).collect::<String>();
            let body = body.split(';').next().unwrap_or_default();
            let calls = foreign.iter().find(|name| fills && body.contains(**name));
            assert_eq!(calls, None, "{}: `{line}` holds a lock over foreign code: use ForkOnce", file.path);
        }
    }
}
