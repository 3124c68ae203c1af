//! Errors on the user's tokens.

use proc_macro2::Span;
use syn::{Error, Result};

/// An error on the user's tokens.
pub(crate) fn refuse<T>(span: Span, message: impl core::fmt::Display) -> Result<T> {
    Err(Error::new(span, message))
}
