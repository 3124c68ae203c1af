//! `usm run`: runs a sample kernel on a device, compares it with a plain loop and times both; or a
//! kernel of a file, which it compares with the interpreter.

mod file;
mod job;
mod value;

use core::fmt;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use usm_core::QueueOrder;
use usm_kernel::{Formats, Module};

use crate::backends;
use crate::error::{Error, Exit, Result};
use crate::output;
use job::Job;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A sample, or a file with a kernel of your own: Rust with `#[kernel]`s, or nodes where its
    /// name ends in `.ir`.
    #[arg(value_parser = WorkParser, value_name = "KERNEL|FILE")]
    work: Work,
    /// Any device that `usm devices` lists; other devices than the host compile the kernel first
    /// [default: USM_DEVICE, else host].
    #[arg(long, value_name = "SELECTOR")]
    device: Option<String>,
    /// For a sample: elements; rows and columns of each matrix for matmul [default: 1048576; 512
    /// for matmul].
    #[arg(long)]
    size: Option<usize>,
    /// For a sample: work-items in a group; must divide the size for reverse and saxpy, which have
    /// one item an element; 256 for matmul, at least 2 for scan [default: 256 or the largest
    /// divisor below].
    #[arg(long)]
    group: Option<u64>,
    /// For a sample: the code for a device that takes several formats [default: source on a
    /// processor, elsewhere binaries before source].
    #[arg(long, value_enum)]
    code: Option<Format>,
    /// Runs; all are checked, the fastest is reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// For a file: which of its kernels [default: the only one].
    #[arg(long = "kernel", value_name = "NAME")]
    kernel_name: Option<String>,
    /// For a file: an argument of the kernel, one for each parameter. `f32:1024` is an array of
    /// 1024 small whole numbers, `f32:1024=0.5` one of equal elements, `0.5` a number,
    /// `(2,0.5)` a tuple or structure by value.
    #[arg(long, value_name = "TYPE:SIZE|VALUE", allow_hyphen_values = true)]
    arg: Vec<value::ArgumentWord>,
    /// For a file: work-items in each dimension, the fastest one last.
    #[arg(long, value_name = "N[,M[,K]]", value_delimiter = ',')]
    global: Vec<u64>,
    /// For a file: work-items of a group [default: what the kernel declares, else the device's
    /// choice].
    #[arg(long, value_name = "N[,M[,K]]", value_delimiter = ',')]
    local: Vec<u64>,
    /// For a file: look for an index outside, a race, uninitialised local memory or a divergent
    /// barrier, by the interpreter in three orders of items; run nothing.
    #[arg(long)]
    check: bool,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Sample(Sample),
    File(PathBuf),
}

/// Reads a sample's name, or the path of a file that ends in `.rs` or `.ir`.
#[derive(Clone, Copy, Debug)]
struct WorkParser;

impl TypedValueParser for WorkParser {
    type Value = Work;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Work, clap::Error> {
        let path = PathBuf::from(value);
        if path.extension().is_some_and(|extension| extension == "rs" || extension == "ir") {
            return Ok(Work::File(path));
        }
        let sample = clap::value_parser!(Sample).parse_ref(command, argument, value)?;
        Ok(Work::Sample(sample))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Sample::value_variants().iter().filter_map(Sample::to_possible_value)))
    }
}

/// Formats of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// OpenCL C source.
    OpenclC,
    /// SPIR-V.
    SpirV,
    /// CUDA C source.
    CudaC,
}

impl Format {
    const fn flag(self) -> Formats {
        match self {
            Self::OpenclC => Formats::OPENCL_C,
            Self::SpirV => Formats::SPIR_V,
            Self::CudaC => Formats::CUDA_C,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Sample {
    /// Each group adds its own reverse, through local memory.
    Reverse,
    /// The sum of an array.
    Reduce,
    /// The product of two square matrices, in tiles.
    Matmul,
    /// Counts of byte values.
    Histogram,
    /// y += alpha * x.
    Saxpy,
    /// Running sums.
    Scan,
}

/// The JSON document.
#[derive(Serialize)]
struct Report {
    kernel: Sample,
    device: String,
    size: usize,
    group: u64,
    repeat: u32,
    ok: bool,
    max_error: f64,
    seconds: f64,
    reference_seconds: f64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit> {
    match &arguments.work {
        Work::Sample(sample) => {
            let of_files = [
                ("--kernel", arguments.kernel_name.is_some()),
                ("--arg", !arguments.arg.is_empty()),
                ("--global", !arguments.global.is_empty()),
                ("--local", !arguments.local.is_empty()),
                ("--check", arguments.check),
            ];
            refuse(&of_files, "for a kernel of a file: a sample has its own")?;
            run_sample(*sample, arguments, json)
        }
        Work::File(file) => {
            let of_samples = [
                ("--size", arguments.size.is_some()),
                ("--group", arguments.group.is_some()),
                ("--code", arguments.code.is_some()),
            ];
            refuse(&of_samples, "for a sample: a kernel of a file has --arg, --global and --local")?;
            file::run(file, arguments, json)
        }
    }
}

/// Refuses the first option that is stated.
fn refuse(options: &[(&str, bool)], reason: &str) -> Result<()> {
    match options.iter().find(|(_, is_stated)| *is_stated) {
        Some((option, _)) => Err(Error::bad(reason).in_field(option)),
        None => Ok(()),
    }
}

fn run_sample(sample: Sample, arguments: &Arguments, json: bool) -> Result<Exit> {
    let context = backends::select_or_host(arguments.device.as_deref())?;
    if arguments.code.is_some() && Module::formats(&context).is_empty() {
        let device = backends::name(context.info());
        return Err(Error::bad(format!("{device} takes no code: kernels are Rust there")).in_field("--code"));
    }
    let size = arguments.size.unwrap_or(if sample == Sample::Matmul { 512 } else { 1 << 20 });
    let job = Job {
        queue: context.queue(QueueOrder::InOrder).map_err(Error::unable)?,
        size,
        group: arguments.group.unwrap_or_else(|| usual_group(sample, size as u64)),
        repeat: arguments.repeat,
        formats: arguments.code.map_or(Formats::all(), Format::flag),
    };
    job.check_memory(sample)?;
    job::check_executes(&job.queue)?;
    let outcome = match sample {
        Sample::Reverse => job.reverse(),
        Sample::Reduce => job.reduce(),
        Sample::Matmul => job.matmul(),
        Sample::Histogram => job.histogram(),
        Sample::Saxpy => job.saxpy(),
        Sample::Scan => job.scan(),
    }?;
    let report = Report {
        kernel: sample,
        device: backends::name(context.info()),
        size,
        group: job.group,
        repeat: job.repeat,
        // The inputs are small whole numbers, so every order of additions is exact.
        ok: outcome.max_error == 0.0,
        max_error: outcome.max_error,
        seconds: outcome.seconds,
        reference_seconds: outcome.reference_seconds,
    };
    if json {
        output::json(&report)?;
    } else {
        output::line(&report)?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Unable })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kernel.to_possible_value();
        let name = name.as_ref().map_or("", |value| value.get_name());
        let verdict = if self.ok { "as the plain loop" } else { "WRONG" };
        writeln!(f, "{name} on {}, size {}, groups of {}: {verdict}", self.device, self.size, self.group)?;
        writeln!(f, "  largest error  {}", self.max_error)?;
        writeln!(f, "  kernel         {:.6} s, fastest of {}", self.seconds, self.repeat)?;
        write!(f, "  plain loop     {:.6} s", self.reference_seconds)
    }
}

/// The default group size.
fn usual_group(sample: Sample, size: u64) -> u64 {
    match sample {
        Sample::Reverse | Sample::Saxpy => {
            (1..=256).rev().find(|group| size.is_multiple_of(*group)).unwrap_or(1)
        }
        Sample::Matmul | Sample::Reduce | Sample::Histogram | Sample::Scan => 256,
    }
}
