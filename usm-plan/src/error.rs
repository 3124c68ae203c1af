//! Failures for the user: an exit code, a place and a reason.

use core::fmt;
use std::path::{Path, PathBuf};

use crate::escape::{EscapedLines, EscapedText};
use crate::field::Field;

/// The result of an operation that can fail for the user.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Done,
    /// 1: the input is valid, but the request cannot be fulfilled.
    Unable,
    /// 2: bad input or usage.
    Bad,
    /// 130: the result at the time of Ctrl-C.
    Interrupted,
}

impl Exit {
    /// The exit code of the process.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unable => 1,
            Self::Bad => 2,
            Self::Interrupted => 130,
        }
    }
}

/// A failure. Prints as `file:line: field: reason`, without unknown parts.
#[derive(Debug)]
pub struct Error {
    exit: Exit,
    file: Option<PathBuf>,
    line: Option<u64>,
    /// From 1, in bytes; 0 if it is not known. Of 32 bits, so that an error stays small.
    column: u32,
    /// The place, or the name of a dimension or input in `option`.
    field: Option<String>,
    /// The field of the request, if it is the place.
    option: Option<Field>,
    reason: String,
    /// Lines below the reason: a compiler's output.
    log: String,
}

impl Error {
    /// Bad input or usage.
    pub fn bad(reason: impl fmt::Display) -> Self {
        Self::new(Exit::Bad, reason)
    }

    /// The input is valid, but the request cannot be fulfilled.
    pub fn unable(reason: impl fmt::Display) -> Self {
        Self::new(Exit::Unable, reason)
    }

    fn new(exit: Exit, reason: impl fmt::Display) -> Self {
        let (reason, log) = (reason.to_string(), String::new());
        Self { exit, file: None, line: None, column: 0, field: None, option: None, reason, log }
    }

    /// Further lines of the reason stay below its first one.
    pub fn with_log(mut self) -> Self {
        if let Some((reason, log)) = self.reason.split_once('\n') {
            (self.log, self.reason) = (log.to_owned(), reason.to_owned());
        }
        self
    }

    /// Adds the file, unless it is set.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// Adds the line, counted from 1, unless it is set.
    #[must_use]
    pub fn at_line(mut self, line: u64) -> Self {
        self.line.get_or_insert(line);
        self
    }

    /// Adds the column in the line, in bytes from 1.
    #[must_use]
    pub(crate) fn at_column(mut self, column: usize) -> Self {
        self.column = u32::try_from(column).unwrap_or(u32::MAX);
        self
    }

    /// Leaves line and column out: the text is one that its user has never seen.
    #[must_use]
    pub(crate) fn without_position(mut self) -> Self {
        (self.line, self.column) = (None, 0);
        self
    }

    /// Adds the field, operator or option, unless it is set.
    #[must_use]
    pub fn in_field(mut self, field: impl fmt::Display) -> Self {
        if self.option.is_none() {
            self.field.get_or_insert_with(|| field.to_string());
        }
        self
    }

    /// Adds the field of the request, unless a place is set. It is spelled as the command's option
    /// until a face [spells](Self::spelled) it.
    #[must_use]
    pub fn in_option(self, option: Field) -> Self {
        self.in_option_of(option, "")
    }

    /// Adds the field of the request with the name of a dimension or input in it.
    #[must_use]
    pub fn in_option_of(mut self, option: Field, name: impl fmt::Display) -> Self {
        if self.field.is_none() && self.option.is_none() {
            let name = name.to_string();
            (self.option, self.field) = (Some(option), (!name.is_empty()).then_some(name));
        }
        self
    }

    /// Spells the field of the request as a face calls it: programs that call a library know no
    /// options of the command.
    #[must_use]
    pub fn spelled<T: Into<String>>(mut self, spell: impl Fn(Field) -> T) -> Self {
        if let Some(option) = self.option.take() {
            let name = self.field.map_or_else(String::new, |name| format!(" {name}"));
            self.field = Some(spell(option).into() + &name);
        }
        self
    }

    /// The end of a command with this failure: [`Exit::Bad`] or [`Exit::Unable`].
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", EscapedText(file.display()))?,
            (Some(file), None) => write!(f, "{}: ", EscapedText(file.display()))?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        match (self.option, &self.field) {
            (Some(option), Some(name)) => write!(f, "{option} {}: ", EscapedText(name))?,
            (Some(option), None) => write!(f, "{option}: ")?,
            (None, Some(field)) => write!(f, "{}: ", EscapedText(field))?,
            (None, None) => {}
        }
        write!(f, "{}", EscapedText(&self.reason))?;
        if self.column > 0 {
            write!(f, " (column {})", self.column)?;
        }
        if self.log.is_empty() { Ok(()) } else { write!(f, "\n{}", EscapedLines(&self.log)) }
    }
}

impl core::error::Error for Error {}

/// Reads a whole file.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::bad(format!("cannot be read: {error}")).in_file(path))
}

/// Writes a whole file for the user.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, content)
        .map_err(|error| Error::unable(format!("cannot be written: {error}")).in_file(path))
}
