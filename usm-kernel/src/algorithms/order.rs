//! Algorithms by the order of elements: sorts, places, counts.

use alloc::vec::Vec;
use core::fmt;

use usm_core::{Context, Device, Element, Event, Kind, Queue, UsmVec};

use super::bits::Bits;
use super::gather::Gather;
use super::order_kernels::of;
use super::parts::{CHUNK, COUNTABLE, Digit, MOST_ITEMS, Order, Parts, is_cpu};
use super::sealed::{Kernels, Ordering};
use super::{GROUP, MOST_GROUPS, is_as_long};
use crate::argument::{Words, WordsMut};
use crate::{BuildError, Executable, Launch, LaunchError, Programmable, Range};

/// Bits of a digit.
const BITS: u32 = 8;
const DIGITS: u64 = 1 << BITS;

/// A type of elements with an order: `i8` to `i64`, `u8` to `u64`, `f32`, `f64`,
/// [`F16`](crate::F16), [`Bf16`](crate::Bf16).
pub trait Comparable: Ordering {}

/// A type of integers, whose elements [`bincount`](OrderAlgorithms::bincount) counts.
pub trait Integer: Comparable {}

macro_rules! comparable {
    ($($element:ty, $bits:ty, $sign:expr, $infinity:expr;)*) => {$(
        impl Ordering for $element {
            type Bits = $bits;
            const ORDER: Order<$bits> = Order { sign: $sign, infinity: $infinity };
        }

        impl Comparable for $element {}
    )*};
}

comparable! {
    u8, u8, 0, 0;
    u16, u16, 0, 0;
    u32, u32, 0, 0;
    u64, u64, 0, 0;
    i8, u8, 1 << 7, 0;
    i16, u16, 1 << 15, 0;
    i32, u32, 1 << 31, 0;
    i64, u64, 1 << 63, 0;
    crate::F16, u16, 1 << 15, 0x7C00;
    crate::Bf16, u16, 1 << 15, 0x7F80;
    f32, u32, 1 << 31, 0x7F80_0000;
    f64, u64, 1 << 63, 0x7FF0_0000_0000_0000;
}

macro_rules! integers {
    ($($element:ty)*) => {$(impl Integer for $element {})*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64);

/// Sorts, places of the least and greatest elements, and counts, compiled for a context.
///
/// NaNs come last and are equal to each other, as in NumPy; both zeros are equal. Results are the
/// same on every device.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{Host, QueueOrder, UsmVec};
/// use usm_kernel::algorithms::OrderAlgorithms;
///
/// let context = HostHeap::new().context();
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let of_f32 = OrderAlgorithms::<f32, _>::build(&context)?;
/// let mut keys = UsmVec::<f32, Host, _>::from_slice(&queue, &[2.5, -1.0, 0.5, 2.5])?;
/// assert_eq!(of_f32.argmin(&queue, &keys)?, Some(1));
/// let mut counts = UsmVec::<u64, Host, _>::zeroed(&queue, 2)?;
/// of_f32.histogram(&queue, &keys, &[-1.0, 0.0, 2.5], &mut counts)?.wait()?;
/// assert_eq!(counts.read()?[..], [1, 3]);
/// let mut values = UsmVec::<u8, Host, _>::from_slice(&queue, b"abcd")?;
/// of_f32.sort_by_key(&queue, &mut keys, &mut values)?.wait()?;
/// assert_eq!((&keys.read()?[..], &values.read()?[..]), (&[-1.0, 0.5, 2.5, 2.5][..], &b"bcad"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OrderAlgorithms<T: Comparable, B: Programmable> {
    code: <T::Bits as Bits>::Code<B>,
    gather: Gather<B>,
    scan: <u64 as Kernels>::Code<B>,
    add_rows: Executable<of::add_rows, B, 1>,
}

impl<T: Comparable, B: Programmable> fmt::Debug for OrderAlgorithms<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderAlgorithms").field("of", &core::any::type_name::<T>()).finish_non_exhaustive()
    }
}

/// What the passes of a sort share.
struct Passes<'a, T: Comparable, B: Programmable> {
    of: &'a OrderAlgorithms<T, B>,
    queue: &'a Queue<B>,
    parts: Parts,
    counts: UsmVec<u64, Device, B>,
    before: UsmVec<u64, Device, B>,
}

impl<T: Comparable, B: Programmable> Passes<'_, T, B> {
    /// Moves keys, and perhaps their places, by one digit.
    fn run(
        &mut self,
        number: u32,
        keys: Words<'_, T::Bits, B>,
        places: Words<'_, u64, B>,
        sorted: WordsMut<'_, T::Bits, B>,
        sorted_places: WordsMut<'_, u64, B>,
    ) -> Result<Event<B>, LaunchError> {
        let (of, queue) = (self.of, self.queue);
        // Behind the last digit a pass keeps the order.
        let is_digit = number < digits::<T>();
        let digit = match is_digit {
            true => Digit { shift: BITS * number, mask: u32::MAX },
            false => Digit { shift: 0, mask: 0 },
        };
        let settings = (T::ORDER, self.parts, digit);
        T::Bits::digits(&of.code, queue, settings, keys, &mut self.counts)?;
        let _ = <u64 as Kernels>::scan(&of.scan, queue, true, &self.counts, &mut self.before)?;
        T::Bits::moves(&of.code, queue, settings, keys, places, &self.before, sorted, sorted_places)
    }
}

impl<T: Comparable, B: Programmable> OrderAlgorithms<T, B> {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// As [`Executable::build`].
    pub fn build(context: &Context<B>) -> Result<Self, BuildError> {
        Ok(Self {
            code: T::Bits::build(context)?,
            gather: Gather::build(context)?,
            scan: <u64 as Kernels>::build(context)?,
            add_rows: Executable::build(context)?,
        })
    }

    /// The place of the least element, of equal ones the first; `None` of none. A NaN is less than
    /// every number, as for NumPy's `argmin`. Waits.
    ///
    /// # Errors
    /// Errors of the launches, and of the memory for the numbers of groups.
    pub fn argmin<K: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K, B>,
    ) -> Result<Option<usize>, LaunchError> {
        self.best(queue, a, false)
    }

    /// The place of the greatest element, as [`argmin`](Self::argmin): a NaN is greater.
    ///
    /// # Errors
    /// As for [`argmin`](Self::argmin).
    pub fn argmax<K: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K, B>,
    ) -> Result<Option<usize>, LaunchError> {
        self.best(queue, a, true)
    }

    fn best<K: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K, B>,
        greatest: bool,
    ) -> Result<Option<usize>, LaunchError> {
        if a.is_empty() {
            return Ok(None);
        }
        let groups = (a.len() as u64).div_ceil(16 * GROUP).min(MOST_GROUPS) as usize;
        let mut keys = UsmVec::<u64, Device, B>::zeroed(queue, groups)?;
        let mut places = UsmVec::<u64, Device, B>::zeroed(queue, groups)?;
        T::Bits::best(&self.code, queue, (T::ORDER, greatest), Words::of(a), &mut keys, &mut places)?;
        let (keys, places) = (keys.to_vec(queue)?, places.to_vec(queue)?);
        let best = keys.into_iter().zip(places).min();
        Ok(best.map(|(_, place)| place as usize))
    }

    /// Sorts `a` in ascending order. Takes memory of its size beside it.
    ///
    /// # Errors
    /// Errors of the launches, and of the memory. `a` may then be partly sorted.
    pub fn sort<K: Kind>(&self, queue: &Queue<B>, a: &mut UsmVec<T, K, B>) -> Result<Event<B>, LaunchError> {
        self.sort_with(queue, a, &mut none(queue)?)
    }

    /// Sorts `keys` in ascending order, and moves `values` with them. Equal keys keep the order of
    /// their values.
    ///
    /// # Errors
    /// As for [`sort`](Self::sort); [`ErrorKind::LengthMismatch`](usm_core::ErrorKind) where
    /// `values` has another length than `keys`.
    pub fn sort_by_key<V: Element, K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        keys: &mut UsmVec<T, K1, B>,
        values: &mut UsmVec<V, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        is_as_long(values.len(), keys.len())?;
        let mut places = UsmVec::<u64, Device, B>::zeroed(queue, keys.len())?;
        let _ = self.sort_with(queue, keys, &mut places)?;
        let mut target = UsmVec::<V, Device, B>::zeroed(queue, values.len())?;
        let _ = self.gather.run(queue, values, &places, &mut target)?;
        self.gather.run(queue, &target, &none(queue)?, values)
    }

    /// `places[i]` = the place in `a` of the element that a stable sort has at `i`.
    ///
    /// # Errors
    /// As for [`sort`](Self::sort); [`ErrorKind::LengthMismatch`](usm_core::ErrorKind) where
    /// `places` has another length than `a`.
    pub fn argsort<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K1, B>,
        places: &mut UsmVec<u64, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        is_as_long(places.len(), a.len())?;
        let mut keys = UsmVec::<T, Device, B>::zeroed(queue, a.len())?;
        let _ = self.gather.run(queue, a, &none(queue)?, &mut keys)?;
        self.sort_with(queue, &mut keys, places)
    }

    /// Sorts keys, and writes their places unless there is no room for them. An even number of
    /// passes goes to spare memory and back.
    fn sort_with<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        keys: &mut UsmVec<T, K1, B>,
        places: &mut UsmVec<u64, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        let parts = Parts::of(queue.context(), keys.len());
        let cells = (DIGITS * parts.number) as usize;
        let mut passes = Passes {
            of: self,
            queue,
            parts,
            counts: UsmVec::zeroed(queue, cells)?,
            before: UsmVec::zeroed(queue, cells)?,
        };
        let none = none(queue)?;
        let mut spare = UsmVec::<T, Device, B>::zeroed(queue, keys.len())?;
        let mut spare_places = UsmVec::<u64, Device, B>::zeroed(queue, places.len())?;
        for pass in (0..).step_by(2) {
            let begins = if pass == 0 { Words::of(&none) } else { Words::of(places) };
            let _ = passes.run(
                pass,
                Words::of(keys),
                begins,
                WordsMut::of(&mut spare),
                WordsMut::of(&mut spare_places),
            )?;
            let (sorted, sorted_places) = (WordsMut::of(keys), WordsMut::of(places));
            let event =
                passes.run(pass + 1, Words::of(&spare), Words::of(&spare_places), sorted, sorted_places)?;
            if pass + 2 >= digits::<T>() {
                return Ok(event);
            }
        }
        unreachable!("the loop has no end")
    }

    /// `counts[k]` = the number of elements from `edges[k]` on and below `edges[k + 1]`; the last
    /// bin has its upper edge too. NaNs and elements outside are not counted.
    ///
    /// # Errors
    /// As for [`argmin`](Self::argmin); [`ErrorKind::LengthMismatch`](usm_core::ErrorKind) unless
    /// there is one edge more than counts, [`LaunchError::Edge`] unless they ascend.
    pub fn histogram<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K1, B>,
        edges: &[T],
        counts: &mut UsmVec<u64, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        is_as_long(edges.len(), counts.len().saturating_add(1))?;
        let orders: Vec<u64> = edges.iter().map(|edge| T::ORDER.of(bytemuck::cast(*edge))).collect();
        let is_nan = |order: u64| T::ORDER.infinity.to_u64() != 0 && order == !0 >> (64 - 8 * size_of::<T>());
        let wrong = (0..orders.len()).find(|k| is_nan(orders[*k]) || *k > 0 && orders[*k] < orders[*k - 1]);
        if let Some(edge) = wrong {
            return Err(LaunchError::Edge { edge });
        }
        let orders: Vec<T::Bits> = orders.into_iter().map(T::Bits::of_u64).collect();
        let orders = UsmVec::<T::Bits, Device, B>::from_slice(queue, &orders)?;
        self.count(queue, a, &orders, counts)
    }

    /// `counts[k]` = the number of elements that are `k`. Others are not counted.
    ///
    /// # Errors
    /// As for [`argmin`](Self::argmin).
    pub fn bincount<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K1, B>,
        counts: &mut UsmVec<u64, K2, B>,
    ) -> Result<Event<B>, LaunchError>
    where
        T: Integer,
    {
        self.count(queue, a, &UsmVec::zeroed(queue, 0)?, counts)
    }

    fn count<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        a: &UsmVec<T, K1, B>,
        edges: &UsmVec<T::Bits, Device, B>,
        counts: &mut UsmVec<u64, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        let (len, bins) = (a.len() as u64, counts.len() as u64);
        let is_cpu = is_cpu(queue.context());
        let parts = match is_cpu {
            // Each has a row of counters, which takes time too.
            true => Parts::equal(len, len.div_ceil(bins.max(CHUNK)).min(MOST_ITEMS)),
            false => Parts::of(queue.context(), a.len()),
        };
        let rows = if is_cpu { parts.number } else { len.div_ceil(COUNTABLE) };
        let cells = bins.checked_mul(rows).and_then(|cells| usize::try_from(cells).ok());
        let mut rows = UsmVec::<u32, Device, B>::zeroed(queue, cells.unwrap_or(usize::MAX))?;
        if bins != 0 && len != 0 {
            T::Bits::counts(&self.code, queue, (T::ORDER, parts, bins), edges, Words::of(a), &mut rows)?;
        }
        let launch = Launch::with_range(queue, Range::new([bins])?);
        launch.run_on(&self.add_rows, of::add_rows, (&rows, counts))
    }
}

/// The passes that sort elements of a type.
const fn digits<T>() -> u32 {
    size_of::<T>() as u32
}

fn none<B: Programmable>(queue: &Queue<B>) -> Result<UsmVec<u64, Device, B>, LaunchError> {
    Ok(UsmVec::zeroed(queue, 0)?)
}
