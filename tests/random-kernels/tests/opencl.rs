//! Random kernels on the OpenCL device, as OpenCL C and as SPIR-V, compared with the interpreter.
//! The vendor's compiler and runtime are in a child process.

#![allow(clippy::std_instead_of_alloc, reason = "a test: std is always there")]

mod common;
#[path = "common/device.rs"]
mod device;
#[path = "common/vendor.rs"]
mod vendor;

use std::collections::BTreeMap;
use std::sync::Mutex;

use usm_core::backend::{Backend as _, DeviceOps as _};
use usm_core::{AllocKind, Context};
use usm_kernel::{Code, Module};
use usm_kernel_ir::{Kernel, emit};
use usm_opencl::OpenCl;
use usm_random_kernels::plants::{FAULTS, Planted, Shows, forgetful, planted, with_zeros};
use usm_random_kernels::{Program, build_cases, first_seed, plain, program};
use usm_tests::skip;

use common::{Expected, differ, expected, first_jumps, first_kernels};
use device::run;
use vendor::{Done, Vendor, Work, most_deaths, serve_as_child};

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

/// The targets; the last one runs nothing.
const OPENCL_C: &str = "OpenCL C";
const SPIRV: &str = "SPIR-V";
const NOWHERE: &str = "nowhere";

/// The sets of programs; those with a planted fault have the fault's name.
const ALL: &str = "all";
const FORGETFUL: &str = "forgetful";
const FEW: &str = "few";

/// Programs of that one.
const FEWEST: u64 = 8;

/// Programs of a fault's set, at most.
const PLANTED: usize = 24;

/// Programs that lack some of their writes.
const LACKING: usize = 40;

/// The test that is the child, and what it does without a parent.
const CHILD: &str = "a_death_of_the_compiler_is_one_program_told_by_name";

/// The child of all tests with a device.
static VENDOR: Mutex<Vendor> = Mutex::new(Vendor::new(CHILD, &[]));

fn judge(target: &str, set: &str, leave_out: &[&str]) -> Option<Done> {
    // A test that failed says so itself.
    let mut vendor = VENDOR.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match vendor.judge(target, set, leave_out) {
        Ok(done) => {
            for name in &done.died {
                skip::part("opencl", format!("{name}: the vendor's compiler died of it as {target}"));
            }
            done.check_deaths(target).unwrap_or_else(|error| panic!("{error}"));
            Some(done)
        }
        Err(reason) => {
            skip::missing("opencl", reason);
            None
        }
    }
}

#[test]
fn random_kernels_agree_on_opencl_c() {
    let Some(done) = judge(OPENCL_C, ALL, &[]) else { return };
    assert!(done.differs.is_empty(), "{}", done.differs.join("\n"));
}

#[test]
fn random_kernels_agree_on_spirv() {
    for name in ENDLESS_AS_SPIRV {
        skip::part("opencl", format!("{name}: the runtime's compiler never ends"));
    }
    let Some(done) = judge(SPIRV, ALL, ENDLESS_AS_SPIRV) else { return };
    assert!(done.differs.is_empty(), "{}", done.differs.join("\n"));
}

#[test]
fn memory_that_nobody_wrote_is_zero_on_the_device() {
    for target in [OPENCL_C, SPIRV] {
        let Some(done) = judge(target, FORGETFUL, &[]) else { return };
        assert!(done.programs() >= LACKING / 2, "{} programs", done.programs());
        assert!(done.differs.is_empty(), "{target}: {}", done.differs.join("\n"));
    }
}

/// If a kernel has a fault, the code of each writer has another result on the device.
#[test]
fn every_planted_fault_is_seen_on_the_device() {
    for (name, _, shows) in FAULTS {
        for target in [OPENCL_C, SPIRV] {
            let Some(done) = judge(target, name, &[]) else { return };
            let (seen, all) = (done.differs.len(), done.differs.len() + done.same);
            assert!(all > 0, "{name}: no program has a place for it");
            println!("{name}, {target}: seen in {seen} of {all} programs");
            if shows == Shows::AtOnce && seen == 0 {
                // Few items, on a processor whose vectors do not store to several places.
                skip::part("opencl", format!("{name}: the runtime runs the items one after another"));
                continue;
            }
            assert!(shows.suffices(seen, all), "{name}, {target}: seen in {seen} of {all} programs");
        }
    }
}

#[test]
fn a_death_of_the_compiler_is_one_program_told_by_name() {
    serve_as_child(Sets::default());
    const NAMES: &[&str] = &["random_1", "random_2", "random_8"];
    assert_eq!(most_deaths(FEWEST as usize), 2);
    for dies_of in [&[], &NAMES[..2], NAMES] {
        let done = Vendor::new(CHILD, dies_of).judge(NOWHERE, FEW, &[]).unwrap();
        assert_eq!(done.died, dies_of);
        assert_eq!((done.same, done.differs.len()), (FEWEST as usize - dies_of.len(), 0));
        match done.check_deaths(NOWHERE) {
            Ok(()) => assert!(dies_of.len() <= 2),
            Err(text) => {
                assert!(dies_of.len() > 2 && text.contains("random_1, random_2, random_8"), "{text}")
            }
        }
    }
}

/// The child's device and sets of programs.
#[derive(Default)]
struct Sets {
    context: Option<Result<Context<OpenCl>, String>>,
    sets: BTreeMap<String, Vec<Member>>,
}

/// A program that runs, and what decides its results.
enum Member {
    Whole(Program),
    Lacking(Program),
    Wrong(Box<Planted>),
}

impl Member {
    fn program(&self) -> &Program {
        match self {
            Self::Whole(program) | Self::Lacking(program) => program,
            Self::Wrong(planted) => &planted.wrong,
        }
    }
}

fn members(set: &str) -> Vec<Member> {
    let first = first_seed();
    if set == FEW {
        return (1..=FEWEST).map(program).map(Member::Whole).collect();
    }
    if set == FORGETFUL {
        return forgetful(first, LACKING).into_iter().map(Member::Lacking).collect();
    }
    if let Some(fault) = FAULTS.into_iter().find(|(name, ..)| *name == set) {
        let programs = planted(fault, first, PLANTED, &[]).into_iter();
        return programs.map(|planted| Member::Wrong(Box::new(planted))).collect();
    }
    let texts = first..first + build_cases("USM_RANDOM_PLAIN", PLAIN);
    let mut programs: Vec<Program> = first_kernels()
        .chain(first_jumps())
        .chain(LOST.map(program))
        .chain(texts.map(plain::program))
        .collect();
    programs.sort_by(|one, two| one.kernel.name.cmp(&two.kernel.name));
    programs.dedup_by(|one, two| one.kernel.name == two.kernel.name);
    programs.into_iter().map(Member::Whole).collect()
}

impl Work for Sets {
    fn names(&mut self, target: &str, set: &str) -> Result<Vec<String>, String> {
        if target != NOWHERE {
            self.context.get_or_insert_with(open).as_ref().map_err(Clone::clone)?;
        }
        let members = self.sets.entry(set.to_owned()).or_insert_with(|| members(set));
        Ok(members.iter().map(|member| member.program().kernel.name.clone()).collect())
    }

    fn build(
        &mut self,
        target: &str,
        set: &str,
        programs: &[usize],
    ) -> Box<dyn FnMut(usize) -> Option<String> + '_> {
        let Some(members) = self.sets.get(set) else { unreachable!("its names were asked for") };
        let Some(Ok(context)) = &self.context else { return Box::new(|_| None) };
        if target == NOWHERE {
            return Box::new(|_| None);
        }
        let kernels: Vec<Kernel> = programs.iter().map(|at| members[*at].program().kernel.clone()).collect();
        let built = match target {
            SPIRV => Module::build(context, Code::SpirV(&emit::spirv_module(&kernels))),
            _ => {
                let text = emit::opencl_c_module(&kernels);
                Module::build_with(context, Code::OpenClC(&text), emit::GUARD)
            }
        };
        let built = built.map_err(|error| format!("{} and further ones: {error}", kernels[0].name));
        Box::new(move |at| {
            let module = match &built {
                Ok(module) => module,
                Err(error) => return Some(error.clone()),
            };
            let member = &members[at];
            let mut found = run(context, module, member.program());
            match member {
                Member::Whole(program) => differ(program, &expected(program), &found),
                Member::Lacking(program) => differ(program, &Expected(with_zeros(program)), &found),
                Member::Wrong(planted) => {
                    planted.cut(&mut found);
                    differ(&planted.right, &expected(&planted.right), &found)
                }
            }
        })
    }
}

/// The first device with USM memory.
fn open() -> Result<Context<OpenCl>, String> {
    let backend = OpenCl::load().map_err(|error| error.to_string())?;
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
}
