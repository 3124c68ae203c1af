//! Random numbers by counter: Random123's vectors, and kernels beside plain Rust.

#![cfg(all(feature = "macros", feature = "std"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::random;

/// `kat_vectors` of Random123 for philox4x32 with 10 rounds: counter, key, result.
const VECTORS: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
    ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
    ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
    (
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ),
];

#[kernel]
fn draw(seed: u64, bits: &mut [u32], uniform: &mut [f32], normal: &mut [f32]) {
    let i = global_id(0);
    let (one, two, three, four) = philox(seed, i as u64);
    bits[i] = one ^ two ^ three ^ four;
    uniform[i] = random_uniform(seed, i as u64);
    normal[i] = random_normal(seed, i as u64);
}

#[test]
fn numbers_are_those_of_random123() {
    for (counter, key, result) in VECTORS {
        assert_eq!(random::philox4x32(key, counter), result);
    }
    let [one, two, three, four] = random::philox4x32([2, 3], [4, 5, 0, 0]);
    assert_eq!(random::philox(3 << 32 | 2, 5 << 32 | 4), (one, two, three, four));
}

#[test]
fn kernels_draw_what_plain_rust_draws() {
    const ITEMS: usize = 1000;
    let seed = 0x0123_4567_89ab_cdef;
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let mut bits = UsmVec::<u32, Host, _>::zeroed(&queue, ITEMS).unwrap();
    let mut uniform = UsmVec::<f32, Host, _>::zeroed(&queue, ITEMS).unwrap();
    let mut normal = UsmVec::<f32, Host, _>::zeroed(&queue, ITEMS).unwrap();
    let range = NdRange::new([ITEMS as u64], [8]).unwrap();
    let launch = Launch::new(&queue, range).require_proof();
    launch.run(draw, (seed, &mut bits, &mut uniform, &mut normal)).unwrap().wait().unwrap();
    let (bits, uniform) = (bits.to_vec(&queue).unwrap(), uniform.to_vec(&queue).unwrap());
    let normal = normal.to_vec(&queue).unwrap();
    for i in 0..ITEMS {
        let (one, two, three, four) = random::philox(seed, i as u64);
        assert_eq!(bits[i], one ^ two ^ three ^ four);
        assert_eq!(uniform[i].to_bits(), random::random_uniform(seed, i as u64).to_bits());
        assert!((normal[i] - random::random_normal(seed, i as u64)).abs() < 1e-5);
    }
    let mean = normal.iter().sum::<f32>() / ITEMS as f32;
    assert!(mean.abs() < 0.1, "{mean}");
}
