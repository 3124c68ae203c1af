//! Launches of the kernels for the bits of elements.

use usm_core::{Context, Device, Element, Event, Queue, UsmVec};

use super::GROUP;
use super::order_kernels::of;
use super::parts::{Digit, Order, Parts, is_cpu};
use crate::argument::{Words, WordsMut};
use crate::{BuildError, Executable, Launch, LaunchError, NdRange, Programmable, Range, VouchedKernel};

/// Unsigned numbers as bits of elements.
pub trait Bits: Element + Send + Sync + Default {
    /// The code of the kernels.
    type Code<B: Programmable>;

    fn to_u64(self) -> u64;
    /// Without the upper bits.
    fn of_u64(bits: u64) -> Self;

    fn build<B: Programmable>(context: &Context<B>) -> Result<Self::Code<B>, BuildError>;

    fn best<B: Programmable>(
        code: &Self::Code<B>,
        queue: &Queue<B>,
        settings: (Order<Self>, bool),
        a: Words<'_, Self, B>,
        keys: &mut UsmVec<u64, Device, B>,
        places: &mut UsmVec<u64, Device, B>,
    ) -> Result<(), LaunchError>;

    fn digits<B: Programmable>(
        code: &Self::Code<B>,
        queue: &Queue<B>,
        settings: (Order<Self>, Parts, Digit),
        a: Words<'_, Self, B>,
        counts: &mut UsmVec<u64, Device, B>,
    ) -> Result<(), LaunchError>;

    #[allow(clippy::too_many_arguments, reason = "the arrays of the kernel")]
    fn moves<B: Programmable>(
        code: &Self::Code<B>,
        queue: &Queue<B>,
        settings: (Order<Self>, Parts, Digit),
        a: Words<'_, Self, B>,
        places: Words<'_, u64, B>,
        before: &UsmVec<u64, Device, B>,
        sorted: WordsMut<'_, Self, B>,
        sorted_places: WordsMut<'_, u64, B>,
    ) -> Result<Event<B>, LaunchError>;

    fn counts<B: Programmable>(
        code: &Self::Code<B>,
        queue: &Queue<B>,
        settings: (Order<Self>, Parts, u64),
        edges: &UsmVec<Self, Device, B>,
        a: Words<'_, Self, B>,
        rows: &mut UsmVec<u32, Device, B>,
    ) -> Result<(), LaunchError>;
}

macro_rules! bits {
    ($($bits:ident $code:ident $by:ident
        $best:ident
        $digits_of_items:ident $moves_of_items:ident $counts_of_items:ident
        $digits_of_groups:ident $moves_of_groups:ident $counts_of_groups:ident;)*) => {$(
        /// The code of the kernels.
        #[doc(hidden)]
        #[allow(missing_debug_implementations, reason = "its parts have no common one")]
        pub struct $code<B: Programmable> {
            best: Executable<of::$best, B, 1>,
            by: $by<B>,
        }

        enum $by<B: Programmable> {
            Items(
                Executable<of::$digits_of_items, B, 1>,
                Executable<VouchedKernel<of::$moves_of_items>, B, 1>,
                Executable<VouchedKernel<of::$counts_of_items>, B, 1>,
            ),
            Groups(
                Executable<of::$digits_of_groups, B, 1>,
                Executable<VouchedKernel<of::$moves_of_groups>, B, 1>,
                Executable<of::$counts_of_groups, B, 1>,
            ),
        }

        impl Bits for $bits {
            type Code<B: Programmable> = $code<B>;

            fn to_u64(self) -> u64 {
                u64::from(self)
            }

            fn of_u64(bits: u64) -> Self {
                bits as Self
            }

            fn build<B: Programmable>(context: &Context<B>) -> Result<$code<B>, BuildError> {
                Ok($code {
                    best: Executable::build(context)?,
                    by: match is_cpu(context) {
                        true => $by::Items(
                            Executable::build(context)?,
                            Executable::build(context)?,
                            Executable::build(context)?,
                        ),
                        false => $by::Groups(
                            Executable::build(context)?,
                            Executable::build(context)?,
                            Executable::build(context)?,
                        ),
                    },
                })
            }

            fn best<B: Programmable>(
                code: &$code<B>,
                queue: &Queue<B>,
                (order, greatest): (Order<Self>, bool),
                a: Words<'_, Self, B>,
                keys: &mut UsmVec<u64, Device, B>,
                places: &mut UsmVec<u64, Device, B>,
            ) -> Result<(), LaunchError> {
                let range = NdRange::new([keys.len() as u64 * GROUP], [GROUP])?;
                let arguments = (u32::from(greatest), order.sign, order.infinity, a, keys, places);
                Launch::new(queue, range).run_on(&code.best, of::$best, arguments).map(drop)
            }

            fn digits<B: Programmable>(
                code: &$code<B>,
                queue: &Queue<B>,
                (order, parts, digit): (Order<Self>, Parts, Digit),
                a: Words<'_, Self, B>,
                counts: &mut UsmVec<u64, Device, B>,
            ) -> Result<(), LaunchError> {
                let arguments = (order.sign, order.infinity, parts.span, digit.shift, digit.mask, a, counts);
                match &code.by {
                    $by::Items(digits, ..) => {
                        items(queue, parts)?.run_on(digits, of::$digits_of_items, arguments).map(drop)
                    }
                    $by::Groups(digits, ..) => {
                        groups(queue, parts)?.run_on(digits, of::$digits_of_groups, arguments).map(drop)
                    }
                }
            }

            fn moves<B: Programmable>(
                code: &$code<B>,
                queue: &Queue<B>,
                (order, parts, digit): (Order<Self>, Parts, Digit),
                a: Words<'_, Self, B>,
                places: Words<'_, u64, B>,
                before: &UsmVec<u64, Device, B>,
                sorted: WordsMut<'_, Self, B>,
                sorted_places: WordsMut<'_, u64, B>,
            ) -> Result<Event<B>, LaunchError> {
                let (sign, infinity, span) = (order.sign, order.infinity, parts.span);
                let arguments =
                    (sign, infinity, span, digit.shift, digit.mask, a, places, before, sorted, sorted_places);
                match &code.by {
                    $by::Items(_, moves, _) => {
                        // SAFETY: `before` counts the elements that have their places before those
                        // of each digit and part, so no two elements have one place; the kernel
                        // compares it with the lengths.
                        let kernel = unsafe { VouchedKernel::new(of::$moves_of_items) };
                        items(queue, parts)?.run_on(moves, kernel, arguments)
                    }
                    $by::Groups(_, moves, _) => {
                        // SAFETY: as above. Within a group barriers part the votes, their counts
                        // and their end; the last item of a digit alone writes its next place.
                        let kernel = unsafe { VouchedKernel::new(of::$moves_of_groups) };
                        groups(queue, parts)?.run_on(moves, kernel, arguments)
                    }
                }
            }

            fn counts<B: Programmable>(
                code: &$code<B>,
                queue: &Queue<B>,
                (order, parts, bins): (Order<Self>, Parts, u64),
                edges: &UsmVec<Self, Device, B>,
                a: Words<'_, Self, B>,
                rows: &mut UsmVec<u32, Device, B>,
            ) -> Result<(), LaunchError> {
                let arguments = (order.sign, order.infinity, parts.span, bins, edges, a, rows);
                match &code.by {
                    $by::Items(.., counts) => {
                        // SAFETY: each item has a row of its own, whose counters are below `bins`;
                        // the kernel compares them with the length.
                        let kernel = unsafe { VouchedKernel::new(of::$counts_of_items) };
                        items(queue, parts)?.run_on(counts, kernel, arguments).map(drop)
                    }
                    $by::Groups(.., counts) => {
                        groups(queue, parts)?.run_on(counts, of::$counts_of_groups, arguments).map(drop)
                    }
                }
            }
        }
    )*};
}

bits! {
    u8 CodeOf8 ByOf8 best_u8
        digits_of_items_u8 moves_of_items_u8 counts_of_items_u8
        digits_of_groups_u8 moves_of_groups_u8 counts_of_groups_u8;
    u16 CodeOf16 ByOf16 best_u16
        digits_of_items_u16 moves_of_items_u16 counts_of_items_u16
        digits_of_groups_u16 moves_of_groups_u16 counts_of_groups_u16;
    u32 CodeOf32 ByOf32 best_u32
        digits_of_items_u32 moves_of_items_u32 counts_of_items_u32
        digits_of_groups_u32 moves_of_groups_u32 counts_of_groups_u32;
    u64 CodeOf64 ByOf64 best_u64
        digits_of_items_u64 moves_of_items_u64 counts_of_items_u64
        digits_of_groups_u64 moves_of_groups_u64 counts_of_groups_u64;
}

/// A launch with an item for each part.
fn items<B: Programmable>(queue: &Queue<B>, parts: Parts) -> Result<Launch<'_, B, 1>, LaunchError> {
    Ok(Launch::with_range(queue, Range::new([parts.number])?))
}

/// A launch with a group for each part.
fn groups<B: Programmable>(queue: &Queue<B>, parts: Parts) -> Result<Launch<'_, B, 1>, LaunchError> {
    Ok(Launch::new(queue, NdRange::new([parts.number * GROUP], [GROUP])?))
}
