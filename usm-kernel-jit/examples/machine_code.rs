//! Compiles the text form of a kernel to machine code and runs two of three groups.

use usm_kernel_ir::{text, verify};
use usm_kernel_jit::machine::Code;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let kernel = text::parse(
        r#"(kernel "double" 1 @0:1:1 (files "double.ir")
            (array "a" f32 write @0:1:1)
            (parameters #0)
            (do (store #0 (global-id u64 0 @0:2:1)
                (add f32 (load f32 #0 (global-id u64 0 @0:2:1) @0:2:1)
                     (load f32 #0 (global-id u64 0 @0:2:1) @0:2:1) @0:2:1) @0:2:1)))"#,
    )?;
    verify(&kernel)?;
    let code = Code::new(&kernel)?;
    let mut a = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    // The fastest dimension first: six items, groups of two, the first group to run, and the group
    // before which the run ends.
    let sizes = [6, 1, 1, 2, 1, 1, 0, 0, 0, 2, 1, 1];
    let (arrays, lengths) = ([a.as_mut_ptr().cast()], [6]);
    let mut scratch = [0_u8; 64];
    // SAFETY: the array has as many elements as the range has items, and only this call uses it.
    let _ = unsafe {
        code.run(arrays.as_ptr(), [].as_ptr(), lengths.as_ptr(), sizes.as_ptr(), scratch.as_mut_ptr())
    };
    println!("{a:?}");
    assert_eq!(a, [2.0, 4.0, 6.0, 8.0, 5.0, 6.0]);
    Ok(())
}
