//! A verified kernel, with what a launch of it needs to know: conditions, answers, limits.

mod launches;
mod proof;

use std::sync::Mutex;

use usm_core::DeviceInfo;
use usm_kernel::LaunchError;
use usm_kernel_ir::emit::checked;
use usm_kernel_ir::inspect::{Inspector, Verdict};
use usm_kernel_ir::proof::{Claims, Shape, bounds, claims};
use usm_kernel_ir::{
    Array, ArrayId, Expr, Kernel, Literal, Place, Refusal, Scalar, Space, Stmt, StmtKind, Value, ValueId,
    emit, length, verify,
};

use self::launches::ProvenLaunches;
use crate::error::CompileError;

pub use self::proof::{Answer, Words};

/// A verified kernel with its proofs. It keeps the answers that each launch asks for.
///
/// All methods may be called from several threads. None waits for another thread.
#[derive(Debug)]
pub struct Program {
    kernel: Kernel,
    bounds: Claims,
    claims: Result<Claims, Refusal>,
    answers: Answers,
    /// The answers about launches that the conditions leave undecided.
    inspector: Mutex<Inspector>,
    /// The last launches whose indices are all inside.
    launches: Mutex<ProvenLaunches>,
}

/// What a launch asks the kernel. The answers are kept, because each is a walk through the nodes.
#[derive(Debug)]
pub struct Answers {
    /// [`Kernel::needs_groups`].
    pub needs_groups: bool,
    /// [`Kernel::is_guarded`].
    pub guarded: bool,
    /// Whether there are atomic operations on memory that groups share.
    pub has_atomics: bool,
    /// Local arrays: the type of their elements, and their lengths.
    pub locals: Vec<(Scalar, Expr)>,
    /// The arrays whose lengths the code takes.
    pub lengths: Vec<ArrayId>,
    /// The same for code that checks indices.
    pub checked_lengths: Vec<ArrayId>,
    /// The scalars of [`Kernel::strides`].
    pub strides: Vec<ValueId>,
}

impl Answers {
    fn of(kernel: &Kernel, bounds: &Claims) -> Self {
        Self {
            needs_groups: kernel.needs_groups(),
            guarded: kernel.is_guarded(),
            has_atomics: has_atomics(kernel),
            locals: emit::locals(kernel),
            lengths: kernel.lengths(),
            checked_lengths: checked::lengths(kernel, bounds),
            strides: kernel.strides(),
        }
    }
}

/// An index outside of its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The array.
    pub array: ArrayId,
    /// The access.
    pub place: Place,
    /// The index, in elements.
    pub index: u64,
    /// Elements of the array.
    pub len: u64,
}

/// The indices that a launch does not prove to be inside: a bit for each of the bounds, or
/// [`ALL`].
pub type Open = u64;

/// All indices, also where there are more than bits.
pub const ALL: Open = u64::MAX;

/// The most bytes of private arrays in use at a time: those of one work-item, or of a group with
/// barriers.
const MOST_PRIVATE: u64 = 1 << 28;

impl Program {
    /// Verifies a kernel and proves what it can. Its code accesses arrays as an
    /// [unordered](Kernel::unordered) launch does, if the kernel has such launches.
    ///
    /// # Errors
    /// [`CompileError`]: what [`verify`] refuses, with its places.
    pub fn new(kernel: Kernel) -> Result<Self, CompileError> {
        let mut program = Self::of_ordered(kernel)?;
        let arrays = match &program.claims {
            Ok(claims) => claims.unordered.clone(),
            Err(race) if race.other.is_some() => unordered_of_racing(&program.kernel),
            // Too many accesses to compare.
            Err(_) => Vec::new(),
        };
        if !arrays.is_empty() {
            program.kernel.unordered = arrays;
            program.bounds = bounds(&program.kernel);
            program.answers = Answers::of(&program.kernel, &program.bounds);
            let inspector = inspector_of(&program.kernel, &program.bounds, &program.claims);
            program.inspector = Mutex::new(inspector);
        }
        Ok(program)
    }

    /// As [`new`](Self::new), for a kernel whose author knows that no two items race in any launch.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn of_ordered(kernel: Kernel) -> Result<Self, CompileError> {
        verify(&kernel).map_err(|refusal| {
            let mut message = format!("{}: {}", kernel.locate(refusal.place), refusal.message);
            if let Some(other) = refusal.other {
                message += &format!(" (see {})", kernel.locate(other));
            }
            CompileError(message)
        })?;
        let (bounds, claims) = (bounds(&kernel), claims(&kernel));
        let inspector = Mutex::new(inspector_of(&kernel, &bounds, &claims));
        let answers = Answers::of(&kernel, &bounds);
        Ok(Self { kernel, bounds, claims, answers, inspector, launches: Mutex::default() })
    }

    /// The kernel.
    #[must_use]
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The conditions for all indices to be inside.
    #[must_use]
    pub const fn bounds(&self) -> &Claims {
        &self.bounds
    }

    /// The conditions for the absence of races too.
    ///
    /// # Errors
    /// The reason why there are none.
    pub const fn claims(&self) -> Result<&Claims, &Refusal> {
        self.claims.as_ref()
    }

    /// What a launch asks the kernel.
    #[must_use]
    pub const fn answers(&self) -> &Answers {
        &self.answers
    }

    /// A message with the place and the name of the kernel in front.
    #[must_use]
    pub fn located(&self, message: &str) -> String {
        format!("{}: kernel {}: {message}", self.kernel.locate(self.kernel.place), self.kernel.name)
    }

    /// The indices that a launch leaves open; 0 where all are inside for any contents of the
    /// arrays. Without `first`, launches are inspected from the second time on, since an inspection
    /// may take longer than the launch.
    pub fn open(&self, shape: &Shape<'_>, first: bool) -> Open {
        if !self.fits(shape) {
            return ALL;
        }
        if self.bounds.bounds.is_empty() || self.launches.try_lock().is_ok_and(|launches| launches.has(shape))
        {
            return 0;
        }
        let mut open = 0;
        if self.bounds.unproven(shape).is_some() && !shape.global.contains(&0) {
            let places = self.inspect(|inspector| inspector.open_bounds(shape, first));
            open = places.into_iter().fold(0, |open, place| match place {
                0..63 => open | 1 << place,
                _ => ALL,
            });
        }
        if open == 0
            && let Ok(mut launches) = self.launches.try_lock()
        {
            launches.keep(shape);
        }
        open
    }

    /// Whether a shape is one of this kernel's launches. Answers are kept, so those about another
    /// one must not be taken for it.
    fn fits(&self, shape: &Shape<'_>) -> bool {
        let Shape { global, local, lengths, values } = *shape;
        let kernel = &self.kernel;
        let dimensions = usize::from(kernel.dimensions);
        let is_value = |(literal, value): (&Literal, &Value)| {
            literal.ty == value.ty && *literal == Literal::integer(literal.ty, literal.bits)
        };
        global.len() == dimensions
            && local.len() == dimensions
            && !local.contains(&0)
            && lengths.len() == kernel.arrays.len()
            && values.len() == kernel.values.len()
            && values.iter().zip(&kernel.values).all(is_value)
    }

    /// Asks the inspector. A thread that finds it in use asks a new one, so nobody waits.
    fn inspect<R>(&self, ask: impl FnOnce(&mut Inspector) -> R) -> R {
        match self.inspector.try_lock() {
            Ok(mut inspector) => ask(&mut inspector),
            Err(_) => ask(&mut inspector_of(&self.kernel, &self.bounds, &self.claims)),
        }
    }

    /// The verdict about a launch whose claims leave the order of items undecided. Without `first`,
    /// `None` at the first question, since an inspection may take longer than the launch.
    pub fn verdict(&self, shape: &Shape<'_>, first: bool) -> Option<Verdict> {
        self.claims.as_ref().ok().filter(|_| self.fits(shape))?;
        self.inspect(|inspector| match first {
            true => Some(inspector.verdict(shape)),
            false => inspector.verdict_if_repeated(shape),
        })
    }

    /// Whether the launch is unordered: indices or conditions of racing arrays follow from memory,
    /// and the code accesses these so that this is no data race.
    pub fn is_unordered(&self, shape: &Shape<'_>) -> bool {
        let is_possible = !self.kernel.unordered.is_empty() && self.claims.is_ok() && self.fits(shape);
        is_possible && self.inspect(|inspector| inspector.is_launch_unordered(shape))
    }

    /// The claims about these indices.
    #[must_use]
    pub fn claims_of(&self, open: Open) -> Claims {
        let is_open = |place: usize| open == ALL || (place < 63 && open >> place & 1 == 1);
        let bounds = self.bounds.bounds.iter().enumerate().filter(|(place, _)| is_open(*place));
        Claims { bounds: bounds.map(|(_, bound)| bound.clone()).collect(), ..Claims::default() }
    }

    /// Reads what code that checks these indices recorded.
    ///
    /// # Errors
    /// The index outside of its array; `None` if the record has the number of no place.
    pub fn check_record(&self, open: Open, words: &[u32; checked::WORDS]) -> Result<(), Option<Outside>> {
        let Some(checked::Outside { place, index, len }) = checked::read(words) else { return Ok(()) };
        let places = checked::places(&self.claims_of(open));
        Err(places.get(place).map(|&(array, place)| Outside { array, place, index, len }))
    }

    /// Whether threads may run groups at once: it is proven that no two work-items touch an element
    /// that one of them writes, if no two arrays overlap. Atomic operations of the host's code are
    /// those of one thread.
    pub fn may_be_divided(&self, shape: &Shape<'_>) -> bool {
        let is_asked = !self.answers.has_atomics && self.fits(shape);
        let claims = self.claims.as_ref().ok().filter(|_| is_asked);
        claims.is_some_and(|claims| {
            claims.race(shape).is_none() || self.verdict(shape, false) == Some(Verdict::Free)
        })
    }

    /// The local memory of a group in bytes, as far as it is known without a launch.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        let locals = self.answers.locals.iter();
        locals.map(|(element, len)| length(len, &[], &[], &[]).saturating_mul(element.bytes())).sum()
    }

    /// Refuses groups and memory of groups above what the device states, and private arrays above
    /// 256 MiB, for launches on the host. `local` is empty where the launch has no groups.
    ///
    /// # Errors
    /// A message without the kernel's place.
    pub fn check_limits(
        &self,
        info: &DeviceInfo,
        global: &[u64],
        local: &[u64],
        values: &[Literal],
    ) -> Result<(), String> {
        let kernel = &self.kernel;
        let items = local.iter().fold(1_u64, |all, size| all.saturating_mul(*size));
        let limit = info.max_work_group_size;
        if items > limit {
            return Err(LaunchError::GroupTooLarge { size: items, limit }.to_string());
        }
        let local_bytes = |array: &Array| match &array.space {
            Space::Local(len) => length(len, global, local, values).saturating_mul(array.element.bytes()),
            _ => 0,
        };
        let bytes = kernel.arrays.iter().map(local_bytes).fold(0, u64::saturating_add);
        let limit = info.local_mem_size;
        if bytes > limit {
            return Err(LaunchError::LocalMemoryTooLarge { size: bytes, limit }.to_string());
        }
        let at_a_time = if kernel.body.iter().any(Stmt::has_barrier) { items } else { 1 };
        let (one, all) = (kernel.private_bytes(), kernel.private_bytes().saturating_mul(at_a_time));
        if all > MOST_PRIVATE {
            return Err(format!(
                "private arrays of {one} bytes, for {at_a_time} work-items at a time: {all} bytes, and \
                 {MOST_PRIVATE} are the most on the host"
            ));
        }
        Ok(())
    }
}

/// The arrays to access without an order in a kernel whose launches race, which only Python runs:
/// all that items write, unless that makes items part at a barrier.
fn unordered_of_racing(kernel: &Kernel) -> Vec<ArrayId> {
    let arrays = kernel.arrays.iter().zip(0..);
    let shared = arrays.filter(|(array, _)| matches!(array.space, Space::Write | Space::Local(_)));
    let arrays: Vec<ArrayId> = shared.map(|(_, number)| ArrayId(number)).collect();
    let variant = Kernel { unordered: arrays.clone(), ..kernel.clone() };
    if verify(&variant).is_ok() { arrays } else { Vec::new() }
}

fn inspector_of(kernel: &Kernel, bounds: &Claims, claims: &Result<Claims, Refusal>) -> Inspector {
    let of_order = claims.as_ref().map_or_else(|_| Claims::default(), Claims::clone);
    Inspector::new(kernel.clone(), Claims { bounds: bounds.bounds.clone(), ..of_order })
}

fn has_atomics(kernel: &Kernel) -> bool {
    let mut has = kernel.arrays.iter().any(|array| matches!(array.space, Space::Atomic));
    let mut note = |stmt: &Stmt| {
        if let StmtKind::Atomic { array, .. } | StmtKind::CompareExchange { array, .. } = &stmt.kind {
            has |= kernel.array(*array).space.is_parameter();
        }
    };
    kernel.for_each(&mut note, &mut |_| ());
    has
}
