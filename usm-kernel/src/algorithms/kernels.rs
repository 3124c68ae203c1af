//! The kernels of reductions and scans, for each type of numbers.

use crate::kernels;

#[kernels]
pub(super) mod of {
    /// `parts[group]` = the sum of the elements that the group's work-items took.
    #[kernel(instances(f32, f64, i32, i64, u32, u64))]
    pub fn sums<T>(a: &[T], parts: &mut [T]) {
        let mut total = 0 as T;
        for i in (global_id(0)..a.len()).step_by(global_size(0)) {
            total += a[i];
        }
        let total = group_reduce(total, ADD);
        if local_id(0) == 0 {
            parts[group_id(0)] = total;
        }
    }

    /// `parts[group]` = the least element of the group's turns, and of `a[0]`.
    #[kernel(instances(f32, f64, i32, i64, u32, u64))]
    pub fn least<T>(a: &[T], parts: &mut [T]) {
        let mut total = a[0];
        for i in (global_id(0)..a.len()).step_by(global_size(0)) {
            total = if a[i] < total { a[i] } else { total };
        }
        let total = group_reduce(total, MIN);
        if local_id(0) == 0 {
            parts[group_id(0)] = total;
        }
    }

    /// `parts[group]` = the greatest element of the group's turns, and of `a[0]`.
    #[kernel(instances(f32, f64, i32, i64, u32, u64))]
    pub fn greatest<T>(a: &[T], parts: &mut [T]) {
        let mut total = a[0];
        for i in (global_id(0)..a.len()).step_by(global_size(0)) {
            total = if a[i] > total { a[i] } else { total };
        }
        let total = group_reduce(total, MAX);
        if local_id(0) == 0 {
            parts[group_id(0)] = total;
        }
    }

    /// Each group's part of `output` = the running sums of its part of `input`, without the element
    /// itself if `exclusive` is 1; `totals[group]` = the part's sum.
    #[kernel(instances(f32, f64, i32, i64, u32, u64))]
    pub fn running<T>(exclusive: u32, input: &[T], output: &mut [T], totals: &mut [T]) {
        let i = global_id(0);
        let value = if i < input.len() { input[i] } else { 0 as T };
        let with = group_inclusive_scan(value, ADD);
        let without = group_exclusive_scan(value, ADD);
        if i < output.len() {
            output[i] = if exclusive == 1 { without } else { with };
        }
        let total = group_broadcast(with, local_size(0) - 1);
        if local_id(0) == 0 {
            totals[group_id(0)] = total;
        }
    }

    /// Adds `carries[group]` to each group's part of `output`.
    #[kernel(instances(f32, f64, i32, i64, u32, u64))]
    pub fn carried<T>(carries: &[T], output: &mut [T]) {
        let (i, group) = (global_id(0), group_id(0));
        if i < output.len() {
            output[i] += carries[group];
        }
    }
}
