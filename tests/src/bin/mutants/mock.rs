//! Mutants of callers: programs that call the simulated driver correctly, each with one call that
//! breaks a promise. `Mock::violations` must count that call, and nothing in the correct program.
//! It must also count nothing in random programs in safe Rust.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::sync::Arc;

use usm_core::backend::mock::{Mock, MockBuffer, MockContext, MockEvent, MockQueue, Progress};
use usm_core::backend::{Advice, BufferWork, Buffers, ContextOps, Ipc, QueueMemory, QueueOps};
use usm_core::{AllocKind, Backend, Block, Context, Queue, QueueOrder};
use usm_tests::programs::{self, Driver};

use crate::Checker;

const BYTES: usize = 64;

/// The number of random programs, with faults and without.
const PROGRAMS: u64 = 150;

/// The objects of the programs. The driver runs work only on demand.
struct Scene {
    mock: Mock,
    one: Context<Mock>,
    other: Context<Mock>,
    in_order: Queue<Mock>,
    free: Queue<Mock>,
    another: Queue<Mock>,
}

type Program = fn(&Scene, bool);

/// Each program does what its name says if `wrong` is set. Otherwise it does the same correctly.
const CALLERS: [(&str, Program); 31] = [
    ("a copy from a block that was freed", |scene, wrong| {
        let [to, from] = scene.blocks();
        if wrong {
            scene.release(&from);
        }
        let _ = scene.copy(&scene.free, to.pointer, from.pointer, BYTES, &[]);
    }),
    ("a copy to a block that was freed", |scene, wrong| {
        let [to, from] = scene.blocks();
        if wrong {
            scene.release(&to);
        }
        let _ = scene.copy(&scene.free, to.pointer, from.pointer, BYTES, &[]);
    }),
    ("a fill of a block that was freed", |scene, wrong| {
        let [block, _] = scene.blocks();
        if wrong {
            scene.release(&block);
        }
        let _ = scene.fill(&scene.in_order, &block, &[]);
    }),
    ("a hint about a block that was freed", |scene, wrong| {
        let [block, _] = scene.blocks();
        if wrong {
            scene.release(&block);
        }
        // SAFETY: the mock reports the misuse and touches nothing.
        let _ = unsafe { Mock::prefetch(scene.free.raw(), block.pointer.as_ptr(), BYTES, &[]) };
    }),
    ("a copy one byte beyond the end of its source", |scene, wrong| {
        let [to, from] = scene.blocks();
        let _ = scene.copy(&scene.free, to.pointer, at(&from, usize::from(wrong)), BYTES, &[]);
    }),
    ("a copy one byte beyond the end of its destination", |scene, wrong| {
        let [to, from] = scene.blocks();
        let _ = scene.copy(&scene.free, at(&to, 1), from.pointer, BYTES - 1 + usize::from(wrong), &[]);
    }),
    ("a fill that begins before its block", |scene, wrong| {
        let [block, _] = scene.blocks();
        let before = block.pointer.as_ptr().wrapping_sub(usize::from(wrong));
        let _ = scene.fill_at(&scene.free, before, BYTES, &[]);
    }),
    ("a copy to bytes that it reads", |scene, wrong| {
        let [block, _] = scene.blocks();
        let to = at(&block, BYTES / 2 - usize::from(wrong));
        let _ = scene.copy(&scene.free, to, block.pointer, BYTES / 2, &[]);
    }),
    ("a copy of no bytes", |scene, wrong| {
        let [to, from] = scene.blocks();
        let _ = scene.copy(&scene.free, to.pointer, from.pointer, usize::from(!wrong), &[]);
    }),
    ("a pattern of three bytes", |scene, wrong| {
        let [block, _] = scene.blocks();
        let pattern: &[u8] = if wrong { &[1, 2, 3] } else { &[1, 2] };
        scene.fill_with(&block, pattern, 48);
    }),
    ("a pattern that does not divide its range", |scene, wrong| {
        let [block, _] = scene.blocks();
        scene.fill_with(&block, &[1, 2, 3, 4], if wrong { 30 } else { 32 });
    }),
    ("a pattern of no bytes", |scene, wrong| {
        let [block, _] = scene.blocks();
        scene.fill_with(&block, if wrong { &[] } else { &[1] }, 32);
    }),
    ("two fills of a block that nothing orders", |scene, wrong| {
        let [block, _] = scene.blocks();
        let first = scene.fill(&scene.free, &block, &[]);
        let _ = scene.fill(&scene.free, &block, if wrong { &[] } else { &first });
    }),
    ("a copy from a block beside the fill of another queue", |scene, wrong| {
        let [to, from] = scene.blocks();
        let first = scene.fill(&scene.in_order, &from, &[]);
        let _ = scene.copy(&scene.another, to.pointer, from.pointer, BYTES, if wrong { &[] } else { &first });
    }),
    ("a fill beside the copy that reads the block", |scene, wrong| {
        let [to, from] = scene.blocks();
        let first = scene.copy(&scene.free, to.pointer, from.pointer, BYTES, &[]);
        let _ = scene.fill(&scene.in_order, &from, if wrong { &[] } else { &first });
    }),
    ("a fill that follows the wrong one of two", |scene, wrong| {
        let [one, two] = scene.blocks();
        let [first, second] = [&one, &two].map(|block| scene.fill(&scene.free, block, &[]));
        let _ = scene.fill(&scene.in_order, &one, if wrong { &second } else { &first });
    }),
    ("two fills that share one byte", |scene, wrong| {
        let [block, _] = scene.blocks();
        let half = BYTES / 2;
        let _ = scene.fill_at(&scene.free, block.pointer.as_ptr(), half, &[]);
        let second = block.pointer.as_ptr().wrapping_add(half - usize::from(wrong));
        let _ = scene.fill_at(&scene.free, second, half, &[]);
    }),
    ("a chain of events with one left out", |scene, wrong| {
        let [one, two] = scene.blocks();
        let first = scene.fill(&scene.free, &one, &[]);
        let second = scene.copy(&scene.another, two.pointer, one.pointer, BYTES, &first);
        let third = scene.fill(&scene.in_order, &two, &second);
        // Ordered after the first, by way of the third and the second.
        let _ = scene.fill(&scene.free, &one, if wrong { &first } else { &third });
    }),
    ("a copy to memory of another context", |scene, wrong| {
        let [_, from] = scene.blocks();
        let to = scene.block_of(if wrong { &scene.other } else { &scene.one }, AllocKind::Device);
        let _ = scene.copy(&scene.free, to.pointer, from.pointer, BYTES, &[]);
    }),
    ("a block freed twice", |scene, wrong| {
        let [block, _] = scene.blocks();
        scene.release(&block);
        if wrong {
            scene.release(&block);
        }
    }),
    ("a block freed from its middle", |scene, wrong| {
        let [block, _] = scene.blocks();
        let pointer = at(&block, if wrong { 16 } else { 0 });
        scene.release(&Block { pointer, ..block });
    }),
    ("a block freed with another size", |scene, wrong| {
        let [block, _] = scene.blocks();
        scene.release(&Block { size: BYTES - usize::from(wrong), ..block });
    }),
    ("a block freed as one of another kind", |scene, wrong| {
        let [block, _] = scene.blocks();
        let kind = if wrong { AllocKind::Host } else { AllocKind::Shared };
        scene.release(&Block { kind, ..block });
    }),
    ("a block freed by another context", |scene, wrong| {
        let [block, _] = scene.blocks();
        let context = if wrong { &scene.other } else { &scene.one };
        // SAFETY: the mock reports the misuse and frees nothing.
        unsafe { context.raw().free(&block) };
    }),
    ("a block freed while a copy reads it", |scene, wrong| {
        let [to, from] = scene.blocks();
        let _ = scene.copy(&scene.free, to.pointer, from.pointer, BYTES, &[]);
        if !wrong {
            scene.mock.finish();
        }
        scene.release(&from);
    }),
    ("a buffer destroyed while a fill writes it", |scene, wrong| {
        let buffer = scene.buffer();
        // SAFETY: the range is inside.
        let filled =
            unsafe { Mock::submit(scene.free.raw(), BufferWork::Fill((&buffer, 0), &[1]), BYTES, &[]) };
        drop(filled.expect("a fill"));
        if !wrong {
            scene.mock.finish();
        }
        // SAFETY: the mock reports the misuse and frees nothing.
        unsafe { Mock::destroy(scene.one.raw(), buffer) };
    }),
    ("memory of a queue used by another before it is there", |scene, wrong| {
        let (block, begins) = scene.of_queue();
        let _ = scene.fill(&scene.free, &block, if wrong { &[] } else { &begins });
        scene.run_late();
    }),
    ("memory of a queue freed beside another's use", |scene, wrong| {
        let (block, begins) = scene.of_queue();
        let used = scene.fill(&scene.free, &block, &begins);
        scene.give_back(&block, if wrong { &[] } else { &used });
        scene.run_late();
    }),
    ("memory of a queue freed twice", |scene, wrong| {
        let (block, _) = scene.of_queue();
        scene.give_back(&block, &[]);
        if wrong {
            scene.give_back(&block, &[]);
        }
    }),
    ("memory of a queue used after its free", |scene, wrong| {
        let (block, begins) = scene.of_queue();
        if wrong {
            scene.give_back(&block, &[]);
        }
        let _ = scene.fill(&scene.in_order, &block, &begins);
    }),
    ("a block exported that is gone", |scene, wrong| {
        let [block, _] = scene.blocks();
        if wrong {
            scene.release(&block);
        }
        // SAFETY: the mock reports the misuse.
        let _ = unsafe { <Mock as Ipc<Mock>>::export(scene.one.raw(), &block) };
    }),
];

fn at(block: &Block, offset: usize) -> NonNull<u8> {
    NonNull::new(block.pointer.as_ptr().wrapping_add(offset)).expect("an address")
}

fn layout() -> Layout {
    Layout::from_size_align(BYTES, 64).expect("a layout")
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mock = Mock::new(Progress::Manual);
        mock.seed(seed);
        let (one, other) = (mock.context(), mock.context());
        let queue = |order| one.queue(order).expect("a queue");
        let [in_order, free, another] =
            [QueueOrder::InOrder, QueueOrder::OutOfOrder, QueueOrder::OutOfOrder].map(queue);
        Self { mock, one, other, in_order, free, another }
    }

    fn block_of(&self, context: &Context<Mock>, kind: AllocKind) -> Block {
        let raw: &Arc<MockContext> = context.raw();
        let pointer = raw.allocate(kind, layout()).expect("memory");
        Block { pointer, size: BYTES, alignment: 64, kind }
    }

    fn blocks(&self) -> [Block; 2] {
        [AllocKind::Shared, AllocKind::Shared].map(|kind| self.block_of(&self.one, kind))
    }

    fn buffer(&self) -> MockBuffer {
        <Mock as Buffers<Mock>>::create(self.one.raw(), BYTES).expect("a buffer")
    }

    fn release(&self, block: &Block) {
        // SAFETY: the mock reports the misuse and frees nothing.
        unsafe { self.one.raw().free(block) };
    }

    fn copy(
        &self,
        queue: &Queue<Mock>,
        to: NonNull<u8>,
        from: NonNull<u8>,
        len: usize,
        after: &[MockEvent],
    ) -> [MockEvent; 1] {
        let queue: &MockQueue = queue.raw();
        // SAFETY: the mock reports the misuse and touches nothing.
        [unsafe { queue.copy(to.as_ptr(), from.as_ptr(), len, after) }.expect("a copy")]
    }

    fn fill(&self, queue: &Queue<Mock>, block: &Block, after: &[MockEvent]) -> [MockEvent; 1] {
        self.fill_at(queue, block.pointer.as_ptr(), BYTES, after)
    }

    fn fill_at(&self, queue: &Queue<Mock>, to: *mut u8, len: usize, after: &[MockEvent]) -> [MockEvent; 1] {
        // SAFETY: the mock reports the misuse and touches nothing.
        [unsafe { queue.raw().fill(to, &[7], len, after) }.expect("a fill")]
    }

    fn fill_with(&self, block: &Block, pattern: &[u8], len: usize) {
        let to = block.pointer.as_ptr();
        // SAFETY: the mock reports and refuses the misuse.
        let _ = unsafe { self.free.raw().fill(to, pattern, len, &[]) };
    }

    /// Memory of the in-order queue, and the event of its allocation.
    fn of_queue(&self) -> (Block, [MockEvent; 1]) {
        let given = <Mock as QueueMemory<Mock>>::allocate(self.in_order.raw(), layout());
        let (pointer, begins) = given.expect("memory");
        (Block { pointer, size: BYTES, alignment: 64, kind: AllocKind::Device }, [begins])
    }

    fn give_back(&self, block: &Block, after: &[MockEvent]) {
        // SAFETY: the mock reports the misuse.
        unsafe { <Mock as QueueMemory<Mock>>::free(self.in_order.raw(), block, after) }.expect("a free");
    }

    /// Runs all work, the newest ready operation first.
    fn run_late(&self) {
        self.mock.finish();
    }
}

/// Runs one program in several device orders. The error is a violation in one of them.
fn judge(program: Program, wrong: bool) -> Result<(), String> {
    let counted = (1..20).find_map(|seed| {
        let scene = Scene::new(seed);
        program(&scene, wrong);
        scene.mock.finish();
        let violations = scene.mock.violations();
        (!violations.is_empty()).then(|| format!("{} violations: {violations:?}", violations.len()))
    });
    counted.map_or(Ok(()), Err)
}

/// A driver for random programs.
struct Judged(Mock);

impl Driver<Mock> for Judged {
    fn context(&self) -> usm_core::Result<Context<Mock>> {
        let mut device = None;
        self.0.for_each_device(&mut |found| device = Some(found))?;
        Context::new(&self.0, &device.expect("a device"))
    }

    fn fail(&self, sort: usize, skip: usize, late: bool) -> bool {
        programs::inject(&self.0, sort, skip, late);
        true
    }

    fn verdict(&self, _: bool) -> Result<(), String> {
        let violations = self.0.violations();
        if violations.is_empty() { Ok(()) } else { Err(format!("counted: {violations:?}")) }
    }
}

pub(crate) fn violations() -> Checker {
    let mut checker = Checker::new("Mock::violations");
    for (what, program) in CALLERS {
        checker.right(&format!("not {what}"), || judge(program, false));
        checker.wrong(what, || judge(program, true));
    }
    for faults in [false, true] {
        let what = format!("{PROGRAMS} random programs, faults: {faults}");
        checker.right(&what, || {
            let tally = programs::run_all(0, PROGRAMS, faults, |seed| {
                let mock = Mock::new(Progress::OnWait);
                mock.seed(seed + 1);
                Judged(mock)
            });
            if tally.reads as u64 > PROGRAMS { Ok(()) } else { Err(format!("too few reads: {tally:?}")) }
        });
    }
    checker
}
