//! Arguments of a program on the host, and its results as bytes.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, UsmVec};
use usm_random_kernels::Given;

use crate::common::bytes_of;

pub(crate) fn array<T: bytemuck::Pod>(queue: &Queue<HostHeap>, given: &Given) -> UsmVec<T, Host, HostHeap> {
    UsmVec::from_slice(queue, &elements::<T>(given)).unwrap()
}

pub(crate) fn elements<T: bytemuck::Pod>(given: &Given) -> Vec<T> {
    bytes_of(given).chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

pub(crate) fn bytes<T: bytemuck::Pod>(array: &UsmVec<T, Host, HostHeap>) -> Vec<u8> {
    bytemuck::cast_slice(&array.read().unwrap()).to_vec()
}

pub(crate) fn value<T: bytemuck::Pod>(given: &Given) -> T {
    let Given::Value(literal) = given else { panic!("an array for a scalar") };
    let (word, width) = literal.to_ne_bytes();
    bytemuck::pod_read_unaligned(&word[..width])
}
