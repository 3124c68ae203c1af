//! Replays a bound proof: the text that shows that no plan of a problem is below a bound. Shares no
//! code with the search, and trusts no line of the text.
//!
//! A proof is a tree. The capacity is one byte below the bound. The best plans are those within the
//! capacity whose sum of offsets is smallest. A node stands for all best plans in which some
//! buffers have given offsets. The other buffers are *open*, and lie at or above a *floor*. A line
//! refutes a node, which shows that it stands for no plan:
//!
//! - `cut TIME`, `over ID...`: open buffers that conflict in pairs end above the capacity, even if
//!   they are stacked without a hole.
//! - `tall ID`: one open buffer ends above the capacity.
//! - `done`: every open buffer that may be the lowest one is refuted. In a best plan the lowest
//!   buffer lies on top of a buffer with which it conflicts, and no other open buffer fits below
//!   it. Few buffers meet that, and each is refuted by a node of its own (`place ID`), which comes
//!   before.
//!
//! `part BEGIN END` removes the open buffers outside of an interval that no open buffer crosses. A
//! plan of all buffers contains a plan of the remaining ones.
//!
//! Three sorts of lowest buffers need no node:
//!
//! - A buffer that was refuted at the floor at which another one was placed. The order in which the
//!   two are placed makes no difference.
//! - A buffer with the conflicts, size and alignment of a refuted one, which could take its place.
//! - A buffer at or above a refuted buffer that conflicts with no open one. In a plan with it, the
//!   refuted buffer could be the lowest one.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use crate::problem::Problem;

mod state;

use state::State;

/// The fault of a proof, and its line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProofError {
    /// The line.
    pub line: usize,
    /// What is wrong.
    pub fault: ProofFault,
}

/// The fault of a line of a proof. Buffers are named by id; sizes and offsets are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are named after what they hold; the variants explain them.
pub enum ProofFault {
    /// Another line was expected here.
    Line { expected: &'static str, found: String },
    /// A proof for another number of buffers.
    Buffers { actual: u64, expected: u64 },
    /// The problem has more conflicts than necessary, so a bound for them is no bound for the
    /// graph.
    NotExact,
    /// The problem is too large for a tree.
    TooLarge { buffers: usize },
    /// A buffer that the problem does not have, or that is not open.
    NotOpen { id: u64 },
    /// A buffer whose place would be below the floor.
    BelowTheFloor { id: u64, offset: u64, floor: u64 },
    /// A buffer that was placed here before, or twice in a list.
    Twice { id: u64 },
    /// Two buffers of a list that are not in conflict.
    NoConflict { first: u64, second: u64 },
    /// An open buffer that crosses the interval's border, or a problem without time.
    Crosses { id: u64 },
    /// The named buffers end at or below the capacity.
    Fits { end: u64, capacity: u64 },
    /// A buffer that may lie lowest and was not refuted.
    Missing { id: u64, offset: u64 },
    /// All buffers have a place: this is a plan within the capacity.
    Plan { capacity: u64 },
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

impl fmt::Display for ProofFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { expected, found } => write!(f, "{found:?} is not {expected}"),
            Self::Buffers { actual, expected } => {
                write!(f, "a proof for {actual} buffers, but the problem has {expected}")
            }
            Self::NotExact => f.write_str("the problem has more conflicts than must be"),
            Self::TooLarge { buffers } => write!(f, "{buffers} buffers are too many for a tree"),
            Self::NotOpen { id } => write!(f, "buffer {id} is not open here"),
            Self::BelowTheFloor { id, offset, floor } => {
                write!(f, "buffer {id} would lie at {offset}, below the floor {floor}")
            }
            Self::Twice { id } => write!(f, "buffer {id} again"),
            Self::NoConflict { first, second } => {
                write!(f, "buffers {first} and {second} are not in conflict")
            }
            Self::Crosses { id } => write!(f, "buffer {id} crosses the border, or there is no time"),
            Self::Fits { end, capacity } => write!(f, "it ends at {end}, which {capacity} bytes hold"),
            Self::Missing { id, offset } => write!(f, "buffer {id} may lie lowest, at {offset}"),
            Self::Plan { capacity } => write!(f, "every buffer has a place within {capacity} bytes"),
        }
    }
}

impl core::error::Error for ProofError {}

/// One line of the tree.
enum Line {
    Part(u64, u64),
    Cut(u64),
    Over(Vec<u64>),
    Tall(u64),
    Place(u64),
    Done,
}

/// Replays a bound proof. Returns the bound in bytes, which holds for every plan of the problem.
///
/// # Errors
/// The first line that proves nothing.
pub fn bound_proof(problem: &Problem, text: &str) -> Result<u64, ProofError> {
    let mut lines = text.split('\n').enumerate().map(|(at, line)| (at + 1, line));
    let end = text.split('\n').count() + 1;
    let mut next = || lines.next().unwrap_or((end, ""));
    let at = |line: usize| move |fault| ProofError { line, fault };
    let (line, head) = next();
    if head != "usm proof 1" {
        return Err(at(line)(unknown("\"usm proof 1\"", head)));
    }
    let (line, head) = next();
    let actual = header(head, "buffers").map_err(at(line))?;
    let expected = problem.buffers().len() as u64;
    if actual != expected {
        return Err(at(line)(ProofFault::Buffers { actual, expected }));
    }
    if !problem.is_exact() {
        return Err(at(line)(ProofFault::NotExact));
    }
    let (line, head) = next();
    let bound = header(head, "bound").map_err(at(line))?;
    if let Some(capacity) = bound.checked_sub(1) {
        let mut state = State::new(problem, capacity);
        while !state.is_refuted() {
            let (line, text) = next();
            parse(text).and_then(|step| state.take(step)).map_err(at(line))?;
        }
    }
    // The last line ends with a line break, and nothing follows.
    match (next(), next()) {
        ((_, ""), (_, "")) if text.ends_with('\n') && !text.ends_with("\n\n") => Ok(bound),
        ((line, rest), _) => Err(at(line)(unknown("the end of the proof", rest))),
    }
}

fn unknown(expected: &'static str, found: &str) -> ProofFault {
    ProofFault::Line { expected, found: found.chars().take(40).collect() }
}

fn header(line: &str, word: &'static str) -> Result<u64, ProofFault> {
    let number = line.strip_prefix(word).and_then(|rest| number(rest.strip_prefix(' ')?));
    number.ok_or_else(|| unknown(if word == "bound" { "\"bound BYTES\"" } else { "\"buffers COUNT\"" }, line))
}

/// A number in the one form that the writer uses, so no two texts are the same proof.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

fn parse(line: &str) -> Result<Line, ProofFault> {
    let mut words = line.split(' ');
    let word = words.next();
    let numbers: Option<Vec<u64>> = words.map(number).collect();
    match (word, numbers.as_deref()) {
        (Some("part"), Some(&[begin, end])) => Ok(Line::Part(begin, end)),
        (Some("cut"), Some(&[time])) => Ok(Line::Cut(time)),
        (Some("over"), Some(ids @ [_, ..])) => Ok(Line::Over(ids.to_vec())),
        (Some("tall"), Some(&[id])) => Ok(Line::Tall(id)),
        (Some("place"), Some(&[id])) => Ok(Line::Place(id)),
        (Some("done"), Some([])) => Ok(Line::Done),
        _ => Err(unknown("a line of a proof: part, cut, over, tall, place or done", line)),
    }
}
