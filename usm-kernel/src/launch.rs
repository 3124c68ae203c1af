//! Launches: a kernel, a range, arguments, and a queue that orders the work.

#[cfg(feature = "alloc")]
use usm_core::MemoryType;
use usm_core::backend::HostTasks;
use usm_core::{AllocKind, Backend, BackendKind, DeviceInfo, ErrorKind, Event, Queue, Usage};

use crate::argument::{Arguments, RawSlice, Signature};
use crate::error::LaunchError;
use crate::host::phased;
#[cfg(feature = "threads")]
use crate::host::threads::DividedLaunch;
use crate::kernel::{Description, Kernel, LocalLengths, Values};
use crate::order::{InOrder, Order};
use crate::proof::{Bounds, Proof};
use crate::range::{NdRange, Range};
use crate::sharing::Exclusive;

/// A launch, before it runs.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{Device, QueueOrder, UsmVec};
/// use usm_kernel::sample::reverse;
/// use usm_kernel::{Launch, NdRange};
///
/// let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
/// let mut a = UsmVec::<f32, Device, _>::from_slice(&queue, &[0.0, 1.0, 2.0, 3.0])?;
/// let event = Launch::new(&queue, NdRange::new([4], [4])?).run(reverse, (&mut a,))?;
/// event.wait()?;
/// assert_eq!(a.to_vec(&queue)?, [3.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing runs before `run`"]
pub struct Launch<'l, B: Backend, const D: usize, O: Order = InOrder> {
    queue: &'l Queue<B>,
    range: NdRange<D>,
    has_groups: bool,
    is_rounded: bool,
    after: &'l [Event<B>],
    #[cfg(feature = "alloc")]
    uses: &'l [Usage<'l, B>],
    region: Option<&'l mut [u8]>,
    needs_proof: bool,
    #[cfg(feature = "threads")]
    threads: Option<core::num::NonZeroUsize>,
    order: O,
}

/// Queue, range and order of a launch, for code that a runtime runs.
#[cfg(feature = "alloc")]
pub(crate) struct LaunchSpace<'l, B: Backend, const D: usize> {
    pub(crate) queue: &'l Queue<B>,
    pub(crate) range: &'l NdRange<D>,
    pub(crate) has_groups: bool,
    /// Whether a range without groups may be rounded up to whole ones.
    pub(crate) is_rounded: bool,
    pub(crate) after: &'l [Event<B>],
    pub(crate) uses: &'l [Usage<'l, B>],
}

impl<'l, B: Backend, const D: usize> Launch<'l, B, D> {
    /// A launch over work-groups.
    pub fn new(queue: &'l Queue<B>, range: NdRange<D>) -> Self {
        Self {
            queue,
            range,
            has_groups: true,
            is_rounded: false,
            after: &[],
            #[cfg(feature = "alloc")]
            uses: &[],
            region: None,
            needs_proof: false,
            #[cfg(feature = "threads")]
            threads: None,
            order: InOrder,
        }
    }

    /// A launch over work-items, without a local size. It uses the group that the kernel declares.
    /// A kernel that declares none gets one group if it needs groups: for local memory, barriers,
    /// local or group ids. For all other kernels the runtime chooses; on the host the body gets the
    /// whole range as one group.
    pub fn with_range(queue: &'l Queue<B>, range: Range<D>) -> Self {
        Self { has_groups: false, ..Self::new(queue, NdRange::one_group(range)) }
    }
}

impl<'l, B: Backend, const D: usize, O: Order> Launch<'l, B, D, O> {
    /// Starts after these events too. The launch always waits for earlier uses of its arguments.
    pub fn after(self, events: &'l [Event<B>]) -> Self {
        Self { after: events, ..self }
    }

    /// Names memory that the kernel accesses without an argument, such as through pointers inside a
    /// structure. The launch is ordered after the memory's earlier uses, and the memory stays alive
    /// and unchanged until the launch has finished.
    ///
    /// A write takes a shared reference too, because naming memory does not access it. A kernel in
    /// safe Rust accesses only its arguments, and the `unsafe` call of other code covers its
    /// writes.
    #[cfg(feature = "alloc")]
    pub fn uses(self, usages: &'l [Usage<'l, B>]) -> Self {
        Self { uses: usages, ..self }
    }

    /// Uses this memory for local and private arrays, so that the launch needs no heap.
    /// [`Description::local`] says how many bytes suffice. Only for synchronous backends.
    pub fn local_memory(self, region: &'l mut [u8]) -> Self {
        Self { region: Some(region), ..self }
    }

    /// Runs groups and items in another order. A correct kernel has the same result in each.
    pub fn order<P: Order>(self, order: P) -> Launch<'l, B, D, P> {
        Launch {
            queue: self.queue,
            range: self.range,
            has_groups: self.has_groups,
            is_rounded: self.is_rounded,
            after: self.after,
            #[cfg(feature = "alloc")]
            uses: self.uses,
            region: self.region,
            needs_proof: self.needs_proof,
            #[cfg(feature = "threads")]
            threads: self.threads,
            order,
        }
    }

    /// Lets a [`call`](Self::call) over items run more of them, so that groups of a size that suits
    /// the device cover any range. Then the code must ignore items beyond the range, whose sizes
    /// are among its arguments, and must not use the sizes that the device states.
    ///
    /// Kernels from one source need no call of this. Without it a runtime takes groups that divide
    /// the range; for a prime number of items, groups of one, which can be 100 times as slow.
    #[cfg(feature = "alloc")]
    pub fn round_up(self) -> Self {
        Self { is_rounded: true, ..self }
    }

    /// Refuses the launch unless all indices of the kernel are proven to be inside for this range
    /// and these arguments, and the order of its items does not matter. By default such a launch
    /// runs with checks, or [unordered](crate::ItemOrder::Unordered).
    pub fn require_proof(self) -> Self {
        Self { needs_proof: true, ..self }
    }

    /// Divides the groups of a host kernel between this number of threads, the calling one and
    /// those of the [pool](usm_core::threads). 0 counts as 1, and the pool's size limits it.
    ///
    /// By default a launch that would take more than about 50 us more uses the whole pool, whose
    /// size is `USM_NUM_THREADS` or what [`set`](usm_core::threads::set) states, else rayon's. Only
    /// a [proven](Proof::is_proven) launch is divided, so the number of threads changes no result,
    /// except that of atomic operations whose order matters, such as sums of floating-point
    /// numbers. On one thread run launches of kernels that are written by hand or `unsafe`,
    /// launches in another [`order`](Self::order) or with [`local_memory`](Self::local_memory), and
    /// launches from a thread of the pool.
    #[cfg(feature = "threads")]
    pub fn threads(self, number: usize) -> Self {
        let threads = core::num::NonZeroUsize::new(number).unwrap_or(core::num::NonZeroUsize::MIN);
        Self { threads: Some(threads), ..self }
    }

    /// The proof of the kernel for this range and these arguments, without running it.
    /// [`Bounds::Checked`] names the first index without a proof, and the condition that it lacks.
    /// A launch whose order no condition decides is [inspected](crate::ItemOrder::Inspected).
    ///
    /// # Errors
    /// The kernel's own refusals: its local size, lengths of arguments.
    pub fn proof<K: Kernel<D>, A: Arguments<K::Arguments, B>>(
        &self,
        kernel: K,
        mut arguments: A,
    ) -> Result<Proof, LaunchError> {
        let raw = arguments.raw();
        let (elements, values) = (K::Arguments::raw_lengths(&raw), K::Arguments::raw_values(&raw));
        let range = self.default_groups(&kernel)?.unwrap_or(self.range);
        let description = Description::new(&kernel, &range, &values)?;
        description.proof(&kernel, &range, elements.as_ref(), &values, true)
    }

    /// The groups of a launch that states none; `None` if it states some, or the runtime chooses.
    fn default_groups<K: Kernel<D>>(&self, kernel: &K) -> Result<Option<NdRange<D>>, LaunchError> {
        if self.has_groups {
            return Ok(None);
        }
        if let Some(group) = kernel.required_group() {
            let sizes = self.range.global().sizes();
            let local = |d| if group[d] == 0 { u64::max(sizes[d], 1) } else { group[d] };
            return Ok(Some(NdRange::new(sizes, core::array::from_fn(local))?));
        }
        let has_arrays = size_of::<LocalLengths<K::Local>>() != 0;
        Ok((K::NEEDS_GROUPS || has_arrays).then_some(self.range))
    }

    pub(crate) fn with_default_groups<K: Kernel<D>>(self, kernel: &K) -> Result<Self, LaunchError> {
        Ok(match self.default_groups(kernel)? {
            Some(range) => Self { range, has_groups: true, ..self },
            None => self,
        })
    }

    /// The checks before a launch runs.
    #[inline]
    pub(crate) fn check_launch<K: Kernel<D>>(
        &self,
        description: &Description<D>,
        kernel: &K,
        lengths: &[usize],
        values: &Values<K::Arguments>,
    ) -> Result<Proof, LaunchError> {
        let proof = description.check_and_prove(kernel, &self.range, lengths, values, self.needs_proof)?;
        match proof.bounds {
            Bounds::Checked { index, why } if self.needs_proof => {
                Err(LaunchError::Unproven { kernel: K::NAME, index, why })
            }
            Bounds::None if self.needs_proof => Err(LaunchError::NoProof { kernel: K::NAME }),
            _ => Ok(proof),
        }
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn space(&self) -> LaunchSpace<'_, B, D> {
        let Self { queue, range, has_groups, is_rounded, after, uses, .. } = self;
        LaunchSpace { queue, range, has_groups: *has_groups, is_rounded: *is_rounded, after, uses }
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn has_region(&self) -> bool {
        self.region.is_some()
    }

    /// Launches `kernel`. The arguments are borrowed until this returns. Afterwards every read,
    /// write or free of them waits for the launch.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing runs then.
    pub fn run<K: Kernel<D>, A: Arguments<K::Arguments, B>>(
        self,
        kernel: K,
        mut arguments: A,
    ) -> Result<Event<B>, LaunchError> {
        let launch = self.with_default_groups(&kernel)?;
        let raw = arguments.raw();
        let (elements, values) = (K::Arguments::raw_lengths(&raw), K::Arguments::raw_values(&raw));
        let lengths = kernel.local(&launch.range, &values);
        let description = Description::with_lengths(&kernel, &launch.range, &lengths)?;
        let proof = launch.check_launch(&description, &kernel, elements.as_ref(), &values)?;
        let is_proven = proof.is_proven();
        #[cfg(feature = "threads")]
        let is_divided = K::CONCURRENT
            && !O::NOISE
            && is_proven
            && launch.region.is_none()
            && launch.threads.is_none_or(|threads| threads.get() > 1)
            && usm_core::threads::stated()?.is_none_or(|threads| threads.get() > 1);
        #[cfg(feature = "threads")]
        let threads = launch.threads;
        let Self { queue, range, has_groups, after, region, order, .. } = launch;
        #[cfg(feature = "alloc")]
        let uses = launch.uses;
        let info = queue.context().info();
        check_limits(info, &range, has_groups, &description)?;
        let mut outside = None;
        arguments.for_each_allocation(|allocation| {
            let kind = allocation.kind();
            outside = outside.or((!is_accessible_by_host_kernel(info, kind)).then_some(kind));
        });
        if let Some(kind) = outside {
            return Err(ErrorKind::NotHostAccessible { kind }.into());
        }
        let bytes = description.local.region;
        #[cfg(feature = "alloc")]
        let mut stack = [const { core::mem::MaybeUninit::uninit() }; GroupMemory::STACK];
        #[cfg(feature = "alloc")]
        let region = match region {
            None if B::SYNCHRONOUS && bytes != 0 => GroupMemory::stack_region(&mut stack, bytes),
            memory => memory,
        };
        let mut memory = GroupMemory::new::<B>(region, bytes)?;
        let available = memory.region().len() as u64;
        if phased::carve::<D, K>(&range, memory.region(), &lengths).is_none() {
            return Err(LaunchError::ArenaTooSmall { size: bytes as u64, available });
        }
        let task = move || {
            let local = phased::carve::<D, K>(&range, memory.region(), &lengths);
            let local = local.expect("the same region was cut into the same lengths before");
            #[cfg(feature = "threads")]
            if is_divided {
                let (kernel, range, raw, lengths) = (&kernel, &range, &raw, &lengths);
                let launch = DividedLaunch { kernel, range, raw, lengths, bytes, threads };
                // SAFETY: the launch is proven; `submit` keeps the allocations alive and free of
                // conflicting access until the event of this task is complete.
                return unsafe { launch.run(local) };
            }
            // SAFETY: `submit` keeps the allocations alive and free of conflicting access until the
            // event of this task is complete; `Bind` proved the rest.
            let views = unsafe { K::Arguments::views::<Exclusive>(&raw) };
            phased::groups(&kernel, &range, views, local, order, is_proven);
        };
        let submit = |usages: &[Usage<'_, B>]| {
            #[cfg(feature = "alloc")]
            let all;
            #[cfg(feature = "alloc")]
            let usages = if uses.is_empty() {
                usages
            } else {
                all = [usages, uses].concat();
                &all
            };
            let run = |queue: &B::Queue, after: &[B::Event]| {
                // SAFETY: `submit` keeps the memory of `usages` alive and ordered until the task is
                // complete; the task owns everything else.
                unsafe { B::HostTasks::run(queue, after, task) }
            };
            // SAFETY: the task accesses the memory of `usages` as they declare, and its own local
            // memory; a `&mut` usage excludes all others of the same array; after an error the task
            // was not submitted.
            let event = unsafe { queue.submit(usages, after, run) };
            Ok(event?)
        };
        arguments.with_usages(submit)
    }
}

/// Checks the device's limits. A range without groups has no group size to check.
fn check_limits<const D: usize>(
    info: &DeviceInfo,
    range: &NdRange<D>,
    has_groups: bool,
    description: &Description<D>,
) -> Result<(), LaunchError> {
    let bytes = description.local.local as u64;
    if !has_groups {
        return Ok(());
    }
    let (size, limit) = (range.local().items(), info.max_work_group_size);
    if size > limit {
        return Err(LaunchError::GroupTooLarge { size, limit });
    }
    let limit = info.local_mem_size;
    if bytes > limit {
        return Err(LaunchError::LocalMemoryTooLarge { size: bytes, limit });
    }
    Ok(())
}

/// Whether a kernel on the host may access memory of this kind. Host backends have only plain
/// memory; on others the host must be able to access it concurrently with the device.
fn is_accessible_by_host_kernel(info: &DeviceInfo, kind: AllocKind) -> bool {
    matches!(info.backend, BackendKind::Host | BackendKind::Mock)
        || (kind.is_host_accessible() && info.capabilities.concurrent(kind))
}

/// The memory of a launch's local and private arrays.
enum GroupMemory {
    /// A region of the caller or on the stack, borrowed for a synchronous launch.
    Caller(RawSlice<u8>),
    #[cfg(feature = "alloc")]
    Heap(alloc::vec::Vec<u8>),
}

impl GroupMemory {
    /// Our own local memory starts at a cache line, like a device's.
    #[cfg(feature = "alloc")]
    const ALIGNMENT: usize = 64;

    /// Bytes on the stack for launches with small groups. The heap takes 50 to 90 ns, a launch
    /// without it 45.
    #[cfg(feature = "alloc")]
    const STACK: usize = 4096;

    /// A region on the stack, if it suffices.
    #[cfg(feature = "alloc")]
    fn stack_region(
        stack: &mut [core::mem::MaybeUninit<u8>; Self::STACK],
        needed: usize,
    ) -> Option<&mut [u8]> {
        let start = (stack.as_ptr() as usize).wrapping_neg() % Self::ALIGNMENT;
        let region = stack.get_mut(start..)?.get_mut(..needed)?;
        region.fill(core::mem::MaybeUninit::new(0));
        // SAFETY: all of these bytes were just initialised.
        Some(unsafe { &mut *(core::ptr::from_mut(region) as *mut [u8]) })
    }

    fn new<B: Backend>(region: Option<&mut [u8]>, bytes: usize) -> Result<Self, LaunchError> {
        match region {
            Some(_) if !B::SYNCHRONOUS => Err(LaunchError::ArenaWithAsynchronous),
            Some(region) => Ok(Self::Caller(RawSlice::new(region.as_mut_ptr(), region.len()))),
            None => Self::allocate_region(bytes),
        }
    }

    #[cfg(feature = "alloc")]
    fn allocate_region(needed: usize) -> Result<Self, LaunchError> {
        if needed == 0 {
            return Ok(Self::Heap(alloc::vec::Vec::new()));
        }
        let requested = needed as u64;
        let out_of_memory = ErrorKind::OutOfMemory { memory_type: MemoryType::UsmHost, requested };
        let bytes = needed.checked_add(Self::ALIGNMENT - 1).ok_or(ErrorKind::SizeOverflow)?;
        let mut region = alloc::vec::Vec::new();
        region.try_reserve_exact(bytes).map_err(|_| out_of_memory)?;
        region.resize(bytes, 0);
        Ok(Self::Heap(region))
    }

    #[cfg(not(feature = "alloc"))]
    fn allocate_region(_: usize) -> Result<Self, LaunchError> {
        Ok(Self::Caller(RawSlice::new(core::ptr::NonNull::dangling().as_ptr(), 0)))
    }

    fn region(&mut self) -> &mut [u8] {
        match self {
            // SAFETY: the region is borrowed exclusively from before `Launch::run` to its end, and
            // by then a synchronous backend, the only one that gets here, has run or dropped the
            // task.
            Self::Caller(region) => unsafe { RawSlice::view_mut(region) },
            #[cfg(feature = "alloc")]
            Self::Heap(region) => {
                let start = (region.as_ptr() as usize).wrapping_neg() % Self::ALIGNMENT;
                region.get_mut(start..).unwrap_or_default()
            }
        }
    }
}
