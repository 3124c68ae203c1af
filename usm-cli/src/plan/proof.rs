//! `usm plan --proof` and `--check`: proofs of lower bounds.

use std::path::Path;

use usm_plan::Outcome;
use usm_plan::proof;
use usm_plan::report::ProofReport;
use usm_pool::Options;

use super::arguments::{Arguments, StrategyArgument, first_given};
use super::text;
use crate::error::{Error, Exit, Result, read_file, write_file};
use crate::input::{self, Input};
use crate::output;
use crate::progress::Progress;

/// Writes the proof of a plan's lower bound, replayed.
pub(super) fn write(outcome: &mut Outcome, options: &Options<'_>, path: &Path) -> Result<()> {
    let (text, proven) = proof::of(outcome, options)?;
    if proven.bound < outcome.plan.lower_bound {
        output::warning(format_args!(
            "the proof is of {} bytes; none of the bound was found again within the limit of the search",
            proven.bound
        ));
    }
    outcome.proven = Some(proven);
    write_file(path, &text)
}

/// Replays a proof for an input.
pub(super) fn check(input: Input, arguments: &Arguments, path: &Path, json: bool) -> Result<Exit> {
    let text = String::from_utf8(read_file(path)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Error::bad("not UTF-8 text").at_line(line as u64).in_file(path)
    })?;
    let file = input::called(&arguments.input);
    let proven = {
        let _sign_of_life = Progress::start("replaying the proof");
        let queue = arguments.queue.into();
        proof::check(input, queue, arguments.reorder, file, &text, path)?
    };
    if json {
        output::json(&ProofReport::from(proven))?;
    } else {
        output::line(format_args!("  {:<12} {}", "proof", text::replayed(proven)))?;
    }
    Ok(Exit::Done)
}

/// Refuses options that change what the bound is about, or that a check does not use.
pub(super) fn refuse(arguments: &Arguments) -> Result<()> {
    if arguments.proof.is_none() && arguments.check.is_none() {
        return Ok(());
    }
    let changing = [
        ("--device-memory", arguments.device_memory.is_some()),
        ("--max-alloc", arguments.max_alloc.is_some()),
        ("--ordering-edges", arguments.ordering_edges.is_some()),
    ];
    if let Some(option) = first_given(changing) {
        let reason = "a proof is about one memory and the dependencies of the data alone";
        return Err(Error::bad(reason).in_field(option));
    }
    let unused = [
        ("--strategy", !matches!(arguments.strategy, StrategyArgument::Auto)),
        ("--capacity", arguments.capacity.is_some()),
        ("--time-limit", arguments.time_limit.is_some()),
        ("--run", arguments.run),
    ];
    match first_given(unused.into_iter().chain(arguments.of_one_plan())) {
        Some(option) if arguments.check.is_some() => {
            Err(Error::bad("--check makes no plan").in_field(option))
        }
        _ => Ok(()),
    }
}
