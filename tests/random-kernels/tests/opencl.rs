//! Random kernels on the OpenCL device, as OpenCL C and as SPIR-V, compared with the interpreter.

mod common;
#[path = "common/device.rs"]
mod device;

use usm_core::backend::{Backend as _, DeviceOps as _};
use usm_core::{AllocKind, Context};
use usm_kernel::{Code, Module};
use usm_kernel_ir::{Kernel, emit};
use usm_opencl::OpenCl;
use usm_random_kernels::plants::{FAULTS, forgetful, planted, with_zeros};
use usm_random_kernels::{Program, first_seed, number, plain, program};
use usm_tests::skip;

use common::{Expected, differ, expected, first_kernels};
use device::{run, seen};

/// Programs of one module: a build takes long, whatever its size.
const MODULE: usize = 100;

/// Kernels of Rust text, whose results `plain.rs` compares with the Rust compiler's.
const PLAIN: u64 = 40;

/// Programs that Intel's CPU runtime 2026.2.0 got wrong as long as their code negated floating
/// point numbers. `emit` writes no negations now where a kernel has barriers. They run beside the
/// others.
const LOST: [u64; 7] = [2, 1924, 2447, 3092, 5055, 6032, 8277];

/// Those whose SPIR-V that runtime builds without end: its compiler loops in
/// `WGLoopBoundariesImpl::traceBackBound`, at the minimum of a constant and a local id. `spirv-val`
/// accepts the modules. The build from OpenCL C ends, and its results agree.
const ENDLESS_AS_SPIRV: &[&str] = &["random_1123"];

#[test]
fn random_kernels_agree_on_opencl_c() {
    on_device(&[], |kernels, build| build(Code::OpenClC(&emit::opencl_c_module(kernels))));
}

#[test]
fn random_kernels_agree_on_spirv() {
    on_device(ENDLESS_AS_SPIRV, |kernels, build| build(Code::SpirV(&emit::spirv_module(kernels))));
}

type Build<'b> = &'b dyn Fn(Code<'_>) -> Module<OpenCl>;
type Make = fn(&[Kernel], Build<'_>) -> Module<OpenCl>;

fn on_device(endless: &[&str], make: impl Fn(&[Kernel], Build<'_>) -> Module<OpenCl>) {
    let Some(context) = open() else { return };
    let texts = first_seed()..first_seed() + number("USM_RANDOM_PLAIN", PLAIN);
    let mut programs: Vec<Program> =
        first_kernels().chain(LOST.map(program)).chain(texts.map(plain::program)).collect();
    programs.sort_by(|one, two| one.kernel.name.cmp(&two.kernel.name));
    programs.dedup_by(|one, two| one.kernel.name == two.kernel.name);
    programs.retain(|program| {
        let name = program.kernel.name.as_str();
        let is_endless = endless.contains(&name);
        if is_endless {
            skip::part("opencl", format!("{name}: the runtime's compiler never ends"));
        }
        !is_endless
    });
    for programs in programs.chunks(MODULE) {
        let kernels: Vec<Kernel> = programs.iter().map(|program| program.kernel.clone()).collect();
        let module = make(&kernels, &|code| match Module::build(&context, code) {
            Ok(module) => module,
            Err(error) => panic!("{} and further ones: {error}", kernels[0].name),
        });
        for program in programs {
            let found = run(&context, &module, program);
            if let Some(text) = differ(program, &expected(program), &found) {
                panic!("{text}");
            }
        }
    }
}

/// The first device with USM memory.
fn open() -> Option<Context<OpenCl>> {
    let opened = OpenCl::load().map_err(|error| error.to_string()).and_then(|backend| {
        let mut found = None;
        backend
            .for_each_device(&mut |device| {
                if found.is_none() && !device.info().capabilities.of(AllocKind::Host).is_empty() {
                    found = Some(device);
                }
            })
            .map_err(|error| error.to_string())?;
        let device = found.ok_or("no device with USM memory")?;
        Context::new(&backend, &device).map_err(|error| error.to_string())
    });
    match opened {
        Ok(context) => Some(context),
        Err(error) => {
            skip::missing("opencl", error);
            None
        }
    }
}

const TARGETS: [(&str, Make); 2] = [
    ("OpenCL C", |kernels, build| build(Code::OpenClC(&emit::opencl_c_module(kernels)))),
    ("SPIR-V", |kernels, build| build(Code::SpirV(&emit::spirv_module(kernels)))),
];

/// Programs of one module with a planted fault, at most.
const PLANTED: usize = 24;

/// Programs that lack some of their writes.
const FORGETFUL: usize = 40;

#[test]
fn memory_that_nobody_wrote_is_zero_on_the_device() {
    let Some(context) = open() else { return };
    let programs = forgetful(first_seed(), FORGETFUL);
    assert!(programs.len() >= FORGETFUL / 2, "{} programs", programs.len());
    for (target, make) in TARGETS {
        let kernels: Vec<Kernel> = programs.iter().map(|program| program.kernel.clone()).collect();
        let module = make(&kernels, &|code| Module::build(&context, code).unwrap());
        for program in &programs {
            let found = run(&context, &module, program);
            if let Some(text) = differ(program, &Expected(with_zeros(program)), &found) {
                panic!("{target}: {text}");
            }
        }
    }
}

/// If a kernel has a fault, the code of each writer has another result on the device.
#[test]
fn every_planted_fault_is_seen_on_the_device() {
    let Some(context) = open() else { return };
    for fault @ (name, _, shows) in FAULTS {
        let programs = planted(fault, first_seed(), PLANTED, &[]);
        assert!(!programs.is_empty(), "{name}: no program has a place for it");
        let kernels: Vec<Kernel> = programs.iter().map(|planted| planted.wrong.kernel.clone()).collect();
        for (target, make) in TARGETS {
            let module = make(&kernels, &|code| Module::build(&context, code).unwrap());
            let (seen, all) = (seen(&context, &module, &programs), programs.len());
            println!("{name}, {target}: seen in {seen} of {all} programs");
            assert!(shows.suffices(seen, all), "{name}, {target}: seen in {seen} of {all} programs");
        }
    }
}
