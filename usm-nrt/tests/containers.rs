//! Containers of compiled code: programs of bytes beside a model, with memory that sometimes runs
//! out.
#![cfg(feature = "capi")]

mod containers_target;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

/// Programs take turns, because the allocator belongs to the whole runtime.
fn run(program: &[u8]) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    containers_target::containers(program);
}

#[test]
fn the_corpus_finds_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/nrt_containers");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return skip::missing("corpora", "that of nrt_containers is only in the repository");
    };
    let programs: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(programs.len() >= 10, "{} programs", programs.len());
    programs.iter().for_each(|program| run(program));
}

proptest! {
    #[test]
    fn containers_do_what_the_model_does(
        kind in 0_u8..8,
        allocator in any::<u8>(),
        size in prop_oneof![0_u8..12, any::<u8>()],
        config in any::<u8>(),
        steps in proptest::collection::vec(any::<[u8; 3]>(), 0..300),
    ) {
        let mut program = vec![kind, allocator, size, config];
        program.extend(steps.into_flattened());
        run(&program);
    }
}
