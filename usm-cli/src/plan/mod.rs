//! `usm plan`.

mod arguments;
mod execute;
mod proof;
mod range;
mod recompute;
mod text;

use std::path::PathBuf;
use std::time::Instant;

use usm_plan::clock::{AUTO_LIMIT, Clock, Stopped};
use usm_plan::{Outcome, Report};
use usm_pool::dependency::lists_text;
use usm_pool::html::{self, Page};
use usm_pool::placement::Limits;
use usm_pool::planner::Progress as SearchProgress;
use usm_pool::planner::pareto::pareto;
use usm_pool::planner::pool_rules;
use usm_pool::report::{compare, pool_dump_csv, sharing_table};
use usm_pool::{Graph, Options, Plan, Problem, Queue, Strategy, svg};

use crate::error::{Error, Exit, Result, write_file};
use crate::input::{self, Input};
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::shown::Shown;
use usm_plan::graph_json;

pub(crate) use arguments::Arguments;
use arguments::StrategyArgument;

/// Maximum number of plans along the curve of peak against edges: more are unreadable.
const CURVE_POINTS: usize = 24;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, json: bool, start: Instant) -> Result<Exit> {
    if arguments.many_values() {
        if arguments.run {
            return Err(Error::bad("a run is for one value of each dimension").in_field("--run"));
        }
        return range::run(arguments, json, start);
    }
    if arguments.curve_recompute {
        return recompute::run(arguments, json, start);
    }
    proof::refuse(arguments)?;
    let input = read(arguments)?;
    if let Some(path) = &arguments.check {
        return proof::check(input, arguments, path, json);
    }
    let interrupt = Interrupt::watch();
    let outcome = make(input, arguments, start)?;
    let other = match arguments.beside() {
        Some(arguments) => Some((make(read(&arguments)?, &arguments, start)?, arguments.title())),
        None => None,
    };
    drop(interrupt);
    // Every plan is verified before it is printed.
    outcome.check()?;
    let other = match other {
        Some((other, title)) => {
            other.check()?;
            if !other.plan.feasible() {
                let reason = format!("{title} has no plan within these limits");
                return Err(Error::unable(reason).in_field("--compare-with"));
            }
            Some((other, title))
        }
        None => None,
    };
    let mut written = write(&outcome, other.as_ref(), arguments)?;
    written.extend(arguments.proof.iter().map(|path| ("proof file", path)));
    let ran = match &outcome.graph {
        Some(graph) if arguments.run && outcome.plan.feasible() => {
            Some(execute::run(graph, &outcome.problem, &outcome.plan, arguments)?)
        }
        _ => None,
    };
    if json {
        output::json(&execute::WithRun { plan: Report::of(&outcome), run: ran.as_ref() })?;
    } else {
        output::text(&text::describe(&outcome))?;
        if let Some(ran) = &ran {
            output::text(&ran.to_string())?;
        }
        if let Some((other, title)) = &other {
            output::text(&text::describe_beside(&outcome, other, title))?;
        }
        for (what, path) in written {
            output::line(format_args!("  {what:<12} {}", Shown(path.display())))?;
        }
    }
    Ok(match outcome.plan.feasible() {
        _ if interrupt::is_pressed() => Exit::Interrupted,
        true if ran.is_some_and(|ran| ran.wrong > 0) => Exit::Unable,
        true => Exit::Done,
        false => Exit::Unable,
    })
}

/// Reads the input of these arguments, and refuses options that do not suit it.
fn read(arguments: &Arguments) -> Result<Input> {
    let sign_of_life = Progress::start(format!("reading {}", input::called(&arguments.input).display()));
    let input = input::read(&arguments.input, &arguments.hints())?;
    drop(sign_of_life);
    refuse_contradictions(arguments, &input)?;
    Ok(input)
}

/// Refuses options that have no meaning for this input or beside each other.
fn refuse_contradictions(arguments: &Arguments, input: &Input) -> Result<()> {
    let queue = Queue::from(arguments.queue);
    let buffers = matches!(input, Input::Buffers(_));
    let refuse = |field: &str, reason: &str| Err(Error::bad(reason).in_field(field));
    if arguments.ordering_edges.is_some() && queue == Queue::InOrder {
        return refuse("--ordering-edges", "an in-order queue has one order already");
    }
    if arguments.reorder && queue == Queue::OutOfOrder {
        return refuse("--reorder", "an out-of-order queue has no order to change; see --ordering-edges");
    }
    if !buffers {
        return Ok(());
    }
    if queue == Queue::OutOfOrder {
        let reason = "buffers have lifetimes, which only an in-order queue keeps; give a graph";
        return Err(Error::bad(reason).in_field("--queue").in_file(input::called(&arguments.input)));
    }
    let needs_operators = [
        ("--reorder", arguments.reorder),
        ("--graph", arguments.graph.is_some()),
        ("--dependencies", arguments.dependencies.is_some()),
        ("--run", arguments.run),
        ("--curve-recompute", arguments.curve_recompute),
    ];
    match needs_operators.into_iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(Error::bad("buffers have no operators; give a graph")
            .in_field(field)
            .in_file(input::called(&arguments.input))),
        None => Ok(()),
    }
}

/// Writes the requested files; those of a plan only if there is one. The page has the other plan
/// too, if there is one.
fn write<'a>(
    outcome: &Outcome,
    other: Option<&(Outcome, String)>,
    arguments: &'a Arguments,
) -> Result<Vec<(&'static str, &'a PathBuf)>> {
    let Outcome { graph, problem, plan, .. } = outcome;
    let mut written = Vec::new();
    let mut file = |what, path: &'a Option<PathBuf>, content: &dyn Fn() -> Result<String>| match path {
        Some(path) => {
            written.push((what, path));
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
    Ok(written)
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

fn make(input: Input, arguments: &Arguments, start: Instant) -> Result<Outcome> {
    let part = |part| clock(arguments, start, part);
    let clock = part(1);
    clock.reserve(&input, &|problem, plan| {
        let _ = plan_files(problem, plan, None, None, arguments, |_, path, text| {
            if path.is_some() {
                text();
            }
            Ok(())
        });
    });
    let sign_of_life = Progress::start("planning");
    let better = |found: SearchProgress| sign_of_life.show_gap(found.peak, found.bound, found.nodes);
    let stop = || clock.must_stop();
    let mut options = Options::default();
    options.strategy = arguments.strategy.into();
    options.queue = arguments.queue.into();
    options.capacity = arguments.capacity;
    options.threads = arguments.threads;
    options.progress = Some(&better);
    options.ordering_edges = arguments.ordering_edges.unwrap_or(0);
    options.keep_critical_path = arguments.keep_critical_path;
    options.stop = Some(&stop);
    clock.rule(&mut options);
    options.order_sets = arguments.order_sets();
    let limits = Limits::new(arguments.device_memory, arguments.max_alloc);
    let file = input::called(&arguments.input);
    let mut outcome = usm_plan::make(input, &options, &limits, arguments.reorder, file)?;
    if let (Some(graph), true) = (&outcome.graph, pool_rules_apply(arguments, &outcome)) {
        let named = |error| Error::bad(error).in_file(file);
        (outcome.problem, outcome.plan) = pool_rules::plan_graph(graph, &options).map_err(named)?;
    }
    outcome.stopped = clock.stopped();
    let named = |error| Error::bad(error).in_file(file);
    outcome.curve = match &outcome.graph {
        Some(graph) if arguments.curve => {
            sign_of_life.set_message("planning along the curve");
            Some(
                with_clock(&part(2), &options, |options| pareto(graph, options, CURVE_POINTS))
                    .map_err(named)?,
            )
        }
        _ => None,
    };
    outcome.compared = if arguments.compare {
        sign_of_life.set_message("comparing the strategies");
        Some(
            with_clock(&part(2 + u32::from(arguments.curve)), &options, |options| {
                compare(&outcome.problem, options)
            })
            .map_err(named)?,
        )
    } else {
        None
    };
    if let Some(path) = &arguments.proof {
        sign_of_life.set_message("writing the proof");
        let last = part(count_parts(arguments));
        with_clock(&last, &options, |options| proof::write(&mut outcome, options, path))?;
    }
    drop(sign_of_life);
    if arguments.time_limit.is_none() && outcome.stopped == Some(Stopped::Time) {
        let limit = AUTO_LIMIT.as_secs();
        output::warning(format_args!(
            "the search was ended after its {limit} s, so another run may end with another plan; --time-limit SECONDS sets the limit"
        ));
    }
    Ok(outcome)
}

/// Whether OpenVINO's rules for padded and dynamic tensors can change a plan of whole buffers.
fn pool_rules_apply(arguments: &Arguments, outcome: &Outcome) -> bool {
    let Some(graph) = &outcome.graph else { return false };
    let special = graph.tensors().iter().any(|node| node.padding > 0 || node.dynamic);
    let limited = arguments.device_memory.is_some() || arguments.max_alloc.is_some();
    outcome.plan.strategy == Strategy::WholeBuffer
        && special
        && !limited
        && matches!(arguments.strategy, StrategyArgument::WholeBuffer)
}

/// A clock for one part of the work; all parts have equal shares of the user's limit.
fn clock(arguments: &Arguments, start: Instant, part: u32) -> Clock<'static> {
    let limit = arguments.time_limit.map(|limit| limit / count_parts(arguments) * part);
    Clock::new(start, limit, arguments.strategy.into()).or_when(&interrupt::is_pressed)
}

fn count_parts(arguments: &Arguments) -> u32 {
    let more = [
        arguments.curve,
        arguments.curve_recompute,
        arguments.compare,
        arguments.proof.is_some(),
        arguments.compare_with.is_some(),
    ];
    1 + more.into_iter().map(u32::from).sum::<u32>()
}

/// The same options with another clock.
fn with_clock<T>(clock: &Clock<'_>, options: &Options<'_>, run: impl FnOnce(&Options<'_>) -> T) -> T {
    let stop = || clock.must_stop();
    let mut options = *options;
    options.stop = Some(&stop);
    run(&options)
}
