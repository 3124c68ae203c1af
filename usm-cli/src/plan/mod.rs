//! `usm plan`.

mod arguments;
mod execute;
mod proof;
mod range;
mod recompute;
mod session;
mod text;

use std::path::PathBuf;
use std::time::Instant;

use usm_plan::clock::{AUTO_LIMIT, StopReason};
use usm_plan::{Answer, Job, Outcome, Refusal, Report, Source};
use usm_pool::dependency::lists_text;
use usm_pool::html::{self, Page};
use usm_pool::report::{pool_dump_csv, sharing_table};
use usm_pool::{Graph, Plan, Problem, svg};

use crate::error::{Error, Exit, Result, write_file};
use crate::escape::EscapedText;
use crate::input;
use crate::interrupt;
use crate::output;
use usm_plan::graph_json;

pub(crate) use arguments::Arguments;
use arguments::first_given;
use session::Session;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, json: bool, start: Instant) -> Result<Exit> {
    let source = Source::file(&arguments.input);
    refuse(arguments, source.is_table())?;
    let job = checked(arguments, source)?;
    let session = Session::new(arguments, start);
    if let Some(path) = &arguments.check {
        return proof::check(job, &session, path, json);
    }
    let answer = job.run(&session)?;
    let outcome = match answer {
        Answer::Every(plan) => {
            session.end();
            return range::report(&plan, arguments, json);
        }
        Answer::Recompute(_, curve, stop_reason) => {
            session.end();
            return recompute::report(&curve, stop_reason, arguments, json);
        }
        Answer::One(outcome) => outcome,
    };
    refuse(arguments, outcome.graph.is_none())?;
    let other = beside(arguments, &session)?;
    session.end();
    if arguments.time_limit.is_none() && outcome.stop_reason == Some(StopReason::Time) {
        let limit = AUTO_LIMIT.as_secs();
        output::warning(format_args!(
            "the search was ended after its {limit} s, so another run may end with another plan; --time-limit SECONDS sets the limit"
        ));
    }
    report(&outcome, other.as_ref(), arguments, json)
}

/// The plan beside this one, with its title.
fn beside(arguments: &Arguments, session: &Session<'_>) -> Result<Option<(Outcome, String)>> {
    let Some(arguments) = arguments.beside() else { return Ok(None) };
    let job = checked(&arguments, Source::file(&arguments.input))?;
    let Answer::One(outcome) = job.run(session)? else {
        return Err(Error::bad("it is not one plan").in_field("--compare-with"));
    };
    let title = arguments.title();
    if !outcome.plan.feasible() {
        let reason = format!("{title} has no plan within these limits");
        return Err(Error::unable(reason).in_field("--compare-with"));
    }
    Ok(Some((*outcome, title)))
}

/// Writes the files and prints the report of a plan.
fn report(
    outcome: &Outcome,
    other: Option<&(Outcome, String)>,
    arguments: &Arguments,
    json: bool,
) -> Result<Exit> {
    let mut files = write(outcome, other, arguments)?;
    if let (Some(path), Some((text, bound_proof))) = (&arguments.proof, &outcome.proof) {
        proof::write(outcome, text, *bound_proof, path)?;
        files.push(("proof file", path));
    }
    let ran = match &outcome.graph {
        Some(graph) if arguments.run && outcome.plan.feasible() => {
            Some(execute::run(graph, &outcome.problem, &outcome.plan, arguments)?)
        }
        _ => None,
    };
    if json {
        output::json(&execute::WithRun { plan: Report::of(outcome), run: ran.as_ref() })?;
    } else {
        output::text(&text::describe(outcome))?;
        if let Some(ran) = &ran {
            output::text(&ran.to_string())?;
        }
        if let Some((other, title)) = &other {
            output::text(&text::describe_beside(outcome, other, title))?;
        }
        for (what, path) in files {
            output::line(format_args!("  {what:<12} {}", EscapedText(path.display())))?;
        }
    }
    Ok(match outcome.plan.feasible() {
        _ if interrupt::is_pressed() => Exit::Interrupted,
        true if ran.is_some_and(|ran| ran.wrong > 0) => Exit::Unable,
        true => Exit::Done,
        false => Exit::Unable,
    })
}

/// The job of these arguments, or the refusal with the option and, if that matters, the file.
fn checked(arguments: &Arguments, source: Source) -> Result<Job> {
    arguments.request().check(source).map_err(|refusal: Refusal| match refusal.of_input {
        true => Error::from(refusal).in_file(input::called(&arguments.input)),
        false => Error::from(refusal),
    })
}

/// Refuses options of the command alone that have no meaning beside others, or for a table.
fn refuse(arguments: &Arguments, is_table: bool) -> Result<()> {
    let refuse = |option: Option<&str>, reason: &str| match option {
        Some(option) => Err(Error::bad(reason).in_field(option)),
        None => Ok(()),
    };
    let check = [("--check", arguments.check.is_some())];
    if arguments.many_values() {
        let run = [("--run", arguments.run)];
        refuse(first_given(run), "a run is for one value of each dimension")?;
        let options = check.into_iter().chain(arguments.of_one_plan());
        refuse(first_given(options), "it is for one value of each dimension; a plan for all is made here")?;
    } else if arguments.curve_recompute {
        let one = arguments.of_one_plan().into_iter().filter(|&(name, _)| name != "--svg");
        let reason = "it is for one plan; each point of a curve is a graph of its own";
        refuse(first_given(check.into_iter().chain(one)), reason)?;
    } else if arguments.check.is_some() {
        let unused_options = [("--run", arguments.run)];
        let unused_option = first_given(unused_options.into_iter().chain(arguments.of_one_plan()));
        refuse(unused_option, "--check makes no plan")?;
    }
    let of_operators = [
        ("--graph", arguments.graph.is_some()),
        ("--dependencies", arguments.dependencies.is_some()),
        ("--run", arguments.run),
    ];
    let graph_option = first_given(of_operators.into_iter().filter(|_| is_table));
    refuse(graph_option, "buffers have no operators; give a graph")
        .map_err(|error| error.in_file(input::called(&arguments.input)))
}

/// Writes the requested files; those of a plan only if there is one. The page has the other plan
/// too, if there is one.
fn write<'a>(
    outcome: &Outcome,
    other: Option<&(Outcome, String)>,
    arguments: &'a Arguments,
) -> Result<Vec<(&'static str, &'a PathBuf)>> {
    let Outcome { graph, problem, plan, .. } = outcome;
    let mut files = Vec::new();
    let mut file = |what, path: &'a Option<PathBuf>, content: &dyn Fn() -> Result<String>| match path {
        Some(path) => {
            files.push((what, path));
            write_file(path, &content()?)
        }
        None => Ok(()),
    };
    if let Some(graph) = graph {
        file("graph", &arguments.graph, &|| graph_json::text(graph))?;
        file("dependencies", &arguments.dependencies, &|| {
            lists_text(graph, plan.queue).map_err(|error| Error::unable(error).in_field("--dependencies"))
        })?;
    }
    if plan.feasible() {
        plan_files(problem, plan, graph.as_ref(), other, arguments, |what, path, text| {
            file(what, path, &|| Ok(text()))
        })?;
    }
    Ok(files)
}

/// Calls `each` with the name, the path and the text of every file that a plan has.
fn plan_files<'a>(
    problem: &Problem,
    plan: &Plan,
    graph: Option<&Graph>,
    other: Option<&(Outcome, String)>,
    arguments: &'a Arguments,
    mut each: impl FnMut(&'static str, &'a Option<PathBuf>, &dyn Fn() -> String) -> Result<()>,
) -> Result<()> {
    each("plan", &arguments.output, &|| plan.to_csv(graph))?;
    each("picture", &arguments.svg, &|| svg::render(plan, graph, &arguments.title()))?;
    each("page", &arguments.html, &|| {
        let title = arguments.title();
        let mut pages = vec![Page { plan, graph, title: &title }];
        pages.extend(other.map(|(outcome, title)| {
            let Outcome { plan, graph, .. } = outcome;
            Page { plan, graph: graph.as_ref(), title }
        }));
        html::render_all(&pages)
    })?;
    each("sharing", &arguments.sharing, &|| sharing_table(problem, plan))?;
    each("pool dump", &arguments.pool_dump, &|| pool_dump_csv(plan, graph))
}
