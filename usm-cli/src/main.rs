#![doc = include_str!("../README.md")]
#![allow(clippy::std_instead_of_alloc, reason = "a program for people: std is always there")]

mod backends;
mod cfg_json;
mod demo;
mod devices;
#[cfg(feature = "onnx")]
mod infer;
mod interface;
mod interrupt;
mod kernel;
mod memory;
mod output;
mod plan;
mod progress;
mod prune;
mod run;
#[cfg(test)]
mod target;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::aot::{Shell, generate};

use usm_plan::{error, input, shown};

use error::{Error, Exit, Result};
use shown::Shown;

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
    /// What is compiled in, which runtimes were found, their devices with limits and capabilities.
    Devices,
    /// Plan the memory of a model: where every tensor lies, and how good that is.
    Plan(plan::Arguments),
    /// Check array-interface dictionaries: one on each line of standard input, one JSON answer a line.
    Interface(interface::Arguments),
    /// Remove reference operations that cancel out, from graphs or from LLVM IR: one JSON answer a record.
    Prune(prune::Arguments),
    /// Print what a kernel becomes: nodes, Rust for the host, OpenCL C, CUDA C or SPIR-V.
    Kernel(kernel::Arguments),
    /// Print what makes a shell complete this command's arguments.
    Completions {
        /// The shell.
        #[arg(value_parser = shell())]
        shell: Shell,
    },
    /// Run a sample kernel, check it against a plain loop and time both.
    Run(run::Arguments),
    /// Part of `plan model.onnx`; not for use by hand.
    #[cfg(feature = "onnx")]
    #[command(hide = true, name = infer::CHILD)]
    InferShapes,
}

/// The shells that are documented and tested.
fn shell() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).map(|name| match name.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    })
}

/// What readers of files are told by the command.
fn hints() -> input::Hints<'static> {
    input::Hints {
        remark: Some(&|remark| output::warning(remark)),
        #[cfg(feature = "onnx")]
        infer: Some(&infer::infer_shapes),
        remedy: "this build does: cargo run --release --features onnx --bin usm -- plan model.onnx",
        ..input::Hints::default()
    }
}

fn completions(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    // The generators also list the verbs that the help hides.
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let mut command = clap::Command::new("usm").args(all.get_arguments().cloned()).subcommands(shown);
    generate(shell, &mut command, "usm", &mut script);
    output::raw(&script)?;
    Ok(Exit::Done)
}

fn main() -> ExitCode {
    backends::prepare();
    let cli = Cli::try_parse().unwrap_or_else(|error| refused(error).exit());
    match run(&cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::failure(&error);
            error.exit().into()
        }
    }
}

/// The same refusal of arguments that are [`Shown`]: its message quotes them.
fn refused(error: clap::Error) -> clap::Error {
    let shown = |argument: OsString| Shown(argument.to_string_lossy()).to_string();
    let shown: Vec<String> = std::env::args_os().map(shown).collect();
    Cli::try_parse_from(&shown).err().filter(|again| again.kind() == error.kind()).unwrap_or(error)
}

fn run(cli: &Cli) -> Result<Exit> {
    match &cli.command {
        Command::Demo(_) if cli.json => Err(Error::bad("the tour is text only").in_field("--json")),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Devices => devices::run(cli.json),
        Command::Plan(arguments) => plan::run(arguments, cli.json),
        Command::Interface(arguments) => interface::run(arguments),
        Command::Prune(arguments) => prune::run(arguments),
        Command::Kernel(arguments) => kernel::run(arguments),
        Command::Run(arguments) => run::run(arguments, cli.json),
        Command::Completions { shell } => completions(*shell),
        #[cfg(feature = "onnx")]
        Command::InferShapes => infer::run_child(),
    }
}
