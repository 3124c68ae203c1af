//! Random kernels on each target: the generator, the code that the build makes of its programs, and
//! the comparison.

pub mod generate;
pub mod plain;
pub mod plants;
pub mod random;
pub mod text;

pub use generate::{Given, Program, jumping_program, long_program, program};

/// The first seed: `USM_RANDOM_SEED`, or a constant.
#[must_use]
pub fn first_seed() -> u64 {
    number("USM_RANDOM_SEED", 1)
}

/// A number from the environment.
fn number(name: &str, instead: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(instead)
}

/// The number of kernels that the build compiled, or that a test compiles.
#[must_use]
pub fn build_cases(name: &str, usual: u64) -> u64 {
    number(name, usual * number("USM_EFFORT", 1).min(MOST_EFFORT))
}

/// A compiler takes minutes for more kernels than so many times the usual number.
const MOST_EFFORT: u64 = 10;
