//! Code that the tests share.

pub(crate) mod skip;
