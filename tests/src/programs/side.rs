//! A context of a program and all that it holds, with the values that each element must have.

use core::array;

use usm_core::{
    AllocKind, Allocation, AnyKind, Buffer, Context, Device, ErrorKind, Host, KnownKind, MemorySource, Queue,
    QueueOrder, Result, Shared, UsmVec,
};
use usm_kernel::{Executable, Programmable, sample};
use usm_pool::arena::{Arena, ArenaError};

use super::step::{ARRAYS, At, BUFFERS, Content, ELEMENTS, QUEUES, Source};
use super::{Driver, Tally};

/// The values that elements must have; `None` where a copy failed halfway.
pub(super) type Model = [Option<f32>; ELEMENTS];
pub(super) type Outcome<T> = core::result::Result<T, String>;

pub(super) struct Values<V> {
    pub(super) given: V,
    pub(super) model: Model,
}

pub(super) type Array<B> = Values<UsmVec<f32, AnyKind, B>>;

/// A context and its objects.
pub(super) struct Side<B: Programmable> {
    pub(super) context: Context<B>,
    pub(super) queues: Vec<Queue<B>>,
    pub(super) arrays: [Option<Array<B>>; ARRAYS],
    pub(super) buffers: [Option<Values<Buffer<B>>>; BUFFERS],
    pub(super) arena: Option<(Arena<B>, AllocKind)>,
    pub(super) saxpy: Option<Executable<sample::saxpy, B, 1>>,
}

/// The tolerated errors, and their number.
pub(super) struct Judge {
    pub(super) tally: Tally,
    /// Whether every error is wrong: no fault was planned, and waits end.
    pub(super) strict: bool,
    pub(super) forgot: bool,
}

impl Judge {
    pub(super) fn error(&mut self, error: &dyn core::fmt::Display) -> Outcome<()> {
        if self.strict {
            return Err(format!("an error although nothing can fail: {error}"));
        }
        self.tally.errors += 1;
        Ok(())
    }

    /// The value of an operation; `None` if it was refused and may be.
    pub(super) fn allowed<T>(&mut self, result: Result<T>) -> Outcome<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.error(&error).map(|()| None),
        }
    }

    pub(super) fn compare(&mut self, found: &[f32], model: &Model) -> Outcome<()> {
        let wrong = found.iter().zip(model).position(|(found, expected)| {
            expected.is_some_and(|expected| expected.to_bits() != found.to_bits())
        });
        if let Some(at) = wrong {
            return Err(format!("element {at} is {:?}, not {:?}: {found:?}", found[at], model[at]));
        }
        self.tally.reads += 1;
        Ok(())
    }
}

impl<B: Programmable + 'static> Side<B> {
    pub(super) fn new(driver: &impl Driver<B>) -> Result<Self> {
        let context = driver.context()?;
        let queues = (0..QUEUES).map(|number| context.queue(order(number))).collect::<Result<_>>()?;
        let (arrays, buffers) = (array::from_fn(|_| None), array::from_fn(|_| None));
        Ok(Self { context, queues, arrays, buffers, arena: None, saxpy: None })
    }

    /// Drops everything, one kind after the other.
    pub(super) fn end(self, mut order: u64) {
        let Self { context, queues, arrays, buffers, arena, saxpy } = self;
        let mut sorts: Vec<Box<dyn FnOnce()>> = vec![
            Box::new(move || drop(context)),
            Box::new(move || drop(queues)),
            Box::new(move || drop(arrays)),
            Box::new(move || drop(buffers)),
            Box::new(move || drop((arena, saxpy))),
        ];
        while !sorts.is_empty() {
            let next = order % sorts.len() as u64;
            order /= sorts.len() as u64;
            sorts.swap_remove(next as usize)();
        }
    }

    /// Makes an array from the given source. `None` if the arena's bytes are in use or the device
    /// cannot access the program's memory.
    pub(super) fn array(
        &self,
        at: At,
        kind: AllocKind,
        source: Source,
        content: Content,
    ) -> Option<Result<UsmVec<f32, AnyKind, B>>> {
        let queue = &self.queues[at.queue];
        match source {
            Source::Context => Some(self.array_from(queue, &self.context, kind, content)),
            Source::Queue => Some(self.array_from(queue, queue, kind, content)),
            Source::Arena(tensor) => {
                let (arena, kind) = self.arena.as_ref()?;
                match arena.tensor(tensor) {
                    Ok(claim) => Some(self.array_from(queue, &claim, *kind, content)),
                    Err(ArenaError::InUse { .. }) => None,
                    Err(other) => panic!("{other}"),
                }
            }
            Source::System => {
                let elements = numbers(content).map(|value| value.unwrap_or(0.0));
                let taken = UsmVec::<f32, Host, B>::from_system(&self.context, Box::new(elements));
                match taken {
                    Ok(array) => Some(Ok(array.into_any())),
                    Err((_, error)) if matches!(error.kind, ErrorKind::Unsupported { .. }) => None,
                    Err((_, error)) => Some(Err(error)),
                }
            }
        }
    }

    fn array_from<S: MemorySource<B>>(
        &self,
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        content: Content,
    ) -> Result<UsmVec<f32, AnyKind, B>> {
        let of = match content {
            Content::Of(from) => self.arrays[from].as_ref().map(|array| &array.given),
            _ => None,
        };
        match kind {
            AllocKind::Host => made::<Host, _, B>(queue, source, content, of),
            AllocKind::Shared => made::<Shared, _, B>(queue, source, content, of),
            AllocKind::Device | AllocKind::Unknown => made::<Device, _, B>(queue, source, content, of),
        }
    }

    /// The expected content of a new array.
    pub(super) fn model(&self, source: Source, content: Content) -> Model {
        match (content, source) {
            (Content::Of(from), Source::Context | Source::Queue | Source::Arena(_)) => {
                self.arrays[from].as_ref().map_or(numbers(Content::Zeros), |array| array.model)
            }
            _ => numbers(content),
        }
    }
}

fn made<K: KnownKind, S: MemorySource<B>, B: Programmable>(
    queue: &Queue<B>,
    source: &S,
    content: Content,
    of: Option<&UsmVec<f32, AnyKind, B>>,
) -> Result<UsmVec<f32, AnyKind, B>> {
    let array = match (content, of) {
        (Content::Of(_), Some(of)) => UsmVec::<f32, K, B>::uninit(source, ELEMENTS)?.copy_from(queue, of)?.0,
        (Content::From(_), _) => {
            let values = numbers(content).map(|value| value.unwrap_or(0.0));
            UsmVec::<f32, K, B>::from_slice_in(queue, source, &values)?
        }
        _ => UsmVec::<f32, K, B>::zeroed_in(queue, source, ELEMENTS)?,
    };
    Ok(array.into_any())
}

pub(super) fn order(queue: usize) -> QueueOrder {
    if queue % 2 == 0 { QueueOrder::InOrder } else { QueueOrder::OutOfOrder }
}

/// Numbers whose sums are mostly distinct.
pub(super) fn numbers(content: Content) -> Model {
    match content {
        Content::From(first) => array::from_fn(|index| Some(f32::from(first) + index as f32 * 0.25)),
        Content::Zeros | Content::Of(_) => [Some(0.0); ELEMENTS],
    }
}

/// The memory of an array.
pub(super) fn memory<B: Programmable>(array: &mut Array<B>) -> &mut Allocation<B> {
    // SAFETY: it stays in its place, and the callers copy elements, which have values.
    unsafe { array.given.allocation_mut() }
}

pub(super) fn meets(one: usize, other: usize, len: usize) -> bool {
    one.abs_diff(other) < len
}

/// Takes one element out of its place while `work` uses it.
pub(super) fn taken<T, R>(
    places: &mut [Option<T>],
    at: usize,
    work: impl FnOnce(&mut T, &mut [Option<T>]) -> R,
) -> Option<R> {
    let mut one = places[at].take()?;
    let done = work(&mut one, places);
    places[at] = Some(one);
    Some(done)
}
