//! The erased backend: handles can be downcast, and both sides share one ledger.

use usm_core::backend::Dyn;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, MockQueue, Progress};
use usm_core::{AllocKind, Context, MemorySource, QueueOrder, Request};

#[test]
fn handles_can_be_opened_again() {
    let mock = Mock::new(Progress::OnWait).with_devices(3);
    let backend = Dyn::new(mock);
    let devices = backend.devices().expect("devices");
    assert_eq!(devices.iter().map(|device| device.info().index).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(backend.downcast_ref::<Mock>().is_some() && backend.downcast_ref::<HostHeap>().is_none());
    let queue = devices[2].context().expect("a context").queue(QueueOrder::InOrder).expect("a queue");
    assert!(queue.raw().downcast_ref::<MockQueue>().is_some());
}

#[test]
fn an_erased_context_keeps_the_same_ledger() {
    let mock = Mock::default();
    let plain = mock.context();
    let erased: Context<Dyn> = Context::from_raw(Dyn::erase_context::<Mock>(plain.raw().clone()));
    let block = erased.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    assert_eq!((plain.id(), plain.stats().sum.current), (erased.id(), 64));
    assert_eq!(plain.query(block.as_ptr()).expect("an answer").kind, AllocKind::Shared);
}
