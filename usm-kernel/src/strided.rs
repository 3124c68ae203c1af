//! Strided copies and conversions by code that runs on the device, for the queues of runtimes.
//!
//! Two kernels, for elements of 1, 2, 4 and 8 bytes. Where source and destination are dense along
//! different axes, tiles pass through local memory, so that neighbouring items read and write
//! neighbouring elements. Else each item copies one element from where its index says. Their text
//! form is in the folder beside this file, with the Rust it was made from (`kernels.txt`); the
//! writers of usm-kernel-ir make the device's code of it, its SPIR-V beforehand.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;

use spin::Mutex;
use usm_core::backend::{ContextOps as _, Conversion, StridedAxis, StridedCopy};
use usm_core::{Error, ErrorKind, Number};
use usm_kernel_ir::{Kernel, emit, text};

use crate::backend::{Grid, Programmable, Slot};
use crate::code_store::store;
use crate::module::{BuildError, Code, Formats, text as with_nul};

mod conversion;

const GATHER: &str = include_str!("strided/gather.ir");
const TILES: &str = include_str!("strided/tiles.ir");
/// The SPIR-V of the kernels for each type, so that the writer of it and its dependencies are not
/// compiled for a copy. `tests/strided_spirv.rs` compares it with what the writer writes.
const SPIRV: [[&[u8]; TYPES.len()]; 2] = [
    [
        include_bytes!("strided/gather_u8.spv"),
        include_bytes!("strided/gather_u16.spv"),
        include_bytes!("strided/gather_u32.spv"),
        include_bytes!("strided/gather_u64.spv"),
    ],
    [
        include_bytes!("strided/tiles_u8.spv"),
        include_bytes!("strided/tiles_u16.spv"),
        include_bytes!("strided/tiles_u32.spv"),
        include_bytes!("strided/tiles_u64.spv"),
    ],
];
/// The type in these texts that stands for the elements'.
const ELEMENT: &str = "i16";
/// The elements' types: the one of 2^n bytes is at n.
const TYPES: [&str; 4] = ["u8", "u16", "u32", "u64"];
/// Axes of the first kernel.
const GATHER_AXES: usize = 8;
/// Axes of the second kernel beside the two of a tile.
const TILE_AXES: usize = 3;
/// Items of a group in both kernels.
const GROUP: u64 = 256;
/// Elements of a tile along each axis, and in local memory.
const TILE: usize = 32;
const TILE_ELEMENTS: usize = TILE * (TILE + 1);
/// A shorter axis fills no tile.
const SHORTEST_TILE_AXIS: usize = 8;

/// `None` before the first use, `Some(None)` if the function cannot be built.
type Built<B> = Option<Option<Arc<<B as Programmable>::Function>>>;

/// By the types of destination and source; `None` if the function cannot be built.
type Conversions<B> = BTreeMap<(Number, Number), Option<Arc<<B as Programmable>::Function>>>;

/// The functions of a context.
struct Functions<B: Programmable> {
    /// By kernel and type.
    copies: [[Mutex<Built<B>>; TYPES.len()]; 2],
    conversions: Mutex<Conversions<B>>,
}

impl<B: Programmable> Functions<B> {
    const fn new() -> Self {
        let copies = [const { [const { Mutex::new(None) }; TYPES.len()] }; 2];
        Self { copies, conversions: Mutex::new(BTreeMap::new()) }
    }
}

/// A context's code for strided copies, which its queues share. A function keeps its context, so
/// the context itself keeps none: the code ends with the last queue.
pub struct StridedCode<B: Programmable>(Mutex<Weak<Functions<B>>>);

impl<B: Programmable> fmt::Debug for StridedCode<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StridedCode").finish_non_exhaustive()
    }
}

impl<B: Programmable> Default for StridedCode<B> {
    fn default() -> Self {
        Self(Mutex::new(Weak::new()))
    }
}

impl<B: Programmable> StridedCode<B> {
    /// For a new queue.
    pub fn copies(&self) -> StridedCopies<B> {
        let mut shared = self.0.lock();
        let functions = shared.upgrade().unwrap_or_else(|| Arc::new(Functions::new()));
        *shared = Arc::downgrade(&functions);
        StridedCopies { functions }
    }
}

/// The functions of a queue for strided copies, built at their first use in the context.
pub struct StridedCopies<B: Programmable> {
    functions: Arc<Functions<B>>,
}

impl<B: Programmable> fmt::Debug for StridedCopies<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StridedCopies").finish_non_exhaustive()
    }
}

impl<B: Programmable> StridedCopies<B> {
    /// Copies by code of the device: [`QueueOps::copy_strided`](usm_core::backend::QueueOps).
    ///
    /// # Safety
    /// As for that function. `queue` is of `context`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] without code, and for copies that no kernel takes; the runtime's.
    pub unsafe fn copy(
        &self,
        context: &B::Context,
        queue: &B::Queue,
        copy: &StridedCopy<'_>,
        after: &[B::Event],
    ) -> usm_core::Result<B::Event> {
        let work = Work::of(copy).ok_or_else(unsupported)?;
        let function = self.function(context, &work).ok_or_else(unsupported)?;
        let local = (work.kernel == Kind::Tiles).then(|| {
            let width = 1 << work.width;
            Slot::Local { bytes: TILE_ELEMENTS * width, alignment: width }
        });
        let ends = (copy.dst as usize, work.src);
        // SAFETY: the caller's promise for the memory; the code of the kernel accesses the elements
        // of the copy only.
        unsafe { launch::<B>(queue, &function, (work.kernel, work.groups, &work.values), ends, local, after) }
    }

    /// Converts by code of the device: [`QueueOps::convert`](usm_core::backend::QueueOps).
    ///
    /// # Safety
    /// As for that function. `queue` is of `context`.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub unsafe fn convert(
        &self,
        context: &B::Context,
        queue: &B::Queue,
        conversion: &Conversion<'_>,
        after: &[B::Event],
    ) -> usm_core::Result<B::Event> {
        let work = conversion::Work::of(conversion).ok_or_else(unsupported)?;
        let numbers = (conversion.dst_number, conversion.src_number);
        let known = self.functions.conversions.lock().get(&numbers).cloned();
        let function = known.unwrap_or_else(|| {
            // Without the lock, as for copies.
            let source = conversion::text(numbers.0, numbers.1);
            let code = build::<B>(context, &source, write_spirv).ok().map(Arc::new);
            self.functions.conversions.lock().entry(numbers).or_insert(code).clone()
        });
        let function = function.ok_or_else(unsupported)?;
        let (kernel, groups, values) = &work.launch;
        let ends = (conversion.dst as usize, work.src);
        // SAFETY: as for copies; the types are those of the conversion.
        unsafe { launch::<B>(queue, &function, (*kernel, *groups, values), ends, None, after) }
    }

    /// The function, built if it is not yet; `None` if it cannot be.
    fn function(&self, context: &B::Context, work: &Work) -> Option<Arc<B::Function>> {
        let place = &self.functions.copies[work.kernel as usize][work.width];
        if let Some(code) = &*place.lock() {
            return code.clone();
        }
        // Without the lock: two threads may build it, and no thread waits for the compiler.
        let element = TYPES[work.width];
        let source = work.kernel.text().replace(ELEMENT, element);
        let spirv = |_: &Kernel| Some(Cow::Borrowed(work.kernel.spirv(element)));
        let code = build::<B>(context, &source, spirv).ok().map(Arc::new);
        place.lock().get_or_insert(code).clone()
    }
}

fn unsupported() -> Error {
    ErrorKind::Unsupported { operation: "this copy by code of the device" }.into()
}

/// Launches a kernel over the two ends.
///
/// # Safety
/// As for [`Programmable::launch`], for the memory that the kernel accesses.
unsafe fn launch<B: Programmable>(
    queue: &B::Queue,
    function: &B::Function,
    (kernel, groups, values): (Kind, u64, &[u64]),
    (dst, src): (usize, usize),
    local: Option<Slot<'_>>,
    after: &[B::Event],
) -> usm_core::Result<B::Event> {
    let (narrow, wide) = values.split_at(kernel.narrow_values());
    let narrow: Vec<[u8; 4]> = narrow.iter().map(|value| (*value as u32).to_ne_bytes()).collect();
    let wide: Vec<[u8; 8]> = wide.iter().map(|value| value.to_ne_bytes()).collect();
    let mut slots = Vec::with_capacity(values.len() + 3);
    slots.extend([Slot::Pointer(dst), Slot::Pointer(src)]);
    slots.extend(narrow.iter().map(|value| Slot::Value(value)));
    slots.extend(wide.iter().map(|value| Slot::Value(value)));
    slots.extend(local);
    let grid = Grid::new([groups * GROUP], Some([GROUP]));
    // SAFETY: the caller's promise.
    unsafe { B::launch(queue, function, &grid, &slots, after) }
}

/// The SPIR-V of a conversion. There are too many for files.
fn write_spirv(kernel: &Kernel) -> Option<Cow<'static, [u8]>> {
    #[cfg(feature = "spirv")]
    return Some(Cow::Owned(emit::spirv(kernel)));
    #[cfg(not(feature = "spirv"))]
    {
        let _ = kernel;
        None
    }
}

fn build<B: Programmable>(
    context: &B::Context,
    source: &str,
    spirv: impl FnOnce(&Kernel) -> Option<Cow<'static, [u8]>>,
) -> Result<B::Function, BuildError> {
    let refusal = || BuildError::from(unsupported());
    let kernel = text::parse(source).map_err(|_| refusal())?;
    let formats = B::formats(context);
    let name = with_nul("name of the function", &emit::function(&kernel))?;
    let words;
    let code_text;
    let code = if formats.contains(Formats::OPENCL_C) {
        code_text = emit::opencl_c(&kernel);
        Code::OpenClC(&code_text)
    } else if formats.contains(Formats::CUDA_C) {
        code_text = emit::cuda_c(&kernel);
        Code::CudaC(&code_text)
    } else if formats.contains(Formats::SPIR_V) {
        words = spirv(&kernel).ok_or_else(refusal)?;
        Code::SpirV(&words)
    } else {
        return Err(refusal());
    };
    let function = |module: &B::Module| B::function(module, &name).map(|(function, _)| function);
    let info = context.shared().info();
    let backend = info.backend.to_string();
    let device = [&info.name, &info.vendor, &info.platform, &info.driver_version].map(ToString::to_string);
    // The text names its code for every format.
    let key = [source, &backend, &device[0], &device[1], &device[2], &device[3]];
    #[cfg(feature = "std")]
    let _building = usm_core::ends::Build::begin(info.backend)?;
    let bytes = store().and_then(|store| (store.read)(&key));
    // Kept code that the driver refuses is built again.
    if let Some(function_of_bytes) =
        bytes.and_then(|bytes| function(&B::build_native(context, &bytes).ok()?).ok())
    {
        return Ok(function_of_bytes);
    }
    let module = B::build(context, &code, "")?;
    if let (Some(store), Some(binary)) = (store(), B::native(&module)) {
        (store.write)(&key, &binary);
    }
    function(&module)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gather,
    Tiles,
}

impl Kind {
    const fn text(self) -> &'static str {
        match self {
            Self::Gather => GATHER,
            Self::Tiles => TILES,
        }
    }

    /// Its SPIR-V for elements of a type.
    fn spirv(self, element: &str) -> &'static [u8] {
        let width = TYPES.iter().position(|ty| *ty == element).unwrap_or_default();
        SPIRV[self as usize][width]
    }

    /// The number of leading values of 32 bits.
    const fn narrow_values(self) -> usize {
        match self {
            Self::Gather => 2 + GATHER_AXES - 1,
            Self::Tiles => 0,
        }
    }
}

/// A launch: everything in elements.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    kernel: Kind,
    /// The elements have 2^width bytes.
    width: usize,
    groups: u64,
    /// The lowest element of the source: indices are not negative.
    src: usize,
    /// The kernel's values in the order of its parameters.
    values: Vec<u64>,
}

impl Work {
    fn of(copy: &StridedCopy<'_>) -> Option<Self> {
        let bits = |bits: usize, axis: &StridedAxis| bits | axis.to | axis.from.unsigned_abs();
        let all = copy.axes.iter().fold(copy.dst as usize | copy.src as usize | copy.run, bits);
        let width = (all.trailing_zeros() as usize).min(TYPES.len() - 1);
        let size = 1_usize << width;
        let mut axes: Vec<StridedAxis> = copy
            .axes
            .iter()
            .map(|axis| StridedAxis { to: axis.to >> width, from: axis.from >> width, ..*axis })
            .collect();
        if copy.run > size {
            axes.push(StridedAxis { extent: copy.run >> width, to: 1, from: 1 });
        }
        let below = axes.iter().filter(|axis| axis.from < 0);
        let first: usize = below.map(|axis| axis.from.unsigned_abs() * (axis.extent - 1)).sum();
        let src = (copy.src as usize).checked_sub(first << width)?;
        let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.extent))?;
        let (kernel, groups, values) = tiles(&axes, first).or_else(|| gather(&axes, count, first))?;
        Some(Self { kernel, width, groups, src, values })
    }
}

/// A launch of a kernel: its groups and values.
type Launch = (Kind, u64, Vec<u64>);

fn gather(axes: &[StridedAxis], count: usize, first: usize) -> Option<Launch> {
    let count = u32::try_from(count).ok().filter(|_| axes.len() <= GATHER_AXES)?;
    // Innermost first: the kernel takes the others' indices off one by one. Its axis 0 is what
    // remains, the outermost.
    let mut inner: Vec<StridedAxis> = axes.iter().rev().copied().collect();
    let outermost = inner.pop().unwrap_or(StridedAxis { extent: 1, to: 0, from: 0 });
    let absent = StridedAxis { extent: 1, to: 0, from: 0 };
    let used = inner.len() as u64 + 1;
    inner.resize(GATHER_AXES - 1, absent);
    let strides = |of: fn(&StridedAxis) -> u64| {
        core::iter::once(of(&outermost)).chain(inner.iter().map(of)).collect::<Vec<_>>()
    };
    let mut values = Vec::with_capacity(2 + 3 * GATHER_AXES);
    values.extend([u64::from(count), used]);
    values.extend(inner.iter().map(|axis| axis.extent as u64));
    values.push(first as u64);
    values.extend(strides(|axis| axis.to as u64));
    values.extend(strides(|axis| axis.from as u64));
    Some((Kind::Gather, u64::from(count).div_ceil(GROUP), values))
}

fn tiles(axes: &[StridedAxis], first: usize) -> Option<Launch> {
    let (columns, outer) = axes.split_last().filter(|(inner, _)| inner.to == 1 && inner.from != 1)?;
    let place = outer.iter().position(|axis| axis.from == 1)?;
    let rows = outer[place];
    if columns.extent.min(rows.extent) < SHORTEST_TILE_AXIS || outer.len() - 1 > TILE_AXES {
        return None;
    }
    let mut rest: Vec<StridedAxis> = outer.to_vec();
    rest.remove(place);
    let tiles = |axis: &StridedAxis| axis.extent.div_ceil(TILE) as u64;
    let groups = rest
        .iter()
        .try_fold(tiles(columns).checked_mul(tiles(&rows))?, |groups, axis| {
            groups.checked_mul(axis.extent as u64)
        })
        .filter(|groups| *groups <= i32::MAX as u64)?;
    while rest.len() < TILE_AXES {
        rest.insert(0, StridedAxis { extent: 1, to: 0, from: 0 });
    }
    let mut values = Vec::with_capacity(12);
    values.extend([columns.extent as u64, rows.extent as u64, rows.to as u64, columns.from as u64]);
    values.extend(rest[1..].iter().map(|axis| axis.extent as u64));
    values.push(first as u64);
    values.extend(rest.iter().map(|axis| axis.to as u64));
    values.extend(rest.iter().map(|axis| axis.from as u64));
    Some((Kind::Tiles, groups, values))
}
