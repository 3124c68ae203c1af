//! CSV with named columns in any order. Every error has file, line and column.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::error::{Error, Result};
use crate::model::Hints;
use crate::number::number;

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a, const N: usize> {
    record: &'a StringRecord,
    names: &'a [&'static str; N],
    columns: &'a [Option<usize>; N],
}

/// Reads a file whose first line names the columns, and passes each row to `each`. The first
/// `required_count` of `names` must exist. Holds one row at a time.
pub(crate) fn read<const N: usize>(
    path: &Path,
    names: [&'static str; N],
    required_count: usize,
    hints: &Hints<'_>,
    each: impl FnMut(Row<'_, N>) -> Result<()>,
) -> Result<()> {
    let unread = |error| Error::bad(format!("cannot be read: {error}"));
    File::open(path)
        .map_err(unread)
        .and_then(|file| parse(file, names, required_count, hints, each))
        .map_err(|error| error.in_file(path))
}

/// [`read`] for text from another source.
pub(crate) fn parse<const N: usize>(
    text: impl Read,
    names: [&'static str; N],
    required_count: usize,
    hints: &Hints<'_>,
    mut each: impl FnMut(Row<'_, N>) -> Result<()>,
) -> Result<()> {
    let mut reader = ReaderBuilder::new().buffer_capacity(BUFFER).trim(Trim::Headers).from_reader(text);
    let header = reader.headers().map_err(|error| malformed(&error))?.clone();
    let columns = columns(&header, names, required_count, hints)?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| malformed(&error))? {
        each(Row { record: &record, names: &names, columns: &columns })?;
    }
    Ok(())
}

/// Number of bytes read at once.
const BUFFER: usize = 1 << 16;

/// The position of each named column.
fn columns<const N: usize>(
    header: &StringRecord,
    names: [&'static str; N],
    required_count: usize,
    hints: &Hints<'_>,
) -> Result<[Option<usize>; N]> {
    let mut columns = [None; N];
    let mut unused_columns = Vec::new();
    for (index, column_name) in header.iter().enumerate() {
        let Some(which) = names.iter().position(|name| *name == column_name) else {
            unused_columns.push(column_name);
            continue;
        };
        if columns[which].replace(index).is_some() {
            return Err(Error::bad("the column is there twice").at_line(1).in_field(column_name));
        }
    }
    for (name, column) in names.iter().zip(&columns).take(required_count) {
        if column.is_none() {
            let column_names: Vec<_> = header.iter().collect();
            let reason = match column_names.is_empty() {
                true => "the column is missing; the table is empty".to_owned(),
                false => format!("the column is missing; the header has {}", column_names.join(",")),
            };
            return Err(Error::bad(reason).at_line(1).in_field(name));
        }
    }
    if !unused_columns.is_empty() {
        hints.report_remark(Some(format!("columns that are not used: {}", unused_columns.join(","))));
    }
    Ok(columns)
}

impl<'a, const N: usize> Row<'a, N> {
    /// Line in the file, counted from 1.
    pub(crate) fn line(self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// An error in one column of this row.
    pub(crate) fn error(self, column: usize, reason: impl core::fmt::Display) -> Error {
        Error::bad(reason).at_line(self.line()).in_field(self.names[column])
    }

    /// The text of a column; empty if the file has no such column.
    pub(crate) fn text(self, column: usize) -> &'a str {
        self.columns[column].and_then(|index| self.record.get(index)).unwrap_or("").trim()
    }

    /// The whole number in a column.
    pub(crate) fn number(self, column: usize) -> Result<u64> {
        number(self.text(column)).map_err(|reason| self.error(column, reason))
    }

    /// The whole numbers in a column, separated by semicolons.
    pub(crate) fn numbers(self, column: usize) -> Result<Vec<u64>> {
        let parts = self.text(column).split(';').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| number(part).map_err(|reason| self.error(column, reason))).collect()
    }
}

fn malformed(error: &csv::Error) -> Error {
    let line = error.position().map(csv::Position::line);
    let reason = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, but the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8 text".to_owned(),
        csv::ErrorKind::Io(error) => format!("cannot be read: {error}"),
        _ => error.to_string(),
    };
    let error = Error::bad(reason);
    match line {
        Some(line) => error.at_line(line),
        None => error,
    }
}
