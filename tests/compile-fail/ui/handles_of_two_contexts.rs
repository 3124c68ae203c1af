//! A call that takes handles of two origins is unsafe, and so is emptying a list of waiting blocks:
//! safe code could otherwise misuse a runtime's handles, or take blocks away that are never freed.
#![forbid(unsafe_code)]

use core::time::Duration;

use usm_core::backend::mock::Mock;
use usm_core::backend::{ContextOps, Peer, QueueOps};
use usm_core::{Deferred, QueueOrder};

fn main() {
    let [ours, theirs] = [Mock::default().context(), Mock::default().context()];
    let [queue, other] = [&ours, &theirs].map(|context| context.queue(QueueOrder::InOrder).expect("a queue"));
    let event = other.barrier(&[]).expect("a barrier");
    let _ = queue.raw().barrier(&[event.raw().clone()]);
    let _ = Mock::can_access(ours.raw(), theirs.raw());
    let _ = Mock::enable(ours.raw(), theirs.raw());
    let _ = Mock::disable(ours.raw(), theirs.raw());
    let list: &Deferred<Mock> = ours.raw().deferred().expect("a list");
    list.drain(theirs.raw().shared(), Duration::ZERO, |_| {}, |_| {});
}
