//! A crate called `core` in the program cannot replace the numbers of kernels, with which a proof
//! would count wrong.
#![forbid(unsafe_code)]

extern crate self as core;

pub mod primitive {
    pub use std::primitive::{bool, f32, f64, i16, i16 as i8, i32, i64, isize, u8, u16, u32, u64, usize};
}

pub use std::{convert, option};

#[usm_kernel::kernel]
fn copy(a: &[u32], b: &mut [u32]) {
    let i = global_id(0);
    if i < a.len() && i < b.len() {
        b[i] = a[i];
    }
}

fn main() {}
