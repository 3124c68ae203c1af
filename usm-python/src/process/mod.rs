//! This process and its interpreter: calls into it, its names, its forks, its end.

pub(crate) mod attribute;
pub(crate) mod calls;
pub(crate) mod command;
pub(crate) mod exit;
pub(crate) mod fork;
pub(crate) mod interpreter;
pub(crate) mod once;
pub(crate) mod pickled;
pub(crate) mod symbol;
pub(crate) mod wait;
