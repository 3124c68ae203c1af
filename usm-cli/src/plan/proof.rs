//! `usm plan --proof` and `--check`: proofs of lower bounds.

use std::path::Path;

use usm_plan::proof::ProvenBound;
use usm_plan::report::ProofReport;
use usm_plan::{Job, Outcome};

use super::session::Session;
use super::text;
use crate::error::{Error, Exit, Result, read_file, write_file};
use crate::output;

/// Writes the proof of a plan's lower bound.
pub(super) fn write(outcome: &Outcome, text: &str, bound_proof: ProvenBound, path: &Path) -> Result<()> {
    if bound_proof.bound < outcome.plan.lower_bound {
        output::warning(format_args!(
            "the proof is of {} bytes; none of the bound was found again within the limit of the search",
            bound_proof.bound
        ));
    }
    write_file(path, text)
}

/// Replays a proof for an input.
pub(super) fn check(job: Job, session: &Session<'_>, path: &Path, json: bool) -> Result<Exit> {
    let text = String::from_utf8(read_file(path)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Error::bad("not UTF-8 text").at_line(line as u64).in_file(path)
    })?;
    let bound_proof = job.check_proof(&text, path, session)?;
    session.end();
    if json {
        output::json(&ProofReport::from(bound_proof))?;
    } else {
        output::line(format_args!("  {:<12} {}", "proof", text::replayed(bound_proof)))?;
    }
    Ok(Exit::Done)
}
