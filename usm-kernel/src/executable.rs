//! Kernels with device code: the same kernel on the host and on every device that takes its code.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use spin::Mutex;
use usm_core::{
    Access, BackendKind, Context, Device, DeviceType, ErrorKind, Event, RunRecord, Usage, UsmVec,
};
use usm_kernel_ir::emit::{GUARD, SCALAR_LOOPS, checked};

use crate::argument::{Arguments, RawArgument, Signature};
use crate::backend::{Programmable, Slot};
use crate::call::{Slots, local_slot};
use crate::error::LaunchError;
use crate::generated::CheckedCode;
use crate::kernel::{Description, Kernel, LocalLengths};
use crate::launch::{Launch, LaunchSpace};
use crate::local::LocalSignature;
use crate::module::{BuildError, Code, Formats, Function, Module};
use crate::order::Order;
use crate::outside::{IndexOutside, Place, Subject};
#[cfg(feature = "std")]
use crate::print::DeviceLog;
use crate::proof::Bounds;
use crate::range::NdRange;
use crate::rounding::is_better_rounded;

/// A kernel with code for devices beside its host body. The code has a function called
/// [`FUNCTION`](Self::FUNCTION), with these parameters, in this order:
///
/// 1. the arguments: a pointer for each array and each [`Constant`](crate::Constant) (to its
///    elements), a value for each [`Value`](crate::Value);
/// 2. the [`numbers`](Self::numbers), 64-bit unsigned integers that the code cannot know otherwise,
///    such as lengths;
/// 3. if the kernel is [`GUARDED`](Self::GUARDED), the sizes of the range, 64-bit unsigned
///    integers, the fastest dimension first; in OpenCL C only with the option [`GUARD`];
/// 4. the local arrays: a pointer to local memory in OpenCL C and SPIR-V; in CUDA C an `unsigned
///    int`, the array's offset in bytes in the dynamic shared memory of the block. The code itself
///    zeroes [`ZeroedLocal`](crate::ZeroedLocal) arrays and declares private arrays.
///
/// The fastest dimension, the last one of the range, is `get_global_id(0)` and `x`.
///
/// # Safety
/// For every range and all lengths that [`check`](Kernel::check) and
/// [`required_group`](Kernel::required_group) accept, and for which [`proof`](Kernel::proof) says
/// `None` or `Proven`, the code stays inside its arrays and the local memory of
/// [`local`](Kernel::local), has no data race (also where the order of items is
/// [`Unordered`](crate::ItemOrder::Unordered)), ends, accesses no other memory, writes only arrays
/// that are declared as written, and writes no uninitialised value to a [`Write`](crate::Write)
/// array: its values depend on no element of an [`Output`](crate::Output) array or of local memory
/// that it has not written before. A kernel without local arrays may be launched [over
/// items](Launch::with_range): `check` then gets one group, and the device chooses its own groups.
/// The function of [`CHECKED`](Self::CHECKED) does all this also where `proof` says `Unproven`, and
/// writes its record as [`CheckedCode`] says.
pub unsafe trait DeviceCode<const D: usize>: Kernel<D> {
    /// The name of the function in the code.
    const FUNCTION: &'static str = Self::NAME;
    /// The text form of usm-kernel-ir, of kernels that the attribute `kernel` made.
    const IR: Option<&'static str> = None;
    /// OpenCL C.
    const OPENCL_C: Option<&'static str> = None;
    /// CUDA C++.
    const CUDA_C: Option<&'static str> = None;
    /// SPIR-V.
    const SPIR_V: Option<&'static [u8]> = None;
    /// PTX.
    const PTX: Option<&'static str> = None;
    /// The function for launches without a complete proof.
    const CHECKED: Option<CheckedCode> = None;

    /// Whether the code gets the sizes of the range and ignores items beyond it. Launches over
    /// items then take groups that suit the device, whatever the sizes are.
    const GUARDED: bool = false;

    /// The scalar arguments, by position, that matter if one of them is 0: a launch on a processor
    /// then takes the OpenCL C, built with the option [`SCALAR_LOOPS`], in place of other code.
    const STRIDES: &'static [usize] = &[];

    /// An array of the numbers, such as `[u64; 2]`.
    type Numbers: AsRef<[u64]>;

    /// The numbers of a launch; `lengths` has the elements of each argument.
    fn numbers(&self, range: &NdRange<D>, lengths: &[usize]) -> Self::Numbers;
}

/// A kernel prepared for the device of a context: built for devices that take its code, unchanged
/// on the host.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{Device, QueueOrder, UsmVec};
/// use usm_kernel::sample::reverse;
/// use usm_kernel::{Executable, Launch, NdRange};
///
/// // The same lines run on OpenCL, Level Zero, SYCL and CUDA.
/// let context = HostHeap::new().context();
/// let ready = Executable::<reverse, _, 1>::build(&context)?;
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let mut a = UsmVec::<f32, Device, _>::from_slice(&queue, &[0.0, 1.0, 2.0, 3.0])?;
/// let _ = Launch::new(&queue, NdRange::new([4], [4])?).run_on(&ready, reverse, (&mut a,))?;
/// assert_eq!(a.to_vec(&queue)?, [3.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Executable<K, B: Programmable, const D: usize> {
    /// `None` runs the host body.
    code: Option<Arc<BuiltFunction<B>>>,
    kernel: PhantomData<fn() -> K>,
}

struct BuiltFunction<B: Programmable> {
    function: Function<B>,
    /// The format of the code.
    format: Formats,
    /// The other functions, by [`Variant::place`]; the first launch that needs one builds it.
    others: Mutex<[Option<Function<B>>; 7]>,
}

/// A function of a kernel, beside the usual one.
#[derive(Clone, Copy)]
struct Variant {
    /// For launches without a complete proof.
    checked: bool,
    /// For launches with a stride of 0.
    scalar: bool,
    /// OpenCL C that ignores items beyond the range.
    guarded: bool,
}

impl Variant {
    /// Its place among the others; `None` for the usual function.
    const fn place(self) -> Option<usize> {
        let bits = self.checked as usize | (self.scalar as usize) << 1 | (self.guarded as usize) << 2;
        bits.checked_sub(1)
    }
}

impl<K, B: Programmable, const D: usize> Clone for Executable<K, B, D> {
    fn clone(&self) -> Self {
        Self { code: self.code.clone(), kernel: PhantomData }
    }
}

impl<K, B: Programmable, const D: usize> fmt::Debug for Executable<K, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.code.as_ref().map(|code| &code.function);
        f.debug_struct("Executable").field("function", &function).finish()
    }
}

impl<K: DeviceCode<D>, B: Programmable, const D: usize> Executable<K, B, D> {
    /// Builds the kernel's code for the context's device: from source before binaries on a
    /// processor, from binaries before source elsewhere. Takes as long as the runtime's compiler.
    ///
    /// A binary needs no front end and hides the source, but a processor's runtime optimises best
    /// what it parsed itself. For Intel's, `cargo xtask bench formats` measured 1.3 times the time
    /// for matmul and 1.5 to 1.9 times for reduce from SPIR-V, and no difference for the other
    /// samples. [`build_from`](Self::build_from) overrides this.
    ///
    /// # Errors
    /// [`BuildError::NoCode`] if the kernel has no code that the device takes, and as
    /// [`Module::build`].
    pub fn build(context: &Context<B>) -> Result<Self, BuildError> {
        Self::build_from(context, Formats::all())
    }

    /// As [`build`](Self::build), from code in one of `formats`. On the host nothing is built.
    ///
    /// # Errors
    /// As for [`build`](Self::build); also [`BuildError::NoCode`] if the device takes the code, but
    /// not in these formats.
    pub fn build_from(context: &Context<B>, formats: Formats) -> Result<Self, BuildError> {
        let backend = context.info().backend;
        if matches!(backend, BackendKind::Host | BackendKind::Mock) {
            return Ok(Self { code: None, kernel: PhantomData });
        }
        let taken = Module::taken_formats(context)? & formats;
        let codes = [
            K::OPENCL_C.map(Code::OpenClC),
            K::CUDA_C.map(Code::CudaC),
            K::SPIR_V.map(Code::SpirV),
            K::PTX.map(Code::Ptx),
        ];
        let code = order_by_preference(codes, context.info().device_type)
            .into_iter()
            .flatten()
            .find(|code| taken.contains(code.format()));
        let code = code.ok_or(BuildError::NoCode { kernel: K::NAME, formats: taken, backend })?;
        let function = Module::build(context, code)?.function(K::FUNCTION)?;
        let function = BuiltFunction { function, format: code.format(), others: Mutex::default() };
        Ok(Self { code: Some(Arc::new(function)), kernel: PhantomData })
    }

    /// The built function; `None` on the host.
    #[must_use]
    pub fn function(&self) -> Option<&Function<B>> {
        self.code.as_ref().map(|code| &code.function)
    }

    /// The function with index checks, from the same format of code; `None` on the host, and for a
    /// kernel without one. The first call builds it, or the first launch without a complete proof,
    /// which then takes as long as the runtime's compiler.
    ///
    /// # Errors
    /// As for [`Module::build`].
    pub fn checked(&self) -> Result<Option<Function<B>>, BuildError> {
        self.variant(Variant { checked: true, scalar: false, guarded: false })
    }

    /// A function of the kernel, built once.
    fn variant(&self, variant: Variant) -> Result<Option<Function<B>>, BuildError> {
        let Some(own) = &self.code else { return Ok(None) };
        let Some(place) = variant.place() else { return Ok(Some(own.function.clone())) };
        if let Some(function) = &own.others.lock()[place] {
            return Ok(Some(function.clone()));
        }
        let format = if variant.scalar { Formats::OPENCL_C } else { own.format };
        let (code, name) = match K::CHECKED {
            Some(checks) if variant.checked => (checks.code(format), checks.function),
            None if variant.checked => return Ok(None),
            _ => (K::OPENCL_C.map(Code::OpenClC), K::FUNCTION),
        };
        let Some(code) = code else { return Ok(None) };
        let options = match (variant.scalar, variant.guarded) {
            (false, false) => "".into(),
            (true, false) => SCALAR_LOOPS.into(),
            (false, true) => GUARD.into(),
            (true, true) => alloc::format!("{SCALAR_LOOPS} {GUARD}"),
        };
        // Not under the lock, because compilers are slow. If two threads build, the last result
        // stays.
        let function = Module::build_with(own.function.context(), code, &options)?.function(name)?;
        let before = own.others.lock()[place].replace(function.clone());
        drop(before);
        Ok(Some(function))
    }

    /// Whether this launch takes OpenCL C with [`GUARD`], and the sizes that the code gets. Also
    /// lets the range be rounded up.
    fn guard(&self, scalar: bool, space: &mut LaunchSpace<'_, B, D>) -> (bool, Sizes<D>) {
        let Some(code) = self.code.as_ref().filter(|_| K::GUARDED) else { return (false, Sizes::none()) };
        let mut sizes = space.range.global().sizes();
        space.is_rounded = !space.has_groups && is_better_rounded(space.queue.context().info(), &sizes);
        let is_optional = scalar || code.format == Formats::OPENCL_C;
        if is_optional && !space.is_rounded {
            return (false, Sizes::none());
        }
        sizes.reverse();
        (is_optional, Sizes { sizes, count: D })
    }

    /// Whether this launch takes the code with [`SCALAR_LOOPS`].
    fn has_zero_stride(raw: &<K::Arguments as Signature>::Raw, context: &Context<B>) -> bool {
        if K::STRIDES.is_empty() || context.info().device_type != DeviceType::Cpu {
            return false;
        }
        let (mut place, mut is_present) = (0, false);
        let result = K::Arguments::pass(raw, |argument| {
            let mut is_stride = |bytes: &[u8]| {
                is_present |= bytes.iter().all(|byte| *byte == 0) && K::STRIDES.contains(&place);
                place += 1;
            };
            match argument {
                RawArgument::Value(bytes) => is_stride(bytes),
                RawArgument::Fields(bytes, sizes) => {
                    parts(bytes, sizes).for_each(is_stride);
                }
                RawArgument::Columns(_, count) => place += count,
                _ => place += 1,
            }
            Ok(())
        });
        result.is_ok() && is_present && Module::formats(context).contains(Formats::OPENCL_C)
    }
}

/// The bytes of each field of a structure.
pub(crate) fn parts<'b>(bytes: &'b [u8], sizes: &'static [usize]) -> impl Iterator<Item = &'b [u8]> {
    let mut rest = bytes;
    sizes.iter().map(move |size| {
        let (part, more) = rest.split_at(*size);
        rest = more;
        part
    })
}

impl CheckedCode {
    fn code(&self, format: Formats) -> Option<Code<'static>> {
        let codes = [
            self.opencl_c.map(Code::OpenClC),
            self.cuda_c.map(Code::CudaC),
            self.spir_v.map(Code::SpirV),
            self.ptx.map(Code::Ptx),
        ];
        codes.into_iter().flatten().find(|code| code.format() == format)
    }
}

/// The codes in the order of preference for such a device.
fn order_by_preference<T>([opencl_c, cuda_c, spir_v, ptx]: [T; 4], device: DeviceType) -> [T; 4] {
    match device {
        DeviceType::Cpu => [opencl_c, spir_v, ptx, cuda_c],
        _ => [spir_v, ptx, opencl_c, cuda_c],
    }
}

/// Whether a kernel with these codes could be built for a device that takes `formats`.
#[must_use]
pub fn has_code<K: DeviceCode<D>, const D: usize>(formats: Formats) -> bool {
    let mut codes = Formats::empty();
    codes.set(Formats::OPENCL_C, K::OPENCL_C.is_some());
    codes.set(Formats::CUDA_C, K::CUDA_C.is_some());
    codes.set(Formats::SPIR_V, K::SPIR_V.is_some());
    codes.set(Formats::PTX, K::PTX.is_some());
    codes.intersects(formats)
}

impl<B: Programmable, const D: usize, O: Order> Launch<'_, B, D, O> {
    /// Launches `kernel` on the device that `executable` was built for: by its code on a device, by
    /// its body on the host. A device chooses its own order of items and groups.
    ///
    /// If range, lengths and values do not prove that all indices are inside, code with index
    /// checks runs, if the kernel has it; the first such launch [builds it](Executable::checked).
    /// An index outside is not accessed. It fails the event's [`wait`](Event::wait), with the place
    /// in the source: [`IndexOutside`]. If the event was
    /// dropped, the failure is reported once: by the next wait for an argument that was written or
    /// will be, by the in-order queue, or by [`synchronize`](usm_core::Context::synchronize).
    ///
    /// # Errors
    /// [`LaunchError`]; nothing runs then.
    pub fn run_on<K: DeviceCode<D>, A: Arguments<K::Arguments, B>>(
        self,
        executable: &Executable<K, B, D>,
        kernel: K,
        mut arguments: A,
    ) -> Result<Event<B>, LaunchError> {
        let Some(function) = executable.function() else { return self.run(kernel, arguments) };
        if self.has_region() {
            return Err(LaunchError::ArenaWithAsynchronous);
        }
        let launch = self.with_default_groups(&kernel)?;
        let mut space = launch.space();
        let range = space.range;
        let raw = arguments.raw();
        let (elements, values) = (K::Arguments::raw_lengths(&raw), K::Arguments::raw_values(&raw));
        let lengths = kernel.local(range, &values);
        let description = Description::with_lengths(&kernel, range, &lengths)?;
        let proof = launch.check_launch(&description, &kernel, elements.as_ref(), &values)?;
        let scalar = Executable::<K, B, D>::has_zero_stride(&raw, function.context());
        let (has_guard, sizes) = executable.guard(scalar, &mut space);
        if let Bounds::Checked { index, why } = proof.bounds {
            let variant = executable.variant(Variant { checked: true, scalar, guarded: has_guard });
            let variant = variant.map_err(|_| LaunchError::CheckedCode { kernel: K::NAME })?;
            let (Some(function), Some(code)) = (variant, K::CHECKED) else {
                return Err(LaunchError::Unproven { kernel: K::NAME, index, why });
            };
            return run_checked::<K, A, B, D>(
                &space,
                &function,
                &code,
                arguments,
                (&lengths, sizes.as_slice()),
            );
        }
        let other;
        let function = match scalar || has_guard {
            false => function,
            true => {
                let variant = executable.variant(Variant { checked: false, scalar, guarded: has_guard });
                other = variant.map_err(|_| LaunchError::ScalarCode { kernel: K::NAME })?;
                other.as_ref().unwrap_or(function)
            }
        };
        let numbers = kernel.numbers(range, elements.as_ref());
        let mut call = TypedCall::new(space.queue);
        call.arguments::<K::Arguments>(&raw)?;
        for number in numbers.as_ref().iter().chain(sizes.as_slice()) {
            call.slots.push(Slot::Value(bytemuck::bytes_of(number)))?;
        }
        call.locals::<K::Local>(&lengths)?;
        let submit = |usages: &[Usage<'_, B>]| {
            // SAFETY: the kernel accepted range and lengths, for which its code stays in its arrays
            // and has no race. A `&mut` usage excludes all others of the same array.
            unsafe { call.submit(&space, function, usages, false) }
        };
        arguments.with_usages(submit)
    }
}

/// The place of a number that the code does not have.
const UNKNOWN: &Place = &Place { kernel: "?", place: "?", subject: Subject::Array("?") };

/// Launches the function with index checks.
#[cold]
fn run_checked<K: Kernel<D>, A: Arguments<K::Arguments, B>, B: Programmable, const D: usize>(
    space: &LaunchSpace<'_, B, D>,
    function: &Function<B>,
    code: &CheckedCode,
    mut arguments: A,
    (locals, sizes): (&LocalLengths<K::Local>, &[u64]),
) -> Result<Event<B>, LaunchError> {
    let raw = arguments.raw();
    let elements = K::Arguments::raw_lengths(&raw);
    let elements = elements.as_ref();
    let length = |place: usize| elements.get(place).map_or(0, |len| *len as u64);
    let lengths = code.lengths.iter().map(|(place, factor)| length(*place) * factor);
    let lengths: Vec<u64> = lengths.collect();
    let places = code.places;
    let judge = move |words: &[u32]| match checked::read(words) {
        Some(checked::Outside { place, index, len }) => {
            let at = places.get(place).unwrap_or(UNKNOWN);
            Err(ErrorKind::from(IndexOutside { at, index, len }).into())
        }
        None => Ok(()),
    };
    let record = RunRecord::new(space.queue, checked::WORDS, judge)?;
    let mut call = TypedCall::new(space.queue);
    call.arguments::<K::Arguments>(&raw)?;
    for length in lengths.iter().chain(sizes) {
        call.slots.push(Slot::Value(bytemuck::bytes_of(length)))?;
    }
    call.slots.push(Slot::Pointer(record.address()))?;
    call.locals::<K::Local>(locals)?;
    let submit = |usages: &[Usage<'_, B>]| {
        let all: Vec<_> = usages.iter().copied().chain([record.usage()]).collect();
        // SAFETY: the code checks the unproven indices and has no race, by the kernel's proof. A
        // `&mut` usage excludes all others of the same array, and only this launch has the record.
        let event = unsafe { call.submit(space, function, &all, false) }?;
        Ok(record.watch(space.queue, usages, event))
    };
    arguments.with_usages(submit)
}

/// The sizes of a range, the fastest dimension first, or none.
struct Sizes<const D: usize> {
    sizes: [u64; D],
    count: usize,
}

impl<const D: usize> Sizes<D> {
    const fn none() -> Self {
        Self { sizes: [0; D], count: 0 }
    }

    fn as_slice(&self) -> &[u64] {
        self.sizes.get(..self.count).unwrap_or_default()
    }
}

/// A table in constant memory: its address.
#[cold]
fn upload_table<B: Programmable>(
    queue: &usm_core::Queue<B>,
    bytes: &[u8],
    tables: &mut Tables<B>,
) -> usm_core::Result<usize> {
    let table = UsmVec::from_slice(queue, bytes)?;
    let address = table.as_ptr() as usize;
    tables.get_or_insert_default().push(table);
    Ok(address)
}

/// Tables in constant memory, which live until the launch has finished. Most launches have none,
/// and then this costs a test of one word.
#[allow(clippy::box_collection)]
type Tables<B> = Option<Box<Vec<UsmVec<u8, Device, B>>>>;

/// A call by a signature.
pub(crate) struct TypedCall<'c, B: Programmable> {
    queue: &'c usm_core::Queue<B>,
    pub(crate) slots: Slots<'c>,
    tables: Tables<B>,
    /// The arrays for what the kernel prints.
    #[cfg(feature = "std")]
    log: Option<Box<DeviceLog<B>>>,
}

impl<'c, B: Programmable> TypedCall<'c, B> {
    #[inline]
    pub(crate) fn new(queue: &'c usm_core::Queue<B>) -> Self {
        Self {
            queue,
            slots: Slots::new(),
            tables: None,
            #[cfg(feature = "std")]
            log: None,
        }
    }

    #[inline]
    pub(crate) fn arguments<S: Signature>(&mut self, raw: &'c S::Raw) -> Result<(), LaunchError> {
        let (slots, tables, queue) = (&mut self.slots, &mut self.tables, self.queue);
        #[cfg(feature = "std")]
        let log = &mut self.log;
        S::pass(raw, |argument| {
            slots.push(match argument {
                RawArgument::Pointer(address) => Slot::Pointer(address),
                RawArgument::Value(bytes) => Slot::Value(bytes),
                RawArgument::Fields(bytes, sizes) => {
                    return parts(bytes, sizes).try_for_each(|part| slots.push(Slot::Value(part)));
                }
                RawArgument::Table(bytes) => Slot::Pointer(upload_table(queue, bytes, tables)?),
                RawArgument::Columns(address, count) => {
                    return (0..count).try_for_each(|_| slots.push(Slot::Pointer(address)));
                }
                #[cfg(feature = "std")]
                RawArgument::Log(nodes) => {
                    let arrays = Box::new(DeviceLog::new(queue, nodes)?);
                    arrays.addresses().try_for_each(|address| slots.push(Slot::Pointer(address)))?;
                    *log = Some(arrays);
                    return Ok(());
                }
            })
        })
    }

    #[inline]
    pub(crate) fn locals<L: LocalSignature>(&mut self, lengths: &L::Lengths) -> Result<(), LaunchError> {
        L::for_each_local(lengths, |bytes, alignment| self.slots.push(local_slot(bytes, alignment)?))
    }

    /// `is_matched` means that the arguments are known to match the function's parameters.
    ///
    /// # Safety
    /// As for [`LaunchSpace::submit`](crate::launch::LaunchSpace::submit).
    ///
    /// A kernel that prints is complete on return, and its lines are printed.
    #[inline]
    pub(crate) unsafe fn submit<const D: usize>(
        &self,
        space: &LaunchSpace<'_, B, D>,
        function: &Function<B>,
        usages: &[Usage<'_, B>],
        is_matched: bool,
    ) -> Result<Event<B>, LaunchError> {
        #[cfg(feature = "std")]
        if let Some(log) = &self.log {
            let all: Vec<_> = usages.iter().copied().chain(log.usages()).collect();
            // SAFETY: the caller's promise; only this launch has these arrays.
            let event = unsafe { self.submit_with_tables(space, function, &all) }?;
            log.show(self.queue, &event);
            return Ok(event);
        }
        if is_matched && self.tables.is_none() {
            // SAFETY: the caller's promise.
            return unsafe { space.submit_matched(function, &self.slots, usages) };
        }
        // SAFETY: as above.
        unsafe { self.submit_with_tables(space, function, usages) }
    }

    /// # Safety
    /// As for [`submit`](Self::submit).
    #[inline(never)]
    unsafe fn submit_with_tables<const D: usize>(
        &self,
        space: &LaunchSpace<'_, B, D>,
        function: &Function<B>,
        usages: &[Usage<'_, B>],
    ) -> Result<Event<B>, LaunchError> {
        let Some(tables) = &self.tables else {
            // SAFETY: the caller's promise.
            return unsafe { space.submit(function, &self.slots, usages) };
        };
        let tables = tables.iter().map(|table| Usage::of(table.allocation(), Access::Read));
        let all: Vec<_> = usages.iter().copied().chain(tables).collect();
        // SAFETY: the caller's promise; the tables remember the launch and are freed after it.
        unsafe { space.submit(function, &self.slots, &all) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_gets_source_and_other_devices_binaries() {
        let all = [Formats::OPENCL_C, Formats::CUDA_C, Formats::SPIR_V, Formats::PTX];
        let first = |device| order_by_preference(all, device)[0];
        assert_eq!(first(DeviceType::Cpu), Formats::OPENCL_C);
        for device in [DeviceType::Gpu, DeviceType::Accelerator] {
            assert_eq!(first(device), Formats::SPIR_V);
        }
    }
}
