//! Arenas of usm-pool in safe programs: over a context, over a part of another arena, over sources
//! that lie. They are dropped in any order while work is in flight.
//!
//! `USM_PROGRAMS` is the number of programs, `USM_PROGRAMS_FROM` the first seed.

use core::time::Duration;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{
    AllocKind, Allocation, Backend, Context, Device, ErrorKind, MemorySource, Queue, QueueOrder, Request,
    Result, Shared, UninitVec, UsmVec,
};
use usm_pool::arena::{Arena, ArenaError, Claim};
use usm_pool::{Buffer, Options, Plan, Problem, plan};
use usm_tests::programs::{Random, number_in};

/// A plan of tensors 0 to `count`, some of which overlap.
fn plan_of(random: &mut Random, count: u64, most: usize) -> Plan {
    let buffer = |id| {
        let (start, len) = (random.below(6) as u64, 1 + random.below(3) as u64);
        let alignment = random.of(&[64, 64, 64, 1]);
        Buffer::new(id, start, start + len, 1 + random.below(most) as u64).aligned(alignment)
    };
    let problem = Problem::from_buffers((0..count).map(buffer).collect()).expect("a problem");
    plan(&problem, &Options::default()).expect("a plan")
}

struct Array<B: Backend> {
    memory: UsmVec<u8, Device, B>,
    values: Vec<u8>,
    /// The arena's number, and the tensor's range in it.
    arena: usize,
    low: u64,
    high: u64,
}

struct Made<B: Backend> {
    arena: Option<Arena<B>>,
    plan: Plan,
    /// The enclosing arena and the range in it.
    inside: Option<(usize, u64, u64)>,
}

struct World<B: Backend> {
    queues: [Queue<B>; 2],
    arenas: Vec<Made<B>>,
    arrays: Vec<Array<B>>,
    refused: usize,
    reads: usize,
}

impl<B: Backend + 'static> World<B> {
    fn new(context: &Context<B>, random: &mut Random) -> Self {
        let queue = |order| context.queue(order).expect("a queue");
        let plan = plan_of(random, 8, 600);
        let arena = Some(Arena::new(&plan, context, AllocKind::Device).expect("an arena"));
        Self {
            queues: [queue(QueueOrder::InOrder), queue(QueueOrder::OutOfOrder)],
            arenas: vec![Made { arena, plan, inside: None }],
            arrays: Vec::new(),
            refused: 0,
            reads: 0,
        }
    }

    /// Whether a live object uses bytes of this range.
    fn is_held(&self, arena: usize, low: u64, high: u64) -> bool {
        let meets = |at: usize, from: u64, to: u64| at == arena && from < high && low < to;
        let arrays = self.arrays.iter().any(|array| meets(array.arena, array.low, array.high));
        // An arena uses its range as long as a handle of it or one of its arrays lives.
        let arenas = self.arenas.iter().enumerate().any(|(number, made)| {
            made.inside.is_some_and(|(at, from, to)| meets(at, from, to))
                && (made.arena.is_some() || self.is_held(number, 0, u64::MAX))
        });
        arrays || arenas
    }

    fn claim(&mut self, random: &mut Random) -> Option<(Claim<B>, usize, u64, u64)> {
        let at = random.below(self.arenas.len());
        let made = &self.arenas[at];
        let row = made.plan.rows[random.below(made.plan.rows.len())];
        let is_held = self.is_held(at, row.offset, row.offset + row.size);
        match made.arena.as_ref()?.tensor(row.id) {
            Ok(claim) => {
                assert!(!is_held, "two owners of {row:?}");
                Some((claim, at, row.offset, row.offset + row.size))
            }
            Err(ArenaError::InUse { id, .. }) => {
                assert!(id == row.id && is_held, "{row:?} is free");
                self.refused += 1;
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn step(&mut self, random: &mut Random) {
        let on = random.below(2);
        match random.below(9) {
            0..=2 => {
                let Some((claim, arena, low, high)) = self.claim(random) else { return };
                let len = claim.bytes() as usize;
                let mut values: Vec<u8> = (0..len).map(|_| random.number() as u8).collect();
                let queue = &self.queues[on];
                let sort = random.below(3);
                if sort == 2 {
                    values.fill(0);
                }
                let memory = match sort {
                    0 => UsmVec::from_slice_in(queue, &claim, &values),
                    1 => {
                        let source = UsmVec::<u8, Shared, B>::from_slice(queue, &values).expect("memory");
                        let uninit: Result<UninitVec<u8, Device, B>> = UsmVec::uninit(&claim, len);
                        uninit.and_then(|array| array.copy_from(queue, &source)).map(|(array, _)| array)
                    }
                    _ => UsmVec::zeroed_in(queue, &claim, len),
                };
                // Some tensors have alignment 1, and every array requires more.
                match memory {
                    Ok(memory) => self.arrays.push(Array { memory, values, arena, low, high }),
                    Err(error) => assert!(matches!(error.kind, ErrorKind::BadAlignment { .. }), "{error}"),
                }
            }
            // A claim that is dropped unused.
            3 => drop(self.claim(random)),
            4 => {
                let Some(made) = self.arenas.get_mut(random.below(4)) else { return };
                made.arena = None;
            }
            // An arena in a part of an arena.
            5 => {
                let Some((claim, at, low, high)) = self.claim(random) else { return };
                let plan = plan_of(random, 4, 100);
                match Arena::new(&plan, &claim, AllocKind::Device) {
                    Ok(arena) => {
                        let inside = Some((at, low, high));
                        self.arenas.push(Made { arena: Some(arena), plan, inside });
                    }
                    Err(ArenaError::Memory(error)) => assert!(
                        matches!(error.kind, ErrorKind::BadAlignment { .. } | ErrorKind::OverMemory { .. }),
                        "{error}"
                    ),
                    Err(error) => panic!("{error}"),
                }
            }
            sort => {
                if self.arrays.is_empty() {
                    return;
                }
                let at = random.below(self.arrays.len());
                if sort == 6 {
                    drop(self.arrays.swap_remove(at));
                    return;
                }
                let byte = random.number() as u8;
                let array = &mut self.arrays[at];
                if sort == 7 {
                    let _ = self.queues[on].fill(&mut array.memory, byte).expect("a fill");
                    array.values.fill(byte);
                }
                assert_eq!(array.memory.to_vec(&self.queues[1 - on]).expect("a read"), array.values);
                self.reads += 1;
            }
        }
    }
}

/// Runs the programs. Returns the number of refused claims and of reads.
fn programs<B: Backend + 'static>(context: impl Fn(u64) -> (Context<B>, Box<dyn Fn()>)) -> (usize, usize) {
    let (first, count) = (number_in("USM_PROGRAMS_FROM", 0), number_in("USM_PROGRAMS", 150));
    let mut all = (0, 0);
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let (context, verdict) = context(seed);
        let mut world = World::new(&context, &mut random);
        for _ in 0..60 {
            world.step(&mut random);
        }
        for array in &world.arrays {
            assert_eq!(array.memory.to_vec(&world.queues[0]).expect("a read"), array.values, "seed {seed}");
        }
        all = (all.0 + world.refused, all.1 + world.reads);
        drop(world);
        context.synchronize(Duration::from_secs(1)).expect("no failure");
        assert_eq!(context.stats().sum.live, 0, "seed {seed}");
        drop(context);
        verdict();
    }
    all
}

#[test]
fn arenas_in_any_order_give_each_array_its_own_bytes() {
    let on_mock = programs(|seed| {
        let progress = [Progress::Immediate, Progress::OnWait][(seed % 2) as usize];
        let mut mock = Mock::new(progress);
        if seed % 3 == 0 {
            mock = mock.without_concurrent_access();
        }
        mock.seed(seed);
        let context = mock.context();
        (context, Box::new(move || assert_eq!((mock.violations(), mock.live_blocks()), (vec![], 0))))
    });
    let on_host = programs(|_| (HostHeap::new().context(), Box::new(|| ())));
    let count = number_in("USM_PROGRAMS", 150) as usize;
    let enough = on_mock.0 > count && on_mock.1 > 3 * count && on_host.1 > 3 * count;
    assert!(enough, "{on_mock:?} {on_host:?} in {count} programs");
}

/// Partly overlapping tensors, claimed in turn and never used while work on the first is in flight:
/// the list of events does not grow.
#[test]
fn claims_in_turn_keep_each_event_once() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let buffers = vec![
        Buffer::new(0, 0, 1, 2048).aligned(64),
        Buffer::new(1, 1, 2, 1024).aligned(64),
        Buffer::new(2, 1, 3, 2048).aligned(64),
        Buffer::new(3, 3, 4, 3072).aligned(64),
        Buffer::new(4, 4, 5, 1024).aligned(64),
        Buffer::new(5, 4, 5, 1536).aligned(64),
    ];
    let plan =
        plan(&Problem::from_buffers(buffers).expect("a problem"), &Options::default()).expect("a plan");
    let meets = |a: usize, b: usize| {
        let (a, b) = (plan.rows[a], plan.rows[b]);
        let inside = a.offset <= b.offset && b.offset + b.size <= a.offset + a.size;
        a.offset < b.offset + b.size && b.offset < a.offset + a.size && !inside
    };
    let pair = (0..6).flat_map(|a| (0..6).map(move |b| (a, b))).find(|(a, b)| meets(*a, *b) && meets(*b, *a));
    let (one, two) = pair.expect("two that meet in part");
    let arena = Arena::new(&plan, &context, AllocKind::Device).expect("an arena");
    let claim = |row: usize| arena.tensor(plan.rows[row].id).expect("free").allocation().expect("memory");
    let mut first = claim(one);
    let _ = queue.fill_bytes(&mut first, 0, 64, &[7]).expect("a fill");
    drop(first);
    for round in 0..100 {
        let held = claim([two, one][round % 2]);
        assert_eq!(held.pending().events().len(), 1, "round {round}");
    }
    context.synchronize(Duration::from_secs(1)).expect("the fill");
}

/// A source that returns other memory than requested and claims another context.
struct Lies {
    gives: Context<Mock>,
    says: Context<Mock>,
    change: fn(Request) -> Request,
}

impl MemorySource<Mock> for Lies {
    fn allocate(&self, request: &Request) -> Result<Allocation<Mock>> {
        self.gives.allocate(&(self.change)(*request))
    }

    fn context(&self) -> &Context<Mock> {
        &self.says
    }
}

#[test]
fn an_arena_over_a_source_that_lies_is_refused_or_right() {
    let mock = Mock::new(Progress::OnWait);
    let (gives, says) = (mock.context(), mock.context());
    let [ours, theirs] = [&gives, &says].map(|context| context.queue(QueueOrder::InOrder).expect("a queue"));
    let buffers = (0..4).map(|id| Buffer::new(id, 0, 1, 256).aligned(64)).collect();
    let plan =
        plan(&Problem::from_buffers(buffers).expect("a problem"), &Options::default()).expect("a plan");
    let changes: [fn(Request) -> Request; 4] = [
        |request| request,
        |request| Request::new(request.kind, request.size / 2),
        |request| Request::new(AllocKind::Host, request.size),
        |request| Request::new(request.kind, request.size + 64).aligned_to(1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let source = Lies { gives: gives.clone(), says: says.clone(), change };
        let Ok(arena) = Arena::new(&plan, &source, AllocKind::Device) else { continue };
        for row in &plan.rows {
            let claim = || arena.tensor(row.id).expect("free");
            // The queue's context is not the memory's context.
            assert!(UsmVec::<u8, Device, _>::zeroed_in(&theirs, &claim(), 256).is_err());
            match UsmVec::<u8, Device, _>::from_slice_in(&ours, &claim(), &[row.id as u8; 256]) {
                Ok(array) => {
                    let fits = number != 1 || row.offset + row.size <= plan.peak / 2;
                    assert!(number != 2 && fits, "change {number}, {row:?}");
                    assert_eq!(array.to_vec(&ours).expect("a read"), [row.id as u8; 256]);
                }
                Err(error) => assert!(
                    matches!(
                        error.kind,
                        ErrorKind::OutOfBounds { .. }
                            | ErrorKind::WrongKind { .. }
                            | ErrorKind::BadAlignment { .. }
                    ),
                    "change {number}: {error}"
                ),
            }
        }
    }
    assert_eq!(mock.violations(), []);
}
