//! Commands of a stream, and their execution on the host.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::ptr;

use crate::code::{Answer, Code, SUCCESS};
use crate::kernel::Launch;
use crate::ptx::Range;
use crate::state::State;

/// One command of a stream.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) number: u64,
    /// Commands that must complete before this one starts.
    pub(crate) after: Vec<u64>,
    pub(crate) action: Action,
}

/// The work of a command. The caller keeps the memory at the addresses alive until the command
/// completes.
#[derive(Debug)]
pub(crate) enum Action {
    /// Delays later commands until that command completes.
    Wait(u64),
    /// Completes when the stream reaches it: an event stands for it.
    Record,
    /// A copy of rows; a plain copy has one row.
    Copy {
        to: Rows,
        from: Rows,
        width: usize,
        height: usize,
    },
    /// Repeats a value of 1, 2 or 4 bytes in each row.
    Fill {
        to: Rows,
        value: Vec<u8>,
        width: usize,
        height: usize,
    },
    Launch(Arc<Launch>),
    /// A migration of pages. It has no visible effect.
    Hint,
    /// An allocation becomes usable.
    Born,
    /// An allocation ends, unless its address was allocated again meanwhile.
    Free {
        address: usize,
        id: u64,
    },
}

/// Rows of bytes: the start of the first and the distance between two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) start: usize,
    pub(crate) pitch: usize,
}

impl Rows {
    pub(crate) fn one(start: usize) -> Self {
        Self { start, pitch: 0 }
    }

    /// Bytes from the first row's start to the last row's end; `None` on overflow.
    pub(crate) fn span(&self, width: usize, height: usize) -> Option<usize> {
        if width == 0 || height == 0 {
            return Some(0);
        }
        self.pitch.checked_mul(height - 1)?.checked_add(width)
    }

    fn row(&self, row: usize) -> *mut u8 {
        (self.start + self.pitch * row) as *mut u8
    }
}

/// An action with the driver's own addresses.
#[derive(Debug)]
pub(crate) enum Work {
    Nothing,
    Copy { to: Rows, from: Rows, width: usize, height: usize },
    Fill { to: Rows, value: Vec<u8>, width: usize, height: usize },
    Launch { launch: Arc<Launch>, ranges: Vec<Range>, reversed: bool, turns: Option<u64> },
}

impl Command {
    /// Whether the command does work; other commands only order.
    pub(crate) fn is_operation(&self) -> bool {
        !matches!(self.action, Action::Wait(_) | Action::Record)
    }

    /// Whether the command can run now.
    pub(crate) fn is_ready(&self, unfinished: &BTreeSet<u64>) -> bool {
        let done = |number: &u64| !unfinished.contains(number);
        let waits = matches!(&self.action, Action::Wait(number) if !done(number));
        !waits && self.after.iter().all(done)
    }

    /// Whether the command reads or writes a part of a range.
    pub(crate) fn touches(&self, start: usize, bytes: usize) -> bool {
        let meets = |rows: &Rows, width: usize, height: usize| {
            let span = rows.span(width, height).unwrap_or(usize::MAX);
            rows.start < start.saturating_add(bytes) && start < rows.start.saturating_add(span)
        };
        match &self.action {
            Action::Copy { to, from, width, height } => {
                meets(to, *width, *height) || meets(from, *width, *height)
            }
            Action::Fill { to, width, height, .. } => meets(to, *width, *height),
            Action::Launch(launch) => launch.pointers().any(|at| at.wrapping_sub(start) < bytes),
            Action::Wait(_) | Action::Record | Action::Hint | Action::Born | Action::Free { .. } => false,
        }
    }

    /// Whether the command launches a function of that module.
    pub(crate) fn runs(&self, module: usize) -> bool {
        matches!(&self.action, Action::Launch(launch) if launch.function.module == module)
    }
}

impl State {
    /// The work of a command, with its memory checked.
    pub(crate) fn work(&mut self, context: usize, command: &Command) -> Answer<Work> {
        match &command.action {
            Action::Launch(launch) => {
                let ranges = self.reached(context, command.number, launch);
                let (reversed, turns) = (self.settings.late, self.settings.turns);
                Ok(Work::Launch { launch: Arc::clone(launch), ranges, reversed, turns })
            }
            Action::Copy { to, from, width, height } => {
                let number = command.number;
                let to = self.rows(number, to, *width, *height)?;
                let from = self.rows(number, from, *width, *height)?;
                Ok(Work::Copy { to, from, width: *width, height: *height })
            }
            Action::Fill { to, value, width, height } => {
                let to = self.rows(command.number, to, *width, *height)?;
                Ok(Work::Fill { to, value: value.clone(), width: *width, height: *height })
            }
            Action::Free { address, id } => {
                let live = self.allocations.get(address);
                if live.is_some_and(|live| live.id == *id && live.dying.is_some()) {
                    self.release(*address);
                }
                Ok(Work::Nothing)
            }
            Action::Wait(_) | Action::Record | Action::Hint | Action::Born => Ok(Work::Nothing),
        }
    }

    /// The driver's own addresses of rows that operation `number` is about to access.
    fn rows(&mut self, number: u64, rows: &Rows, width: usize, height: usize) -> Answer<Rows> {
        let span = rows.span(width, height).unwrap_or(usize::MAX);
        let start = self.resolve(rows.start, span).inspect_err(|_| {
            eprintln!("usm-cuda-driver: {span} bytes at {:#x} are not there any more", rows.start);
        })?;
        self.is_born(number, rows.start);
        Ok(Rows { start, pitch: rows.pitch })
    }
}

impl Work {
    /// Runs the work without the driver's lock.
    pub(crate) fn run(self) -> Code {
        match self {
            Self::Nothing => {}
            Self::Launch { launch, ranges, reversed, turns } => {
                return launch.run(&ranges, reversed, turns);
            }
            Self::Copy { to, from, width, height } => {
                for row in 0..height {
                    // SAFETY: the caller of the copy keeps both ranges until the command completes;
                    // they may overlap.
                    unsafe { ptr::copy(from.row(row), to.row(row), width) };
                }
            }
            Self::Fill { to, value, width, height } => {
                for row in 0..height {
                    for place in (0..width).step_by(value.len()) {
                        // SAFETY: the caller of the fill keeps the range until the command
                        // completes.
                        unsafe {
                            ptr::copy_nonoverlapping(value.as_ptr(), to.row(row).add(place), value.len())
                        };
                    }
                }
            }
        }
        SUCCESS
    }
}
