//! The single door for people and CI.
fn main() {}
