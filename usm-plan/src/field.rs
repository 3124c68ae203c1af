//! The fields of a request. A face spells a field as its option, keyword or member is called.

pub use crate::request::fields::Field;
