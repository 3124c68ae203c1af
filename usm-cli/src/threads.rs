//! Starts the threads of streams one by one, so that a system that refuses memory ends the command
//! with one line.

use core::hint::black_box;
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::error::{Error, Result};

/// Bytes that the start of a thread may take: the allocator's part for the thread, 64 MiB, its
/// stack, and the stack for its signals. The standard library panics if it gets no memory for the
/// last of them.
const START: usize = 72 << 20;

/// Runs `work` for each stream, numbered from 0, at the same time. Returns the results in this
/// order. No stream begins its work before the threads of all have started.
///
/// # Errors
/// For a stream whose thread the system refuses, or whose work panics.
pub(crate) fn run_streams<T: Send>(count: u32, work: impl Fn(u32) -> T + Sync) -> Vec<Result<T>> {
    let all_started = Mutex::new(());
    thread::scope(|scope| {
        let wait = all_started.lock();
        let (work, all_started) = (&work, &all_started);
        let begin = |number| {
            // The allocator ends the command if it cannot give this much.
            drop(black_box(Vec::<u8>::with_capacity(START)));
            let (sender, starts) = mpsc::channel();
            let body = move || {
                // The other side waits for this message.
                let _ = sender.send(());
                drop(all_started.lock());
                work(number)
            };
            let thread_error = |error| Error::unable(format!("no thread for stream {number}: {error}"));
            let handle = thread::Builder::new().spawn_scoped(scope, body).map_err(thread_error)?;
            starts.recv().map_err(|_| Error::unable(format!("stream {number} did not start")))?;
            Ok(handle)
        };
        let handles: Vec<_> = (0..count).map(begin).collect();
        drop(wait);
        let end = |thread: Result<thread::ScopedJoinHandle<'_, T>>| {
            thread?.join().map_err(|_| Error::unable("a stream panicked"))
        };
        handles.into_iter().map(end).collect()
    })
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn results_come_in_order() {
        let answers: Vec<_> =
            super::run_streams(5, |number| number * 2).into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, [0, 2, 4, 6, 8]);
        assert!(super::run_streams(0, |number| number).is_empty());
    }

    #[test]
    fn all_run_at_the_same_time() {
        let inside = AtomicU32::new(0);
        let ran = super::run_streams(4, |_| {
            inside.fetch_add(1, Ordering::SeqCst);
            while inside.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
        });
        assert!(ran.into_iter().all(|ran| ran.is_ok()));
    }

    #[test]
    fn a_panic_is_an_error_of_its_stream() {
        let ran = super::run_streams(3, |number| assert_ne!(number, 1, "planted"));
        let failed: Vec<_> = ran.iter().map(Result::is_err).collect();
        assert_eq!(failed, [false, true, false]);
    }
}
