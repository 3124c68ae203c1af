//! Code of a program for devices, and its launches.

use usm_core::{Context, DeviceInfo, DeviceType, Event, Queue, Usage};
use usm_kernel::backend::driver::is_better_rounded;
use usm_kernel::backend::{Programmable, Slot};
use usm_kernel::{BuildError, Code, Formats, Function, Launch, LaunchError, Module, NdRange, Range};
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::proof::Shape;
use usm_kernel_ir::{Literal, Parameter, Scalar, ValueId, emit, length};

use crate::cache;
use crate::program::Program;

/// Which of a kernel's functions for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// It checks indices.
    pub checks: bool,
    /// It is built with [`emit::SCALAR_LOOPS`].
    pub scalar: bool,
    /// It gets the sizes of the range, and ignores items beyond it.
    pub guarded: bool,
}

/// The functions of one program, by the number of their context.
#[derive(Debug)]
pub struct DeviceCodes<B: Programmable>(Vec<(u64, Variant, Function<B>)>);

impl<B: Programmable> Default for DeviceCodes<B> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<B: Programmable> DeviceCodes<B> {
    /// The function for a context, if it is built.
    #[must_use]
    pub fn find(&self, context: &Context<B>, variant: Variant) -> Option<Function<B>> {
        let key = (context.id(), variant);
        let mut all = self.0.iter();
        all.find(|(id, other, _)| (*id, *other) == key).map(|(.., function)| function.clone())
    }

    /// Keeps a function of [`Program::build`].
    pub fn insert(&mut self, variant: Variant, function: &Function<B>) {
        self.0.push((function.context().id(), variant, function.clone()));
    }

    /// The most work-items of a group on all devices with a function.
    #[must_use]
    pub fn group_limit(&self) -> Option<u64> {
        self.0.iter().map(|(.., function)| function.info().max_work_group_size).min()
    }
}

impl Program {
    /// Whether a launch over items takes the code that gets the sizes of the range, and whether it
    /// rounds the range up.
    pub fn guard<B: Programmable>(
        &self,
        context: &Context<B>,
        global: &[u64],
        needs_groups: bool,
    ) -> (bool, bool) {
        if !self.answers().guarded {
            return (false, false);
        }
        let rounds = !needs_groups && is_better_rounded(context.info(), global);
        (rounds || !Module::formats(context).contains(Formats::OPENCL_C), rounds)
    }

    /// Whether a launch with these scalars takes the code of [`emit::SCALAR_LOOPS`]. `counts` tells
    /// whether a stride matters: that of a dimension with one element does not.
    pub fn needs_scalar_loops(
        &self,
        info: &DeviceInfo,
        values: &[Literal],
        mut counts: impl FnMut(ValueId) -> bool,
    ) -> bool {
        let strides = &self.answers().strides;
        info.device_type == DeviceType::Cpu
            && strides.iter().any(|id| values[id.0 as usize].bits == 0 && counts(*id))
    }

    /// Builds the function for a device, from the cache if possible, and caches the runtime's code.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build<B: Programmable>(
        &self,
        context: &Context<B>,
        variant: Variant,
    ) -> Result<Function<B>, BuildError> {
        let Variant { checks, scalar, guarded } = variant;
        let (kernel, bounds, formats) = (self.kernel(), self.bounds(), Module::formats(context));
        let name = if checks { checked::function(kernel) } else { emit::function(kernel) };
        let (text, bytes);
        let source = if formats.contains(Formats::OPENCL_C) {
            text = if checks { checked::opencl_c(kernel, bounds) } else { emit::opencl_c(kernel) };
            Code::OpenClC(&text)
        } else if let Some(spirv) = self.spirv(formats, checks) {
            bytes = spirv;
            Code::SpirV(&bytes)
        } else {
            text = if checks { checked::cuda_c(kernel, bounds) } else { emit::cuda_c(kernel) };
            Code::CudaC(&text)
        };
        let mut options = String::new();
        for (_, option) in [(scalar, emit::SCALAR_LOOPS), (guarded, emit::GUARD)].iter().filter(|one| one.0) {
            if matches!(source, Code::OpenClC(_)) {
                options = options + option + " ";
            }
        }
        let info = context.info();
        let device =
            [&info.name, &info.vendor, &info.platform, &info.driver_version].map(ToString::to_string);
        let file = cache::name_of((source, &options, info.backend.to_string(), device));
        let known = cache::read(&file).and_then(|code| Module::build_native(context, &code).ok());
        // Cached code that the driver refuses is built again.
        if let Some(function) = known.and_then(|module| module.function(&name).ok()) {
            return Ok(function);
        }
        let module = Module::build_with(context, source, &options)?;
        if let Some(code) = module.native() {
            cache::write(&file, &code);
        }
        module.function(&name)
    }

    #[cfg(feature = "spirv")]
    fn spirv(&self, formats: Formats, checks: bool) -> Option<Vec<u8>> {
        let (kernel, bounds) = (self.kernel(), self.bounds());
        let bytes = || if checks { checked::spirv(kernel, bounds) } else { emit::spirv(kernel) };
        formats.contains(Formats::SPIR_V).then(bytes)
    }

    #[cfg(not(feature = "spirv"))]
    const fn spirv(&self, _: Formats, _: bool) -> Option<Vec<u8>> {
        None
    }

    /// The arguments of a launch in the order of the function's parameters. `arrays` gives the
    /// address of each array among the parameters, by its place there. `record` is the address of
    /// the words in which code that checks records an index outside.
    pub fn pass(
        &self,
        shape: &Shape<'_>,
        guarded: bool,
        record: Option<usize>,
        mut arrays: impl FnMut(usize) -> usize,
    ) -> Vec<DeviceArgument> {
        let (kernel, answers) = (self.kernel(), self.answers());
        let Shape { global, local, lengths, values } = *shape;
        let mut pieces = Vec::new();
        for (place, parameter) in kernel.parameters.iter().enumerate() {
            pieces.push(match parameter {
                Parameter::Value(id) => DeviceArgument::Value(values[id.0 as usize]),
                Parameter::Array(_) => DeviceArgument::Pointer(arrays(place)),
            });
        }
        let needed = if record.is_some() { &answers.checked_lengths } else { &answers.lengths };
        for id in needed {
            pieces.push(DeviceArgument::Value(Literal::integer(Scalar::U64, lengths[id.0 as usize])));
        }
        if guarded {
            let sizes = global.iter().rev().map(|size| Literal::integer(Scalar::U64, *size));
            pieces.extend(sizes.map(DeviceArgument::Value));
        }
        pieces.extend(record.map(DeviceArgument::Pointer));
        for (element, len) in &answers.locals {
            let elements = length(len, global, local, values);
            let bytes = elements.checked_mul(element.bytes()).and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = bytes.unwrap_or(usize::MAX / 2);
            let alignment = element.bytes() as usize;
            pieces.push(DeviceArgument::Local(bytes.max(alignment), alignment));
        }
        pieces
    }
}

/// An argument in the form of the runtimes.
#[derive(Clone, Copy, Debug)]
pub enum DeviceArgument {
    /// An address in USM memory.
    Pointer(usize),
    /// A scalar.
    Value(Literal),
    /// Local memory: its bytes and their alignment.
    Local(usize, usize),
}

impl DeviceArgument {
    /// The bytes of a value.
    #[must_use]
    pub fn word(&self) -> [u8; 8] {
        match self {
            Self::Value(literal) => literal.to_ne_bytes().0,
            _ => [0; 8],
        }
    }

    /// The argument for a runtime; `word` has the bytes of a value.
    #[must_use]
    pub fn slot<'w>(&self, word: &'w [u8; 8]) -> Slot<'w> {
        match self {
            Self::Pointer(address) => Slot::Pointer(*address),
            Self::Value(literal) => Slot::Value(word.get(..literal.to_ne_bytes().1).unwrap_or(word)),
            Self::Local(bytes, alignment) => Slot::Local { bytes: *bytes, alignment: *alignment },
        }
    }
}

/// The range of a call: one to three sizes.
#[derive(Clone, Copy, Debug)]
pub struct Space<'s> {
    /// Work-items, the fastest dimension last.
    pub global: &'s [u64],
    /// Work-items of a group, if the launch has groups.
    pub local: Option<&'s [u64]>,
    /// Whether it may be rounded up to whole groups.
    pub rounded: bool,
}

/// Submits a call over a range.
///
/// # Errors
/// [`LaunchError`]; nothing runs then.
///
/// # Safety
/// As for [`Launch::call_slots`].
pub unsafe fn submit<B: Programmable>(
    queue: &Queue<B>,
    function: &Function<B>,
    space: Space<'_>,
    slots: &[Slot<'_>],
    usages: &[Usage<'_, B>],
    after: &[Event<B>],
) -> Result<Event<B>, LaunchError> {
    let run = match space.global.len() {
        1 => submit_in::<B, 1>,
        2 => submit_in::<B, 2>,
        _ => submit_in::<B, 3>,
    };
    // SAFETY: the caller's promise.
    unsafe { run(queue, function, space, slots, usages, after) }
}

/// The sizes of a range as an array; missing dimensions are 1.
fn sizes_of<const D: usize>(sizes: &[u64]) -> [u64; D] {
    core::array::from_fn(|dimension| sizes.get(dimension).copied().unwrap_or(1))
}

/// # Safety
/// As [`submit`].
unsafe fn submit_in<B: Programmable, const D: usize>(
    queue: &Queue<B>,
    function: &Function<B>,
    Space { global, local, rounded }: Space<'_>,
    slots: &[Slot<'_>],
    usages: &[Usage<'_, B>],
    after: &[Event<B>],
) -> Result<Event<B>, LaunchError> {
    let launch = match local {
        Some(local) => Launch::new(queue, NdRange::<D>::new(sizes_of(global), sizes_of(local))?),
        None if rounded => Launch::with_range(queue, Range::<D>::new(sizes_of(global))?).round_up(),
        None => Launch::with_range(queue, Range::<D>::new(sizes_of(global))?),
    };
    // SAFETY: the caller's promise.
    unsafe { launch.after(after).call_slots(function, slots, usages) }
}
