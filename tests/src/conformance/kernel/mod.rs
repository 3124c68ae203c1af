//! Kernels: on the host by their bodies, on devices by their code, with the same results.

mod algorithms;
mod binary;
mod checked;
mod code;
mod codes;
mod complex;
mod contexts;
mod conversions;
mod groups;
mod language;
mod one_source;
mod order;
mod outside;
mod print;
mod programs;
mod public;
mod results;
mod run_time;
mod samples;
mod sizes;
mod strides;
mod structures;
mod unordered;
mod unwritten;

use core::fmt::Debug;
use std::sync::OnceLock;

use usm_core::{Backend, BackendKind, Context, Queue, QueueOrder, UsmVec};
use usm_kernel::{
    BuildError, Code, DeviceCode, Executable, Formats, Module, NdRange, Programmable, has_code,
};

pub use algorithms::*;
pub use binary::*;
pub use checked::*;
pub use code::*;
pub use complex::*;
pub use contexts::*;
pub use conversions::*;
pub use groups::*;
pub use language::*;
pub use one_source::*;
pub use order::*;
pub use outside::*;
pub use print::*;
pub use programs::*;
pub use public::*;
pub use results::*;
pub use run_time::*;
pub use sizes::*;
pub use strides::*;
pub use structures::*;
pub use unordered::*;
pub use unwritten::*;

use crate::{Fixture, skip};

fn queue<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) -> Queue<B> {
    fixture.context.queue(order).expect("a queue")
}

/// Whether the runtime runs kernels at all, by host bodies or by code.
fn runs_kernels<B: Programmable>(context: &Context<B>) -> bool {
    let host = matches!(context.info().backend, BackendKind::Host | BackendKind::Mock);
    let able = host || !Module::formats(context).is_empty();
    if !able {
        skip::limit(context.info().backend, "kernels: this backend takes no code");
    }
    able
}

/// The formats that a kernel may have: those that the device takes, but CUDA C only if its
/// compiler, a separate library, is present.
fn formats<B: Programmable>(context: &Context<B>) -> Formats {
    let taken = Module::formats(context);
    let lacks_compiler = taken.contains(Formats::CUDA_C) && lacks_compiler(context);
    if lacks_compiler { taken.difference(Formats::CUDA_C) } else { taken }
}

/// Asked once each for CUDA and HIP. A compiler that refuses all code counts as missing, which is a
/// failure where `nvrtc` is required.
fn lacks_compiler<B: Programmable>(context: &Context<B>) -> bool {
    static ANSWERS: [OnceLock<bool>; 2] = [const { OnceLock::new() }; 2];
    let nothing = Code::CudaC("extern \"C\" __global__ void nothing() {}");
    let answer = &ANSWERS[usize::from(context.info().backend == BackendKind::Hip)];
    *answer.get_or_init(|| matches!(Module::build(context, nothing), Err(BuildError::Runtime(_))))
}

/// Reports that the case does not run, because the device takes none of its codes.
fn no_code<B: Backend>(context: &Context<B>, what: &str) {
    match context.info().backend {
        BackendKind::Cuda | BackendKind::Hip => skip::missing("nvrtc", format_args!("{what}: no compiler")),
        backend => skip::limit(backend, format_args!("{what}: the backend takes none")),
    }
}

/// The kernel built for the fixture's device, or `None` after a report.
fn ready<K: DeviceCode<D>, B: Programmable, const D: usize>(
    context: &Context<B>,
) -> Option<Executable<K, B, D>> {
    if !runs_kernels(context) {
        return None;
    }
    let takes_code = !Module::formats(context).is_empty();
    if takes_code && !formats(context).iter().any(|format| has_code::<K, D>(format)) {
        no_code(context, K::NAME);
        return None;
    }
    Some(Executable::build(context).expect("code that compiles"))
}

/// As [`ready`], once for each format that the device takes and the kernel has; once on the host.
pub(super) fn ready_in_every_format<K: DeviceCode<D>, B: Programmable, const D: usize>(
    context: &Context<B>,
) -> Vec<Executable<K, B, D>> {
    if Module::formats(context).is_empty() {
        return ready(context).into_iter().collect();
    }
    let has = |format: &Formats| has_code::<K, D>(*format);
    let built = |format| Executable::build_from(context, format).expect("code that compiles");
    let all: Vec<_> = formats(context).iter().filter(has).map(built).collect();
    if all.is_empty() {
        no_code(context, K::NAME);
    }
    all
}

/// The source formats that the device takes, or `None` after a report.
fn source_formats<B: Programmable>(context: &Context<B>) -> Option<Formats> {
    let formats = formats(context);
    if formats.intersects(Formats::OPENCL_C | Formats::CUDA_C) {
        return Some(formats);
    }
    no_code(context, "kernels from source");
    None
}

fn range<const D: usize>(global: [u64; D], local: [u64; D]) -> NdRange<D> {
    NdRange::new(global, local).expect("a range")
}

fn shared<T: bytemuck::Pod, B: Backend>(queue: &Queue<B>, values: &[T]) -> UsmVec<T, usm_core::Shared, B> {
    UsmVec::from_slice(queue, values).expect("an array")
}

fn refused<T: Debug, E: Debug>(result: Result<T, E>) -> E {
    result.expect_err("refused")
}
