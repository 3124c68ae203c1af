//! Random kernels as CUDA C: NVRTC compiles them, and the driver of `cuda-driver` runs them on the
//! host.

#![allow(clippy::std_instead_of_alloc, reason = "a test: std is always there")]

mod common;
#[path = "common/device.rs"]
mod device;

use core::ffi::c_char;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;
use usm_core::Context;
use usm_core::backend::Backend as _;
use usm_cuda::Cuda;
use usm_kernel::{BuildError, Code, Module};
use usm_kernel_ir::{Kernel, emit};
use usm_random_kernels::plants::{FAULTS, planted};
use usm_random_kernels::{Program, first_seed};
use usm_tests::skip;

use common::{differ, expected, first_jumps, first_kernels};
use device::{run, seen};

/// Programs of one module.
const MODULE: usize = 100;

/// Programs of one module with a planted fault, at most.
const PLANTED: usize = 12;

#[test]
fn random_kernels_agree_on_cuda_c() {
    let programs: Vec<Program> = first_kernels().chain(first_jumps()).collect();
    // One item after the other, and in turns of some instructions.
    for settings in ["", "late", "turns=3"] {
        let Some(driver) = Driver::open(settings) else { return };
        for programs in programs.chunks(MODULE) {
            let kernels: Vec<Kernel> = programs.iter().map(|program| program.kernel.clone()).collect();
            let Some(module) = driver.module(&kernels) else { return };
            for program in programs {
                let found = run(&driver.context, &module, program);
                if let Some(text) = differ(program, &expected(program), &found) {
                    panic!("{settings:?}: {text}");
                }
            }
        }
    }
}

/// The driver runs the items of a group one after the other, from barrier to barrier, or in turns
/// of one instruction. One of the two shows each fault.
#[test]
fn every_planted_fault_is_seen_in_cuda_c() {
    for fault @ (name, _, shows) in FAULTS {
        let programs = planted(fault, first_seed(), PLANTED, &[]);
        assert!(!programs.is_empty(), "{name}: no program has a place for it");
        let kernels: Vec<Kernel> = programs.iter().map(|planted| planted.wrong.kernel.clone()).collect();
        let all = programs.len();
        let mut most = 0;
        for settings in ["", "turns=1"] {
            let Some(driver) = Driver::open(settings) else { return };
            let Some(module) = driver.module(&kernels) else { return };
            let seen = seen(&driver.context, &module, &programs);
            println!("{name}, {settings:?}: seen in {seen} of {all} programs");
            most = most.max(seen);
        }
        assert!(shows.suffices(most, all), "{name}: seen in {most} of {all} programs");
    }
}

/// The driver with its settings, for one test at a time.
struct Driver {
    context: Context<Cuda>,
    _turn: MutexGuard<'static, ()>,
}

impl Driver {
    /// Reports if it is missing.
    fn open(settings: &str) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = || {
            let path = std::env::var_os("USM_CUDA_DRIVER").map(PathBuf::from);
            let path = path.ok_or("USM_CUDA_DRIVER not set (cargo build -p usm-cuda-driver)")?;
            let backend = Cuda::open(&path).map_err(|error| error.to_string())?;
            // SAFETY: the library is already open; this adds a reference.
            let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
            let text = CString::new(settings).expect("text");
            // SAFETY: the signature of the driver, and a text that ends with a zero.
            let set = unsafe {
                library.get::<unsafe extern "C" fn(*const c_char) -> u32>(b"usm_cuda_settings").unwrap()(
                    text.as_ptr(),
                )
            };
            assert_eq!(set, 0, "{settings} is not understood");
            let mut found = None;
            backend.for_each_device(&mut |device| found = Some(device)).map_err(|error| error.to_string())?;
            let device = found.ok_or("no device")?;
            Context::new(&backend, &device).map_err(|error| error.to_string())
        };
        match opened() {
            Ok(context) => Some(Self { context, _turn: turn }),
            Err(reason) => {
                skip::missing("cuda_on_host", reason);
                None
            }
        }
    }

    /// The module of these kernels. Reports if the compiler is missing.
    fn module(&self, kernels: &[Kernel]) -> Option<Module<Cuda>> {
        match Module::build(&self.context, Code::CudaC(&emit::cuda_c_module(kernels))) {
            Ok(module) => Some(module),
            Err(BuildError::Runtime(error)) => {
                skip::missing("nvrtc", error);
                None
            }
            Err(error) => panic!("{} and further ones: {error}", kernels[0].name),
        }
    }
}
