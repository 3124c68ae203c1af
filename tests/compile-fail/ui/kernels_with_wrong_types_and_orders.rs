//! Instances of kernels with type parameters that do not exist, and invalid orders of atomics.

use usm_kernel::prelude::*;

#[kernel(instances(f32, u128))]
fn unknown_instance<T>(a: &mut [T]) {
    a[global_id(0)] = 0 as T;
}

#[kernel(instances(f32, i32, f32))]
fn an_instance_twice<T>(a: &mut [T]) {
    a[global_id(0)] = 0 as T;
}

#[kernel(instances(f32))]
fn no_parameter(a: &mut [f32]) {
    a[global_id(0)] = 0.0;
}

#[kernel(instances())]
fn no_instance<T>(a: &mut [T]) {
    a[global_id(0)] = 0 as T;
}

#[kernel(instances((f32, i32)))]
fn one_parameter<T>(a: &mut [T]) {
    a[global_id(0)] = 0 as T;
}

#[kernel(instances(f32))]
fn bound<T: Copy>(a: &mut [T]) {
    a[global_id(0)] = 0 as T;
}

#[kernel(instances(f32))]
fn number<const N: u64>(a: &mut [f32]) {
    a[global_id(0)] = N as f32;
}

#[kernel(instances(i32, f32))]
fn not_of_all<T>(a: &mut [T]) {
    let i = global_id(0);
    a[i] = a[i] ^ a[i];
}

#[kernels]
mod functions {
    #[kernel_fn]
    fn twice<T>(x: T) -> T {
        x + x
    }

    #[kernel]
    fn without_a_type(a: &mut [f32]) {
        a[global_id(0)] = twice(a[global_id(0)]);
    }
}

#[kernel]
fn elements(a: &mut [usize]) {
    a[global_id(0)] = 0;
}

#[kernel]
fn order(count: &[Atomic<u32>]) {
    count[0].fetch_add(1, CONSUME);
}

#[kernel]
fn scope(count: &[Atomic<u32>]) {
    count[0].fetch_add(1, ACQUIRE, ITEM);
}

#[kernel]
fn system(count: &[Atomic<u32>]) {
    count[0].fetch_add(1, ACQUIRE, SYSTEM);
}

#[kernel]
fn releasing_load(count: &[Atomic<u32>], a: &mut [u32]) {
    a[global_id(0)] = count[0].load(RELEASE);
}

#[kernel]
fn name_bound_twice(a: &mut [u32]) {
    let i = global_id(0);
    let (x, x) = (a[i], 1_u32);
    a[i] = x;
}

fn main() {}
