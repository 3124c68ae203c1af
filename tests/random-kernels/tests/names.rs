//! The attribute's Rust code runs unchecked after a proven launch. So every name in it must resolve
//! to the intended item, whatever the program around it defines.

#![allow(clippy::std_instead_of_alloc, reason = "a test: std is always there")]

use std::collections::BTreeSet;

use usm_kernel_ir::{emit, proof};
use usm_random_kernels::{build_cases, first_seed, program};

/// Methods that are inherent for their receiver, taken by the same reference, so that no trait of
/// the program takes precedence.
const METHODS: &[&str] = &[
    // Of `F16` and `Bf16` by value: a method of the type comes before those of traits.
    "to_f32",
    // Methods of `&Group`, `&NdRange`, `&Range`, `&Axis`, and of `Id` by value.
    "again",
    "axis",
    "every",
    "global",
    "groups",
    "id",
    "is_proven",
    "local",
    "numbers",
    "range",
    "size",
    "sizes",
    "distinct",
    "items",
    "quotient",
    "signed", // Of numbers and of results of checked arithmetic, by value.
    "is_some",
    "saturating_sub",
    "to_bits",
    "unwrap_or",
    "unwrap_or_else",
    "wrapping_add",
    "wrapping_neg",
    "wrapping_sub",
    // Methods of references to atomics.
    "compare_exchange",
    "fetch_add",
    "fetch_and",
    "fetch_max",
    "fetch_min",
    "fetch_or",
    "fetch_sub",
    "fetch_xor",
    "load",
    "swap",
    // Methods of `PrivateArrays` and `&mut [T]`. The result of `try_into` is always an array of the
    // right length.
    "into_slice",
    "split_at_mut",
    "try_into",
    "expect",
];

/// Names after `::core::`, which a program may redefine. Each is compared with the language's own
/// at its place, or has no influence on memory accesses. `mem` compares sizes of types of this
/// workspace, which are what they are.
const CORE: &[&str] = &["convert", "mem", "ops", "primitive", "option", "sync"];

/// The words of a text between `before` and `after`.
fn words<'t>(text: &'t str, before: &str, after: &str) -> BTreeSet<&'t str> {
    let word = |rest: &'t str| {
        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
        (end > 0 && rest[end..].starts_with(after)).then_some(&rest[..end])
    };
    text.split(before).skip(1).filter_map(word).collect()
}

/// The text without its strings, which hold device code.
fn without_strings(text: &str) -> String {
    let (mut kept, mut inside, mut escaped) = (String::new(), false, false);
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ if inside => {}
            letter => kept.push(letter),
        }
    }
    kept
}

#[test]
fn nothing_in_the_rust_of_kernels_is_the_surroundings_to_say() {
    let first = first_seed();
    let mut seen = BTreeSet::new();
    for seed in first..first + build_cases("USM_RANDOM_KERNELS", 32).max(200) {
        let mut kernel = program(seed).kernel;
        let claims = proof::claims(&kernel).unwrap_or_else(|_| {
            kernel.trusted = true;
            proof::Claims::default()
        });
        let text = emit::rust(&kernel, &claims, "Random", "::usm_kernel", None);
        let text = without_strings(&text);
        let methods = words(&text, ".", "(");
        let strange: Vec<_> = methods.iter().filter(|name| !METHODS.contains(name)).collect();
        assert_eq!(strange, [&""; 0], "{seed}: methods that a trait of the program may have\n{text}");
        let core: Vec<_> =
            words(&text, "::core::", "").into_iter().filter(|name| !CORE.contains(name)).collect();
        assert_eq!(core, [""; 0], "{seed}: paths that a crate called core may have");
        let is_macro =
            |(at, _): (usize, &str)| text[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_');
        let ends = text.match_indices('!').filter(|(at, _)| !text[at + 1..].starts_with('='));
        assert!(!{ ends }.any(is_macro), "{seed}: a macro, which may be the program's\n{text}");
        seen.extend(methods.into_iter().map(str::to_owned));
    }
    assert!(seen.len() > 15, "the kernels have too little in them: {seen:?}");
}
