//! Launches on devices.

use pyo3::prelude::*;
use usm_core::backend::Dyn;
use usm_core::{Access, AllocKind, Event, Queue, Usage};
use usm_kernel::backend::Slot;
use usm_kernel::{Function, Launch, LaunchError, NdRange, Range};
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::{Literal, Parameter, Scalar, length};

use super::code::{ALL, Source, Variant};
use super::launch::Prepared;
use crate::device::runtime::Stream;
use crate::storage::{Storage, with_turns};
use crate::text::error::OrRaise;

/// An argument in the form of the runtimes.
pub(crate) enum Passed {
    Pointer(usize),
    Value(Literal),
    Local(usize, usize),
}

/// Submits a launch. With `record`, in which it records an index outside, the code checks.
pub(crate) fn run(
    py: Python<'_>,
    prepared: &Prepared,
    record: Option<&Storage>,
    after: &[Event<Dyn>],
) -> PyResult<Event<Dyn>> {
    let Prepared { code, arguments, stream, global, local, values, lengths, .. } = prepared;
    let scalar = code.has_zero_stride(stream, (values, arguments));
    let (guarded, rounded) = code.guard(stream.context(), global, local.is_some());
    let function = code.function(py, stream, Variant { checks: record.is_some(), scalar, guarded })?;
    let mut tables = Vec::new();
    for bytes in &code.tables {
        let table = Storage::allocate(stream, AllocKind::Device, bytes.len(), 0).or_raise()?;
        py.detach(|| table.write(&stream.queue, 0, bytes.clone())).or_raise()?;
        tables.push(table);
    }
    let mut passed = Vec::new();
    let mut memory: Vec<(&Storage, Access)> = Vec::new();
    for (place, (source, parameter)) in code.sources.iter().zip(&code.ir.parameters).enumerate() {
        let access = if code.writes(place) { Access::Write } else { Access::Read };
        passed.push(match (source, parameter) {
            (_, Parameter::Value(id)) => Passed::Value(values[id.0 as usize]),
            (Source::Table(number), _) => {
                memory.push((&tables[*number], Access::Read));
                Passed::Pointer(tables[*number].address())
            }
            _ => {
                let array = code.memory(*source, arguments)?;
                let (start, _) = array.span();
                memory.push((&array.side.storage, access));
                Passed::Pointer(array.side.storage.address() + start)
            }
        });
    }
    let taken = match record {
        Some(_) => &code.answers.checked_lengths,
        None => &code.answers.lengths,
    };
    for id in taken {
        passed.push(Passed::Value(Literal::integer(Scalar::U64, lengths[id.0 as usize])));
    }
    if guarded {
        let sizes = global.iter().rev().map(|size| Literal::integer(Scalar::U64, *size));
        passed.extend(sizes.map(Passed::Value));
    }
    if let Some(record) = record {
        memory.push((record, Access::Write));
        passed.push(Passed::Pointer(record.address()));
    }
    for (element, len) in &code.answers.locals {
        let elements = length(len, global, local.as_deref().unwrap_or(&[]), values);
        let bytes = elements.checked_mul(element.bytes()).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.unwrap_or(usize::MAX / 2);
        let alignment = element.bytes() as usize;
        passed.push(Passed::Local(bytes.max(alignment), alignment));
    }
    let words: Vec<[u8; 8]> = passed.iter().map(Passed::word).collect();
    let slots: Vec<Slot<'_>> = passed.iter().zip(&words).map(|(one, word)| one.slot(word)).collect();
    let range = Space { global, local: local.as_deref(), rounded };
    // SAFETY: the code comes from verified nodes. Its indices are inside, which was proven for this
    // launch or is checked by the code. Races between items are the kernel author's, as for every
    // array of Python.
    let event = py.detach(|| unsafe { submit(stream, &function, range, &slots, &memory, after) });
    event.map_err(|error| code.error(&error.to_string()))
}

impl Passed {
    /// The bytes of a value.
    pub(crate) fn word(&self) -> [u8; 8] {
        match self {
            Self::Value(literal) => literal.to_ne_bytes().0,
            _ => [0; 8],
        }
    }

    /// The argument for a runtime; `word` has the bytes of a value.
    pub(crate) fn slot<'w>(&self, word: &'w [u8; 8]) -> Slot<'w> {
        match self {
            Self::Pointer(address) => Slot::Pointer(*address),
            Self::Value(literal) => Slot::Value(word.get(..literal.to_ne_bytes().1).unwrap_or(word)),
            Self::Local(bytes, alignment) => Slot::Local { bytes: *bytes, alignment: *alignment },
        }
    }
}

/// The range of a call, and whether it may be rounded up to whole groups.
#[derive(Clone, Copy)]
pub(crate) struct Space<'s> {
    pub(crate) global: &'s [u64],
    pub(crate) local: Option<&'s [u64]>,
    pub(crate) rounded: bool,
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
        usages.extend(storage.map(|(storage, _)| Usage::of(storage.allocation(), *access)));
    }
    let storages: Vec<&Storage> = memory.iter().map(|(storage, _)| *storage).collect();
    let queue = &stream.queue;
    let run = match space.global.len() {
        1 => submit_in::<1>,
        2 => submit_in::<2>,
        _ => submit_in::<3>,
    };
    // SAFETY: the caller's promise; the turns of all blocks are held.
    with_turns(&storages, || unsafe { run(queue, function, space, slots, &usages, after) })?
}

/// The sizes of a range as an array; missing dimensions are 1.
fn sizes_of<const D: usize>(sizes: &[u64]) -> [u64; D] {
    core::array::from_fn(|dimension| sizes.get(dimension).copied().unwrap_or(1))
}

/// # Safety
/// As [`submit`], whose turns are held.
unsafe fn submit_in<const D: usize>(
    queue: &Queue<Dyn>,
    function: &Function<Dyn>,
    Space { global, local, rounded }: Space<'_>,
    slots: &[Slot<'_>],
    usages: &[Usage<'_, Dyn>],
    after: &[Event<Dyn>],
) -> Result<Event<Dyn>, LaunchError> {
    let launch = match local {
        Some(local) => Launch::new(queue, NdRange::<D>::new(sizes_of(global), sizes_of(local))?),
        None if rounded => Launch::with_range(queue, Range::<D>::new(sizes_of(global))?).round_up(),
        None => Launch::with_range(queue, Range::<D>::new(sizes_of(global))?),
    };
    // SAFETY: the caller's promise.
    unsafe { launch.after(after).call_slots(function, slots, usages) }
}

/// Runs code that checks indices, waits, and raises the first one that was outside.
pub(crate) fn run_checked(py: Python<'_>, prepared: &Prepared, after: &[Event<Dyn>]) -> PyResult<()> {
    let stream = &prepared.stream;
    let bytes = checked::WORDS * 4;
    let record = Storage::allocate(stream, AllocKind::Device, bytes, 8).or_raise()?;
    py.detach(|| record.fill(&stream.queue, 0, bytes, &[0])).or_raise()?;
    let event = run(py, prepared, Some(&record), after)?;
    let found = py.detach(|| {
        event.wait()?;
        record.read(&stream.queue, 0, bytes, vec![0; bytes])
    });
    let found = found.or_raise()?;
    let word = |place: usize| Literal::from_ne_bytes(Scalar::U32, &found[4 * place..]).bits as u32;
    prepared.code.recorded(ALL, core::array::from_fn(word), &prepared.arguments)
}
