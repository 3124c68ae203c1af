//! Launches on devices.

use pyo3::prelude::*;
use usm_core::backend::Dyn;
use usm_core::{Access, AllocKind, Event, Usage};
use usm_kernel::backend::Slot;
use usm_kernel::{Function, LaunchError};
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::{Literal, Scalar};
use usm_kernel_jit::device::{self, DeviceArgument, Space, Variant};
use usm_kernel_jit::program::ALL;

use super::code::Source;
use super::launch::Prepared;
use crate::device::runtime::Stream;
use crate::process::wait;
use crate::storage::{Storage, turns_of};
use crate::text::error::OrRaise;

/// Submits a launch. With `record`, in which it records an index outside, the code checks.
pub(crate) fn run(
    py: Python<'_>,
    prepared: &Prepared,
    record: Option<&Storage>,
    after: &[Event<Dyn>],
) -> PyResult<Event<Dyn>> {
    let Prepared { code, arguments, stream, global, local, values, .. } = prepared;
    let scalar = code.has_zero_stride(stream, (values, arguments));
    let (guarded, rounded) = code.program.guard(stream.context(), global, local.is_some());
    let function = code.function(py, stream, Variant { checks: record.is_some(), scalar, guarded })?;
    let mut tables = Vec::new();
    for bytes in &code.tables {
        let table = Storage::allocate(stream, AllocKind::Device, bytes.len(), 0).or_raise()?;
        wait::for_access(py, &table, stream, Access::Write)?;
        py.detach(|| table.write(&stream.queue, 0, bytes.clone())).or_raise()?;
        tables.push(table);
    }
    let mut addresses = Vec::new();
    let mut memory: Vec<(&Storage, Access)> = Vec::new();
    for (place, source) in code.sources.iter().enumerate() {
        let access = if code.writes(place) { Access::Write } else { Access::Read };
        addresses.push(match source {
            Source::Table(number) => {
                memory.push((&tables[*number], Access::Read));
                tables[*number].address()
            }
            Source::Array(_) => {
                let array = code.memory(*source, arguments)?;
                memory.push((&array.side.storage, access));
                array.side.storage.address() + array.span().0
            }
            _ => 0,
        });
    }
    memory.extend(record.map(|record| (record, Access::Write)));
    let record = record.map(|record| record.address());
    let passed =
        prepared.with_shape(|shape| code.program.pass(shape, guarded, record, |place| addresses[place]));
    let words: Vec<[u8; 8]> = passed.iter().map(DeviceArgument::word).collect();
    let slots: Vec<Slot<'_>> = passed.iter().zip(&words).map(|(one, word)| one.slot(word)).collect();
    let range = Space { global, local: local.as_deref(), rounded };
    // SAFETY: the code comes from verified nodes. Its indices are inside, which was proven for this
    // launch or is checked by the code. Races between items are the kernel author's, as for every
    // array of Python.
    let event = py.detach(|| unsafe { submit(stream, &function, range, &slots, &memory, after) });
    event.map_err(|error| code.error(&error.to_string()))
}

/// Submits a call that uses `memory`. A block that is listed twice is written if one entry is.
///
/// # Safety
/// With these arguments and this range the code accesses only the given memory.
pub(crate) unsafe fn submit(
    stream: &Stream,
    function: &Function<Dyn>,
    space: Space<'_>,
    slots: &[Slot<'_>],
    memory: &[(&Storage, Access)],
    after: &[Event<Dyn>],
) -> Result<Event<Dyn>, LaunchError> {
    let mut usages: Vec<Usage<'_, Dyn>> = Vec::new();
    let mut seen: Vec<(usize, Access)> = Vec::new();
    for (storage, access) in memory {
        let address = storage.address();
        match seen.iter_mut().find(|(known, _)| *known == address) {
            Some((_, known)) if *access == Access::Write => *known = Access::Write,
            Some(_) => {}
            None => seen.push((address, *access)),
        }
    }
    for (address, access) in &seen {
        let storage = memory.iter().find(|(storage, _)| storage.address() == *address);
        // SAFETY: the work on it is submitted below, in the turns of all blocks.
        usages.extend(storage.map(|(storage, _)| Usage::of(unsafe { storage.allocation() }, *access)));
    }
    let storages: Vec<&Storage> = memory.iter().map(|(storage, _)| *storage).collect();
    let queue = &stream.queue;
    let _turns = turns_of(&storages)?;
    // SAFETY: the caller's promise; the turns of all blocks are held.
    let submitted = unsafe { device::submit(queue, function, space, slots, &usages, after) };
    submitted.inspect(|event| stream.note(event))
}

/// Runs code that checks indices, waits, and raises the first one that was outside.
pub(crate) fn run_checked(py: Python<'_>, prepared: &Prepared, after: &[Event<Dyn>]) -> PyResult<()> {
    let stream = &prepared.stream;
    let bytes = checked::WORDS * 4;
    let record = Storage::allocate(stream, AllocKind::Device, bytes, 8).or_raise()?;
    // The launch follows it.
    drop(py.detach(|| record.submit_fill(&stream.queue, 0, bytes, &[0])).or_raise()?);
    let event = run(py, prepared, Some(&record), after)?;
    wait::for_event(py, &event)?;
    let found = py.detach(|| record.read(&stream.queue, 0, bytes, vec![0; bytes])).or_raise()?;
    let word = |place: usize| Literal::from_ne_bytes(Scalar::U32, &found[4 * place..]).bits as u32;
    prepared.code.recorded(ALL, core::array::from_fn(word), &prepared.arguments)
}
