//! Random numbers by counter: functions that every kernel has.

use alloc::rc::Rc;

use syn::ItemFn;

/// The functions, as a module with `#[kernel_fn]` would have them. `usm_kernel::random` has the
/// same for plain Rust.
const TEXTS: [(&str, &str); 3] = [
    (
        "philox",
        "fn philox(seed: u64, i: u64) -> (u32, u32, u32, u32) {
            let mut k0 = seed as u32;
            let mut k1 = (seed >> 32) as u32;
            let mut c0 = i as u32;
            let mut c1 = (i >> 32) as u32;
            let mut c2 = 0_u32;
            let mut c3 = 0_u32;
            for _round in 0..10_u32 {
                let first = c0 as u64 * 0xD2511F53_u64;
                let second = c2 as u64 * 0xCD9E8D57_u64;
                c0 = (second >> 32) as u32 ^ c1 ^ k0;
                c1 = second as u32;
                c2 = (first >> 32) as u32 ^ c3 ^ k1;
                c3 = first as u32;
                k0 += 0x9E3779B9_u32;
                k1 += 0xBB67AE85_u32;
            }
            (c0, c1, c2, c3)
        }",
    ),
    (
        "random_uniform",
        "fn random_uniform(seed: u64, i: u64) -> f32 {
            let (one, _two, _three, _four) = philox(seed, i);
            (one >> 8) as f32 * 5.9604645e-8_f32
        }",
    ),
    (
        "random_normal",
        "fn random_normal(seed: u64, i: u64) -> f32 {
            let (one, two, _three, _four) = philox(seed, i);
            let u = ((one >> 8) as f32 + 1.0_f32) * 5.9604645e-8_f32;
            let v = (two >> 8) as f32 * 5.9604645e-8_f32;
            (-2.0_f32 * u.ln()).sqrt() * (6.2831855_f32 * v).cos()
        }",
    ),
];

/// The function of a name, if it is one of these.
pub(crate) fn function(name: &str) -> Option<Rc<ItemFn>> {
    let (_, text) = TEXTS.iter().find(|(function, _)| *function == name)?;
    syn::parse_str(text).ok().map(Rc::new)
}
