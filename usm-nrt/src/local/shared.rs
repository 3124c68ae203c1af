//! Targets whose threads are unknown: one set of counters, and no cache.

use core::ptr::NonNull;

use crate::block::FreeBlock;
use crate::counters::{Counters, Event};
use crate::meminfo::MemInfo;

static COUNTERS: Counters = Counters::new();

pub(crate) fn count<const N: usize>(events: [Event; N]) {
    for event in events {
        COUNTERS.add_shared(event);
    }
}

pub(crate) fn for_each_counters(mut visit: impl FnMut(&Counters)) {
    visit(&COUNTERS);
}

pub(crate) fn take<const N: usize>(_class: u8, _counted: bool, _events: [Event; N]) -> Option<FreeBlock> {
    None
}

pub(crate) fn put<const N: usize>(
    _class: u8,
    block: FreeBlock,
    _counted: bool,
    _events: [Event; N],
) -> Option<FreeBlock> {
    Some(block)
}

pub(crate) fn drain_thread_cache() {}

pub(crate) fn begin_destructor(_: NonNull<MemInfo>) -> bool {
    true
}

pub(crate) fn end_destructor() -> Option<NonNull<MemInfo>> {
    None
}

/// An uninhabited type.
pub(crate) enum Cache {}

pub(crate) fn cache_if_enabled<'a>() -> Option<&'a Cache> {
    None
}

impl Cache {
    pub(crate) fn take(&self, _class: u8) -> Option<FreeBlock> {
        match *self {}
    }

    pub(crate) fn put(&self, _class: u8, _block: FreeBlock) {
        match *self {}
    }
}
