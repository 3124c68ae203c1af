//! The measurements of a runtime, written once: the safe API beside a peer that calls the driver.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use usm_core::backend::DeviceOps;
use usm_core::{
    AllocKind, Backend, Context, Device, Event, MemorySource, Queue, QueueOrder, Request, UsmVec,
};
use usm_kernel::{
    ArgumentError, Code, DeclaredFunction, Launch, Local, Module, NdRange, Programmable, Value, Write,
};

use crate::pairs::{Clock, pairs};
use crate::row::Row;

pub(super) type Raw = *mut c_void;
type Scale<B> = DeclaredFunction<(Write<f32>, Value<f32>), (Local<f32>,), B, 1>;

pub(super) const ITEMS: usize = 64;
pub(super) const GROUP: usize = 16;
const IN_A_ROW: usize = 32;
const SIZES: [usize; 2] = [4096, 1 << 20];
pub(super) const MICROSECOND: f64 = 1e3;

/// The shortest sequences of driver calls, on the same native context, device and in-order queue as
/// ours. Events are native.
pub(super) trait Peer {
    /// `size` bytes of shared memory, aligned as ours.
    fn allocate_and_free(&self, size: usize);
    /// All queries that the runtime needs to describe an address.
    fn query(&self, address: *const c_void);
    /// A copy between live, disjoint ranges.
    fn copy(&self, dst: Raw, src: *const c_void, len: usize) -> Raw;
    /// Waits by polling, like ours.
    fn poll(&self, event: Raw);
    /// Releases an event.
    fn release(&self, event: Raw);
    /// Does the device's part if there is no device: see [`Undone`].
    fn complete(&self, _: Raw) {}

    /// Polls and releases.
    fn wait(&self, event: Raw) {
        self.poll(event);
        self.release(event);
    }
}

/// The action after each submission: none, or the device's part if there is no device.
pub(super) trait Undone<B: Backend> {
    /// Whether only submissions are measured: the submitting thread has the whole processor then.
    const ALONE: bool;

    fn complete(&self, event: &Event<B>);
}

impl<B: Backend> Undone<B> for () {
    const ALONE: bool = false;

    fn complete(&self, _: &Event<B>) {}
}

/// The peer's use of a launch's events.
#[derive(Clone, Copy)]
pub(super) enum Events {
    /// Keeps the last event until the next launch, as a program must that frees the memory later.
    Kept,
    /// Keeps all events until the last one is complete, and then queries each. If a runtime forgets
    /// failures, a program can detect them in no other way.
    Asked,
    /// Releases each event at once or, if the runtime makes events only on request, requests one
    /// for the last launch only. Such a program cannot know when it may free the memory of the
    /// others.
    Dropped,
}

/// The arguments for the peer of a launch.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// The array.
    pub(super) address: Raw,
    /// The event of the previous launch, if events are kept.
    pub(super) before: Option<Raw>,
    /// Whether the peer waits for this launch: then its event is queried, otherwise only released.
    pub(super) last: bool,
}

/// A function of a runtime, by its address.
pub(super) fn needed(address: Option<NonNull<c_void>>) -> Result<Raw, String> {
    address.map(NonNull::as_ptr).ok_or_else(|| "a function is missing".into())
}

/// A function with the signature that its variable declares.
macro_rules! function {
    ($find:expr, $name:literal, fn($($argument:ty),* $(,)?) -> $result:ty) => {{
        let address = $crate::backends::peer::needed($find($name))?;
        // SAFETY: the function of that name has this signature by specification.
        unsafe {
            std::mem::transmute::<$crate::backends::peer::Raw, unsafe extern "C" fn($($argument),*) -> $result>(address)
        }
    }};
}
pub(super) use function;

/// A context over the first device with unified shared memory.
pub(super) fn context<B: Backend>(backend: &B) -> Result<Context<B>, String> {
    let mut device = None;
    let result = backend.for_each_device(&mut |candidate| {
        if !candidate.info().capabilities.shared.is_empty() {
            device.get_or_insert(candidate);
        }
    });
    result.map_err(|error| error.to_string())?;
    let device = device.ok_or("no device with unified shared memory")?;
    Context::new(backend, &device).map_err(|error| error.to_string())
}

pub(super) fn queue<B: Backend>(context: &Context<B>) -> Result<Queue<B>, String> {
    context.queue(QueueOrder::InOrder).map_err(|error| error.to_string())
}

/// Allocation, query and copy.
pub(super) fn memory_rows<B: Backend>(
    name: &str,
    queue: &Queue<B>,
    peer: &impl Peer,
    undone: &impl Undone<B>,
) -> Vec<Row> {
    let context = queue.context();
    let mut rows: Vec<Row> = SIZES.map(|size| allocate_and_free(name, context, peer, size)).into();
    rows.push(query(name, context, peer));
    rows.extend(SIZES.map(|size| copy_and_wait(name, queue, peer, undone, size)));
    rows
}

fn allocate_and_free<B: Backend>(name: &str, context: &Context<B>, peer: &impl Peer, size: usize) -> Row {
    let request = Request::new(AllocKind::Shared, size);
    let ours = || drop(black_box(context.allocate(&request).expect("memory")));
    let pairs = pairs(Clock::Thread, ours, || peer.allocate_and_free(size));
    pairs.row(&format!("{name}: allocate and free {size} B"), "driver calls", "us", MICROSECOND)
}

/// Kind, base and size of an interior pointer.
fn query<B: Backend>(name: &str, context: &Context<B>, peer: &impl Peer) -> Row {
    let allocation = context.allocate(&Request::new(AllocKind::Shared, 4096)).expect("memory");
    let pointer = allocation.as_ptr().wrapping_add(100);
    let ours = || _ = black_box(context.query(black_box(pointer)).expect("an answer"));
    let pairs = pairs(Clock::Thread, ours, || peer.query(pointer.cast()));
    pairs.row(&format!("{name}: query kind, base and size"), "driver calls", "us", MICROSECOND)
}

fn copy_and_wait<B: Backend, U: Undone<B>>(
    name: &str,
    queue: &Queue<B>,
    peer: &impl Peer,
    undone: &U,
    size: usize,
) -> Row {
    let allocate = || queue.context().allocate(&Request::new(AllocKind::Device, size)).expect("memory");
    let (mut dst, src, raw_dst) = (allocate(), allocate(), allocate());
    let ours = || {
        let event = queue.copy_bytes(&mut dst, 0, &src, 0, size).expect("a copy");
        undone.complete(&event);
        event.wait().expect("done");
    };
    let theirs = || {
        let event = peer.copy(raw_dst.as_ptr().cast(), src.as_ptr().cast(), size);
        peer.complete(event);
        peer.wait(event);
    };
    let pairs = pairs(clock::<B, U>(), ours, theirs);
    pairs.row(&format!("{name}: copy {size} B and wait"), "driver calls", "us", MICROSECOND)
}

/// The CPU time of all participants.
fn clock<B: Backend, U: Undone<B>>() -> Clock {
    if U::ALONE { Clock::Thread } else { Clock::Process }
}

/// The same copies beside two busy threads for each processor. `wait` waits without a limit, by the
/// runtime's own call, because a polling peer would starve the runtime.
pub(super) fn busy_rows<B: Backend>(
    name: &str,
    queue: &Queue<B>,
    peer: &impl Peer,
    wait: impl Fn(Raw),
) -> Vec<Row> {
    let allocate = |size| queue.context().allocate(&Request::new(AllocKind::Device, size)).expect("memory");
    on_busy_machine(|| {
        let row = |size: usize| {
            let (mut dst, src, raw_dst) = (allocate(size), allocate(size), allocate(size));
            let ours = || {
                let event = queue.copy_bytes(&mut dst, 0, &src, 0, size).expect("a copy");
                event.wait().expect("done");
            };
            let theirs = || wait(peer.copy(raw_dst.as_ptr().cast(), src.as_ptr().cast(), size));
            let pairs = pairs(Clock::Wall, ours, theirs);
            let case = format!("{name}: copy {size} B and wait, busy machine");
            pairs.row(&case, "wait without limit", "us", MICROSECOND)
        };
        SIZES.map(row).into()
    })
}

fn on_busy_machine<T>(measure: impl FnOnce() -> T) -> T {
    let threads = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = measure();
        is_done.store(true, Ordering::Relaxed);
        result
    })
}

/// Launches of a kernel with three arguments. Both sides set all of them each time and request the
/// event. One row waits for each launch; the other waits for the last of 32, which on an in-order
/// queue mostly measures submission.
pub(super) fn launch_rows<B: Programmable, U: Undone<B>>(
    name: &str,
    queue: &Queue<B>,
    code: Code<'_>,
    (peer, undone): (&impl Peer, &U),
    (label, events): (&str, Events),
    theirs: impl Fn(Turn) -> Raw,
) -> Result<Vec<Row>, String> {
    let module = Module::build(queue.context(), code).map_err(|error| error.to_string())?;
    let function = module.function("scale").map_err(|error| error.to_string())?;
    // SAFETY: an item has its own element of the array and of local memory.
    let scale = unsafe {
        Scale::<B>::new(&function, |range, lengths, locals| {
            ArgumentError::at_least(lengths, 0, range.global().items())?;
            ArgumentError::local_at_least(locals, 0, range.local().items())
        })
    }
    .map_err(|error| error.to_string())?;
    let array = || {
        if !U::ALONE {
            return UsmVec::<f32, Device, B>::zeroed(queue, ITEMS).map_err(|error| error.to_string());
        }
        let allocation = queue.context().allocate(&Request::new(AllocKind::Device, 4 * ITEMS));
        // SAFETY: nothing runs, so nothing reads them.
        let array = unsafe { UsmVec::from_allocation(allocation.map_err(|error| error.to_string())?, ITEMS) };
        array.map_err(|(_, error)| error.to_string())
    };
    let (mut a, other) = (array()?, array()?);
    let address = other.as_ptr().cast_mut().cast();
    if !U::ALONE {
        queue.wait().map_err(|error| error.to_string())?;
    }
    let mut launch = || -> Event<B> {
        let range = NdRange::new([ITEMS as u64], [GROUP as u64]).expect("a range");
        let event = Launch::new(queue, range).declared(&scale, (&mut a, 1.0), [GROUP]).expect("a launch");
        undone.complete(&event);
        event
    };
    let (last, all) = (Cell::new(None), RefCell::new(Vec::with_capacity(IN_A_ROW)));
    let submit = || {
        let is_kept = !matches!(events, Events::Dropped);
        let event = theirs(Turn { address, before: last.get(), last: is_kept });
        peer.complete(event);
        match events {
            Events::Asked => all.borrow_mut().push(event),
            Events::Kept => {
                if let Some(before) = last.replace(Some(event)) {
                    peer.release(before);
                }
            }
            Events::Dropped => peer.release(event),
        }
    };
    let submit_and_wait = || match events {
        Events::Kept => {
            submit();
            last.get().into_iter().for_each(|event| peer.poll(event));
        }
        Events::Asked => {
            let event = theirs(Turn { address, before: None, last: true });
            peer.poll(event);
            all.borrow_mut().drain(..).for_each(|event| peer.wait(event));
            peer.release(event);
        }
        Events::Dropped => peer.wait(theirs(Turn { address, before: None, last: true })),
    };
    let mut rows = Vec::new();
    // The cost of the calls is the caller's CPU time; the cost of the wait is wall time. The CPU
    // time of all threads says little: idle threads of a CPU runtime may spin before they sleep, so
    // that equal calls take 7 us in one process and 12 us in another.
    let clocks = [("", Clock::Thread), (", by the clock", Clock::Wall)];
    let clocks = &clocks[..if U::ALONE { 1 } else { 2 }];
    let cases = [("launch and wait", 1), ("32 launches and wait", IN_A_ROW)];
    for ((case, count), (by, clock)) in
        cases.iter().flat_map(|case| clocks.iter().map(|clock| (*case, *clock)))
    {
        let pairs = pairs(
            clock,
            || {
                (1..count).for_each(|_| drop(black_box(launch())));
                launch().wait().expect("done");
            },
            || {
                (1..count).for_each(|_| submit());
                submit_and_wait();
            },
        );
        rows.push(pairs.row(&format!("{name}: {case}{by}"), label, "us", MICROSECOND));
    }
    Ok(rows)
}

/// The kernel of both sides in OpenCL C.
pub(super) const OPENCL_C: &CStr = text(concat!(include_str!("device/scale.cl"), "\0"));
/// The same kernel in SPIR-V.
pub(super) const SPIR_V: &[u8] = include_bytes!("device/scale.spv");

const fn text(source: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(source.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the source ends in its only NUL"),
    }
}
