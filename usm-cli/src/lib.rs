#![doc = include_str!("../README.md")]
#![allow(clippy::std_instead_of_alloc, reason = "a program for people: std is always there")]

mod backends;
mod cfg_json;
mod demo;
mod devices;
mod interface;
mod interrupt;
mod kernel;
mod output;
mod plan;
mod progress;
mod prune;
mod replay;
mod run;
#[cfg(test)]
mod target;
mod temporary;
mod threads;

use std::ffi::OsString;
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::aot::{Shell, generate};

use usm_plan::{error, escape, input};

use error::{Error, Exit, Result};
use escape::EscapedText;

pub use backends::prepare;

/// Unified Shared Memory: devices, memory plans, array interfaces.
#[derive(Debug, Parser)]
#[command(name = "usm", version, arg_required_else_help = true)]
struct Cli {
    /// Print one JSON document on standard output.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A tour on real input, on this machine, in a few seconds.
    Demo(demo::Arguments),
    /// List the compiled-in runtimes, those that were found, and their devices with limits and
    /// capabilities.
    Devices,
    /// Plan the memory of a model: the offset of every tensor, and the plan's quality.
    Plan(Box<plan::Arguments>),
    /// Check array-interface dictionaries: one on each line of standard input, one JSON answer a
    /// line.
    Interface(interface::Arguments),
    /// Remove reference operations that cancel out, from graphs or from LLVM IR: one JSON answer a
    /// record.
    Prune(prune::Arguments),
    /// Replay a trace of allocations through the run-time pool: how much memory it takes.
    Replay(replay::Arguments),
    /// Print the code of a kernel: nodes, Rust for the host, OpenCL C, CUDA C or SPIR-V.
    Kernel(kernel::Arguments),
    /// Print the script with which a shell completes this command's arguments.
    Completions {
        /// The shell.
        #[arg(value_parser = shell())]
        shell: Shell,
    },
    /// Run a sample kernel, check it against a plain loop and time both.
    Run(run::Arguments),
}

/// The shells that are documented and tested.
fn shell() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).map(|name| match name.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    })
}

fn completions(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    // The generators also list the verbs that the help hides.
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let mut command = clap::Command::new("usm").args(all.get_arguments().cloned()).subcommands(verbs);
    generate(shell, &mut command, "usm", &mut script);
    output::raw(&script)?;
    Ok(Exit::Done)
}

/// Runs the command with these arguments, of which the first is the program's name, and returns its
/// exit code. Writes to the process's standard output and error. Called by the program itself and
/// by embedding programs.
pub fn run_command(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let start = Instant::now();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let exit = match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(&cli, start).unwrap_or_else(|error| {
            output::failure(&error);
            error.exit()
        }),
        Err(error) => {
            let error = with_shown_arguments(error, &arguments);
            // A closed stream has no reader for the error.
            let _ = error.print();
            if error.use_stderr() { Exit::Bad } else { Exit::Done }
        }
    };
    exit.code()
}

/// The error with its quoted arguments as [`EscapedText`].
fn with_shown_arguments(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let escaped_arguments =
        arguments.iter().map(|argument| EscapedText(argument.to_string_lossy()).to_string());
    Cli::try_parse_from(escaped_arguments)
        .err()
        .filter(|second_error| second_error.kind() == error.kind())
        .unwrap_or(error)
}

fn run(cli: &Cli, start: Instant) -> Result<Exit> {
    match &cli.command {
        Command::Demo(_) if cli.json => Err(Error::bad("the tour is text only").in_field("--json")),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Devices => devices::run(cli.json),
        Command::Plan(arguments) => plan::run(arguments, cli.json, start),
        Command::Interface(arguments) => interface::run(arguments),
        Command::Prune(arguments) => prune::run(arguments),
        Command::Replay(arguments) => replay::run(arguments, cli.json),
        Command::Kernel(arguments) => kernel::run(arguments),
        Command::Run(arguments) => run::run(arguments, cli.json),
        Command::Completions { shell } => completions(*shell),
    }
}
