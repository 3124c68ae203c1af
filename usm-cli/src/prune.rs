//! `usm prune`: removes reference operations that cancel out, from neutral graphs or from LLVM IR.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};
use usm_prune::{Method, Options, Passes, PruneStats, prune, prune_llvm};

use crate::cfg_json::{self, Function, JsonOp, Record};
use crate::error::{Error, Exit, Result, read_file, write_file};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Graphs: a JSON array of records, or one record a line [default: standard input].
    #[arg(value_name = "RECORDS")]
    input: Option<PathBuf>,
    /// The method [default: reference; legacy if the environment has NUMBA_LLVM_REFPRUNE_PASS=0].
    #[arg(long, value_enum, value_name = "METHOD")]
    method: Option<MethodName>,
    /// Passes that run, of per_bb, diamond, fanout and fanout_raise, separated by commas [default:
    /// all].
    #[arg(long, value_name = "NAMES", value_parser = passes)]
    passes: Option<Passes>,
    /// Steps after which the fanout passes give up on a block [default: the record's limit, else
    /// 1000].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    subgraph_limit: Option<usize>,
    /// Blocks after which the extended method gives up on a web [default: 10000].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    web_limit: Option<usize>,
    /// Prune this LLVM IR text instead; the statistics go to standard error.
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    llvm: Option<PathBuf>,
    /// Path of the pruned IR; `-` for standard output [default: -].
    #[arg(long, value_name = "FILE", requires = "llvm")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// The same removals as llvmlite's pass, with the same statistics.
    Reference,
    /// Pairs inside a block only, as before llvmlite had a pass.
    Legacy,
    /// More than the reference: also increments that join before a decrement, loops and large
    /// regions.
    Extended,
}

/// Numba's switch between llvmlite's pass and its older one.
const PASS: &str = "NUMBA_LLVM_REFPRUNE_PASS";

impl MethodName {
    /// The method without `--method`.
    fn from_environment() -> Result<Self> {
        let Some(value) = std::env::var_os(PASS) else { return Ok(Self::Reference) };
        let number = value.to_str().and_then(|value| value.trim().parse::<i64>().ok());
        match number {
            Some(0) => Ok(Self::Legacy),
            Some(_) => Ok(Self::Reference),
            None => Err(Error::bad(format!("{value:?} is not a whole number")).in_field(PASS)),
        }
    }
}

impl Arguments {
    /// The options. Refuses those that the method does not have.
    fn options(&self) -> Result<Options> {
        let method = self.method.map_or_else(MethodName::from_environment, Ok)?;
        let conflict = match method {
            MethodName::Legacy if self.passes.is_some() => Some("--passes"),
            MethodName::Legacy | MethodName::Extended if self.subgraph_limit.is_some() => {
                Some("--subgraph-limit")
            }
            MethodName::Legacy | MethodName::Reference if self.web_limit.is_some() => Some("--web-limit"),
            _ => None,
        };
        if let Some(option) = conflict {
            let method = method.to_possible_value();
            let name = method.as_ref().map_or("chosen", |method| method.get_name());
            return Err(Error::bad(format!("the {name} method has no such option")).in_field(option));
        }
        let mut options = Options::default();
        options.method = match method {
            MethodName::Reference => Method::Reference,
            MethodName::Legacy => Method::Legacy,
            MethodName::Extended => Method::Extended,
        };
        options.passes = self.passes.unwrap_or(Passes::ALL);
        options.subgraph_limit = self.subgraph_limit.unwrap_or(options.subgraph_limit);
        options.web_limit = self.web_limit.unwrap_or(options.web_limit);
        Ok(options)
    }
}

fn passes(list: &str) -> Result<Passes, String> {
    Passes::parse(list).map_err(|name| format!("{name:?} is none of per_bb, diamond, fanout, fanout_raise"))
}

/// One answer.
#[derive(Serialize)]
struct Answer<'a> {
    case: &'a str,
    #[serde(serialize_with = "as_map")]
    functions: Vec<(&'a str, PrunedFunction<'a>)>,
}

#[derive(Serialize)]
struct PrunedFunction<'a> {
    stats: Stats,
    #[serde(serialize_with = "as_map")]
    after: Vec<(&'a str, Vec<(JsonOp, &'a str)>)>,
}

/// The document on standard error beside pruned IR.
#[derive(Serialize)]
struct ModuleAnswer<'a> {
    case: String,
    #[serde(serialize_with = "as_map")]
    functions: Vec<(&'a str, PrunedText)>,
}

#[derive(Serialize)]
struct PrunedText {
    stats: Stats,
}

/// Operations removed by each pass.
#[derive(Serialize)]
struct Stats {
    per_bb: usize,
    diamond: usize,
    fanout: usize,
    fanout_raise: usize,
    #[serde(flatten)]
    webs: Option<Webs>,
}

/// Statistics of the extended method only.
#[derive(Serialize)]
struct Webs {
    web: usize,
    web_raise: usize,
}

impl Stats {
    fn new(stats: PruneStats, method: Method) -> Self {
        let PruneStats { per_block, diamond, fanout, fanout_raise, web, web_raise } = stats;
        let webs = (method == Method::Extended).then_some(Webs { web, web_raise });
        Self { per_bb: per_block, diamond, fanout, fanout_raise, webs }
    }
}

fn as_map<K: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> core::result::Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    let options = arguments.options()?;
    if let Some(path) = &arguments.llvm {
        return module(path, arguments.output.as_deref().filter(|path| *path != Path::new("-")), &options);
    }
    let records = match &arguments.input {
        Some(path) => cfg_json::parse(&read_file(path)?).map_err(|error| error.in_file(path)),
        None => {
            let mut text = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut text);
            read.map_err(|error| Error::bad(format!("standard input: {error}")))?;
            cfg_json::parse(&text)
        }
    }?;
    let mut out = BufWriter::new(io::stdout().lock());
    for mut record in records {
        let mut options = options;
        if let (None, Some(limit)) = (arguments.subgraph_limit, record.subgraph_limit) {
            options.subgraph_limit = limit;
        }
        let answer = prune_record(&mut record, &options);
        if !output::has_reader(output::json_to(&mut out, &answer))? {
            return Ok(Exit::Done);
        }
    }
    output::has_reader(out.flush())?;
    Ok(Exit::Done)
}

fn prune_record<'r>(record: &'r mut Record, options: &Options) -> Answer<'r> {
    let prune_function = |(name, function): &'r mut (String, Function)| {
        let stats = Stats::new(prune(&mut function.cfg, options), options.method);
        (name.as_str(), PrunedFunction { stats, after: function.operations().collect() })
    };
    Answer { case: &record.case, functions: record.functions.iter_mut().map(prune_function).collect() }
}

/// Reads and writes LLVM IR.
fn module(path: &Path, output: Option<&Path>, options: &Options) -> Result<Exit> {
    let text = read_file(path)?;
    let text = core::str::from_utf8(&text).map_err(|error| {
        let before = text.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        Error::bad("not UTF-8 text").at_line(line).in_file(path)
    })?;
    let output_text = prune_llvm(text, options).map_err(|error| {
        // The message already begins with the line.
        let message = error.to_string();
        let reason = message.split_once(": ").map_or(message.as_str(), |(_, reason)| reason);
        Error::bad(reason).at_line(error.line as u64).in_file(path)
    })?;
    match output {
        Some(file) => write_file(file, &output_text.text)?,
        None => output::raw(output_text.text.as_bytes())?,
    }
    let functions = output_text.functions.iter();
    let answer = ModuleAnswer {
        case: path.display().to_string(),
        functions: functions
            .map(|(name, stats)| (name.as_str(), PrunedText { stats: Stats::new(*stats, options.method) }))
            .collect(),
    };
    // A closed standard error has no reader.
    let _ = output::json_to(io::stderr(), &answer);
    Ok(Exit::Done)
}
