//! Places of tokens, and the way back to the tokens.

use core::cell::RefCell;
use std::collections::HashMap;

use proc_macro2::Span;
use syn::Error;
use usm_kernel_ir::Place;

thread_local! {
    /// Spans of the places that the kernel's nodes have.
    static SPANS: RefCell<HashMap<Place, Span>> = RefCell::default();
}

/// The place of a token, stored for errors.
pub(crate) fn place_of(span: Span) -> Place {
    let start = span.start();
    let place = Place { file: 0, line: start.line as u32, column: start.column as u32 + 1 };
    SPANS.with_borrow_mut(|spans| {
        spans.entry(place).or_insert(span);
    });
    place
}

/// Forgets the spans of another kernel.
pub(crate) fn forget_spans() {
    SPANS.with_borrow_mut(HashMap::clear);
}

/// Moves an error of the IR to the user's tokens.
pub(crate) fn error_of(refusal: &usm_kernel_ir::Refusal) -> Error {
    let span = |place| SPANS.with_borrow(|spans| spans.get(&place).copied());
    let first = span(refusal.place).unwrap_or_else(Span::call_site);
    let mut error = Error::new(first, &refusal.message);
    if let Some(other) = refusal.other.filter(|other| *other != refusal.place).and_then(span) {
        error.combine(Error::new(other, "the other place"));
    }
    error
}
