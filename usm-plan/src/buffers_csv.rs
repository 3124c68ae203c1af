//! `buffers.csv`: id,lower,upper,size, optionally alignment and gaps; half-open lifetimes in any
//! unit, sizes in bytes.

use std::path::Path;

use usm_pool::{Buffer, Error as PlanError, Problem};

use crate::error::{Error, Result};
use crate::model::Hints;
use crate::number::number;
use crate::table::{self, Row};
use crate::units;

const COLUMNS: [&str; 6] = ["id", "lower", "upper", "size", "alignment", "gaps"];
const ID: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;
const SIZE: usize = 3;
const ALIGNMENT: usize = 4;
const GAPS: usize = 5;

/// The buffers of a file, with the line of each.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) buffers: Vec<Buffer>,
    /// Line of each buffer.
    pub(crate) lines: Vec<u64>,
    /// Gaps in lifetimes: index of the buffer, first instant, first instant after.
    pub(crate) gaps: Vec<(usize, u64, u64)>,
}

/// Required columns.
const REQUIRED: usize = 4;

impl Buffers {
    /// The rows of a file.
    pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Self> {
        let mut buffers = Self::default();
        table::read(path, COLUMNS, REQUIRED, hints, |row| buffers.add(row, hints))?;
        buffers.refuse_repeated_ids().map_err(|error| error.in_file(path))
    }

    /// The rows of a text.
    fn parse(text: &[u8], hints: &Hints<'_>) -> Result<Self> {
        let mut buffers = Self::default();
        table::parse(text, COLUMNS, REQUIRED, hints, |row| buffers.add(row, hints))?;
        buffers.refuse_repeated_ids()
    }

    /// Adds a row. Without an alignment it gets the hints' one, or 1.
    fn add(&mut self, row: Row<'_, 6>, hints: &Hints<'_>) -> Result<()> {
        let alignment = match row.text(ALIGNMENT) {
            "" => hints.alignment.unwrap_or(1),
            _ => row.number(ALIGNMENT)?,
        };
        let (lower, upper) = (row.number(LOWER)?, row.number(UPPER)?);
        if lower > upper {
            return Err(row.error(UPPER, format!("{upper} is below lower, {lower}")));
        }
        let alignment = units::alignment(alignment).map_err(|reason| row.error(ALIGNMENT, reason))?;
        let buffer = Buffer::new(row.number(ID)?, lower, upper, row.number(SIZE)?).aligned(alignment);
        for gap in row.text(GAPS).split_whitespace() {
            let (from, to) = gap_of(gap).map_err(|reason| row.error(GAPS, reason))?;
            self.gaps.push((self.buffers.len(), from, to));
        }
        self.buffers.push(buffer);
        self.lines.push(row.line());
        Ok(())
    }

    /// Refuses repeated ids.
    fn refuse_repeated_ids(self) -> Result<Self> {
        if self.buffers.is_sorted_by(|one, next| one.id < next.id) {
            return Ok(self);
        }
        let mut ids: Vec<(u64, u64)> =
            self.buffers.iter().zip(&self.lines).map(|(buffer, &line)| (buffer.id, line)).collect();
        ids.sort_unstable();
        let repeated_id = ids.windows(2).filter(|pair| pair[0].0 == pair[1].0).min_by_key(|pair| pair[1].1);
        match repeated_id {
            Some(&[(id, earlier), (_, line)]) => {
                let reason = format!("{id} is also the id of line {earlier}");
                Err(Error::bad(reason).at_line(line).in_field(COLUMNS[ID]))
            }
            _ => Ok(self),
        }
    }

    /// The problem of these buffers.
    fn problem(self) -> Result<Problem> {
        let Self { buffers, lines, gaps } = self;
        let ids: Vec<u64> = buffers.iter().map(|buffer| buffer.id).collect();
        let line_of = |target_id: u64| Some(lines[ids.iter().position(|&id| id == target_id)?]);
        Problem::with_gaps(buffers, &gaps).map_err(|error| {
            let place = match error {
                PlanError::BadGap { id, .. } => line_of(id).map(|line| (line, COLUMNS[GAPS])),
                PlanError::SizeOverflow { id, .. } => line_of(id).map(|line| (line, COLUMNS[SIZE])),
                _ => None,
            };
            let bad = Error::bad(error);
            match place {
                Some((line, column)) => bad.at_line(line).in_field(column),
                None => bad,
            }
        })
    }
}

/// `3-5`: not live from 3 up to, excluding, 5.
fn gap_of(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once('-').ok_or_else(|| format!("{text:?} is not FROM-TO"))?;
    Ok((number(from)?, number(to)?))
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Problem> {
    Buffers::read(path, hints)?.problem().map_err(|error| error.in_file(path))
}

/// Reads the text of such a file.
pub(crate) fn parse(text: &[u8], hints: &Hints<'_>) -> Result<Problem> {
    Buffers::parse(text, hints)?.problem()
}
