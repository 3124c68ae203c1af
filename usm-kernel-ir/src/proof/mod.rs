//! The conditions under which a launch may run unchecked code: indices are inside, and items do not
//! race.
//!
//! [`claims`] reads a kernel once and derives conditions on sizes, lengths and scalars
//! ([`Condition`]). A launch only evaluates them, with [`Claims::holds`] or with the code that
//! [`emit::rust`](crate::emit::rust) makes of them.

mod claim;
mod explanation;
mod linear;
mod number;
mod parts;
mod race;
mod walk;

pub use claim::{Bound, Claims, Condition, Digit, Race, Shape};
pub use number::Number;
pub use walk::{bounds, claims};
