//! The interpreter against CUDA C: NVRTC compiles the kernels. The expected results come from the
//! language, not from the instructions.

mod arithmetic;
mod constants;
mod refused;
mod warp;

use alloc::ffi::CString;
use core::ffi::c_char;
use core::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use super::{Fault, Launch, Module, Range, parse, run};
use crate::api::hiprtc as nvrtc;

/// The first devices that have every warp instruction of these tests.
const OPTIONS: &[&core::ffi::CStr] = &[c"--gpu-architecture=compute_80"];

/// Compiles CUDA C to PTX. `None` without a compiler, unless `USM_REQUIRE` demands one.
fn text_of(source: &str) -> Option<String> {
    // The compiler takes one thread at a time (see `hiprtc.rs`).
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    let _alone = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let source = CString::new(source).unwrap();
    let (mut program, options) = (core::ptr::null_mut(), OPTIONS.iter().map(|option| option.as_ptr()));
    let options: Vec<*const c_char> = options.collect();
    let (source, none) = (source.as_ptr(), core::ptr::null());
    // SAFETY: texts that end with a zero, and room for the answer.
    if unsafe { nvrtc::hiprtcCreateProgram(&raw mut program, source, c"test.cu".as_ptr(), 0, none, none) }
        != 0
    {
        skip::missing("nvrtc", "the interpreter of PTX against CUDA C: USM_NVRTC_LIBRARY names no library");
        return None;
    }
    // SAFETY: a program, and as many options.
    let outcome = unsafe { nvrtc::hiprtcCompileProgram(program, options.len() as i32, options.as_ptr()) };
    let (mut log_size, mut code_size) = (0, 0);
    // SAFETY: a program, and room for the answer.
    unsafe { nvrtc::hiprtcGetProgramLogSize(program, &raw mut log_size) };
    let mut log = vec![0_u8; log_size];
    // SAFETY: the buffer has the queried size.
    unsafe { nvrtc::hiprtcGetProgramLog(program, log.as_mut_ptr().cast()) };
    assert_eq!(outcome, 0, "{}", String::from_utf8_lossy(&log));
    // SAFETY: a compiled program, and room for the answer.
    unsafe { nvrtc::hiprtcGetCodeSize(program, &raw mut code_size) };
    let mut code = vec![0_u8; code_size];
    // SAFETY: the buffer has the queried size.
    unsafe { nvrtc::hiprtcGetCode(program, code.as_mut_ptr().cast()) };
    // SAFETY: the program is not used after this.
    unsafe { nvrtc::hiprtcDestroyProgram(&raw mut program) };
    code.retain(|byte| *byte != 0);
    Some(String::from_utf8(code).unwrap())
}

/// Compiles and loads CUDA C.
fn module(source: &str) -> Option<Module> {
    let text = text_of(source)?;
    Some(parse(&text).unwrap_or_else(|reason| panic!("{reason}\n{text}")))
}

/// An argument of a kernel: memory, passed by its address, or a number.
enum Argument<'a> {
    Memory(Range, PhantomData<&'a mut ()>),
    Number(u32),
}

fn memory<T: Copy>(slice: &mut [T]) -> Argument<'_> {
    let (start, bytes) = (slice.as_mut_ptr() as usize, size_of_val(slice));
    Argument::Memory(Range { start, bytes, own: start }, PhantomData)
}

/// Runs a kernel on `blocks` blocks of `threads` threads in direction X.
fn launch(
    module: &Module,
    name: &str,
    sizes: [u32; 2],
    reversed: bool,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    launch_in_turns(module, name, sizes, (reversed, None), arguments)
}

/// As [`launch`], in turns of some steps.
fn launch_in_turns(
    module: &Module,
    name: &str,
    [blocks, threads]: [u32; 2],
    (reversed, turns): (bool, Option<u64>),
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let entry = module.entries.iter().find(|entry| entry.name == name).unwrap();
    let mut parameters = vec![0; entry.parameter_bytes()];
    let mut ranges = Vec::new();
    assert_eq!(entry.parameters.len(), arguments.len());
    for (parameter, argument) in entry.parameters.iter().zip(arguments) {
        let place = &mut parameters[parameter.offset..][..parameter.bytes];
        match argument {
            Argument::Memory(range, _) => {
                place.copy_from_slice(&range.start.to_le_bytes());
                ranges.push(*range);
            }
            Argument::Number(number) => place.copy_from_slice(&number.to_le_bytes()),
        }
    }
    ranges.sort_by_key(|range| range.start);
    let (group, groups) = ([threads, 1, 1], [blocks, 1, 1]);
    let (constants, ranges, parameters) = (&*module.constants, &*ranges, &*parameters);
    run(&Launch { entry, constants, group, groups, parameters, shared_bytes: 0, ranges, reversed, turns })
}

/// Pseudo-random numbers, equal in each run.
fn numbers(seed: u32) -> impl Iterator<Item = u32> {
    let mut state = u64::from(seed) | 0x9E37_79B9_0000_0000;
    core::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    })
}
