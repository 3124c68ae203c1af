//! A program that reads unwritten memory, which `cargo xtask memcheck` must report. Safe code could
//! do this before buffers were zeroed and written only from typed arrays. `planted SOURCE` takes
//! memory of `host` or `mock`; `planted written` writes it first. `planted pool` does the same with
//! a block of a pool that an earlier owner wrote, `planted pool written` writes it again, and
//! `planted pool freed` reads it after it went back, which AddressSanitizer must report too.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

use std::process::ExitCode;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::Mock;
use usm_core::{
    AllocKind, Allocation, Backend, Context, Fallback, Memory, MemorySource, MemoryType, QueueOrder, Request,
    Result,
};
use usm_pool::Pool;

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

/// The same with a block of a pool: its bytes have a value that an earlier owner wrote.
fn not_zero_in_pool(what: Option<&str>) -> Result<usize> {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Host);
    let request = Request::new(AllocKind::Host, BYTES);
    let write = |block: &Allocation<HostHeap>| {
        // SAFETY: the block has that many bytes, and nothing else uses it.
        unsafe { block.as_ptr().write_bytes(1, BYTES) };
    };
    let first = pool.allocate(&request)?;
    let address = first.as_ptr();
    write(&first);
    drop(first);
    let second = pool.allocate(&request)?;
    assert_eq!(second.as_ptr(), address, "the same bytes");
    match what {
        Some("written") => write(&second),
        Some("freed") => drop(second),
        _ => {}
    }
    // SAFETY: deliberately violated, unless the bytes are written. The pool keeps its segment.
    let bytes = unsafe { address.cast::<[u8; BYTES]>().read() };
    Ok(bytes.iter().filter(|byte| **byte != 0).count())
}

fn main() -> ExitCode {
    let counted = match std::env::args().nth(1).as_deref() {
        Some("pool") => not_zero_in_pool(std::env::args().nth(2).as_deref()),
        Some("host") => not_zero(&HostHeap::new().context(), false),
        Some("mock") => not_zero(&Mock::default().context(), false),
        Some("written") => not_zero(&HostHeap::new().context(), true)
            .and_then(|host| Ok(host + not_zero(&Mock::default().context(), true)?)),
        other => {
            eprintln!("error: planted host | mock | written | pool [written | freed], not {other:?}");
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
