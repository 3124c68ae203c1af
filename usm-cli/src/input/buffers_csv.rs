//! `buffers.csv`: id,lower,upper,size and perhaps alignment; half-open lifetimes in any unit, sizes in bytes.

use std::collections::BTreeMap;
use std::path::Path;

use usm_pool::{Buffer, Error as PlanError, Problem};

use super::Hints;
use super::table::Table;
use crate::error::{Error, Result};

const COLUMNS: [&str; 5] = ["id", "lower", "upper", "size", "alignment"];
const ID: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;
const SIZE: usize = 3;
const ALIGNMENT: usize = 4;

/// The buffers of a file and the line of each.
pub(crate) struct Buffers {
    pub(crate) buffers: Vec<Buffer>,
    /// Line of each buffer.
    pub(crate) lines: Vec<u64>,
}

/// Reads the rows. A row without alignment gets that of the hints, or 1.
pub(crate) fn rows(path: &Path, hints: &Hints) -> Result<Buffers> {
    let table = Table::read(path, COLUMNS, 4)?;
    let mut found = Buffers { buffers: Vec::new(), lines: Vec::new() };
    for row in table.rows() {
        let alignment = match row.text(ALIGNMENT) {
            "" => hints.alignment.unwrap_or(1),
            _ => row.number(ALIGNMENT)?,
        };
        let (lower, upper) = (row.number(LOWER)?, row.number(UPPER)?);
        if lower > upper {
            return Err(row.error(UPPER, format!("{upper} is below lower, {lower}")));
        }
        if !alignment.is_power_of_two() {
            return Err(row.error(ALIGNMENT, format!("{alignment} is not a power of two")));
        }
        let buffer = Buffer::new(row.number(ID)?, lower, upper, row.number(SIZE)?).aligned(alignment);
        found.buffers.push(buffer);
        found.lines.push(row.line());
    }
    let mut first = BTreeMap::new();
    for (buffer, &line) in found.buffers.iter().zip(&found.lines) {
        if let Some(earlier) = first.insert(buffer.id, line) {
            let reason = format!("{} is also the id of line {earlier}", buffer.id);
            return Err(Error::bad(reason).at_line(line).in_field(COLUMNS[ID]));
        }
    }
    Ok(found)
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints) -> Result<Problem> {
    let Buffers { buffers, lines } = rows(path, hints).map_err(|error| error.in_file(path))?;
    let line_of: BTreeMap<u64, u64> =
        buffers.iter().zip(&lines).map(|(buffer, &line)| (buffer.id, line)).collect();
    Problem::from_buffers(buffers).map_err(|error| {
        let place = match error {
            PlanError::SizeOverflow { id, .. } => line_of.get(&id).map(|line| (*line, COLUMNS[SIZE])),
            _ => None,
        };
        let bad = Error::bad(error).in_file(path);
        match place {
            Some((line, column)) => bad.at_line(line).in_field(column),
            None => bad,
        }
    })
}
