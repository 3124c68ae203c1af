//! How kernels take an array: the order of its elements, its parts, and digits.

use usm_core::{Context, DeviceType};

use super::bits::Bits;
use super::{GROUP, MOST_GROUPS};
use crate::Programmable;

/// Elements for which an item of a CPU is worth its counters, and the most such items.
pub(super) const CHUNK: u64 = 16_384;
pub(super) const MOST_ITEMS: u64 = 64;
/// The most elements that counters of 32 bits share, beside one group more.
pub(super) const COUNTABLE: u64 = 1 << 31;

/// How an element's bits become a number that is less where the element comes first.
#[derive(Clone, Copy, Debug)]
pub struct Order<U> {
    /// The bit of the sign; 0 for unsigned numbers.
    pub(super) sign: U,
    /// The bits of infinity; 0 for integers.
    pub(super) infinity: U,
}

/// The parts of an array, each for an item or for a group.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub(super) number: u64,
    /// Elements of each part but the last one.
    pub(super) span: u64,
}

/// The digit of a pass of a sort.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    pub(super) shift: u32,
    /// 0 for a pass that keeps the order.
    pub(super) mask: u32,
}

/// Whether items of the context's device are few and fast, as those of a CPU.
pub(super) fn is_cpu<B: Programmable>(context: &Context<B>) -> bool {
    matches!(context.info().device_type, DeviceType::Cpu | DeviceType::Host)
}

impl<U: Bits> Order<U> {
    /// What the kernels' function of this name does.
    pub(super) fn of(&self, bits: U) -> u64 {
        let (x, sign, infinity) = (bits.to_u64(), self.sign.to_u64(), self.infinity.to_u64());
        let most = !0 >> (64 - 8 * size_of::<U>());
        match (x & sign.wrapping_sub(1), infinity) {
            _ if sign == 0 => x,
            (_, 0) => x ^ sign,
            (size, _) if size > infinity => most,
            (0, _) => sign,
            (size, _) if x == size => x | sign,
            _ => !x & most,
        }
    }
}

impl Parts {
    /// The parts of an array of `len` elements for this device.
    pub(super) fn of<B: Programmable>(context: &Context<B>, len: usize) -> Self {
        let len = len as u64;
        if is_cpu(context) {
            return Self::equal(len, len.div_ceil(CHUNK).min(MOST_ITEMS));
        }
        let span = len.div_ceil(MOST_GROUPS).max(16 * GROUP).next_multiple_of(GROUP);
        Self { number: len.div_ceil(span), span }
    }

    /// Some `number` parts, each of at most as many elements as counters have numbers.
    pub(super) fn equal(len: u64, number: u64) -> Self {
        let span = len.div_ceil(number.max(len.div_ceil(COUNTABLE)).max(1)).max(1);
        Self { number: len.div_ceil(span), span }
    }
}
