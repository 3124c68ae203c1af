//! What can go wrong for the user: an exit code, a place, a reason.

use core::fmt;
use std::path::{Path, PathBuf};

use crate::shown::{Shown, ShownLines};

/// What can fail for the user.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: understood, but it could not be done.
    Unable,
    /// 2: bad input or usage.
    Bad,
    /// 130: what was found when somebody pressed Ctrl-C.
    Interrupted,
}

impl Exit {
    /// What the process ends with.
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

/// A failure. Prints as `file:line: field: reason`, each part as far as it is known.
#[derive(Debug)]
pub struct Error {
    exit: Exit,
    file: Option<PathBuf>,
    line: Option<u64>,
    field: Option<String>,
    reason: String,
    /// Lines below the reason: what a compiler said.
    log: String,
}

impl Error {
    /// Bad input or usage.
    pub fn bad(reason: impl fmt::Display) -> Self {
        Self::new(Exit::Bad, reason)
    }

    /// Understood, but it could not be done.
    pub fn unable(reason: impl fmt::Display) -> Self {
        Self::new(Exit::Unable, reason)
    }

    fn new(exit: Exit, reason: impl fmt::Display) -> Self {
        Self { exit, file: None, line: None, field: None, reason: reason.to_string(), log: String::new() }
    }

    /// What stands below the first line of the reason stays below it.
    pub fn with_log(mut self) -> Self {
        if let Some((reason, log)) = self.reason.split_once('\n') {
            (self.log, self.reason) = (log.to_owned(), reason.to_owned());
        }
        self
    }

    /// Says which file, unless it is said.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// Says which line, counted from 1, unless it is said.
    #[must_use]
    pub fn at_line(mut self, line: u64) -> Self {
        self.line.get_or_insert(line);
        self
    }

    /// Says which field, operator or option, unless it is said.
    #[must_use]
    pub fn in_field(mut self, field: impl fmt::Display) -> Self {
        self.field.get_or_insert_with(|| field.to_string());
        self
    }

    /// How a command ends with it: [`Exit::Bad`] or [`Exit::Unable`].
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", Shown(file.display()))?,
            (Some(file), None) => write!(f, "{}: ", Shown(file.display()))?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if let Some(field) = &self.field {
            write!(f, "{}: ", Shown(field))?;
        }
        write!(f, "{}", Shown(&self.reason))?;
        if self.log.is_empty() { Ok(()) } else { write!(f, "\n{}", ShownLines(&self.log)) }
    }
}

impl core::error::Error for Error {}

/// Reads a whole file.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::bad(format!("cannot be read: {error}")).in_file(path))
}

/// Writes a whole file that the user asked for.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .map_err(|error| Error::unable(format!("cannot be written: {error}")).in_file(path))
}
