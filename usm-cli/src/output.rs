//! Standard output and standard error: the one way out. Whatever text of others is in it is
//! [`Shown`], a name with a newline in it by who puts it in the text. A reader that went away is no
//! failure.

use core::fmt;
use std::io::{self, Write};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::shown::{JsonShown, Shown, ShownLines};

/// Writes a file's bytes to standard output as they are.
pub(crate) fn raw(bytes: &[u8]) -> Result<()> {
    finish(io::stdout().lock().write_all(bytes))
}

/// Writes lines to standard output.
pub(crate) fn text(text: &str) -> Result<()> {
    finish(write!(io::stdout().lock(), "{}", ShownLines(text)))
}

/// Writes one line, or lines, to standard output.
pub(crate) fn line(line: impl fmt::Display) -> Result<()> {
    finish(writeln!(io::stdout().lock(), "{}", ShownLines(line)))
}

/// Writes one JSON document on one line to standard output.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let mut document = Vec::new();
    json_to(&mut document, value).map_err(|error| Error::unable(format!("no JSON: {error}")))?;
    finish(io::stdout().lock().write_all(&document))
}

/// Writes one JSON document on one line.
pub(crate) fn json_to(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, JsonShown))?;
    out.write_all(b"\n")
}

/// A remark that does not stop the command, to standard error.
pub(crate) fn warning(message: impl fmt::Display) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "usm: warning: {}", Shown(message));
}

/// Why the command failed, to standard error.
pub(crate) fn failure(error: &Error) {
    // Its parts are shown already; the lines that it has are a compiler's.
    let _ = writeln!(io::stderr(), "usm: {}", ShownLines(error));
}

/// Whether somebody still reads standard output.
pub(crate) fn alive(result: io::Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::unable(format!("standard output: {error}"))),
    }
}

fn finish(result: io::Result<()>) -> Result<()> {
    alive(result).map(|_| ())
}

/// Bytes with a unit that a person can compare, beside the exact number:
/// `95.25 MiB (99876928 bytes)`.
pub(crate) fn bytes(bytes: u64) -> String {
    match human(bytes) {
        Some(human) => format!("{human} ({bytes} bytes)"),
        None => format!("{bytes} bytes"),
    }
}

/// Bytes in the largest binary unit that keeps the number at 1 or above; `None` below 1 KiB.
pub(crate) fn human(bytes: u64) -> Option<String> {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.checked_ilog2()? / 10) as usize;
    let unit = units.get(power.checked_sub(1)?)?;
    // Precise enough for three digits.
    let value = bytes as f64 / 1024_f64.powi(power as i32);
    Some(format!("{value:.2} {unit}"))
}
