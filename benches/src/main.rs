//! Benchmarks beside their peers.
fn main() {}
