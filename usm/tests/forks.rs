//! Forks while a thread opens a runtime for the first time.

#![cfg(unix)]

use std::sync::Barrier;
use std::thread;

use usm::backend::Dyn;
use usm::backend::host::HostHeap;
use usm::backend::mock::{Mock, Progress};
use usm::{Absence, BackendKind, ErrorKind, OpenRuntime, Runtimes};
use usm_core::driver::process::Opening;

unsafe extern "C" {
    fn fork() -> i32;
    fn alarm(seconds: u32) -> u32;
    fn waitpid(id: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// Forks a child, and returns whether `holds` is true there. A child that hangs is killed.
fn child(holds: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses only the parts that are guaranteed to work after a fork beside
    // threads: the C library's heap, and this library.
    match unsafe { fork() } {
        0 => {
            // SAFETY: sets a timer.
            unsafe { alarm(20) };
            let status = i32::from(!holds());
            // SAFETY: ends the process, without the exit handlers.
            unsafe { _exit(status) }
        }
        id => {
            let mut status = -1;
            // SAFETY: a child, and space for its status.
            unsafe { waitpid(id, &raw mut status, 0) };
            status == 0
        }
    }
}

/// The parent's thread is in the loader, in the list of devices, or in neither. The child's
/// runtimes are the same value, whose cell that thread fills.
#[test]
fn a_child_forked_while_a_thread_opens_a_runtime_gets_an_error_and_the_host() {
    for is_in_loader in [true, false] {
        let both: &'static Barrier = Box::leak(Box::new(Barrier::new(2)));
        let parent = std::process::id();
        let open = move || {
            let opening = is_in_loader.then(Opening::begin).transpose()?;
            if std::process::id() == parent {
                both.wait();
                both.wait();
            }
            drop(opening);
            Ok(OpenRuntime::new(Dyn::new(Mock::new(Progress::OnWait)), None))
        };
        let host = || Ok(OpenRuntime::new(Dyn::new(HostHeap::new()), None));
        let runtimes = Runtimes::new().opened_by(BackendKind::Sycl, open).with("mine", host).expect("a name");
        let is_refused =
            |error: &Absence| matches!(error, Absence::Failed(error) if error.kind == ErrorKind::Forked);
        let answers = thread::scope(|scope| {
            scope.spawn(|| runtimes.devices().count());
            both.wait();
            let answers = child(|| {
                let sycl = runtimes.get(BackendKind::Sycl).expect("a runtime");
                let sycl = match sycl.devices() {
                    Ok(devices) => !is_in_loader && devices.len() == 1,
                    Err(error) => is_in_loader && is_refused(error),
                };
                // Not opened by anybody yet.
                let host = ["host", "mine"].iter().all(|name| runtimes.open(name).is_ok());
                sycl && host
            });
            both.wait();
            answers
        });
        assert!(answers, "in the loader: {is_in_loader}");
        assert!(runtimes.get(BackendKind::Sycl).is_some_and(|sycl| sycl.devices().is_ok()));
    }
}

/// All statics of a thread that opens every runtime there is, at any moment of it.
#[test]
fn children_forked_at_any_moment_of_the_first_list_answer() {
    let lists = thread::spawn(|| usm::devices().len());
    let mut children = 0;
    while !lists.is_finished() || children < 3 {
        let answers = child(|| {
            let refused = usm::runtimes().iter().filter_map(|runtime| runtime.devices().err()).count();
            refused < 10 && usm::open("host").is_ok()
        });
        assert!(answers, "child {children}");
        children += 1;
    }
    assert!(lists.join().is_ok_and(|devices| devices > 0));
}

/// The parent's threads are anywhere in the pool: in its lock, or in the middle of their caches,
/// which they never leave in the child.
#[cfg(feature = "pool")]
#[test]
fn a_child_uses_the_pool_whatever_its_parents_threads_did() {
    use core::sync::atomic::{AtomicBool, Ordering};

    use usm::pool::{Pool, PoolOptions};
    use usm::{AllocKind, MemorySource, Request};

    const BYTES: usize = 4096;
    let context = HostHeap::new().context();
    let mut options = PoolOptions::default();
    options.limit = Some(64 << 20);
    let pool = Pool::with(&context, AllocKind::Host, options);
    let stop = AtomicBool::new(false);
    let allocate = |bytes: usize| pool.allocate(&Request::new(AllocKind::Host, bytes)).expect("memory");
    thread::scope(|scope| {
        for seed in 0..3_usize {
            let (stop, allocate) = (&stop, &allocate);
            scope.spawn(move || {
                let mut number = seed;
                while !stop.load(Ordering::Relaxed) {
                    number = number.wrapping_mul(25).wrapping_add(7);
                    let blocks: Vec<_> = (0..number % 5).map(|block| allocate(64 << (block % 9))).collect();
                    drop(blocks);
                }
            });
        }
        let parents = allocate(BYTES);
        // SAFETY: as below.
        unsafe { parents.as_ptr().write_bytes(0, BYTES) };
        for number in 0..30 {
            let works = child(|| {
                // SAFETY: memory of this process, which nothing else uses.
                unsafe { parents.as_ptr().write_bytes(1, BYTES) };
                let blocks: Vec<_> = (0..100).map(|block| allocate(64 + block * 100)).collect();
                let is_apart = blocks.iter().all(|block| block.as_ptr() != parents.as_ptr());
                drop(blocks);
                // All that may be taken goes back; what the threads held stays.
                let live = pool.stats().live;
                pool.trim(0);
                let again = allocate(BYTES).size() == BYTES;
                // More than is left: refused after a look at all caches, and no wait for any.
                let refused =
                    (0..50).all(|_| pool.allocate(&Request::new(AllocKind::Host, 1 << 30)).is_err());
                is_apart && live >= BYTES as u64 && again && refused
            });
            assert!(works, "child {number}");
        }
        // SAFETY: as above.
        let bytes = unsafe { core::slice::from_raw_parts(parents.as_ptr(), BYTES) };
        let zero = bytes.iter().all(|byte| *byte == 0);
        stop.store(true, Ordering::Relaxed);
        assert!(zero, "the parent saw a write of a child");
    });
    assert_eq!(pool.stats().live, 0);
}

/// Also a request that the warm cache of the thread would serve without a call of the driver.
#[cfg(feature = "pool")]
#[test]
fn a_child_is_refused_by_the_pool_of_a_runtime_that_its_parent_opened() {
    use usm::pool::Pool;
    use usm::{AllocKind, MemorySource, Request};

    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let request = |size| Request::new(AllocKind::Shared, size);
    let held = pool.allocate(&request(4096)).expect("memory");
    drop(pool.allocate(&request(1000)).expect("memory"));
    let (before, calls) = (pool.stats(), mock.calls().len());
    let mut objects = Some((pool, held));
    let is_refused = child(|| {
        let (pool, held) = objects.take().expect("a copy of the parent's");
        let is_refused = |size| pool.allocate(&request(size)).is_err_and(|it| it.kind == ErrorKind::Forked);
        let all = [1000, 4096, 64 << 20].into_iter().all(is_refused);
        drop(held);
        let live = pool.stats().live;
        drop(pool);
        all && live == 0 && mock.calls().len() == calls
    });
    assert!(is_refused);
    let (pool, held) = objects.expect("the parent's own");
    assert_eq!(pool.stats(), before);
    assert_eq!(pool.allocate(&request(1000)).expect("memory").size(), 1000);
    drop((pool, held));
    assert_eq!((mock.live_blocks(), mock.violations()), (0, vec![]));
}
