//! Ready algorithms over arrays, made of kernels: sums, least and greatest elements, running sums,
//! sorts and counts ([`OrderAlgorithms`]).
//!
//! ```
//! use usm_core::backend::host::HostHeap;
//! use usm_core::{Host, QueueOrder, UsmVec};
//! use usm_kernel::algorithms::Algorithms;
//!
//! let context = HostHeap::new().context();
//! let queue = context.queue(QueueOrder::InOrder)?;
//! let a = UsmVec::<i32, Host, _>::from_slice(&queue, &[3, 1, 2])?;
//! let of_i32 = Algorithms::<i32, _>::build(&context)?;
//! assert_eq!(of_i32.sum(&queue, &a)?, 6);
//! let mut sums = UsmVec::<i32, Host, _>::zeroed(&queue, 3)?;
//! of_i32.inclusive_scan(&queue, &a, &mut sums)?.wait()?;
//! assert_eq!(sums.read()?[..], [3, 4, 6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bits;
mod gather;
mod kernels;
mod order;
mod order_kernels;
mod parts;

use core::fmt;

use usm_core::{Context, Device, ErrorKind, Event, Kind, Queue, UsmVec};

use crate::{BuildError, Executable, Launch, LaunchError, NdRange, Programmable};

use kernels::of;

/// Work-items of a group.
const GROUP: u64 = 256;
/// The most groups of a reduction's first launch.
const MOST_GROUPS: u64 = 1024;

pub use order::{Comparable, Integer, OrderAlgorithms};

mod sealed {
    use super::bits::Bits;
    use super::parts::Order;
    use super::{BuildError, Context, Device, Event, Kind, LaunchError, Programmable, Queue, UsmVec};

    /// The operation of a reduction.
    #[derive(Clone, Copy, Debug)]
    pub enum Reduction {
        Sum,
        Least,
        Greatest,
    }

    /// How elements are ordered by their bits.
    pub trait Ordering: usm_core::Element + Send + Sync {
        type Bits: Bits;
        const ORDER: Order<Self::Bits>;
    }

    /// What the algorithms need of a type: its kernels, and their launches.
    pub trait Kernels: usm_core::Element + Default {
        /// The code of the type's kernels.
        type Code<B: Programmable>;

        fn build<B: Programmable>(context: &Context<B>) -> Result<Self::Code<B>, BuildError>;

        fn reduce<B: Programmable, K: Kind>(
            code: &Self::Code<B>,
            queue: &Queue<B>,
            reduction: Reduction,
            groups: u64,
            a: &UsmVec<Self, K, B>,
            parts: &mut UsmVec<Self, Device, B>,
        ) -> Result<(), LaunchError>;

        fn scan<B: Programmable, K1: Kind, K2: Kind>(
            code: &Self::Code<B>,
            queue: &Queue<B>,
            exclusive: bool,
            input: &UsmVec<Self, K1, B>,
            output: &mut UsmVec<Self, K2, B>,
        ) -> Result<Event<B>, LaunchError>;
    }
}

use sealed::{Kernels, Reduction};

/// A type of numbers that the algorithms know: `f32`, `f64`, `i32`, `i64`, `u32` or `u64`.
pub trait Number: Kernels {}

/// The algorithms for arrays of numbers, compiled for a context.
///
/// Integers wrap around. Sums of floats are added in groups of 256 work-items, so their last bits
/// depend on the array's length and not on the run.
pub struct Algorithms<T: Number, B: Programmable>(T::Code<B>);

impl<T: Number, B: Programmable> fmt::Debug for Algorithms<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Algorithms").field("of", &core::any::type_name::<T>()).finish_non_exhaustive()
    }
}

impl<T: Number, B: Programmable> Algorithms<T, B> {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// As [`Executable::build`].
    pub fn build(context: &Context<B>) -> Result<Self, BuildError> {
        T::build(context).map(Self)
    }

    /// The sum of all elements; 0 of none. Waits.
    ///
    /// # Errors
    /// Errors of the launches, and of the memory for the sums of groups.
    pub fn sum<K: Kind>(&self, queue: &Queue<B>, a: &UsmVec<T, K, B>) -> Result<T, LaunchError> {
        Ok(self.reduce(queue, Reduction::Sum, a)?.unwrap_or_default())
    }

    /// The least element; `None` of none. A NaN is not looked at, unless it is the first element.
    /// Waits.
    ///
    /// # Errors
    /// As for [`Algorithms::sum`].
    pub fn min<K: Kind>(&self, queue: &Queue<B>, a: &UsmVec<T, K, B>) -> Result<Option<T>, LaunchError> {
        self.reduce(queue, Reduction::Least, a)
    }

    /// The greatest element, as [`Algorithms::min`].
    ///
    /// # Errors
    /// As for [`Algorithms::sum`].
    pub fn max<K: Kind>(&self, queue: &Queue<B>, a: &UsmVec<T, K, B>) -> Result<Option<T>, LaunchError> {
        self.reduce(queue, Reduction::Greatest, a)
    }

    /// `output[i]` = the sum of `input[0..=i]`.
    ///
    /// # Errors
    /// As for [`Algorithms::sum`]; [`ErrorKind::LengthMismatch`] where `output` has another length
    /// than `input`.
    pub fn inclusive_scan<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        input: &UsmVec<T, K1, B>,
        output: &mut UsmVec<T, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        is_as_long(output.len(), input.len())?;
        T::scan(&self.0, queue, false, input, output)
    }

    /// `output[i]` = the sum of `input[0..i]`.
    ///
    /// # Errors
    /// As for [`Algorithms::inclusive_scan`].
    pub fn exclusive_scan<K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        input: &UsmVec<T, K1, B>,
        output: &mut UsmVec<T, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        is_as_long(output.len(), input.len())?;
        T::scan(&self.0, queue, true, input, output)
    }

    fn reduce<K: Kind>(
        &self,
        queue: &Queue<B>,
        reduction: Reduction,
        a: &UsmVec<T, K, B>,
    ) -> Result<Option<T>, LaunchError> {
        if a.is_empty() {
            return Ok(None);
        }
        let groups = (a.len() as u64).div_ceil(16 * GROUP).min(MOST_GROUPS);
        let mut parts = UsmVec::<T, Device, B>::zeroed(queue, groups as usize)?;
        T::reduce(&self.0, queue, reduction, groups, a, &mut parts)?;
        let mut whole = UsmVec::<T, Device, B>::zeroed(queue, 1)?;
        T::reduce(&self.0, queue, reduction, 1, &parts, &mut whole)?;
        Ok(whole.to_vec(queue)?.first().copied())
    }
}

fn is_as_long(expected: usize, found: usize) -> Result<(), LaunchError> {
    match expected == found {
        true => Ok(()),
        false => Err(LaunchError::Memory(ErrorKind::LengthMismatch { expected, found }.into())),
    }
}

macro_rules! numbers {
    ($($number:ident $code:ident $sums:ident $least:ident $greatest:ident $running:ident $carried:ident;)*) => {$(
        /// The code of a type's kernels.
        #[doc(hidden)]
        #[allow(missing_debug_implementations, reason = "its parts have no common one")]
        pub struct $code<B: Programmable> {
            sums: Executable<of::$sums, B, 1>,
            least: Executable<of::$least, B, 1>,
            greatest: Executable<of::$greatest, B, 1>,
            running: Executable<of::$running, B, 1>,
            carried: Executable<of::$carried, B, 1>,
        }

        impl Kernels for $number {
            type Code<B: Programmable> = $code<B>;

            fn build<B: Programmable>(context: &Context<B>) -> Result<$code<B>, BuildError> {
                Ok($code {
                    sums: Executable::build(context)?,
                    least: Executable::build(context)?,
                    greatest: Executable::build(context)?,
                    running: Executable::build(context)?,
                    carried: Executable::build(context)?,
                })
            }

            fn reduce<B: Programmable, K: Kind>(
                code: &$code<B>,
                queue: &Queue<B>,
                reduction: Reduction,
                groups: u64,
                a: &UsmVec<Self, K, B>,
                parts: &mut UsmVec<Self, Device, B>,
            ) -> Result<(), LaunchError> {
                let launch = Launch::new(queue, NdRange::new([groups * GROUP], [GROUP])?);
                let _ = match reduction {
                    Reduction::Sum => launch.run_on(&code.sums, of::$sums, (a, parts))?,
                    Reduction::Least => launch.run_on(&code.least, of::$least, (a, parts))?,
                    Reduction::Greatest => launch.run_on(&code.greatest, of::$greatest, (a, parts))?,
                };
                Ok(())
            }

            fn scan<B: Programmable, K1: Kind, K2: Kind>(
                code: &$code<B>,
                queue: &Queue<B>,
                exclusive: bool,
                input: &UsmVec<Self, K1, B>,
                output: &mut UsmVec<Self, K2, B>,
            ) -> Result<Event<B>, LaunchError> {
                let range = NdRange::covering([(input.len() as u64).max(1)], [GROUP])?;
                let groups = range.groups().items();
                let mut totals = UsmVec::<Self, Device, B>::zeroed(queue, groups as usize)?;
                let launch = || Launch::new(queue, range);
                let arguments = (u32::from(exclusive), input, &mut *output, &mut totals);
                let event = launch().run_on(&code.running, of::$running, arguments)?;
                if groups <= 1 {
                    return Ok(event);
                }
                let mut carries = UsmVec::<Self, Device, B>::zeroed(queue, groups as usize)?;
                let _ = Self::scan(code, queue, true, &totals, &mut carries)?;
                launch().run_on(&code.carried, of::$carried, (&carries, output))
            }
        }

        impl Number for $number {}
    )*};
}

numbers! {
    f32 CodeF32 sums_f32 least_f32 greatest_f32 running_f32 carried_f32;
    f64 CodeF64 sums_f64 least_f64 greatest_f64 running_f64 carried_f64;
    i32 CodeI32 sums_i32 least_i32 greatest_i32 running_i32 carried_i32;
    i64 CodeI64 sums_i64 least_i64 greatest_i64 running_i64 carried_i64;
    u32 CodeU32 sums_u32 least_u32 greatest_u32 running_u32 carried_u32;
    u64 CodeU64 sums_u64 least_u64 greatest_u64 running_u64 carried_u64;
}
