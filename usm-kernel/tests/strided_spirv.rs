//! The SPIR-V of strided copies in the source is what the writer writes.

use std::fs;
use std::path::Path;

use usm_kernel_ir::{emit, text};

/// With `USM_WRITE_SPIRV` set, writes the files anew.
#[test]
fn the_spirv_of_strided_copies_is_what_the_writer_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/strided");
    for kernel in ["gather", "tiles"] {
        let source = fs::read_to_string(folder.join(format!("{kernel}.ir"))).expect("the kernel");
        for element in ["u8", "u16", "u32", "u64"] {
            let parsed = text::parse(&source.replace("i16", element)).expect("a kernel");
            let words = emit::spirv(&parsed);
            let file = folder.join(format!("{kernel}_{element}.spv"));
            if std::env::var_os("USM_WRITE_SPIRV").is_some() {
                fs::write(&file, &words).expect("a file");
            }
            assert!(
                fs::read(&file).expect("the words") == words,
                "{}: set USM_WRITE_SPIRV=1 to write it",
                file.display()
            );
        }
    }
}
