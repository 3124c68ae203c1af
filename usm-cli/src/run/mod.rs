//! `usm run`: runs a sample kernel on a device, compares it with a plain loop and times both.

mod job;

use core::fmt;

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
    /// The kernel.
    #[arg(value_enum)]
    kernel: Sample,
    /// Any device that `usm devices` lists; other devices than the host compile the kernel first
    /// [default: USM_DEVICE, else host].
    #[arg(long, value_name = "SELECTOR")]
    device: Option<String>,
    /// Elements; rows and columns of each matrix for matmul [default: 1048576; 512 for matmul].
    #[arg(long)]
    size: Option<usize>,
    /// Work-items in a group; must divide the size for reverse and saxpy, which have one item an
    /// element; 256 for matmul, at least 2 for scan [default: 256 or the largest divisor below].
    #[arg(long)]
    group: Option<u64>,
    /// The code for a device that takes several formats [default: source on a processor, elsewhere
    /// binaries before source].
    #[arg(long, value_enum)]
    code: Option<Format>,
    /// Runs; all are checked, the fastest is reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
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
    let context = match &arguments.device {
        Some(selector) => backends::select(selector).map_err(|error| error.in_field("--device"))?,
        None => backends::from_environment("host")?,
    };
    if arguments.code.is_some() && Module::formats(&context).is_empty() {
        let device = backends::name(context.info());
        return Err(Error::bad(format!("{device} takes no code: kernels are Rust there")).in_field("--code"));
    }
    let sample = arguments.kernel;
    let size = arguments.size.unwrap_or(if sample == Sample::Matmul { 512 } else { 1 << 20 });
    let job = Job {
        queue: context.queue(QueueOrder::InOrder).map_err(Error::unable)?,
        size,
        group: arguments.group.unwrap_or_else(|| usual_group(sample, size as u64)),
        repeat: arguments.repeat,
        formats: arguments.code.map_or(Formats::all(), Format::flag),
    };
    job.check_memory(sample)?;
    job.check_executes()?;
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
