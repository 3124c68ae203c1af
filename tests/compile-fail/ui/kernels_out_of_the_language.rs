//! A construct outside the kernel language is refused on its token, with a replacement.

use usm_kernel::prelude::*;

#[kernel]
fn closure(a: &mut [f32]) {
    let twice = |x: f32| x * 2.0;
    a[global_id(0)] = twice(1.0);
}

#[kernel]
fn unknown_method(a: &mut [f32]) {
    a[global_id(0)] = a[global_id(0)].to_degrees_of_arc();
}

#[kernel]
fn unknown_function(a: &mut [f32]) {
    a[global_id(0)] = lerp(1.0, 2.0);
}

#[kernel]
fn unknown_name(a: &mut [f32]) {
    a[global_id(0)] = SCALE;
}

#[kernel]
fn unknown_type(a: &mut [String]) {
    a[global_id(0)] = 0;
}

#[kernel]
fn unknown_scalar(x: u128, a: &mut [f32]) {
    a[global_id(0)] = x as f32;
}

#[kernel]
fn structure(a: &mut [f32]) {
    a[global_id(0)] = point.x;
}

#[kernels]
mod functions {
    #[kernel_fn]
    fn factorial(n: u32) -> u32 {
        return n * factorial(n - 1);
    }

    #[kernel]
    fn recursion(a: &mut [u32]) {
        a[global_id(0)] = factorial(5);
    }
}

#[kernel]
fn loop_over_a_slice(a: &[f32], sum: &[Atomic<f32>]) {
    for x in a {
        sum[0].fetch_add(x);
    }
}

#[kernel]
fn match_of_a_value(a: &mut [u32]) {
    a[global_id(0)] = match a[global_id(0)] {
        0 => 1,
        _ => 0,
    };
}

#[kernel]
fn called_macro(a: &mut [f32]) {
    dbg!("{}", a[global_id(0)]);
}

#[kernel]
fn reference(a: &mut [f32]) {
    let first = &mut a[0];
    *first = 1.0;
}

#[kernel]
fn result(a: &mut [f32]) -> f32 {
    a[global_id(0)]
}

#[kernel]
fn generic<T>(a: &mut [T]) {
    a[global_id(0)] = a[0];
}

#[kernel]
async fn asynchronous(a: &mut [f32]) {
    a[global_id(0)] = 0.0;
}

#[kernel]
fn no_parameters() {}

#[kernel(block = 16)]
fn unknown_argument(a: &mut [f32]) {
    a[global_id(0)] = 0.0;
}

#[kernel(group = [4, 4, 4, 4])]
fn four_dimensions(a: &mut [f32]) {
    a[global_id(0)] = 0.0;
}

#[kernel(group = 48, sub_group = 12)]
fn odd_sub_groups(a: &mut [f32]) {
    a[global_id(0)] = sub_group_reduce(1.0_f32, ADD);
}

#[kernel(group = 24, sub_group = 16)]
fn sub_groups_that_divide_nothing(a: &mut [f32]) {
    a[global_id(0)] = sub_group_reduce(1.0_f32, ADD);
}

#[kernel(sub_group = 16)]
fn sub_groups_of_any_group(a: &mut [f32]) {
    a[global_id(0)] = sub_group_reduce(1.0_f32, ADD);
}

#[kernel(group = 64)]
fn sub_groups_of_any_size(a: &mut [f32]) {
    a[global_id(0)] = sub_group_reduce(1.0_f32, ADD);
}

#[kernel]
fn unknown_constant(a: &mut [u32]) {
    a[global_id(0)] = u32::LARGEST;
}

#[kernel]
fn constant_of_another_crate(a: &mut [f32]) {
    a[global_id(0)] = core::f32::consts::PI;
}

#[kernel]
fn unknown_label(a: &mut [u32]) {
    'rows: for y in 0..4_u32 {
        a[global_id(0)] = y;
    }
    loop {
        break 'rows;
    }
}

#[kernels]
mod labels {
    #[kernel_fn]
    fn leaves(x: u32) -> u32 {
        while x > 0 {
            break 'outer;
        }
        x
    }

    #[kernel]
    fn label_of_a_caller(a: &mut [u32]) {
        'outer: for y in 0..4_u32 {
            a[global_id(0)] = leaves(y);
        }
    }
}

#[kernel]
fn label_of_a_block(a: &mut [u32]) {
    'block: {
        a[global_id(0)] = 1;
    }
}

#[kernel]
fn break_with_a_value(a: &mut [u32]) {
    loop {
        break 5;
    }
    a[global_id(0)] = 1;
}

#[kernel]
fn kind_of_an_integer(a: &mut [u32]) {
    a[global_id(0)] = a[0].is_nan() as u32;
}

fn main() {}
