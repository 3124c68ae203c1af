//! Kernels on the host compared with hand-written loops.

mod one_source;
mod threads;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};

use crate::row::Row;

pub(crate) fn rows() -> Vec<Row> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("the host has queues");
    let mut rows = one_source::rows(&queue);
    rows.extend(threads::rows(&queue));
    rows
}

fn values() -> Vec<f32> {
    (0_u16..1000).map(|i| f32::from(i) / 1000.0).collect()
}

fn usm<T: bytemuck::Pod>(queue: &Queue<HostHeap>, values: &[T]) -> UsmVec<T, Host, HostHeap> {
    UsmVec::from_slice(queue, values).expect("the host has memory")
}
