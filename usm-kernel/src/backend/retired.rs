//! What launches may still use although its owner is gone: given back when they have finished.

use alloc::vec::Vec;

use crate::sync::Mutex;

/// The retired things of one backend, each with the events of what may use it.
pub(super) struct Retired<T, E> {
    list: Mutex<Vec<(T, Vec<E>)>>,
    is_running: fn(&E) -> bool,
}

impl<T, E> Retired<T, E> {
    pub(super) const fn new(is_running: fn(&E) -> bool) -> Self {
        Self { list: Mutex::new(Vec::new()), is_running }
    }

    /// Drops `thing` once nothing of `running` goes on.
    pub(super) fn retire(&self, thing: T, mut running: Vec<E>) {
        running.retain(self.is_running);
        if running.is_empty() {
            drop(thing);
        } else {
            self.list.lock().push((thing, running));
        }
        self.sweep();
    }

    /// Drops what nothing uses any more.
    pub(super) fn sweep(&self) {
        // The driver is asked, and things are dropped, without the lock held.
        let all = core::mem::take(&mut *self.list.lock());
        if all.is_empty() {
            return;
        }
        let (kept, done): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, events)| events.iter().any(self.is_running));
        self.list.lock().extend(kept);
        drop(done);
    }
}

#[cfg(all(test, loom))]
mod models {
    use alloc::sync::Arc;

    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::thread;

    use super::*;

    /// What a launch is: whether it goes on.
    type Launch = Arc<AtomicBool>;

    fn is_running(launch: &Launch) -> bool {
        launch.load(Ordering::Acquire)
    }

    /// May not go while its launch does.
    struct Code {
        launch: Launch,
        gone: Arc<AtomicUsize>,
    }

    impl Drop for Code {
        fn drop(&mut self) {
            assert!(!is_running(&self.launch), "it runs");
            self.gone.fetch_add(1, Ordering::AcqRel);
        }
    }

    #[test]
    fn code_goes_once_and_after_its_launches() {
        let mut builder = loom::model::Builder::new();
        // Three threads: three forced switches show what they can do to each other.
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let retired = Arc::new(Retired::<Code, Launch>::new(is_running));
            // Loom's objects are made by this thread.
            retired.sweep();
            let gone = Arc::new(AtomicUsize::new(0));
            let launches = [(); 2].map(|()| Arc::new(AtomicBool::new(true)));
            let retire = |retired: &Retired<Code, Launch>, launch: &Launch, gone: &Arc<AtomicUsize>| {
                let code = Code { launch: Arc::clone(launch), gone: Arc::clone(gone) };
                retired.retire(code, alloc::vec![Arc::clone(launch)]);
            };
            let other = {
                let (retired, launch, gone) =
                    (Arc::clone(&retired), Arc::clone(&launches[1]), Arc::clone(&gone));
                thread::spawn(move || retire(&retired, &launch, &gone))
            };
            let device = {
                let launches = launches.clone();
                thread::spawn(move || {
                    launches.iter().for_each(|launch| launch.store(false, Ordering::Release))
                })
            };
            retire(&retired, &launches[0], &gone);
            other.join().expect("no panic");
            device.join().expect("no panic");
            retired.sweep();
            assert_eq!((gone.load(Ordering::Acquire), retired.list.lock().len()), (2, 0));
        });
    }
}
