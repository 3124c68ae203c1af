//! Programs that must not compile: every misuse of memory that the types forbid.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
