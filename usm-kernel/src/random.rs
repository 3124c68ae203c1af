//! Random numbers by counter, in plain Rust: the same as kernels have by these names.
//!
//! A number follows from the seed and its place, so work-items need no state of each other, and the
//! result is equal on every target. The same seed and place give the same numbers: let no two draws
//! share a place.

/// The four random numbers of a seed and a place: Philox4x32-10 of Random123, whose key is the seed
/// and whose counter is the place, the lower halves first.
///
/// ```
/// assert_eq!(usm_kernel::random::philox(0, 0).0, 0x6627_e8d5);
/// ```
#[must_use]
pub const fn philox(seed: u64, i: u64) -> (u32, u32, u32, u32) {
    let [c0, c1, c2, c3] = philox4x32([seed as u32, (seed >> 32) as u32], [i as u32, (i >> 32) as u32, 0, 0]);
    (c0, c1, c2, c3)
}

/// Philox4x32-10 of any key and counter.
#[must_use]
pub const fn philox4x32(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let ([mut k0, mut k1], [mut c0, mut c1, mut c2, mut c3]) = (key, counter);
    let mut round = 0;
    while round < 10 {
        let (first, second) = (c0 as u64 * 0xD251_1F53, c2 as u64 * 0xCD9E_8D57);
        (c0, c1, c2, c3) =
            ((second >> 32) as u32 ^ c1 ^ k0, second as u32, (first >> 32) as u32 ^ c3 ^ k1, first as u32);
        (k0, k1) = (k0.wrapping_add(0x9E37_79B9), k1.wrapping_add(0xBB67_AE85));
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// A number from 0 up to 1, without 1: the upper 24 bits of the first number of [`philox`].
#[must_use]
pub const fn random_uniform(seed: u64, i: u64) -> f32 {
    (philox(seed, i).0 >> 8) as f32 * 5.960_464_5e-8
}

/// A number of the standard normal distribution, by Box and Muller. Kernels' last bits are those of
/// the device's logarithm and cosine.
#[must_use]
pub fn random_normal(seed: u64, i: u64) -> f32 {
    let (one, two, ..) = philox(seed, i);
    let u = ((one >> 8) as f32 + 1.0) * 5.960_464_5e-8;
    let v = (two >> 8) as f32 * 5.960_464_5e-8;
    libm::sqrtf(-2.0 * libm::logf(u)) * libm::cosf(core::f32::consts::TAU * v)
}
