//! Random kernels as Rust text: in launches that the proof accepts, the interpreter finds no fault.
//!
//! `USM_RANDOM_TEXTS` sets the number of kernels, `USM_RANDOM_COUNTERS` that of kernels whose
//! counters bound each other, `USM_RANDOM_SEED` the first seed.

#[path = "common/launch.rs"]
mod launch;

use launch::Launch;
use usm_kernel_ir::inspect::{Doubt, Verdict, inspect};
use usm_kernel_ir::proof::{Claims, claims};
use usm_kernel_ir::{Fault, Kernel, Literal, Order, Scalar, zeroed};
use usm_random_kernels::first_seed;
use usm_random_kernels::random::Random;
use usm_random_kernels::text::{counters, text};

/// Launches of each kernel.
const LAUNCHES: u64 = 40;
/// Many kernels have loops without an end.
const STEPS: u64 = 1 << 14;
/// Steps of an inspection: as long as all items of a launch that ends, and more.
const INSPECTED: u64 = 1 << 22;
/// Numbers at which products and steps wrap in types of 8, 32 and 64 bits.
const WRAPS: [u64; 11] = [85, 86, 43, 64, 128, 255, 256, 0x5555_5556, 0x8000_0000, 0xffff_ffff, 1 << 63];

#[test]
fn the_proof_accepts_no_text_that_is_wrong() {
    let seen = Seen::of(text, skip::cases("USM_RANDOM_TEXTS", 400), LAUNCHES);
    let Seen { texts, readable, provable, launches, accepted, wrong, .. } = seen;
    assert!(readable * 10 >= texts * 9, "{readable} of {texts} texts are kernels");
    assert!(provable * 4 >= texts, "{provable} of {texts} texts may be proven");
    // Both outcomes must occur often.
    assert!(accepted * 20 > launches, "{accepted} of {launches} launches were accepted");
    assert!(wrong * 20 > launches, "{wrong} of {launches} launches were wrong");
}

/// A bound of one counter may rest on another one only as long as that one does not wrap, and a
/// limit on a guard only if its numbers do not.
#[test]
fn the_proof_accepts_no_counters_that_are_wrong() {
    let seen = Seen::of(counters, skip::cases("USM_RANDOM_COUNTERS", 1000), 10);
    let Seen { texts, provable, launches, accepted, wrong, .. } = seen;
    assert!(provable * 2 >= texts, "{provable} of {texts} texts may be proven");
    // Both outcomes must occur often.
    assert!(accepted * 20 > launches, "{accepted} of {launches} launches were accepted");
    assert!(wrong * 50 > launches, "{wrong} of {launches} launches were wrong");
}

/// What conditions leave open, inspections decide, for indices that do not follow from memory.
#[test]
fn launches_that_do_not_race_are_proven_or_inspected() {
    let first = first_seed();
    let texts = skip::cases("USM_RANDOM_TEXTS", 400) / 10;
    let (mut apart, mut free, mut of_memory, mut long) = (0_u64, 0_u64, 0_u64, 0_u64);
    for seed in first..first + texts {
        let Some((kernel, claims)) =
            kernel(&text(seed)).and_then(|kernel| claims(&kernel).ok().map(|claims| (kernel, claims)))
        else {
            continue;
        };
        let mut random = Random::new(!seed);
        for _ in 0..LAUNCHES {
            let launch = any_launch(&kernel, &mut random);
            let found = launch.run(&kernel, Order::Forwards, STEPS);
            let open = claims.open_arrays(&launch.shape());
            let verdict = match open.is_empty() {
                true => Verdict::Free,
                false => inspect(&kernel, &open, &launch.shape(), INSPECTED),
            };
            let describe = || format!("seed {seed} {launch}: {verdict:?}, and {found:?}\n{}", text(seed));
            match (&found, &verdict) {
                (Err(Fault::Race { .. }), Verdict::Free) => panic!("{}", describe()),
                (Ok(()), Verdict::Race(_)) => panic!("{}", describe()),
                (Ok(()), Verdict::Free) => free += 1,
                (Ok(()), Verdict::Undecided(Doubt::Memory(_) | Doubt::Possible(_) | Doubt::Barrier(_))) => {
                    of_memory += 1;
                }
                (Ok(()), Verdict::Undecided(_)) => long += 1,
                _ => {}
            }
            apart += u64::from(found.is_ok());
        }
    }
    println!(
        "{apart} launches do not race: {free} proven or inspected, {of_memory} undecided because of memory, {long} too long"
    );
    assert!(free * 100 >= (apart - of_memory) * 95, "{free} of {apart}, {of_memory} because of memory");
}

/// What a generator's kernels led to.
#[derive(Default)]
struct Seen {
    texts: u64,
    readable: u64,
    provable: u64,
    launches: u64,
    accepted: u64,
    wrong: u64,
    /// Texts with a launch that the proof accepts although it is wrong, and the first one.
    refuted: u64,
    first: Option<String>,
}

impl Seen {
    /// Of `texts` kernels in `launches` launches each.
    ///
    /// # Panics
    /// If a launch is wrong that the proof accepts.
    fn of(generate: fn(u64) -> String, texts: u64, launches: u64) -> Self {
        let first = first_seed();
        let mut seen = Self { texts, ..Self::default() };
        for seed in first..first + texts {
            seen.look_at(seed, &generate(seed), launches);
        }
        let Self { readable, provable, accepted, wrong, refuted, .. } = seen;
        println!("{texts} texts: {readable} are kernels, {provable} may be proven");
        println!("{} launches: {accepted} accepted, {wrong} wrong", seen.launches);
        if let Some(first) = &seen.first {
            panic!("{refuted} texts are proven and wrong; {first}");
        }
        seen
    }

    fn look_at(&mut self, seed: u64, text: &str, launches: u64) {
        let Some(kernel) = kernel(text) else { return };
        self.readable += 1;
        // A kernel that can never be proven is refused at compilation.
        let Ok(claims) = claims(&kernel) else { return };
        self.provable += 1;
        let (mut random, mut is_refuted) = (Random::new(!seed), false);
        for _ in 0..launches {
            self.launches += 1;
            let launch = any_launch(&kernel, &mut random);
            let proven = Proven::of(&claims, &launch);
            // Some launches that are not proven run too, so that the test sees both outcomes.
            let runs = proven.apart || proven.inside && random.percent(30);
            if !runs {
                continue;
            }
            let order = *random.pick(&[Order::Forwards, Order::Backwards, Order::Shuffled(seed)]);
            let found = launch.run(&kernel, order, STEPS);
            self.accepted += u64::from(proven.whole());
            self.wrong += u64::from(matches!(found, Err(Fault::Race { .. } | Fault::Outside { .. })));
            if let Some(fault) = found.err().filter(|fault| proven.excludes(fault, &kernel)) {
                is_refuted = true;
                let describe = || format!("seed {seed} {launch}: {proven:?}, and {fault}\n{text}");
                self.first.get_or_insert_with(describe);
            }
        }
        self.refuted += u64::from(is_refuted);
    }
}

/// The kernel of a text, no longer vouched for by its `unsafe`.
fn kernel(text: &str) -> Option<Kernel> {
    let mut kernel = usm_kernel_rust::read(text, "random.rs").ok()?.pop()?;
    kernel.trusted = false;
    Some(kernel)
}

/// What the proof says of a launch. Each half must hold by itself.
#[derive(Debug)]
struct Proven {
    /// All indices are inside of their arrays.
    inside: bool,
    /// No two items race.
    apart: bool,
}

impl Proven {
    fn of(claims: &Claims, launch: &Launch) -> Self {
        let shape = launch.shape();
        Self { inside: claims.unproven(&shape).is_none(), apart: claims.race(&shape).is_none() }
    }

    const fn whole(&self) -> bool {
        self.inside && self.apart
    }

    fn excludes(&self, fault: &Fault, kernel: &Kernel) -> bool {
        match fault {
            Fault::Outside { .. } => self.inside,
            Fault::Race { .. } => self.apart,
            Fault::Divergence { .. } => self.whole(),
            // Code that may read memory without a value sets it to zero at first.
            Fault::Unwritten { array, .. } => {
                self.whole() && !zeroed(kernel).iter().any(|id| kernel.array(*id).name == *array)
            }
            _ => false,
        }
    }
}

/// A launch with lengths and numbers of every size.
fn any_launch(kernel: &Kernel, random: &mut Random) -> Launch {
    let local = Launch::group(kernel, random);
    // More items than 8 bits count.
    let large = random.percent(20);
    let others = if kernel.dimensions == 1 { 1 } else { 12 };
    let groups = |size: &u64| if large { 300 / size / others + 2 } else { 4 };
    let global: Vec<u64> = local.iter().map(|size| size * random.from(1, groups(size))).collect();
    let items: u64 = global.iter().product();
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    for array in &kernel.arrays {
        let len = match random.below(5) {
            _ if !array.space.is_parameter() => 0,
            0 => random.below(20),
            1 => items + random.below(4),
            2 => random.from(260, 279),
            3 => 1000,
            _ => random.below(600),
        };
        lengths.push(len);
        bytes.push(elements(len, array.element.bytes(), random));
    }
    let values = kernel.values.iter().map(|value| scalar(value.ty, random)).collect();
    Launch { global, local, lengths, values, bytes }
}

/// The bytes of `len` elements of `size` bytes: all below 20, or of every size.
fn elements(len: u64, size: u64, random: &mut Random) -> Vec<u8> {
    let small = random.percent(50);
    let mut byte = |place: u64| match (small, place % size) {
        (true, 0) => random.below(20) as u8,
        (true, _) => 0,
        (false, _) => random.word() as u8,
    };
    (0..len * size).map(&mut byte).collect()
}

fn scalar(ty: Scalar, random: &mut Random) -> Literal {
    let value = match random.below(6) {
        0 => 0,
        1 | 2 => random.below(10),
        3 => random.below(300),
        4 => *random.pick(&WRAPS),
        _ => random.word(),
    };
    Literal::integer(ty, value)
}
