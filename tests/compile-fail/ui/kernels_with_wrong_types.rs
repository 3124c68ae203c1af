//! Types, mutability and memory of a kernel are checked on the user's tokens.

use usm_kernel::prelude::*;

#[kernel]
fn write_to_what_is_read(a: &[f32], b: &mut [f32]) {
    a[global_id(0)] = b[global_id(0)];
}

#[kernel]
fn write_to_what_is_atomic(a: &[Atomic<u32>]) {
    a[global_id(0)] = 1;
}

#[kernel]
fn write_to_a_parameter(n: u32, a: &mut [u32]) {
    n = 1;
    a[global_id(0)] = n;
}

#[kernel]
fn assigned_without_mut(a: &mut [u32]) {
    let x = 1_u32;
    x += 1;
    a[global_id(0)] = x;
}

#[kernel]
fn two_types(n: u32, a: &mut [u64]) {
    a[global_id(0)] = a[global_id(0)] + n;
}

#[kernel]
fn open_type(a: &mut [u32]) {
    let x = 1;
    a[global_id(0)] = x;
}

#[kernel]
fn number_as_condition(a: &mut [u32]) {
    if a[global_id(0)] {
        a[global_id(0)] = 0;
    }
}

#[kernel]
fn index_of_another_type(i: i32, a: &mut [u32]) {
    a[i] = 0;
}

#[kernel]
fn bits_of_a_float(a: &[Atomic<f32>]) {
    a[0].fetch_xor(1.0);
}

#[kernel]
fn narrow_atomic(a: &[Atomic<u8>]) {
    a[0].fetch_add(1);
}

#[kernel]
fn read_before_written(n: u64, a: &mut [u32]) {
    let mut b: [u32; 4];
    a[global_id(0)] = b[n];
}

#[kernel]
fn local_memory_with_a_value(a: &mut [u32]) {
    #[local]
    let mut lm: [u32; 4] = [0; 4];
    a[global_id(0)] = lm[0];
}

#[kernel(group = 8)]
fn dimension_too_high(a: &mut [u32]) {
    a[global_id(1)] = 0;
}

fn main() {}
