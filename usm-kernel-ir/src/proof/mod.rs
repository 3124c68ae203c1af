//! What a launch has to find out before unchecked code may run: that indices are inside and that
//! items do not race.
//!
//! [`claims`] reads a kernel once and leaves conditions over sizes, lengths and scalars
//! ([`Condition`]). A launch only computes these, by [`Claims::holds`] or by the code that
//! [`emit::rust`](crate::emit::rust) makes of them.

mod claim;
mod linear;
mod number;
mod race;
mod say;
mod walk;

pub use claim::{Bound, Claims, Condition, Digit, Race, Shape};
pub use number::Number;
pub use walk::{bounds, claims};
