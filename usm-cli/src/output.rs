//! Standard output and standard error: all output passes through this file. Foreign text in it is
//! [`EscapedText`]; the caller shows a name that may contain a newline. A reader that closed its end is
//! no failure.

use core::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use serde::Serialize;
use usm_plan::units;

use crate::error::{Error, Result};
use crate::escape::{EscapedJson, EscapedLines, EscapedText};

/// Reads the argument that names a file to write, beside a description on standard output.
pub(crate) fn file_to_write() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("standard output has the description; `./-` is a file of this name"),
        false => Ok(path),
    })
}

/// Writes a file's bytes to standard output unchanged.
pub(crate) fn raw(bytes: &[u8]) -> Result<()> {
    ignore_closed_pipe(io::stdout().lock().write_all(bytes))
}

/// Writes lines to standard output.
pub(crate) fn text(text: &str) -> Result<()> {
    ignore_closed_pipe(write!(io::stdout().lock(), "{}", EscapedLines(text)))
}

/// Writes one line, or lines, to standard output.
pub(crate) fn line(line: impl fmt::Display) -> Result<()> {
    ignore_closed_pipe(writeln!(io::stdout().lock(), "{}", EscapedLines(line)))
}

/// Writes one JSON document on one line to standard output.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let mut document = Vec::new();
    json_to(&mut document, value).map_err(|error| Error::unable(format!("no JSON: {error}")))?;
    ignore_closed_pipe(io::stdout().lock().write_all(&document))
}

/// Writes one JSON document on one line.
pub(crate) fn json_to(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, EscapedJson))?;
    out.write_all(b"\n")
}

/// Writes a warning to standard error. The command continues.
pub(crate) fn warning(message: impl fmt::Display) {
    // A closed standard error has no reader.
    let _ = writeln!(io::stderr(), "usm: warning: {}", EscapedText(message));
}

/// Writes the command's failure to standard error.
pub(crate) fn failure(error: &Error) {
    // The error's parts are already shown; its line breaks are a compiler's.
    let _ = writeln!(io::stderr(), "usm: {}", EscapedLines(error));
}

/// Whether standard output still has a reader.
pub(crate) fn has_reader(result: io::Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::unable(format!("standard output: {error}"))),
    }
}

fn ignore_closed_pipe(result: io::Result<()>) -> Result<()> {
    has_reader(result).map(|_| ())
}

/// The number of bytes with a readable unit and exactly: `95.25 MiB (99876928 bytes)`.
pub(crate) fn bytes(bytes: u64) -> String {
    let size = units::shown(bytes);
    if bytes < 1024 { size } else { format!("{size} ({bytes} bytes)") }
}
