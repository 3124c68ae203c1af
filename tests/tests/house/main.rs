//! Tables of what the libraries, the command and the Python package share with other threads, with
//! forked children, and with other users of the machine. What is not in its table fails here, so
//! whoever adds a lock or a file says why it is safe, and which test shows that. And the types of
//! vendors in public interfaces.

#![allow(clippy::std_instead_of_alloc, reason = "tests with std")]

mod files;
mod source;
mod statics;
mod vendor_types;
