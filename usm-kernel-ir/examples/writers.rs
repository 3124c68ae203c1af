//! Prints a kernel's text form and its code for each target.

use usm_kernel_ir::proof::claims;
use usm_kernel_ir::{emit, text, verify};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let kernel = text::parse(
        r#"(kernel "twice" 1 @0:1:4
          (files "twice.rs")
          (array "a" u32 write @0:1:10)
          (parameters #0)
          (do
            (store #0 (global-id u64 0 @0:2:7)
              (mul u32 (load u32 #0 (global-id u64 0 @0:2:7) @0:2:7) (lit u32 0x2 @0:2:25) @0:2:23) @0:2:7)))"#,
    )?;
    verify(&kernel)?;
    // Arrays whose elements follow from memory are accessed in an unknown order.
    let claims = claims(&kernel)?;
    let kernel = claims.name_unordered(&kernel);
    println!("{}\n{}", emit::opencl_c(&kernel), emit::cuda_c(&kernel));
    Ok(())
}
