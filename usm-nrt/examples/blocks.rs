//! Reference-counted blocks without Python: allocate, share, track, and find a leak. `cargo run -p
//! usm-nrt --example blocks`

use usm_nrt::{MemRef, Request, live_blocks, set_tracking};

fn main() -> Result<(), usm_nrt::Error> {
    set_tracking(true);
    let block = MemRef::allocate(Request::new(1000).align(64))?;
    let other = block.clone(); // acquire
    println!("{} bytes at {:p}, {} references", block.size(), block.data(), block.refcount());
    drop(other); // release

    // Foreign memory with its owner; the last release drops the owner.
    let owner: Box<[u8]> = vec![1, 2, 3].into();
    let (data, size) = (owner.as_ptr().cast_mut().cast(), owner.len());
    // SAFETY: a boxed slice does not move with its box.
    let wrapped = unsafe { MemRef::with_owner(data, size, owner)? };
    println!("owner: {:?}", wrapped.owner::<Box<[u8]>>());
    drop(wrapped);

    drop(block);
    let forgotten = MemRef::allocate(Request::new(100))?.into_raw();
    for leak in live_blocks()? {
        println!("still there: {leak}");
    }
    // SAFETY: the only reference, which `into_raw` handed over.
    unsafe { usm_nrt::MemInfo::release(forgotten) };
    assert!(live_blocks()?.is_empty());
    Ok(())
}
