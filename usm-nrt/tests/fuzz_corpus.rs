//! The corpus of the fuzz target, as an ordinary test.
#![cfg(feature = "capi")]

mod targets;

use std::path::Path;

/// Programs take turns, because they turn the switches of the whole runtime.
#[test]
fn the_corpus_finds_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/nrt_c_abi");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return skip::missing("corpora", "that of nrt_c_abi is only in the repository");
    };
    let mut programs = 0;
    for entry in entries {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        targets::c_abi(&bytes);
        programs += 1;
    }
    assert!(programs >= 10, "{programs} programs");
    // And some random ones.
    let mut state = 1_u64;
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        targets::c_abi(&bytes);
    }
}
