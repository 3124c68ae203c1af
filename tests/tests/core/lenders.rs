//! Blocks that a lender lends without counts, and the uses that pass with them from owner to owner.

use core::ptr::NonNull;
use std::sync::{Arc, Mutex};

use usm_core::backend::Dyn;
use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Allocation, Backend, Block, Context, Error, ErrorKind, Lender, MemorySource, Pending, Queue,
    QueueOrder, Request,
};
use usm_pool::arena::Arena;
use usm_pool::{Buffer, Options, Problem, plan};

/// Lends one block again and again, with what its last owner left in flight.
struct Shelf<B: Backend> {
    whole: Allocation<B>,
    /// Slots that came back, and the uses of the last one.
    back: Mutex<(Vec<u32>, Pending<B>)>,
}

// SAFETY: `lend` gives the next owner the uses of the one before.
unsafe impl<B: Backend> Lender<B> for Shelf<B> {
    unsafe fn take_back(lender: NonNull<Self>, slot: u32, block: &Block, uses: Pending<B>) {
        // SAFETY: the test's shelf outlives its block.
        let shelf = unsafe { lender.as_ref() };
        assert_eq!(block, shelf.whole.block());
        let mut back = shelf.back.lock().expect("no panic");
        back.0.push(slot);
        back.1 = uses;
    }
}

impl<B: Backend> Shelf<B> {
    fn new(context: &Context<B>) -> Self {
        let whole = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
        Self { whole, back: Mutex::new((Vec::new(), Pending::none())) }
    }

    fn lend(&self, slot: u32) -> Allocation<B> {
        let mut back = self.back.lock().expect("no panic");
        let uses = core::mem::replace(&mut back.1, Pending::none());
        let context = self.whole.context();
        // SAFETY: the tests drop each block before they lend the next, and the shelf after all.
        unsafe { Allocation::from_lender(context, *self.whole.block(), uses, NonNull::from(self), slot) }
    }

    /// At the end, so that the whole waits for its parts.
    fn end(self) {
        let (_, uses) = self.back.into_inner().expect("no panic");
        self.whole.absorb(uses).expect("of one context");
    }
}

fn waits_of_last_fill(mock: &Mock) -> usize {
    let calls = mock.calls();
    calls.iter().rev().find(|call| call.operation == Operation::Fill).expect("a fill").after
}

fn fill(queue: &Queue<Mock>, block: &mut Allocation<Mock>) -> Result<(), Error> {
    queue.fill_bytes(block, 0, 64, &[1]).map(drop)
}

#[test]
fn owners_are_small() {
    assert!(size_of::<Allocation<HostHeap>>() <= 88);
    assert!(size_of::<Allocation<Dyn>>() <= 96);
    assert!(size_of::<Allocation<Mock>>() <= 96);
}

#[test]
fn a_lent_block_counts_nothing_and_comes_back_once() {
    let context = HostHeap::new().context();
    let shelf = Shelf::new(&context);
    let counts = || Arc::strong_count(context.raw());
    let before = counts();
    let lent = shelf.lend(3);
    assert_eq!((counts(), lent.context().id(), lent.size()), (before, context.id(), 64));
    drop(lent);
    core::mem::forget(shelf.lend(4));
    std::thread::scope(|scope| scope.spawn(|| drop(shelf.lend(5))).join().expect("no panic"));
    assert_eq!((shelf.back.lock().expect("no panic").0.clone(), counts()), (vec![3, 5], before));
}

/// The last block ends the lender, and with it the context.
#[test]
fn a_lender_may_end_in_the_return_of_its_last_block() {
    struct Last(Allocation<Mock>, Arc<()>);
    // SAFETY: nothing gets the block after this, and the memory waits for its uses.
    unsafe impl Lender<Mock> for Last {
        unsafe fn take_back(lender: NonNull<Self>, _: u32, _: &Block, uses: Pending<Mock>) {
            // SAFETY: boxed for its one block.
            let itself = unsafe { Box::from_raw(lender.as_ptr()) };
            itself.0.absorb(uses).expect("of one context");
            assert_eq!(Arc::strong_count(&itself.1), 2);
        }
    }
    for used in [false, true] {
        let (mock, counted) = (Mock::new(Progress::OnWait), Arc::new(()));
        let context = mock.context();
        let queue = context.queue(QueueOrder::InOrder).expect("a queue");
        let memory = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
        let block = *memory.block();
        drop(context);
        let lender = NonNull::from(Box::leak(Box::new(Last(memory, Arc::clone(&counted)))));
        // SAFETY: alive until the block is back.
        let of_lender = unsafe { lender.as_ref() }.0.context();
        // SAFETY: the only owner of the bytes.
        let mut lent = unsafe { Allocation::from_lender(of_lender, block, Pending::none(), lender, 0) };
        if used {
            fill(&queue, &mut lent).expect("a fill");
        }
        drop(queue);
        drop(lent);
        assert_eq!(Arc::strong_count(&counted), 1);
        assert_eq!((mock.contexts(), mock.live_blocks(), mock.violations()), (0, 0, vec![]));
    }
}

#[test]
fn work_of_the_same_queue_does_not_wait_and_all_other_work_does() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let [ours, theirs] = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let unordered = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    context.set_wait_limit(core::time::Duration::ZERO);
    let shelf = Shelf::new(&context);
    let reuse = |slot, queue: &Queue<Mock>| {
        let mut lent = shelf.lend(slot);
        assert!(lent.wait_for_host(usm_core::Access::Read).is_err() || slot == 0, "of {slot}");
        fill(queue, &mut lent).expect("a fill");
        waits_of_last_fill(&mock)
    };
    let waits = [&ours, &ours, &theirs, &unordered, &unordered, &ours].into_iter().enumerate();
    let waits: Vec<usize> = waits.map(|(slot, queue)| reuse(slot as u32, queue)).collect();
    assert_eq!(waits, [0, 0, 1, 1, 1, 1]);
    mock.finish();
    // Complete work is forgotten at the next submission.
    let mut lent = shelf.lend(9);
    fill(&theirs, &mut lent).expect("a fill");
    assert_eq!(waits_of_last_fill(&mock), 0);
    mock.finish();
    drop(lent);
    shelf.end();
    assert_eq!(mock.violations(), []);
}

#[test]
fn an_in_order_queue_leaves_one_event_in_a_list() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queues = [(); 3].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let unordered = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut pending = Vec::new();
    for round in 0..30 {
        let mut block = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
        let queue = if round == 7 { &unordered } else { &queues[round % 3] };
        fill(queue, &mut block).expect("a fill");
        pending.push(block.pending());
    }
    let join = |order: &mut dyn Iterator<Item = usize>| {
        let mut all = Pending::none();
        order.for_each(|at| drop(all.join(pending[at].clone())));
        all
    };
    for order in [&mut (0..30_usize) as &mut dyn Iterator<Item = usize>, &mut (0..30_usize).rev()] {
        let all = join(order);
        assert_eq!((all.events().len(), all.is_done()), (4, false));
        // The newest of each queue.
        for newest in [26, 27, 28, 29].map(|at| &pending[at]) {
            let mut with = all.clone();
            assert_eq!(with.join(newest.clone()).events().len(), 1);
        }
    }
    mock.finish();
}

/// Threads that submit at the same time: no event replaces one that may run after it.
#[test]
fn events_of_submissions_at_the_same_time_replace_none() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let submit = || {
        let mut block = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
        fill(&queue, &mut block).expect("a fill");
        block.pending()
    };
    for _ in 0..50 {
        let both = std::thread::scope(|scope| {
            let threads = [scope.spawn(submit), scope.spawn(submit)];
            threads.map(|thread| thread.join().expect("no panic"))
        });
        let [mut first, second] = both;
        drop(first.join(second));
        // If one is left, it runs last: while it is under way, the other may be.
        while first.events().len() == 1 && mock.queued() > 0 {
            assert!(!first.is_done());
            mock.step();
        }
        mock.finish();
        assert!(first.is_done());
    }
}

fn failing_fill(mock: &Mock) {
    let error = Error::from(ErrorKind::Native { operation: "a fill" }).with_native(-5);
    mock.inject(Fault { operation: Operation::Fill, skip: 0, error, late: true });
}

#[test]
fn a_failure_does_not_spread_by_memory() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let [broken, whole] = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let tensors = vec![Buffer::new(7, 0, 1, 64).aligned(64), Buffer::new(8, 1, 2, 64).aligned(64)];
    let problem = Problem::from_buffers(tensors).expect("a problem");
    let plan = plan(&problem, &Options::default()).expect("a plan");
    let arena = Arena::new(&plan, &context, AllocKind::Shared).expect("an arena");
    let claim = |id| arena.tensor(id).expect("free").allocation().expect("a part");
    let mut seven = claim(7);
    failing_fill(&mock);
    fill(&broken, &mut seven).expect("fails later");
    drop(seven);
    mock.finish();
    let before = mock.calls().len();
    let mut eight = claim(8);
    let refused = fill(&whole, &mut eight).expect_err("of an owner whose work failed");
    assert_eq!((refused.kind, refused.native), (ErrorKind::EarlierOwnerFailed, Some(-5)));
    let view = eight.wait_for_host(usm_core::Access::Read).expect_err("it may still be written");
    assert_eq!(view.kind, ErrorKind::EarlierOwnerFailed);
    let mut plain = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    let both = [usm_core::Usage::write(&plain), usm_core::Usage::read(&eight)];
    assert_eq!(whole.barrier_with_usages(&both, &[]).unwrap_err().kind, ErrorKind::EarlierOwnerFailed);
    let calls = mock.calls();
    let submitted = calls[before..].iter().filter(|call| call.operation != Operation::Allocate);
    assert_eq!(submitted.count(), 0, "nothing");
    // The queue and plain memory stay whole.
    let filled = whole.fill_bytes(&mut plain, 0, 64, &[1]).expect("a fill");
    mock.finish();
    filled.wait().expect("no failure");
    drop(plain.wait_for_host(usm_core::Access::Read).expect("no failure"));
    // The bytes stay refused, whoever gets them.
    drop(eight);
    assert_eq!(fill(&whole, &mut claim(7)).unwrap_err().kind, ErrorKind::EarlierOwnerFailed);
    // The queue itself has failed, so it is not asked.
    let after = broken.fill_bytes(&mut claim(8), 0, 64, &[1]).expect("submitted");
    mock.finish();
    assert_eq!(after.wait().unwrap_err().native, Some(-5));
    context.set_wait_limit(core::time::Duration::ZERO);
    assert_eq!(mock.violations(), []);
}

#[test]
fn a_lost_device_is_lost_for_the_next_owner() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let [ours, theirs] = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    context.set_wait_limit(core::time::Duration::ZERO);
    let shelf = Shelf::new(&context);
    fill(&ours, &mut shelf.lend(0)).expect("a fill");
    mock.lose_device();
    let mut lent = shelf.lend(1);
    assert_eq!(fill(&theirs, &mut lent).unwrap_err().kind, ErrorKind::DeviceLost);
    drop(lent);
    shelf.end();
}
