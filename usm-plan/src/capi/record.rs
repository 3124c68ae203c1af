//! The structs of the header. Each consists of 64-bit words. The first word is the size of the
//! caller's struct in bytes, because older callers have fewer words and newer ones more.

use core::time::Duration;

use usm_pool::{Plan, Queue, Strategy};

use crate::error::{Error, Result};
use crate::field::Field;
use crate::request::{EveryValue, Request};

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
    /// 0: one.
    pub threads: u64,
    /// Bytes; 0: no limit.
    pub device_memory: u64,
    /// Bytes; 0: no limit.
    pub max_alloc: u64,
    /// 0: none.
    pub ordering_edges: u64,
    /// 0 or 1.
    pub keep_critical_path: u64,
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
    /// Bytes that operators read and write, times the costs of their memories.
    pub cost: u64,
    /// The least cost of these buffers, as far as it is proven.
    pub cost_bound: u64,
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
        let [
            size,
            queue,
            strategy,
            capacity,
            alignment,
            time_limit,
            reorder,
            threads,
            device_memory,
            max_alloc,
            ordering_edges,
            keep_critical_path,
        ] = words;
        Ok(Self {
            size,
            queue,
            strategy,
            capacity,
            alignment,
            time_limit,
            reorder,
            threads,
            device_memory,
            max_alloc,
            ordering_edges,
            keep_critical_path,
        })
    }

    /// The request that the words mean.
    pub(super) fn request(self) -> Result<Request> {
        let bad = |field: Field, reason: String| Error::bad(reason).in_option(field);
        let some = |number: u64| (number != 0).then_some(number);
        let flag = |field: Field, word: u64| match word {
            0 | 1 => Ok(word == 1),
            other => Err(bad(field, format!("{other} is neither 0 nor 1"))),
        };
        let number = |field: Field, word: u64| {
            usize::try_from(word).map_err(|_| bad(field, format!("{word} exceeds {}", usize::MAX)))
        };
        let queue = match flag(Field::Queue, self.queue)? {
            false => Queue::InOrder,
            true => Queue::OutOfOrder,
        };
        let all = Strategy::ALL;
        let strategy = all
            .get(number(Field::Strategy, self.strategy)?)
            .copied()
            .ok_or_else(|| bad(Field::Strategy, format!("{} exceeds {}", self.strategy, all.len() - 1)))?;
        let request = Request {
            queue,
            strategy,
            capacity: some(self.capacity),
            time_limit: some(self.time_limit).map(Duration::from_millis),
            threads: number(Field::Threads, self.threads.max(1))?,
            alignment: some(self.alignment),
            reorder: flag(Field::Reorder, self.reorder)?,
            device_memory: some(self.device_memory),
            max_alloc: some(self.max_alloc),
            ordering_edges: match number(Field::OrderingEdges, self.ordering_edges)? {
                0 => None,
                edges => Some(edges),
            },
            keep_critical_path: flag(Field::KeepCriticalPath, self.keep_critical_path)?,
            // The README says why the options have none of these.
            dims: Vec::new(),
            every_value: EveryValue::OfDimensions,
            values: Vec::new(),
            keep_order: false,
            views: true,
            curve: false,
            compare: false,
            proof: false,
            recompute: None,
        };
        request.check_fields()?;
        Ok(request)
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
            cost: plan.memory_plan.as_ref().map_or(0, |placement| placement.cost),
            cost_bound: plan.memory_plan.as_ref().map_or(0, |placement| placement.cost_bound),
        }
    }

    /// The report of a plan for every value, for some of them.
    pub(super) fn at(peak: u64, lower_bound: u64, buffers: usize) -> Self {
        let optimal = u64::from(peak == lower_bound);
        Self { peak, lower_bound, buffers: buffers as u64, optimal, ..Self::default() }
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
        let Self {
            size: _,
            peak,
            lower_bound,
            buffers,
            optimal,
            order_optimal,
            order_bound,
            cost,
            cost_bound,
        } = *self;
        let words = [peak, lower_bound, buffers, optimal, order_optimal, order_bound, cost, cost_bound];
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
    let known_words = count.min(words.len());
    words[..known_words].copy_from_slice(&theirs[..known_words]);
    if let Some(at) = theirs[known_words..].iter().position(|&word| word != 0) {
        let at = (known_words + at) * 8;
        let reason = "which this library does not know, so it must be 0".to_owned();
        return Err(Error::bad(format!("byte {at} is part of a field {reason}")).in_field(name));
    }
    Ok(known_words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../include/usm_plan.h");

    /// The members of the options in the header, all of 64 bits.
    fn members() -> Vec<&'static str> {
        let (_, text) = HEADER.split_once("typedef struct usm_plan_options {\n").unwrap();
        let (text, _) = text.split_once("} usm_plan_options;").unwrap();
        let member = |line: &'static str| Some(line.trim().strip_prefix("uint64_t ")?.split_once(';')?.0);
        text.lines().map(|line| member(line).expect(line)).collect()
    }

    #[test]
    fn the_words_of_options_are_the_members_of_the_header() {
        let members = members();
        let mut words: Vec<u64> = (0..).take(members.len()).collect();
        words[0] = size_of_val(&words[..]) as u64;
        // SAFETY: the first word has the size.
        let options = unsafe { Options::read(words.as_ptr().cast()) }.unwrap();
        let each = members.iter().zip(words).map(|(name, word)| format!("{name}: {word}"));
        let text = format!("Options {{ {} }}", each.collect::<Vec<_>>().join(", "));
        assert_eq!(format!("{options:?}"), text);
    }
}
