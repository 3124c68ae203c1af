//! Writes bound proofs.

use alloc::string::String;
use core::fmt::Write as _;

use super::search::{self, Line};
use super::{Heaviest, Instance, Options};
use crate::problem::Problem;
use crate::{Buffer, Error};

/// Writes the proof that no plan of a problem has a peak below `bound` bytes, for
/// [`verify::bound_proof`]. If the heaviest buffers that need bytes at the same time show it, they
/// are the proof. Otherwise a search within the nodes of the options looks for one. `None` if
/// neither finds a proof.
///
/// # Errors
/// [`Error::OutOfMemory`] when the tables do not fit.
///
/// [`verify::bound_proof`]: crate::verify::bound_proof
pub fn prove_bound(problem: &Problem, bound: u64, options: &Options<'_>) -> Result<Option<String>, Error> {
    let buffers = problem.buffers();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "usm proof 1\nbuffers {}\nbound {bound}\n", buffers.len());
    let Some(capacity) = bound.checked_sub(1) else { return Ok(Some(text)) };
    let heaviest = Heaviest::of(problem, &|| options.must_stop())?;
    if heaviest.bytes >= bound {
        match heaviest.time {
            Some(time) if problem.conflicts().is_none() => write_line(&mut text, buffers, &Line::Cut(time)),
            _ => {
                let set = heaviest.buffers.iter().map(|&i| i as u32);
                write_line(&mut text, buffers, &Line::Over(set.collect()));
            }
        }
        return Ok(Some(text));
    }
    if !problem.is_exact() {
        return Ok(None);
    }
    let Some(lines) = search::refute(Instance::of(problem), options, capacity) else { return Ok(None) };
    lines.iter().for_each(|line| write_line(&mut text, buffers, line));
    Ok(Some(text))
}

fn write_line(text: &mut String, buffers: &[Buffer], line: &Line) {
    let id = |&i: &u32| buffers[i as usize].id;
    let _ = match line {
        Line::Part(begin, end) => writeln!(text, "part {begin} {end}"),
        Line::Place(i) => writeln!(text, "place {}", id(i)),
        Line::Cut(time) => writeln!(text, "cut {time}"),
        Line::Tall(i) => writeln!(text, "tall {}", id(i)),
        Line::Done => writeln!(text, "done"),
        Line::Over(set) => {
            text.push_str("over");
            for i in set {
                let _ = write!(text, " {}", id(i));
            }
            text.push('\n');
            Ok(())
        }
    };
}
