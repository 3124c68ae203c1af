//! Random kernels, and how they run on each target: the generator, the text that the build makes of
//! its programs, and the comparison.

pub mod generate;
pub mod random;

pub use generate::{Given, Program, long_program, program};

/// The first seed: `USM_RANDOM_SEED`, else always the same.
#[must_use]
pub fn first_seed() -> u64 {
    number("USM_RANDOM_SEED", 1)
}

/// A number of the environment.
#[must_use]
pub fn number(name: &str, instead: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(instead)
}
