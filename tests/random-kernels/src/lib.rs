//! Random kernels on each target: the generator, the code that the build makes of its programs, and
//! the comparison.

pub mod generate;
pub mod plain;
pub mod plants;
pub mod random;
pub mod text;

pub use generate::{Given, Program, long_program, program};

/// The first seed: `USM_RANDOM_SEED`, or a constant.
#[must_use]
pub fn first_seed() -> u64 {
    number("USM_RANDOM_SEED", 1)
}

/// A number from the environment.
#[must_use]
pub fn number(name: &str, instead: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(instead)
}
