//! The conformance suite: one set of cases that every backend passes unchanged.
//!
//! A backend takes part by passing a [`Provider`] to [`conformance_suite!`]. Each case becomes a
//! test of its own.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

pub mod conformance;
pub mod counting;
pub mod faults;
pub mod harness;
pub mod planned;
pub mod process;
pub mod programs;
pub mod provider;
pub mod scarce;
pub use ::skip;

pub use provider::{Failing, Fixture, Provider};

/// The examples of the front page.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod readme {}
