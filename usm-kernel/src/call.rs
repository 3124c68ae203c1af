//! Calls of functions whose types Rust did not check.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

use bytemuck::Pod;
use usm_core::backend::QueueOps;
use usm_core::{
    Access, Allocation, Backend, Buffer, ErrorKind, Event, Kind, Queue, UninitVec, Usage, UsmVec,
};

use crate::argument::{ParameterKind, Signature};
use crate::backend::{Grid, Programmable, Slot};
use crate::error::LaunchError;
use crate::launch::{Launch, LaunchSpace};
use crate::local::LocalSignature;
use crate::module::Function;
use crate::order::Order;
use crate::range::NdRange;
use crate::shape::Shape;

/// Maximum number of arguments of a call, including numbers and local arrays.
pub const MOST_ARGUMENTS: usize = crate::error::MOST_ARGUMENTS;

/// Number of arguments that most calls do not exceed.
pub const FEW_ARGUMENTS: usize = 8;

/// An argument of [`Launch::call`].
#[derive(Debug)]
pub struct Argument<'a, B: Backend> {
    content: ArgumentKind<'a, B>,
}

#[derive(Debug)]
enum ArgumentKind<'a, B: Backend> {
    Memory { allocation: &'a Allocation<B>, access: Access, offset: Option<usize>, element: usize },
    Buffer { buffer: &'a Buffer<B>, access: Access },
    Value(&'a [u8]),
    Local { bytes: Option<usize>, alignment: usize },
}

impl<'a, B: Backend> Argument<'a, B> {
    const fn memory<T>(allocation: &'a Allocation<B>, access: Access) -> Self {
        Self {
            content: ArgumentKind::Memory { allocation, access, offset: Some(0), element: size_of::<T>() },
        }
    }

    /// A pointer to an array that the code reads.
    #[must_use]
    pub fn read<T, K: Kind>(array: &'a UsmVec<T, K, B>) -> Self {
        Self::memory::<T>(array.allocation(), Access::Read)
    }

    /// A pointer to an array that the code reads and writes, also by atomic operations.
    #[must_use]
    pub fn write<T, K: Kind>(array: &'a mut UsmVec<T, K, B>) -> Self {
        Self::memory::<T>(array.allocation(), Access::Write)
    }

    /// A pointer to an uninitialised array that the code fills.
    #[must_use]
    pub fn output<T: Pod, K: Kind>(array: &'a mut UninitVec<T, K, B>) -> Self {
        Self::memory::<T>(array.allocation(), Access::Write)
    }

    /// A pointer to untyped memory that the code reads.
    #[must_use]
    pub fn read_bytes(allocation: &'a Allocation<B>) -> Self {
        Self::memory::<u8>(allocation, Access::Read)
    }

    /// A pointer to untyped memory that the code reads and writes.
    #[must_use]
    pub fn write_bytes(allocation: &'a mut Allocation<B>) -> Self {
        Self::memory::<u8>(allocation, Access::Write)
    }

    /// A buffer that the code reads.
    #[must_use]
    pub const fn read_buffer(buffer: &'a Buffer<B>) -> Self {
        Self { content: ArgumentKind::Buffer { buffer, access: Access::Read } }
    }

    /// A buffer that the code reads and writes.
    #[must_use]
    pub const fn write_buffer(buffer: &'a mut Buffer<B>) -> Self {
        Self { content: ArgumentKind::Buffer { buffer, access: Access::Write } }
    }

    /// The same memory from element number `start` on: an interior pointer. Does not change
    /// buffers, values and local memory.
    #[must_use]
    pub fn from_element(self, start: usize) -> Self {
        match self.content {
            ArgumentKind::Memory { allocation, access, offset, element } => {
                let more = start.checked_mul(element);
                let offset = offset.and_then(|offset| offset.checked_add(more?));
                Self { content: ArgumentKind::Memory { allocation, access, offset, element } }
            }
            content => Self { content },
        }
    }

    /// A scalar or structure by value, with the layout that the code uses.
    #[must_use]
    pub fn value<T: Pod>(value: &'a T) -> Self {
        Self { content: ArgumentKind::Value(bytemuck::bytes_of(value)) }
    }

    /// Local memory for `len` elements of `T` in each group.
    #[must_use]
    pub const fn local<T>(len: usize) -> Self {
        Self {
            content: ArgumentKind::Local {
                bytes: len.checked_mul(size_of::<T>()),
                alignment: align_of::<T>(),
            },
        }
    }

    fn slot(&self) -> Result<Slot<'a>, LaunchError> {
        match self.content {
            ArgumentKind::Memory { allocation, offset, .. } => {
                let offset = offset.ok_or(ErrorKind::SizeOverflow)?;
                allocation.check_range(offset, 0)?;
                Ok(Slot::Pointer(allocation.as_ptr() as usize + offset))
            }
            ArgumentKind::Buffer { buffer, .. } => match buffer.argument() {
                Some(handle) => Ok(Slot::Object(handle)),
                None => Err(ErrorKind::Unsupported { operation: "a buffer as an argument" }.into()),
            },
            ArgumentKind::Value(bytes) => Ok(Slot::Value(bytes)),
            ArgumentKind::Local { bytes, alignment } => Ok(local_slot(bytes, alignment)?),
        }
    }

    fn usage(&self) -> Option<Usage<'a, B>> {
        match self.content {
            ArgumentKind::Memory { allocation, access, .. } => Some(Usage::of(allocation, access)),
            ArgumentKind::Buffer { buffer, access } => Some(Usage::buffer(buffer, access)),
            ArgumentKind::Value(_) | ArgumentKind::Local { .. } => None,
        }
    }
}

/// Local memory. Runtimes refuse an array of zero bytes, so an empty array gets the size of one
/// element.
#[inline]
pub(crate) fn local_slot<'s>(bytes: Option<usize>, alignment: usize) -> Result<Slot<'s>, LaunchError> {
    let bytes = bytes.ok_or(LaunchError::LocalMemoryTooLarge { size: u64::MAX, limit: isize::MAX as u64 })?;
    Ok(Slot::Local { bytes: bytes.max(alignment), alignment })
}

/// The arguments of one call in the form of runtimes. The usual few are stored inline; storage for
/// the maximum would cost more than the rest of a call.
#[derive(Clone, Debug)]
pub(crate) struct Slots<'s> {
    /// If there are few arguments, the first `len` entries are initialised.
    few: [MaybeUninit<Slot<'s>>; FEW_ARGUMENTS],
    /// All arguments, if there are more than a few.
    many: Vec<Slot<'s>>,
    len: usize,
    /// Bytes of the local arrays.
    local: u64,
}

impl<'s> Slots<'s> {
    #[inline]
    pub(crate) const fn new() -> Self {
        let few = [const { MaybeUninit::uninit() }; FEW_ARGUMENTS];
        Self { few, many: Vec::new(), len: 0, local: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, slot: Slot<'s>) -> Result<(), LaunchError> {
        if let Slot::Local { bytes, .. } = slot {
            self.local = self.local.saturating_add(bytes as u64);
        }
        let Some(place) = self.few.get_mut(self.len) else { return self.push_to_heap(slot) };
        place.write(slot);
        self.len += 1;
        Ok(())
    }

    #[cold]
    fn push_to_heap(&mut self, slot: Slot<'s>) -> Result<(), LaunchError> {
        let count = self.len + 1;
        if count > MOST_ARGUMENTS {
            return Err(LaunchError::ArgumentCount { expected: MOST_ARGUMENTS, found: count });
        }
        if self.many.is_empty() {
            let few = *self.as_slice().first_chunk::<FEW_ARGUMENTS>().ok_or(ErrorKind::SizeOverflow)?;
            self.many.extend_from_slice(&few);
        }
        self.many.push(slot);
        self.len = count;
        Ok(())
    }

    #[inline]
    fn as_slice(&self) -> &[Slot<'s>] {
        if self.len > FEW_ARGUMENTS {
            return &self.many;
        }
        // SAFETY: the first `len` entries are initialised.
        unsafe { core::slice::from_raw_parts(self.few.as_ptr().cast(), self.len) }
    }
}

impl<B: Programmable, const D: usize, O: Order> Launch<'_, B, D, O> {
    /// Launches a function of a [`Module`](crate::Module). The arguments are borrowed until this
    /// returns. Afterwards they remember the launch, and every read, write or free of them waits
    /// for it.
    ///
    /// Checks number and types of the arguments as far as the runtime knows the function's
    /// parameters.
    ///
    /// # Safety
    /// With these arguments over this range, the code stays inside its arrays and local memory, has
    /// no data race, ends, and accesses no other USM memory than [`uses`](Self::uses) names. It
    /// does not make an initialised element uninitialised: no value that it writes depends on
    /// uninitialised memory. A shared `&` to an array may be passed more than once, and the code
    /// does not write an array that is passed for reading.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing runs then.
    pub unsafe fn call(
        self,
        function: &Function<B>,
        arguments: &[Argument<'_, B>],
    ) -> Result<Event<B>, LaunchError> {
        let mut slots = Slots::new();
        let mut usages: Vec<Usage<'_, B>> = Vec::with_capacity(arguments.len());
        for argument in arguments {
            slots.push(argument.slot()?)?;
            usages.extend(argument.usage());
        }
        // SAFETY: the caller's promise.
        unsafe { self.space().submit(function, &slots, &usages) }
    }

    /// As [`call`](Self::call), for callers that share handles to memory: `slots` are the arguments
    /// in the runtime's form, and `usages` name their memory with the code's accesses.
    ///
    /// # Safety
    /// As for [`call`](Self::call). `usages` names the memory of all pointers, and no conflicting
    /// work over it is submitted during this call.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing runs then.
    pub unsafe fn call_slots(
        self,
        function: &Function<B>,
        slots: &[Slot<'_>],
        usages: &[Usage<'_, B>],
    ) -> Result<Event<B>, LaunchError> {
        let mut all = Slots::new();
        slots.iter().try_for_each(|slot| all.push(*slot))?;
        // SAFETY: the caller's promise.
        unsafe { self.space().submit(function, &all, usages) }
    }
}

impl<B: Programmable, const D: usize> LaunchSpace<'_, B, D> {
    /// Checks the launch against function and device, and submits it.
    ///
    /// # Safety
    /// As for [`Launch::call`]; `usages` names the memory of all pointers.
    #[inline]
    pub(crate) unsafe fn submit(
        &self,
        function: &Function<B>,
        slots: &Slots<'_>,
        usages: &[Usage<'_, B>],
    ) -> Result<Event<B>, LaunchError> {
        match_parameters(function, slots.as_slice())?;
        // SAFETY: the caller's promise.
        unsafe { self.submit_matched(function, slots, usages) }
    }

    /// As [`submit`](Self::submit), for arguments that are known to match the function's
    /// parameters.
    ///
    /// # Safety
    /// As for [`submit`](Self::submit).
    #[inline]
    pub(crate) unsafe fn submit_matched(
        &self,
        function: &Function<B>,
        slots: &Slots<'_>,
        usages: &[Usage<'_, B>],
    ) -> Result<Event<B>, LaunchError> {
        let Self { queue, range, has_groups, is_rounded, after, uses } = *self;
        let (expected, found) = (queue.context().id(), function.context().id());
        if expected != found {
            return Err(ErrorKind::WrongContext { expected, found }.into());
        }
        let grid = grid_of(queue, range, (has_groups, is_rounded), function, slots.local)?;
        let all;
        let usages = if uses.is_empty() {
            usages
        } else {
            all = [usages, uses].concat();
            &all
        };
        let slots = slots.as_slice();
        let run = |queue: &B::Queue, after: &[B::Event]| match &grid {
            // SAFETY: the caller's promise for the effects of the code; `submit` keeps the memory
            // of `usages` alive and ordered until the event is complete. The function is of the
            // queue's context.
            Some(grid) => unsafe { B::launch(queue, function.raw(), grid, slots, after) },
            // A range without items runs nothing. SAFETY: `submit` gives events of the queue's
            // context.
            None => unsafe { queue.barrier(after) },
        };
        // SAFETY: the caller's promise: the function accesses only the memory of `usages`; an error
        // of the backend means that nothing was submitted.
        let event = unsafe { queue.submit(usages, after, run) };
        Ok(event?)
    }
}

/// The type of an argument, as far as parameters distinguish it.
#[derive(Clone, Copy)]
enum Sort {
    Pointer,
    Object,
    /// Bytes.
    Value(usize),
    Local,
}

impl Sort {
    fn of(slot: &Slot<'_>) -> Self {
        match slot {
            Slot::Pointer(_) => Self::Pointer,
            Slot::Object(_) => Self::Object,
            Slot::Value(bytes) => Self::Value(bytes.len()),
            Slot::Local { .. } => Self::Local,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pointer => "a pointer",
            Self::Object => "a buffer",
            Self::Value(_) => "a value",
            Self::Local => "local memory",
        }
    }

    /// Checks that argument number `argument` matches a parameter of this shape.
    fn check_shape(self, shape: Shape, argument: usize) -> Result<(), LaunchError> {
        let type_name = match (shape, self) {
            (Shape::Pointer, Self::Value(_) | Self::Local) => "a pointer",
            (Shape::Local, Self::Value(_) | Self::Pointer | Self::Object) => "local memory",
            (Shape::Value(_), Self::Object | Self::Pointer | Self::Local) => "a value",
            (Shape::Value(expected), Self::Value(found)) if expected != found => {
                return Err(LaunchError::ArgumentBytes { argument, expected, found });
            }
            (Shape::Bytes(expected), sort) => {
                let found = match sort {
                    Self::Pointer | Self::Object => size_of::<usize>(),
                    Self::Value(bytes) => bytes,
                    // The offset of a local array.
                    Self::Local => size_of::<u32>(),
                };
                if expected != found {
                    return Err(LaunchError::ArgumentBytes { argument, expected, found });
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        Err(LaunchError::ArgumentMismatch { argument, expected: type_name, found: self.name() })
    }
}

/// Whether all arguments of a signature, local arrays last, match the function's parameters as far
/// as the runtime knows them.
pub(crate) fn matches<S: Signature, L: LocalSignature, B: Programmable>(function: &Function<B>) -> bool {
    let Some(parameters) = &function.info().parameters else { return true };
    let of_arguments = S::TABLE.iter().map(|row| match row.kind {
        ParameterKind::Value => Sort::Value(row.element_bytes),
        _ => Sort::Pointer,
    });
    let mut sorts = of_arguments.chain(core::iter::repeat_n(Sort::Local, L::LOCALS));
    let mut shapes = parameters.iter().enumerate();
    shapes.all(|(index, shape)| sorts.next().is_some_and(|sort| sort.check_shape(*shape, index).is_ok()))
        && sorts.next().is_none()
}

/// Compares the arguments with the parameters that the runtime knows.
fn match_parameters<B: Programmable>(function: &Function<B>, slots: &[Slot<'_>]) -> Result<(), LaunchError> {
    let Some(parameters) = &function.info().parameters else { return Ok(()) };
    let (expected, found) = (parameters.len(), slots.len());
    if expected != found {
        return Err(LaunchError::ArgumentCount { expected, found });
    }
    let mut pairs = parameters.iter().zip(slots).enumerate();
    pairs.try_for_each(|(argument, (shape, slot))| Sort::of(slot).check_shape(*shape, argument))
}

/// The range in the form of runtimes, within the limits of device and function; `None` if there is
/// nothing to run. `local` are the bytes of the passed local arrays.
#[inline]
fn grid_of<B: Programmable, const D: usize>(
    queue: &Queue<B>,
    range: &NdRange<D>,
    (has_groups, is_rounded): (bool, bool),
    function: &Function<B>,
    local: u64,
) -> Result<Option<Grid>, LaunchError> {
    let (device, info) = (queue.context().info(), function.info());
    let global = range.global();
    if !has_groups {
        if local != 0 {
            return Err(LaunchError::NoGroups);
        }
        let whole = if is_rounded && global.items() != 0 {
            crate::rounding::rounded(device, info, global.sizes())
        } else {
            None
        };
        return Ok(match whole {
            Some(whole) => Some(Grid::new(whole.global().sizes(), Some(whole.local().sizes()))),
            None => (global.items() != 0).then(|| Grid::new(global.sizes(), None)),
        });
    }
    let sizes = range.local().sizes();
    if let Some(group) = &info.required_group {
        check_group(group, &sizes)?;
    }
    let (size, limit) = (range.local().items(), device.max_work_group_size.min(info.max_work_group_size));
    if size > limit {
        return Err(LaunchError::GroupTooLarge { size, limit });
    }
    let (size, limit) = (local.saturating_add(info.local_mem_size), device.local_mem_size);
    if size > limit {
        return Err(LaunchError::LocalMemoryTooLarge { size, limit });
    }
    Ok((global.items() != 0).then(|| Grid::new(global.sizes(), Some(sizes))))
}

/// Compares the local size with the function's required one.
fn check_group<const D: usize>(group: &[u64; 3], sizes: &[u64; D]) -> Result<(), LaunchError> {
    for (dimension, expected) in group.iter().enumerate() {
        // The last dimension of both is the fastest one.
        let place = (dimension + D).checked_sub(3);
        let (expected, found) = (*expected, place.map_or(1, |place| sizes[place]));
        if expected != found {
            let dimension = place.unwrap_or(0);
            return Err(LaunchError::WrongGroup { dimension, expected, found });
        }
    }
    Ok(())
}
