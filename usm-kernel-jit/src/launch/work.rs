//! The work of a launch on the host, and its faults.

use std::slice;
use std::sync::Arc;

use usm_kernel_ir::emit::checked;
use usm_kernel_ir::{Argument, CheckError, Fault, Literal, Parameter, Space};

use crate::error::LaunchError;
use crate::host::{Groups, HostCode, HostLaunch, RunError};
use crate::program::{Open, Outside, Program};

/// A launch on the host, with all that it needs.
pub(super) struct HostWork {
    pub(super) program: Arc<Program>,
    /// `None` where the kernel is interpreted.
    pub(super) code: Option<Arc<HostCode>>,
    pub(super) open: Open,
    /// Whether one thread runs it, because the order of items is unknown.
    pub(super) is_unordered: bool,
    /// Addresses of the arrays among the parameters.
    pub(super) addresses: Vec<usize>,
    /// Their bytes.
    pub(super) bytes: Vec<usize>,
    pub(super) values: Vec<Literal>,
    pub(super) lengths: Vec<u64>,
    pub(super) global: Vec<u64>,
    pub(super) local: Option<Vec<u64>>,
}

impl HostWork {
    /// # Safety
    /// Until this returns the arrays are live, and not used in conflict by other code. No two items
    /// race, or the launch is unordered.
    pub(super) unsafe fn run(&self) -> Result<(), LaunchError> {
        let program = &*self.program;
        if self.global.contains(&0) {
            return Ok(());
        }
        let Some(code) = &self.code else {
            // SAFETY: the caller's promise.
            return unsafe { self.interpret(program) };
        };
        let values: Vec<u64> = self.values.iter().map(|value| value.bits).collect();
        let launch = HostLaunch {
            code,
            addresses: &self.addresses,
            checks: self.open != 0,
            values: &values,
            lengths: &self.lengths,
            groups: Groups::of(&self.global, self.local.as_deref()),
        };
        // SAFETY: the caller's promise; indices are inside, which was proven for this launch or is
        // checked by the code.
        let record = unsafe { launch.run(&mut (), || !self.is_unordered && !program.answers().has_atomics) };
        check_record(program, self.open, &record.map_err(|error| failure(program, error))?)
    }

    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn interpret(&self, program: &Program) -> Result<(), LaunchError> {
        let copy = |(address, len): (&usize, &usize)| match len {
            0 => Vec::new(),
            // SAFETY: the caller's promise; elements of arrays are initialised.
            _ => unsafe { slice::from_raw_parts(*address as *const u8, *len) }.to_vec(),
        };
        let bytes: Vec<Vec<u8>> = self.addresses.iter().zip(&self.bytes).map(copy).collect();
        let arguments = interpreter_arguments(program, &self.values, &bytes);
        let local = self.local.clone().unwrap_or_else(|| vec![1; self.global.len()]);
        let ran = program.interpret((&self.global, &local), &arguments, &mut || true);
        let after = ran.map_err(|error| fault(program, error))?.unwrap_or_default();
        let kernel = program.kernel();
        let arrays = kernel.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Array(id) => Some(kernel.array(*id)),
            Parameter::Value(_) => None,
        });
        for ((array, contents), address) in arrays.zip(after).zip(&self.addresses) {
            if matches!(array.space, Space::Write | Space::Atomic) && !contents.is_empty() {
                // SAFETY: the caller's promise; the array is borrowed alone, because the kernel
                // writes it, and has as many bytes as its copy.
                unsafe { slice::from_raw_parts_mut(*address as *mut u8, contents.len()) }
                    .copy_from_slice(&contents);
            }
        }
        Ok(())
    }
}

fn failure(program: &Program, error: RunError) -> LaunchError {
    match error {
        RunError::Setting(error) => LaunchError::Device(error),
        RunError::Memory(message) => LaunchError::Refused(program.located(&message)),
    }
}

/// The arguments of the interpreter. `bytes` are the contents of the arrays among the parameters.
pub(super) fn interpreter_arguments<'b>(
    program: &Program,
    values: &[Literal],
    bytes: &'b [Vec<u8>],
) -> Vec<Argument<'b>> {
    let mut bytes = bytes.iter();
    let one = |parameter: &Parameter| match parameter {
        Parameter::Value(id) => Argument::Value(values[id.0 as usize]),
        Parameter::Array(_) => Argument::Array(bytes.next().map_or(&[], Vec::as_slice)),
    };
    program.kernel().parameters.iter().map(one).collect()
}

/// The error of the words that code which checks these indices recorded, if it recorded any.
pub(super) fn check_record(
    program: &Program,
    open: Open,
    words: &[u32; checked::WORDS],
) -> Result<(), LaunchError> {
    program.check_record(open, words).map_err(|outside| match outside {
        Some(outside) => outside_error(program, outside),
        None => LaunchError::Fault(program.located("an index outside of its array")),
    })
}

/// The error of the interpreter.
pub(super) fn fault(program: &Program, error: CheckError) -> LaunchError {
    match error {
        CheckError::Fault(Fault::Outside { id, at, index, len, .. }) => {
            outside_error(program, Outside { array: id, place: at.place, index, len })
        }
        CheckError::Fault(fault) => LaunchError::Fault(program.located(&fault.to_string())),
        other => LaunchError::Refused(program.located(&other.to_string())),
    }
}

fn outside_error(program: &Program, Outside { array, place, index, len }: Outside) -> LaunchError {
    let (place, array) = (program.kernel().locate(place), program.kernel().array(array));
    match array.assertion() {
        Some(assertion) => LaunchError::Fault(format!("{place}: `assert {assertion}` is false")),
        None => LaunchError::Outside { place, array: array.name.clone(), index: index as i64, len },
    }
}
