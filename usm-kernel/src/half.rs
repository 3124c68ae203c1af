//! Floating point numbers of 16 bits, as elements of arrays.

use core::fmt;

use bytemuck::{Pod, Zeroable};

macro_rules! half {
    ($name:ident, $doc:literal, |$bits:ident| $widened:expr, |$value:ident| $narrowed:expr) => {
        #[doc = $doc]
        ///
        /// A kernel converts it to `f32` to compute.
        #[repr(transparent)]
        #[derive(Clone, Copy, Default)]
        pub struct $name(u16);

        // SAFETY: it is a `u16`, of which all bits are valid.
        unsafe impl Zeroable for $name {}
        // SAFETY: as above.
        unsafe impl Pod for $name {}

        impl $name {
            /// The number with these bits.
            #[must_use]
            pub const fn from_bits(bits: u16) -> Self {
                Self(bits)
            }

            /// Its bits.
            #[must_use]
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// The same number.
            #[inline]
            #[must_use]
            pub const fn to_f32(self) -> f32 {
                let $bits = self.0 as u32;
                f32::from_bits($widened)
            }

            /// The nearest number; of two, the one with an even last bit. A great one is infinite.
            #[inline]
            #[must_use]
            pub const fn from_f32($value: f32) -> Self {
                Self($narrowed as u16)
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> Self {
                value.to_f32()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }
    };
}

half!(F16, "IEEE 754 binary16, NumPy's float16.", |bits| widen(bits), |value| narrow(value));
half!(Bf16, "bfloat16: the upper half of a `f32`.", |bits| bits << 16, |value| {
    let bits = value.to_bits();
    if value.is_nan() { bits >> 16 | 0x40 } else { (bits + 0x7fff + (bits >> 16 & 1)) >> 16 }
});

const fn widen(half: u32) -> u32 {
    let (sign, bits) = ((half & 0x8000) << 16, half & 0x7fff);
    sign | match bits {
        // Whole numbers of least steps.
        ..0x400 => (bits as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        0x400..0x7c00 => (bits << 13) + 0x3800_0000,
        _ => (bits << 13) + 0x7000_0000,
    }
}

const fn narrow(value: f32) -> u32 {
    let (sign, bits) = (value.to_bits() >> 16 & 0x8000, value.to_bits() & 0x7fff_ffff);
    sign | match bits {
        // In 0.5 plus a small number, the lowest bits count the least steps.
        ..0x3880_0000 => (f32::from_bits(bits) + 0.5).to_bits() - 0x3f00_0000,
        0x3880_0000..0x4780_0000 => (bits - 0x3800_0000 + 0xfff + (bits >> 13 & 1)) >> 13,
        0x4780_0000..=0x7f80_0000 => 0x7c00,
        _ => 0x7e00,
    }
}
