//! The corpora of the fuzz targets, and random bytes beside them, as ordinary tests.

#![cfg(feature = "alloc")]

mod targets;

use std::path::Path;

#[test]
fn every_input_of_every_corpus_holds() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for (name, check) in targets::TARGETS {
        let folder = corpora.join(name);
        let mut inputs = 0;
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            check(&std::fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs >= 10, "{name}: {inputs} inputs");
    }
}

#[test]
fn random_bytes_hold() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for (_, check) in targets::TARGETS {
        for _ in 0..2000 {
            let mut data = [0_u8; 120];
            for byte in &mut data {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = (state >> 24) as u8;
            }
            check(&data);
        }
    }
}
