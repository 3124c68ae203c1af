//! Random kernels on the OpenCL device, as OpenCL C and as SPIR-V, compared with the interpreter.

mod common;
#[path = "common/plants.rs"]
mod plants;

use usm_core::backend::{Backend as _, DeviceOps as _};
use usm_core::{AllocKind, Context, Host, QueueOrder, UsmVec};
use usm_kernel::{Argument, Code, Launch, Module, NdRange};
use usm_kernel_ir::{Fault, Input, Interpreter, Kernel, Order, Parameter, emit};
use usm_opencl::OpenCl;
use usm_random_kernels::{Given, Program, first_seed, program};
use usm_tests::skip;

use common::{differ, expected, first_kernels};
use plants::{FAULTS, Plant};

/// Programs of one module: a build takes long, whatever its size.
const MODULE: usize = 100;

/// Those of the first 10,000 programs that Intel's CPU runtime 2026.2.0 gets wrong: it loses the
/// value of a variable across a barrier, or its compiler ends the process in the pass
/// `sycl-kernel-reduce-cross-barrier-values`. The interpreter in three orders and machine code
/// agree on them.
const LOST: &[&str] =
    &["random_2", "random_2447", "random_3092", "random_5055", "random_6032", "random_8277"];

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
    let mut programs: Vec<Program> = first_kernels().collect();
    programs.retain(|program| {
        let name = program.kernel.name.as_str();
        let is_lost = LOST.contains(&name) || endless.contains(&name);
        if is_lost {
            skip::part("opencl", format!("{}: the runtime's compiler is wrong", program.kernel.name));
        }
        !is_lost
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

/// Programs of one module with a planted fault, at most. Many, because a device may happen to run
/// items with a race in a right order.
const PLANTED: usize = 24;

/// If a kernel has a fault, the code of each writer has another result on the device.
#[test]
fn every_planted_fault_is_seen_on_the_device() {
    let Some(context) = open() else { return };
    let targets: [(&str, Make); 2] = [
        ("OpenCL C", |kernels, build| build(Code::OpenClC(&emit::opencl_c_module(kernels)))),
        ("SPIR-V", |kernels, build| build(Code::SpirV(&emit::spirv_module(kernels)))),
    ];
    for (fault, plant) in FAULTS {
        let programs = planted(plant);
        assert!(!programs.is_empty(), "{fault}: no program has a place for it");
        let kernels: Vec<Kernel> = programs.iter().map(|(_, changed)| changed.kernel.clone()).collect();
        for (target, make) in targets {
            let module = make(&kernels, &|code| Module::build(&context, code).unwrap());
            let seen = programs.iter().filter(|(program, changed)| {
                let mut found = run(&context, &module, changed);
                cut(program, &mut found);
                differ(program, &expected(program), &found).is_some()
            });
            let seen = seen.count();
            println!("{fault}, {target}: seen in {seen} of {} programs", programs.len());
            assert!(seen > 0, "{fault} is not seen in {target}");
        }
    }
}

/// Programs, and the same with a fault and one more element in each array. The interpreter finds
/// no index outside in the changed ones, so that a device can run them. It ends at a race; indices
/// after that are inside too, because they are ids, or remainders by the length.
fn planted(plant: Plant) -> Vec<(Program, Program)> {
    let first = first_seed();
    let programs = (first..first + 400).map(program).filter_map(|program| {
        let mut changed = program.clone();
        if LOST.contains(&program.kernel.name.as_str()) || plant(&mut changed.kernel) == 0 {
            return None;
        }
        for (given, parameter) in changed.arguments.iter_mut().zip(&program.kernel.parameters) {
            if let (Given::Array(bytes), Parameter::Array(id)) = (given, parameter) {
                bytes.extend((0..program.kernel.array(*id).element.bytes()).map(|_| 0x35));
            }
        }
        let arguments: Vec<_> = changed.arguments.iter().map(common::argument).collect();
        let input = Input::new(&changed.kernel, &changed.global, &changed.local, &arguments).ok()?;
        match Interpreter::new(&changed.kernel, input, Order::Backwards, 1 << 20).run() {
            Ok(_) | Err(Fault::Race { .. } | Fault::Unwritten { .. }) => Some((program, changed)),
            Err(_) => None,
        }
    });
    programs.take(PLANTED).collect()
}

/// Takes the additional elements away.
fn cut(program: &Program, found: &mut [Vec<u8>]) {
    let arrays = program.arguments.iter().filter(|given| matches!(given, Given::Array(_)));
    for (given, found) in arrays.zip(found) {
        found.truncate(common::bytes_of(given).len());
    }
}

fn run(context: &Context<OpenCl>, module: &Module<OpenCl>, program: &Program) -> Vec<Vec<u8>> {
    let Program { kernel, global, local, arguments } = program;
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let function = module.function(&emit::function(kernel)).unwrap();
    let mut memory = Vec::new();
    for (given, parameter) in arguments.iter().zip(&kernel.parameters) {
        if let (Given::Array(bytes), Parameter::Array(_)) = (given, parameter) {
            memory.push(UsmVec::<u8, Host, OpenCl>::from_slice(&queue, bytes).unwrap());
        }
    }
    let words: Vec<([u8; 8], usize)> = arguments
        .iter()
        .map(|given| match given {
            Given::Value(value) => value.to_ne_bytes(),
            Given::Array(_) => ([0; 8], 0),
        })
        .collect();
    let elements = |place: usize| {
        let Parameter::Array(id) = kernel.parameters[place] else { return 0 };
        common::bytes_of(&arguments[place]).len() as u64 / kernel.array(id).element.bytes()
    };
    let lengths: Vec<u64> = kernel
        .lengths()
        .into_iter()
        .map(|id| {
            let place = kernel.parameters.iter().position(|other| *other == Parameter::Array(id));
            elements(place.expect("it is one"))
        })
        .collect();
    {
        let mut given = Vec::new();
        let mut rest = memory.iter_mut();
        for (place, parameter) in kernel.parameters.iter().enumerate() {
            given.push(match parameter {
                Parameter::Array(_) => Argument::write(rest.next().expect("one for each")),
                Parameter::Value(_) => match &words[place] {
                    (word, 1) => Argument::value(word.first_chunk::<1>().expect("8 bytes")),
                    (word, 2) => Argument::value(word.first_chunk::<2>().expect("8 bytes")),
                    (word, 4) => Argument::value(word.first_chunk::<4>().expect("8 bytes")),
                    (word, _) => Argument::value(word),
                },
            });
        }
        given.extend(lengths.iter().map(Argument::value));
        let group: u64 = local.iter().product();
        // Every local array has an element for each item of the group.
        for (element, _) in emit::locals(kernel) {
            given.push(Argument::local::<u64>((group * element.bytes()).div_ceil(8) as usize));
        }
        // SAFETY: the interpreter ran the same kernel with the same arguments in three orders and
        // found every index inside and no race.
        let event = unsafe {
            match kernel.dimensions {
                1 => Launch::new(&queue, range::<1>(global, local)).call(&function, &given),
                2 => Launch::new(&queue, range::<2>(global, local)).call(&function, &given),
                _ => Launch::new(&queue, range::<3>(global, local)).call(&function, &given),
            }
        };
        event.unwrap_or_else(|error| panic!("{}: {error}", kernel.name)).wait().unwrap();
    }
    memory.iter().map(|array| array.read().unwrap().to_vec()).collect()
}

fn range<const D: usize>(global: &[u64], local: &[u64]) -> NdRange<D> {
    NdRange::new(global.try_into().unwrap(), local.try_into().unwrap()).unwrap()
}
