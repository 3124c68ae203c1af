//! The program of every image: the crates' main job, once, on fixed input, with every result
//! checked.

#![allow(clippy::result_large_err, reason = "a refusal carries its text, since there may be no heap")]

mod fixed;
#[cfg(feature = "alloc")]
mod heap;
mod samples;
mod text;

use core::error::Error;
use core::fmt::{self, Write};

/// Tells the story; true when every step gave the right result.
pub(crate) fn tell(output: &mut dyn Write) -> bool {
    let mut narrator = Narrator { output, prefix: "" };
    match steps(&mut narrator) {
        Ok(()) => narrator.say(format_args!("ok")).is_ok(),
        Err(refusal) => {
            let _ = narrator.say(format_args!("failed: {refusal}"));
            false
        }
    }
}

fn steps(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    fixed::memory_and_kernel(narrator)?;
    samples::samples(narrator)?;
    fixed::pool(narrator)?;
    fixed::dictionary(narrator)?;
    fixed::plan(narrator)?;
    #[cfg(feature = "alloc")]
    {
        narrator.prefix = "alloc: ";
        heap::memory_and_kernel(narrator)?;
        heap::plan(narrator)?;
        heap::pool(narrator)?;
        heap::prune(narrator)?;
        narrator.prefix = "";
    }
    Ok(())
}

/// The output. Lines with the prefix are those of images with a heap.
struct Narrator<'o> {
    output: &'o mut dyn Write,
    prefix: &'static str,
}

impl Narrator<'_> {
    fn say(&mut self, line: fmt::Arguments<'_>) -> Result<(), Refusal> {
        writeln!(self.output, "{}{line}", self.prefix).map_err(|_| Refusal::wrong("the output"))
    }
}

/// Why the story stopped: the error of a crate as text, cut to a fixed length, since there may be
/// no heap.
struct Refusal(text::Text<160>);

impl Refusal {
    /// A wrong result.
    fn wrong(what: &str) -> Self {
        let mut text = text::Text::new();
        let _ = write!(text, "wrong: {what}");
        Self(text)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str())
    }
}

impl<E: Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        let mut text = text::Text::new();
        let _ = write!(text, "{error}");
        Self(text)
    }
}

/// Fails with the name of a wrong result.
fn check(right: bool, what: &str) -> Result<(), Refusal> {
    if right { Ok(()) } else { Err(Refusal::wrong(what)) }
}
