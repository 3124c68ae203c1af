//! Kernels on the host compared with hand-written loops.

mod one_source;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};

use crate::row::Row;

pub(crate) fn rows() -> Vec<Row> {
    one_source::rows(&HostHeap::new().context().queue(QueueOrder::InOrder).expect("the host has queues"))
}

fn values() -> Vec<f32> {
    (0_u16..1000).map(|i| f32::from(i) / 1000.0).collect()
}

fn usm<T: bytemuck::Pod>(queue: &Queue<HostHeap>, values: &[T]) -> UsmVec<T, Host, HostHeap> {
    UsmVec::from_slice(queue, values).expect("the host has memory")
}
