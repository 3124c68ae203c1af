//! The two machines: each has an `Output` for text and an `exit` that tells success from failure.

#[allow(dead_code, reason = "each image uses one machine")]
pub(crate) mod linux;
#[allow(dead_code, reason = "each image uses one machine")]
pub(crate) mod pvh;

use core::fmt::Write;

/// Prints a panic the way std does, as far as the output allows.
pub(crate) fn report_panic(info: &core::panic::PanicInfo<'_>, output: &mut dyn Write) {
    // Nothing is left to do when the report itself cannot be written.
    let _ = writeln!(output, "{info}");
}
