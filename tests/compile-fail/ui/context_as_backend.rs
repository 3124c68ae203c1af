//! The parameter of handles is the backend, not one of its handles.

use usm_core::{Context, Queue};
use usm_core::backend::host::HostHeap;

fn main() {
    let _: Option<Queue<Context<HostHeap>>> = None;
}
