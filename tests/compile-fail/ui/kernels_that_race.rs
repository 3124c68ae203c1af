//! Unprovable accesses, and barriers that some items skip, are refused with both places.

use usm_kernel::prelude::*;

#[kernel(group = 16)]
fn barrier_by_memory(index: &[u32], a: &mut [f32]) {
    #[local]
    let mut lm: [u32; 16];
    lm[index[global_id(0)] as u64] = 1;
    if lm[0] > 0 {
        barrier(LOCAL);
    }
    a[global_id(0)] = 1.0;
}

#[kernel]
fn element_of_a_neighbour(a: &mut [f32]) {
    let i = global_id(0);
    a[i] = a[i + 1];
}

#[kernel]
fn one_element_of_all(a: &mut [f32]) {
    a[0] += 1.0;
}

#[kernel(group = 16)]
fn no_barrier_between(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; 16];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    a[i] = lm[15 - l];
}

#[kernel(group = 16)]
fn barrier_of_some(a: &mut [f32]) {
    let i = global_id(0);
    if local_id(0) < 8 {
        barrier(LOCAL);
    }
    a[i] = 1.0;
}

#[kernel(group = 16)]
fn barrier_after_a_return(a: &mut [f32]) {
    let i = global_id(0);
    if i >= a.len() {
        return;
    }
    barrier(LOCAL);
    a[i] = 1.0;
}

#[kernel(group = 16)]
fn collected_by_some(a: &mut [f32]) {
    let i = global_id(0);
    if a[i] > 0.0 {
        a[i] = group_reduce(a[i], ADD);
    }
}

fn main() {}
