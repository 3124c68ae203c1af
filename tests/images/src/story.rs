//! What every image does: the crates' main job, once, on fixed input, with every result checked.

use core::fmt::{self, Write};

/// Tells the story; true when every step gave the right result.
pub(crate) fn tell(output: &mut dyn Write) -> bool {
    match steps(output) {
        Ok(()) => writeln!(output, "ok").is_ok(),
        Err(fmt::Error) => false,
    }
}

fn steps(output: &mut dyn Write) -> fmt::Result {
    #[cfg(feature = "alloc")]
    {
        extern crate alloc;
        let words = alloc::vec!["heap", "of", "images"];
        writeln!(output, "alloc: {} {}", words.join(" "), crate::heap::used() > 0)?;
    }
    writeln!(output, "usm images")
}
