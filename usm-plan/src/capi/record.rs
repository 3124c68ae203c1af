//! The structs of the header. Each consists of 64-bit words. The first word is the size of the
//! caller's struct in bytes, because older callers have fewer words and newer ones more.

use core::time::Duration;
use std::time::Instant;

use usm_pool::{Plan, Queue, Strategy};

use crate::error::{Error, Result};
use crate::graph_json::RangePlan;
use crate::outcome;
use crate::units;

use super::memory::check_array;

/// Maximum size of a struct in bytes; a larger value was never initialised.
const MOST: u64 = 4096;

/// The options of a plan, in the header's layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "its size says which fields there are")]
pub struct Options {
    /// Bytes of the caller's struct.
    pub size: u64,
    /// 0: in order, 1: out of order.
    pub queue: u64,
    /// Index in [`Strategy::ALL`].
    pub strategy: u64,
    /// Bytes; 0: as few as possible.
    pub capacity: u64,
    /// Bytes; 0: the default.
    pub alignment: u64,
    /// Milliseconds; 0: the default.
    pub time_limit: u64,
    /// 0 or 1.
    pub reorder: u64,
}

/// The quality of a plan, in the header's layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "its size says which fields there are")]
pub struct Report {
    /// Bytes of the caller's struct.
    pub size: u64,
    /// Bytes.
    pub peak: u64,
    /// Bytes.
    pub lower_bound: u64,
    /// Number of placed blocks.
    pub buffers: u64,
    /// 0 or 1.
    pub optimal: u64,
    /// 0 or 1.
    pub order_optimal: u64,
    /// Bytes; 0 if no order was searched for.
    pub order_bound: u64,
}

/// The decoded options.
pub(super) struct Wanted {
    /// The time of the caller's call.
    pub(super) start: Instant,
    pub(super) plan: outcome::Wanted,
    pub(super) alignment: Option<u64>,
    pub(super) reorder: bool,
}

impl Options {
    /// Reads the caller's options. Fields that an older caller lacks are 0.
    ///
    /// # Safety
    /// `from` is null, or a struct of the size in its first word.
    pub(super) unsafe fn read(from: *const Self) -> Result<Self> {
        if from.is_null() {
            return Ok(Self::default());
        }
        let mut words = [0; size_of::<Self>() / 8];
        // SAFETY: the caller's contract.
        unsafe { read(from.cast(), &mut words, "options") }?;
        let [size, queue, strategy, capacity, alignment, time_limit, reorder] = words;
        Ok(Self { size, queue, strategy, capacity, alignment, time_limit, reorder })
    }
}

impl Wanted {
    pub(super) fn of(options: Options) -> Result<Self> {
        let bad =
            |field: &str, reason: String| Err(Error::bad(reason).in_field(format_args!("options.{field}")));
        let Options { queue, strategy, capacity, alignment, time_limit, reorder, .. } = options;
        let queue = match queue {
            0 => Queue::InOrder,
            1 => Queue::OutOfOrder,
            other => return bad("queue", format!("{other} is neither 0 nor 1")),
        };
        let all = Strategy::ALL;
        let Some(&strategy) = usize::try_from(strategy).ok().and_then(|at| all.get(at)) else {
            return bad("strategy", format!("{strategy} exceeds {}", all.len() - 1));
        };
        let some = |number: u64| (number != 0).then_some(number);
        if let Some(Err(reason)) = some(alignment).map(units::alignment) {
            return bad("alignment", reason);
        }
        if reorder > 1 {
            return bad("reorder", format!("{reorder} is neither 0 nor 1"));
        }
        if reorder == 1 && queue == Queue::OutOfOrder {
            return bad("reorder", "an out-of-order queue has no order to change".to_owned());
        }
        let time_limit = some(time_limit).map(Duration::from_millis);
        let plan = outcome::Wanted { queue, strategy, capacity: some(capacity), time_limit, threads: 1 };
        Ok(Self { start: Instant::now(), plan, alignment: some(alignment), reorder: reorder == 1 })
    }
}

impl Report {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            order_optimal: 0,
            order_bound: 0,
            size: 0,
            peak: plan.peak,
            lower_bound: plan.lower_bound,
            buffers: plan.buffers() as u64,
            optimal: u64::from(plan.optimal()),
        }
    }

    /// The report of a plan for every value, for some of them.
    pub(super) fn at(plan: &RangePlan, values: &[u64], peak: u64) -> Result<Self> {
        let (lower_bound, buffers) = plan.bound(values)?;
        let optimal = u64::from(peak == lower_bound);
        Ok(Self { peak, lower_bound, buffers: buffers as u64, optimal, ..Self::default() })
    }

    /// Number of known words in the caller's report; 0 for null.
    ///
    /// # Safety
    /// `to` is null, or a struct of the size in its first word.
    pub(super) unsafe fn known_words(to: *const Self) -> Result<usize> {
        if to.is_null() {
            return Ok(0);
        }
        let mut words = [0; size_of::<Self>() / 8];
        // SAFETY: the caller's contract.
        unsafe { read(to.cast(), &mut words, "report") }
    }

    /// Writes all words except the size.
    ///
    /// # Safety
    /// [`Self::known_words`] returned `room` for the same struct.
    pub(super) unsafe fn write(&self, to: *mut Self, room: usize) {
        let Self { size: _, peak, lower_bound, buffers, optimal, order_optimal, order_bound } = *self;
        let words = [peak, lower_bound, buffers, optimal, order_optimal, order_bound];
        if room > 1 {
            // SAFETY: the struct has a second word.
            let second = unsafe { to.cast::<u64>().add(1) };
            // SAFETY: the struct has `room` words.
            unsafe { second.copy_from_nonoverlapping(words.as_ptr(), room - 1) };
        }
    }
}

/// Copies the known words of a struct. Returns how many of them the caller has.
///
/// # Safety
/// `from` is null, or has the size in its first word.
unsafe fn read(from: *const u64, words: &mut [u64], name: &str) -> Result<usize> {
    check_array(from, 1, name)?;
    let bad = |reason: String| Err(Error::bad(reason).in_field(format_args!("{name}.size")));
    // SAFETY: every struct has a first word.
    let size = unsafe { from.read() };
    if !(8..=MOST).contains(&size) || size % 8 != 0 {
        return bad(format!("{size} is no multiple of 8 from 8 to {MOST}"));
    }
    // At most `MOST`.
    let count = size as usize / 8;
    // SAFETY: the contract demands this many words.
    let theirs = unsafe { core::slice::from_raw_parts(from, count) };
    let known = count.min(words.len());
    words[..known].copy_from_slice(&theirs[..known]);
    if let Some(at) = theirs[known..].iter().position(|&word| word != 0) {
        let at = (known + at) * 8;
        let reason = "which this library does not know, so it must be 0".to_owned();
        return Err(Error::bad(format!("byte {at} is part of a field {reason}")).in_field(name));
    }
    Ok(known)
}
