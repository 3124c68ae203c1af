//! The conformance suite: one set of cases that every backend passes unchanged.
//!
//! A backend takes part by giving a [`Provider`] to [`conformance_suite!`]; each case becomes a test of its own.

pub mod conformance;
pub mod provider;

pub use provider::{Fixture, Provider};
