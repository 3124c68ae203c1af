//! `buffers.csv`: id,lower,upper,size and perhaps alignment and gaps; half-open lifetimes in any
//! unit, sizes in bytes.

use std::collections::BTreeMap;
use std::path::Path;

use usm_pool::{Buffer, Error as PlanError, Problem};

use crate::error::{Error, Result, read_file};
use crate::input::Hints;
use crate::table::{Table, number};

const COLUMNS: [&str; 6] = ["id", "lower", "upper", "size", "alignment", "gaps"];
const ID: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;
const SIZE: usize = 3;
const ALIGNMENT: usize = 4;
const GAPS: usize = 5;

/// The buffers of a file and the line of each.
pub(crate) struct Buffers {
    pub(crate) buffers: Vec<Buffer>,
    /// Line of each buffer.
    pub(crate) lines: Vec<u64>,
    /// Gaps in lives: index of the buffer, first instant, first instant after.
    pub(crate) gaps: Vec<(usize, u64, u64)>,
}

/// Reads the rows. A row without alignment gets that of the hints, or 1.
pub(crate) fn rows(text: &[u8], hints: &Hints<'_>) -> Result<Buffers> {
    let table = Table::parse(text, COLUMNS, 4, hints)?;
    let mut found = Buffers { buffers: Vec::new(), lines: Vec::new(), gaps: Vec::new() };
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
        for gap in row.text(GAPS).split_whitespace() {
            let (from, to) = gap_of(gap).map_err(|reason| row.error(GAPS, reason))?;
            found.gaps.push((found.buffers.len(), from, to));
        }
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

/// `3-5`: not needed from 3 up to 5.
fn gap_of(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once('-').ok_or_else(|| format!("{text:?} is not FROM-TO"))?;
    Ok((number(from)?, number(to)?))
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Problem> {
    parse(&read_file(path)?, hints).map_err(|error| error.in_file(path))
}

/// Reads the text of such a file.
pub(crate) fn parse(text: &[u8], hints: &Hints<'_>) -> Result<Problem> {
    let Buffers { buffers, lines, gaps } = rows(text, hints)?;
    let line_of: BTreeMap<u64, u64> =
        buffers.iter().zip(&lines).map(|(buffer, &line)| (buffer.id, line)).collect();
    Problem::with_gaps(buffers, &gaps).map_err(|error| {
        let place = match error {
            PlanError::BadGap { id, .. } => line_of.get(&id).map(|line| (*line, COLUMNS[GAPS])),
            PlanError::SizeOverflow { id, .. } => line_of.get(&id).map(|line| (*line, COLUMNS[SIZE])),
            _ => None,
        };
        let bad = Error::bad(error);
        match place {
            Some((line, column)) => bad.at_line(line).in_field(column),
            None => bad,
        }
    })
}
