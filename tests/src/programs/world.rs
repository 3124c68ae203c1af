//! Runs the steps of a program on the arrays and on a model of their values.

use core::array;
use core::ops::Range;

use usm_core::{
    AllocKind, ErrorKind, Event, Fallback, Host, MemAdvice, Memory, MemoryType, Queue, Result, Strided,
    UsmVec,
};
use usm_kernel::{Executable, Launch, LaunchError, Programmable, sample};
use usm_pool::arena::{Arena, ArenaError};
use usm_pool::{Options, Problem, plan};

use super::side::{Judge, Outcome, Side, Values, meets, memory, numbers, order, taken};
use super::step::{ARRAYS, At, BUFFERS, Content, ELEMENTS, QUEUES, SIDES, Step, TENSORS};
use super::{Driver, Tally};

const WIDTH: usize = size_of::<f32>();
const BYTES: usize = ELEMENTS * WIDTH;
/// Events that a program keeps.
const EVENTS: usize = 16;

pub(super) struct World<'d, B: Programmable, D> {
    driver: &'d D,
    sides: [Option<Side<B>>; SIDES],
    events: Vec<(u64, Event<B>)>,
    judge: Judge,
}

impl<'d, B: Programmable + 'static, D: Driver<B>> World<'d, B, D> {
    pub(super) fn new(driver: &'d D) -> Self {
        let side = || Some(Side::new(driver).expect("nothing fails yet"));
        let judge = Judge { tally: Tally::default(), strict: driver.runs_by_itself(), forgot: false };
        Self { driver, sides: array::from_fn(|_| side()), events: Vec::new(), judge }
    }

    fn keep(&mut self, side: usize, event: Event<B>) {
        if self.events.len() == EVENTS {
            drop(self.events.remove(0));
        }
        if let Some(side) = &self.sides[side] {
            self.events.push((side.context.id(), event));
        }
    }

    /// For an operation that has not started when it is refused: if submitted, the model changes
    /// and the event is kept.
    fn submitted(
        &mut self,
        at: At,
        work: impl FnOnce(&Queue<B>, &mut Side<B>) -> Option<Result<Event<B>>>,
    ) -> Outcome<()> {
        let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
        let queue = side.queues[at.queue].clone();
        let Some(result) = work(&queue, side) else { return Ok(()) };
        if let Some(event) = self.judge.allowed(result)? {
            self.keep(at.side, event);
        }
        Ok(())
    }

    /// An operation that must be refused in any case.
    fn refused(&self, result: Option<Result<Event<B>>>, why: &str) -> Outcome<()> {
        match result {
            Some(Ok(_)) => Err(format!("{why} was not refused")),
            _ => Ok(()),
        }
    }

    pub(super) fn take(&mut self, step: &Step) -> Outcome<()> {
        match *step {
            Step::Array { at, to, kind, source, content } => {
                let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
                let model = side.model(source, content);
                let Some(made) = side.array(at, kind, source, content) else { return Ok(()) };
                if let Some(given) = self.judge.allowed(made)? {
                    side.arrays[to] = Some(Values { given, model });
                }
                Ok(())
            }
            Step::Buffer { side, to } => {
                let Some(side) = &mut self.sides[side] else { return Ok(()) };
                let made = side.context.allocate_memory(MemoryType::Buffer, BYTES, 0, Fallback::Refuse);
                match made {
                    Err(error) if matches!(error.kind, ErrorKind::Unsupported { .. }) => {}
                    made => {
                        if let Some(Memory::Buffer(given)) = self.judge.allowed(made)? {
                            side.buffers[to] = Some(Values { given, model: [Some(0.0); ELEMENTS] });
                        }
                    }
                }
                Ok(())
            }
            Step::Fill { at, array, value } => self.submitted(at, |queue, side| {
                let array = side.arrays[array].as_mut()?;
                let value = f32::from(value);
                let event = queue.fill(&mut array.given, value);
                array.model = if event.is_ok() { [Some(value); ELEMENTS] } else { array.model };
                Some(event)
            }),
            Step::Copy { at, to, from } if to != from => self.submitted(at, |queue, side| {
                taken(&mut side.arrays, to, |to, others| {
                    let from = others[from].as_ref()?;
                    let event = queue.copy(&mut to.given, &from.given);
                    to.model = if event.is_ok() { from.model } else { to.model };
                    Some(event)
                })?
            }),
            Step::Copy { .. } => Ok(()),
            Step::CopyPart { at, to, first, ref from, array } => self.copy_part(at, to, first, from, array),
            Step::CopyStrided { at, to, from } => self.copy_strided(at, to, from),
            Step::Kernel { at, x, y, items } => self.kernel(at, x, y, items),
            Step::FillBuffer { at, buffer, ref range, value } => self.submitted(at, |queue, side| {
                let buffer = side.buffers[buffer].as_mut()?;
                let value = f32::from(value);
                let (offset, len) = (range.start * WIDTH, range.len() * WIDTH);
                let event = queue.fill_buffer(&mut buffer.given, offset, len, &value.to_ne_bytes());
                if event.is_ok() {
                    buffer.model[range.clone()].fill(Some(value));
                }
                Some(event)
            }),
            Step::WriteBytes { at, buffer, ref range, value } => self.submitted(at, |queue, side| {
                let buffer = side.buffers[buffer].as_mut()?;
                let values = &numbers(Content::From(value))[..range.len()];
                let bytes: Vec<u8> = values.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect();
                let event = queue.write_buffer_from(&mut buffer.given, range.start * WIDTH, &bytes);
                if event.is_ok() {
                    buffer.model[range.clone()].copy_from_slice(values);
                }
                Some(event)
            }),
            Step::WriteBuffer { at, buffer, first, array, ref from } => self.submitted(at, |queue, side| {
                let (array, buffer) = (side.arrays[array].as_ref()?, side.buffers[buffer].as_mut()?);
                if !array.given.kind().is_host_accessible() {
                    return None;
                }
                let (offset, len) = (from.start * WIDTH, from.len() * WIDTH);
                let event = queue.write_buffer(&mut buffer.given, first * WIDTH, &array.given, offset, len);
                if event.is_ok() {
                    buffer.model[first..first + from.len()].copy_from_slice(&array.model[from.clone()]);
                }
                Some(event)
            }),
            Step::ReadBuffer { at, array, first, buffer, ref from } => self.submitted(at, |queue, side| {
                let (array, buffer) = (side.arrays[array].as_mut()?, side.buffers[buffer].as_ref()?);
                if !array.given.kind().is_host_accessible() {
                    return None;
                }
                let (offset, len) = (from.start * WIDTH, from.len() * WIDTH);
                let event = queue.read_buffer(&buffer.given, offset, memory(array), first * WIDTH, len);
                if event.is_ok() {
                    array.model[first..first + from.len()].copy_from_slice(&buffer.model[from.clone()]);
                }
                Some(event)
            }),
            Step::CopyBuffer { at, to, first, buffer, ref from } => {
                self.copy_buffer(at, to, first, buffer, from)
            }
            Step::Edit { side, array, value } => {
                let Some(side) = &mut self.sides[side] else { return Ok(()) };
                let Some(array) = &mut side.arrays[array] else { return Ok(()) };
                if !array.given.kind().is_host_accessible() {
                    return Ok(());
                }
                if let Some(mut view) = self.judge.allowed(array.given.try_host_mut())? {
                    for (element, model) in view.iter_mut().zip(&mut array.model) {
                        *element += f32::from(value);
                        *model = model.map(|model| model + f32::from(value));
                    }
                }
                Ok(())
            }
            Step::Read { at, array } => self.read(at, array),
            Step::ReadBytes { at, buffer } => self.read_bytes(at, buffer),
            Step::Foreign { at, array } => {
                let [one, other] = &mut self.sides;
                let (ours, theirs) = if at.side == 0 { (one, other) } else { (other, one) };
                let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok(()) };
                let Some(array) = &mut theirs.arrays[array] else { return Ok(()) };
                let filled = ours.queues[at.queue].fill(&mut array.given, 1.0);
                self.refused(Some(filled), "memory of another context")
            }
            Step::Hint { at, array } => {
                let Some(side) = &self.sides[at.side] else { return Ok(()) };
                let (queue, Some(array)) = (&side.queues[at.queue], &side.arrays[array]) else {
                    return Ok(());
                };
                let memory = array.given.allocation();
                for hint in [queue.prefetch(memory), queue.advise(memory, MemAdvice::ReadMostly)] {
                    if !matches!(&hint, Err(error) if matches!(error.kind, ErrorKind::Unsupported { .. })) {
                        let _ = self.judge.allowed(hint)?;
                    }
                }
                Ok(())
            }
            Step::Barrier { at, events } => {
                let Some(side) = &self.sides[at.side] else { return Ok(()) };
                let id = side.context.id();
                let ours = self.events.iter().rev().filter(|(context, _)| *context == id).take(events);
                let after: Vec<_> = ours.map(|(_, event)| event.clone()).collect();
                self.submitted(at, |queue, _| Some(queue.barrier(&after)))
            }
            Step::WaitEvent { event } => {
                let Some((_, event)) = self.events.get(event) else { return Ok(()) };
                self.judge.allowed(event.wait()).map(drop)
            }
            Step::WaitQueue { at } => {
                let Some(side) = &self.sides[at.side] else { return Ok(()) };
                self.judge.allowed(side.queues[at.queue].wait()).map(drop)
            }
            Step::Synchronize { side } => {
                let Some(side) = &self.sides[side] else { return Ok(()) };
                let idle = side.context.synchronize(core::time::Duration::from_secs(
                    60 * u64::from(self.driver.runs_by_itself()),
                ));
                self.judge.allowed(idle).map(drop)
            }
            Step::Advance { operations } => {
                self.driver.advance(operations);
                Ok(())
            }
            Step::Drop { side, array } => self.each(side, |side| drop(side.arrays[array].take())),
            Step::DropBuffer { side, buffer } => self.each(side, |side| drop(side.buffers[buffer].take())),
            Step::DropEvents => {
                self.events.clear();
                Ok(())
            }
            Step::NewQueue { at } => {
                let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
                if let Some(queue) = self.judge.allowed(side.context.queue(order(at.queue)))? {
                    side.queues[at.queue] = queue;
                }
                Ok(())
            }
            Step::NewArena { at, kind, of_queue } => self.new_arena(at, kind, of_queue),
            Step::NewSide { side, order } => {
                if let Some(new) = self.judge.allowed(Side::new(self.driver))? {
                    if let Some(old) = self.sides[side].replace(new) {
                        old.end(order);
                    }
                }
                Ok(())
            }
            Step::ForgetArray { side, array } => {
                self.judge.forgot = true;
                self.each(side, |side| core::mem::forget(side.arrays[array].take()))
            }
            Step::ForgetView { side, array } => {
                let Some(side) = &self.sides[side] else { return Ok(()) };
                let Some(array) = &side.arrays[array] else { return Ok(()) };
                let kind = array.given.kind();
                if !kind.is_host_accessible() {
                    return Ok(());
                }
                if let Some(view) = self.judge.allowed(array.given.try_host())? {
                    core::mem::forget(view);
                    // A forgotten view permanently excludes the device from such memory.
                    self.judge.strict &= side.context.info().capabilities.concurrent(kind);
                }
                self.judge.forgot = true;
                Ok(())
            }
            Step::ForgetQueue { at } => {
                self.judge.forgot = true;
                self.each(at.side, |side| core::mem::forget(side.queues[at.queue].clone()))
            }
            Step::ForgetEvents => {
                self.judge.forgot = true;
                core::mem::take(&mut self.events).into_iter().for_each(core::mem::forget);
                Ok(())
            }
            Step::Fail { sort, skip, late } => {
                if self.driver.fail(sort, skip, late) {
                    self.judge.strict = false;
                    self.judge.tally.faults += 1;
                }
                Ok(())
            }
        }
    }

    fn each(&mut self, side: usize, work: impl FnOnce(&mut Side<B>)) -> Outcome<()> {
        if let Some(side) = &mut self.sides[side] {
            work(side);
        }
        Ok(())
    }

    fn copy_part(
        &mut self,
        at: At,
        to: usize,
        first: usize,
        from: &Range<usize>,
        array: usize,
    ) -> Outcome<()> {
        let (offset, start, len) = (first * WIDTH, from.start * WIDTH, from.len() * WIDTH);
        if to != array {
            return self.submitted(at, |queue, side| {
                taken(&mut side.arrays, to, |to, others| {
                    let array = others[array].as_ref()?;
                    let event = queue.copy_bytes(memory(to), offset, array.given.allocation(), start, len);
                    if event.is_ok() {
                        to.model[first..first + from.len()].copy_from_slice(&array.model[from.clone()]);
                    }
                    Some(event)
                })?
            });
        }
        if meets(offset, start, len) {
            let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
            let queue = &side.queues[at.queue];
            let result =
                side.arrays[to].as_mut().map(|array| queue.copy_within(memory(array), offset, start, len));
            return self.refused(result, "overlap");
        }
        self.submitted(at, |queue, side| {
            let array = side.arrays[to].as_mut()?;
            let event = queue.copy_within(memory(array), offset, start, len);
            if event.is_ok() {
                array.model.copy_within(from.clone(), first);
            }
            Some(event)
        })
    }

    fn copy_strided(&mut self, at: At, to: usize, from: usize) -> Outcome<()> {
        const HALF: usize = ELEMENTS / 2;
        let step = 2 * WIDTH as isize;
        let (shape, [up, down]) = ([HALF], [[step], [-step]]);
        let there = Strided::new(0, WIDTH, &shape, &up).expect("a layout");
        let here = Strided::new(BYTES - WIDTH, WIDTH, &shape, &down).expect("a layout");
        self.submitted(at, |queue, side| {
            taken(&mut side.arrays, to, |target, others| {
                let (event, before) = if to == from {
                    (queue.copy_strided_within(memory(target), &there, &here), target.model)
                } else {
                    let source = others[from].as_ref()?;
                    let allocation = source.given.allocation();
                    (queue.copy_strided(memory(target), &there, allocation, &here), source.model)
                };
                for index in 0..HALF {
                    // A failed copy may have copied some elements.
                    let new = before[ELEMENTS - 1 - 2 * index];
                    target.model[2 * index] = if event.is_ok() { new } else { None };
                }
                Some(event)
            })?
        })
    }

    fn kernel(&mut self, at: At, x: usize, y: usize, items: usize) -> Outcome<()> {
        if x == y || !self.driver.has_kernels() {
            return Ok(());
        }
        let judge = &mut self.judge;
        let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
        if side.saxpy.is_none() {
            side.saxpy = Some(Executable::build(&side.context).map_err(|error| error.to_string())?);
        }
        let (Some(saxpy), queue) = (&side.saxpy, &side.queues[at.queue]) else { return Ok(()) };
        let launched = taken(&mut side.arrays, y, |y, others| {
            let x = others[x].as_ref()?;
            let range = usm_kernel::Range::new([items as u64]).expect("a range");
            let launch = Launch::with_range(queue, range);
            let launched = launch.run_on(saxpy, sample::saxpy, (1.0_f32, &x.given, &mut y.given));
            if launched.is_ok() {
                for (y, x) in y.model.iter_mut().zip(&x.model).take(items) {
                    *y = y.zip(*x).map(|(y, x)| y + x);
                }
            }
            Some(launched)
        });
        match launched.flatten() {
            None => Ok(()),
            Some(Ok(event)) => {
                self.keep(at.side, event);
                Ok(())
            }
            Some(Err(LaunchError::Memory(error))) => judge.error(&error),
            Some(Err(other)) => Err(format!("a launch was refused: {other}")),
        }
    }

    fn copy_buffer(
        &mut self,
        at: At,
        to: usize,
        first: usize,
        buffer: usize,
        from: &Range<usize>,
    ) -> Outcome<()> {
        let (offset, start, len) = (first * WIDTH, from.start * WIDTH, from.len() * WIDTH);
        if to != buffer {
            return self.submitted(at, |queue, side| {
                taken(&mut side.buffers, to, |to, others| {
                    let buffer = others[buffer].as_ref()?;
                    let event = queue.copy_buffer(&mut to.given, offset, &buffer.given, start, len);
                    if event.is_ok() {
                        to.model[first..first + from.len()].copy_from_slice(&buffer.model[from.clone()]);
                    }
                    Some(event)
                })?
            });
        }
        if meets(offset, start, len) {
            let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
            let queue = &side.queues[at.queue];
            let buffer = side.buffers[to].as_mut();
            let result = buffer.map(|buffer| queue.copy_buffer_within(&mut buffer.given, offset, start, len));
            return self.refused(result, "overlap");
        }
        self.submitted(at, |queue, side| {
            let buffer = side.buffers[to].as_mut()?;
            let event = queue.copy_buffer_within(&mut buffer.given, offset, start, len);
            if event.is_ok() {
                buffer.model.copy_within(from.clone(), first);
            }
            Some(event)
        })
    }

    /// Reads through a view if the host can access the memory, otherwise through a copy.
    fn read(&mut self, at: At, array: usize) -> Outcome<()> {
        let Some(side) = &self.sides[at.side] else { return Ok(()) };
        let Some(array) = &side.arrays[array] else { return Ok(()) };
        let queue = &side.queues[at.queue];
        if array.given.kind().is_host_accessible() {
            return match self.judge.allowed(array.given.try_host())? {
                Some(view) => self.judge.compare(&view, &array.model),
                None => Ok(()),
            };
        }
        let values = if self.driver.runs_by_itself() {
            array.given.to_vec(queue)
        } else {
            let room = UsmVec::<f32, Host, B>::uninit(&side.context, ELEMENTS);
            let copied = room.and_then(|room| room.copy_from(queue, &array.given));
            self.driver.advance(usize::MAX);
            copied.and_then(|(copy, _)| copy.read().map(|view| view.to_vec()))
        };
        match self.judge.allowed(values)? {
            Some(values) => self.judge.compare(&values, &array.model),
            None => Ok(()),
        }
    }

    fn read_bytes(&mut self, at: At, buffer: usize) -> Outcome<()> {
        let Some(side) = &self.sides[at.side] else { return Ok(()) };
        let Some(buffer) = &side.buffers[buffer] else { return Ok(()) };
        let mut values = [f32::NAN; ELEMENTS];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        let read = side.queues[at.queue].read_buffer_to(&buffer.given, 0, bytes);
        match self.judge.allowed(read)? {
            Some(()) => self.judge.compare(&values, &buffer.model),
            None => Ok(()),
        }
    }

    fn new_arena(&mut self, at: At, kind: AllocKind, of_queue: bool) -> Outcome<()> {
        let Some(side) = &mut self.sides[at.side] else { return Ok(()) };
        // Two pairs of tensors; the last tensor overlaps both pairs in time.
        let lives = [(0, 1), (2, 3), (0, 1), (1, 3)];
        let tensor = |(id, (from, to))| usm_pool::Buffer::new(id, from, to, 2 * BYTES as u64).aligned(64);
        let problem = Problem::from_buffers((0..TENSORS).zip(lives).map(tensor).collect());
        let plan = plan(&problem.expect("a problem"), &Options::default()).expect("a plan");
        let arena = if of_queue {
            Arena::new(&plan, &side.queues[at.queue], kind)
        } else {
            Arena::new(&plan, &side.context, kind)
        };
        match arena {
            Ok(arena) => {
                side.arena = Some((arena, kind));
                Ok(())
            }
            Err(ArenaError::Memory(error)) => self.judge.error(&error),
            Err(other) => Err(other.to_string()),
        }
    }

    /// Reads and drops everything. Returns whether nothing can be left.
    pub(super) fn end(mut self) -> Outcome<(Tally, bool)> {
        self.driver.advance(usize::MAX);
        for side in 0..SIDES {
            for queue in 0..QUEUES {
                self.take(&Step::NewQueue { at: At { side, queue } })?;
            }
            for array in 0..ARRAYS {
                self.read(At { side, queue: array % QUEUES }, array)?;
            }
            for buffer in 0..BUFFERS {
                self.read_bytes(At { side, queue: buffer }, buffer)?;
            }
        }
        let Self { driver, sides, events, judge: Judge { mut tally, strict, forgot } } = self;
        for (order, side) in sides.into_iter().flatten().enumerate() {
            side.end(17 * (order as u64 + tally.reads as u64));
        }
        drop(events);
        driver.advance(usize::MAX);
        tally.programs = 1;
        Ok((tally, strict && !forgot))
    }
}
