//! Bound proofs of an input's plans: written after a search, and replayed without its code.

use std::path::Path;

use usm_pool::alias::InPlace;
use usm_pool::planner::prove_bound;
use usm_pool::{Graph, Options, Problem, Queue, Strategy, plan, verify};

use crate::error::{Error, Result};
use crate::model::{Input, Model};
use crate::outcome::{self, Outcome};

/// A bound whose proof was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProvenBound {
    /// No plan has a peak below this many bytes.
    pub bound: u64,
    /// The lines of the proof.
    pub lines: usize,
    /// Number of buffers of the problem.
    pub buffers: usize,
}

/// Writes a proof of the plan's lower bound, within the nodes of the options, and returns it with
/// the bound that it proves. If no search finds that proof again, the text proves the bound that
/// needs no search.
///
/// # Errors
/// Tables that do not fit.
pub fn of(outcome: &Outcome, options: &Options<'_>) -> Result<(String, ProvenBound)> {
    let Outcome { graph, problem, plan, .. } = outcome;
    let problem = match graph {
        Some(graph) => &of_graph(graph, plan.strategy == Strategy::Range, plan.queue)?,
        None => problem,
    };
    let text = match prove_bound(problem, plan.lower_bound, options).map_err(Error::unable)? {
        Some(text) => text,
        None => prove_without_search(problem)?,
    };
    let bound_proof = replay(problem, &text).map_err(|error| {
        Error::unable(format!("the planner made a wrong proof, please report it: {error}"))
    })?;
    Ok((text, bound_proof))
}

/// The proof of the bound without a search.
fn prove_without_search(problem: &Problem) -> Result<String> {
    let mut options = Options::default();
    options.strategy = Strategy::GreedyBySize;
    let bound = plan(problem, &options).map_err(Error::unable)?.lower_bound;
    let text = prove_bound(problem, bound, &options).map_err(Error::unable)?;
    text.ok_or_else(|| Error::unable("the conflicts are more than must be, so they prove no bound"))
}

/// Replays a proof for an input, with `reorders` in the order that a plan of it has. The
/// files are named in errors.
///
/// # Errors
/// The first line of the proof that proves nothing.
pub fn check(
    input: Input,
    queue: Queue,
    reorders: bool,
    file: &Path,
    text: &str,
    proof: &Path,
) -> Result<ProvenBound> {
    let problem = match input {
        Input::Buffers(problem) => problem,
        Input::Graph(Model { graph, planned: Some(_), .. }) => of_graph(&graph, true, queue)?,
        Input::Graph(model) => {
            of_graph(&outcome::ordered(model, reorders, &Options::default(), file)?.graph, false, queue)?
        }
    };
    replay(&problem, text).map_err(|error| error.in_file(proof))
}

/// The problem whose bounds count. A file with plans for every value names the permits that it
/// uses; other plans may use any.
fn of_graph(graph: &Graph, has_dimensions: bool, queue: Queue) -> Result<Problem> {
    let problem = match has_dimensions {
        true => Problem::from_graph(graph, queue, InPlace::Always),
        false => Problem::relaxed(graph, queue),
    };
    problem.map_err(Error::unable)
}

fn replay(problem: &Problem, text: &str) -> Result<ProvenBound> {
    let bound = verify::bound_proof(problem, text)
        .map_err(|error| Error::bad(error.fault).at_line(error.line as u64))?;
    Ok(ProvenBound { bound, lines: text.lines().count(), buffers: problem.buffers().len() })
}
