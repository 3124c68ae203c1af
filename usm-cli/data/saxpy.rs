//! A kernel for `usm run usm-cli/data/saxpy.rs`; see README.md beside it.

/// y = a * x + y.
#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    y[i] += a * x[i];
}
