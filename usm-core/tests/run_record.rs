//! Records that the code of an operation writes: their judge is asked once, whatever it says.

#![cfg(feature = "std")]
#![allow(clippy::std_instead_of_alloc, clippy::std_instead_of_core, reason = "tests run with std")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use usm_core::backend::host::HostHeap;
use usm_core::{Error, ErrorKind, QueueOrder, RunRecord};

#[test]
fn a_judge_is_asked_once_also_if_its_answer_is_that_of_a_live_view() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    for kind in [None, Some(ErrorKind::HostViewLive { views: 1 }), Some(ErrorKind::SizeOverflow)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let judge = move |words: &[u32]| {
            assert_eq!(words, [0; 3]);
            counted.fetch_add(1, Ordering::Relaxed);
            kind.map_or(Ok(()), |kind| Err(Error::from(kind)))
        };
        let record = RunRecord::new(&queue, 3, judge).expect("a record");
        let event = record.watch(&queue, &[], queue.barrier(&[]).expect("an event"));
        for _ in 0..3 {
            assert_eq!(event.wait().map_err(|error| error.kind).err(), kind);
        }
        drop(event);
        queue.wait().expect("reported before");
        assert_eq!(calls.load(Ordering::Relaxed), 1, "{kind:?}");
    }
}
