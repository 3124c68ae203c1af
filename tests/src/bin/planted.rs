//! A program that reads unwritten memory, which `cargo xtask memcheck` must report. Safe code could
//! do this before buffers were zeroed and written only from typed arrays. `planted SOURCE` takes
//! memory of `host` or `mock`; `planted written` writes it first.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

use std::process::ExitCode;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::Mock;
use usm_core::{
    AllocKind, Backend, Context, Fallback, Memory, MemorySource, MemoryType, QueueOrder, Request, Result,
};

const BYTES: usize = 64;

/// The number of nonzero bytes of a buffer that was written from an allocation.
fn not_zero<B: Backend>(context: &Context<B>, written: bool) -> Result<usize> {
    let queue = context.queue(QueueOrder::InOrder)?;
    let memory = context.allocate_memory(MemoryType::Buffer, BYTES, 0, Fallback::Refuse)?;
    let Memory::Buffer(mut buffer) = memory else { unreachable!("a buffer was asked for") };
    let mut source = context.allocate(&Request::new(AllocKind::Host, BYTES))?;
    if written {
        queue.fill_bytes(&mut source, 0, BYTES, &[1])?.wait()?;
    }
    // SAFETY: deliberately violated without `written`. Only the number of zeros depends on the
    // bytes.
    let _ = unsafe { queue.write_buffer_bytes(&mut buffer, 0, &source, 0, BYTES) }?;
    let mut bytes = [0; BYTES];
    queue.read_buffer_to(&buffer, 0, &mut bytes)?;
    Ok(bytes.iter().filter(|byte| **byte != 0).count())
}

fn main() -> ExitCode {
    let counted = match std::env::args().nth(1).as_deref() {
        Some("host") => not_zero(&HostHeap::new().context(), false),
        Some("mock") => not_zero(&Mock::default().context(), false),
        Some("written") => not_zero(&HostHeap::new().context(), true)
            .and_then(|host| Ok(host + not_zero(&Mock::default().context(), true)?)),
        other => {
            eprintln!("error: planted host | mock | written, not {other:?}");
            return ExitCode::from(2);
        }
    };
    match counted {
        Ok(bytes) => {
            println!("{bytes} bytes are not zero");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
