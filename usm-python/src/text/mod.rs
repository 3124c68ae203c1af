//! Texts for the user: errors as exceptions, arguments of a wrong type, tables for notebooks,
//! messages for loggers.

pub(crate) mod argument;
pub(crate) mod error;
pub(crate) mod html;
pub(crate) mod log;
