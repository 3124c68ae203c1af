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
use super::prepared_launch::PreparedLaunch;
use crate::device::runtime::Stream;
use crate::process::wait;
use crate::storage::{Storage, turns_of};
use crate::text::error::OrRaise;

/// Submits a launch. With `record`, in which it records an index outside, the code checks.
pub(crate) fn run(
    py: Python<'_>,
    launch: &PreparedLaunch,
    record: Option<&Storage>,
    after: &[Event<Dyn>],
) -> PyResult<Event<Dyn>> {
    let PreparedLaunch { code, arguments, stream, global, local, values, .. } = launch;
    let scalar = code.has_zero_stride(stream, (values, arguments));
    let (has_guard, is_rounded) = code.program.guard(stream.context(), global, local.is_some());
    let function =
        code.function(py, stream, Variant { checks: record.is_some(), scalar, guarded: has_guard })?;
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
    let values =
        launch.with_shape(|shape| code.program.pass(shape, has_guard, record, |place| addresses[place]));
    let words: Vec<[u8; 8]> = values.iter().map(DeviceArgument::word).collect();
    let slots: Vec<Slot<'_>> = values.iter().zip(&words).map(|(one, word)| one.slot(word)).collect();
    let range = Space { global, local: local.as_deref(), rounded: is_rounded };
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
    let mut usages_by_address: Vec<(usize, Access)> = Vec::new();
    for (storage, access) in memory {
        let address = storage.address();
        match usages_by_address.iter_mut().find(|(other, _)| *other == address) {
            Some((_, other)) if *access == Access::Write => *other = Access::Write,
            Some(_) => {}
            None => usages_by_address.push((address, *access)),
        }
    }
    for (address, access) in &usages_by_address {
        let storage = memory.iter().find(|(storage, _)| storage.address() == *address);
        // SAFETY: the work on it is submitted below, in the turns of all blocks.
        usages.extend(storage.map(|(storage, _)| Usage::of(unsafe { storage.allocation() }, *access)));
    }
    let storages: Vec<&Storage> = memory.iter().map(|(storage, _)| *storage).collect();
    let queue = &stream.queue;
    let _turns = turns_of(&storages)?;
    // SAFETY: the caller's promise; the turns of all blocks are held.
    let event = unsafe { device::submit(queue, function, space, slots, &usages, after) };
    event.inspect(|event| stream.note(event))
}

/// Runs code that checks indices, waits, and raises the first one that was outside.
pub(crate) fn run_checked(py: Python<'_>, launch: &PreparedLaunch, after: &[Event<Dyn>]) -> PyResult<()> {
    let stream = &launch.stream;
    let bytes = checked::WORDS * 4;
    let record = Storage::allocate(stream, AllocKind::Device, bytes, 8).or_raise()?;
    // The launch follows it.
    drop(py.detach(|| record.submit_fill(&stream.queue, 0, bytes, &[0])).or_raise()?);
    let event = run(py, launch, Some(&record), after)?;
    wait::for_event(py, &event)?;
    let words = py.detach(|| record.read(&stream.queue, 0, bytes, vec![0; bytes])).or_raise()?;
    let word = |place: usize| Literal::from_ne_bytes(Scalar::U32, &words[4 * place..]).bits as u32;
    launch.code.recorded(ALL, core::array::from_fn(word), &launch.arguments)
}
