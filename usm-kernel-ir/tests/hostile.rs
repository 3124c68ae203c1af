//! Arbitrary text.

#[path = "common/target.rs"]
mod target;

use std::path::Path;

use proptest::prelude::*;

/// The texts of the corpus; none outside the repository.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/kernel_ir");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        skip::missing("corpora", "that of kernel_ir is only in the repository");
        return Vec::new();
    };
    let mut texts: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    texts.sort();
    texts
}

#[test]
fn the_corpus_finds_nothing() {
    let texts = corpus();
    let accepted = texts.iter().filter(|text| target::kernel(text)).count();
    assert_eq!(accepted, texts.len(), "of these all are kernels");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        u32::try_from(skip::cases("USM_KERNEL_CASES", 2_000)).unwrap_or(u32::MAX)
    ))]

    /// Parts of kernels at other places, other words and numbers.
    #[test]
    fn changed_kernels_find_nothing(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                any::<prop::sample::Index>(),
                0..60_usize,
                prop_oneof![
                    Just(None),
                    prop::sample::select(vec![
                        "0x0", "0x1", "0xffffffffffffffff", "0x7fffffff", "u64", "i32", "f64", "bool", "#0", "#1",
                        "#9", "$0", "$1", "$9", "(", ")", "write", "atomic", "(local ", "(private 0x4)", "add",
                        "sub", "mul", "rem", "shl", "lt", "(barrier local @0:1:1)", "(return @0:1:1)", "\"", ";", "é",
                    ]).prop_map(Some),
                ],
            ),
            1..4,
        ),
    ) {
        let texts = corpus();
        if texts.is_empty() {
            return Ok(());
        }
        let mut text = which.get(&texts).clone();
        for (to, from, len, word) in edits {
            let (to, from) = (to.index(text.len()), from.index(text.len()));
            // Whole words, if possible.
            let end = |start: usize| {
                text[start..].iter().position(|byte| b" ()\n".contains(byte)).map_or(text.len(), |more| start + more)
            };
            let new = match word {
                Some(word) => word.as_bytes().to_vec(),
                None => text[from..(from + len).min(text.len())].to_vec(),
            };
            let range = to..end(to).max(to);
            text.splice(range, new);
        }
        target::kernel(&text);
    }
}
