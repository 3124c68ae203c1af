//! Elements that kernels may change by atomic operations.

use core::fmt::Debug;
#[cfg(target_has_atomic = "32")]
use core::sync::atomic::Ordering;

use bytemuck::Pod;

use crate::argument::{RawSlice, Sealed};

/// A number with an atomic twin of the same size and alignment; sealed.
pub trait AtomicElement: Sealed + Pod + Send + Sync {
    /// The atomic type.
    type Atomic: Debug + Send + Sync + 'static;

    /// The same memory as an atomic, for as long as the borrow lasts.
    fn from_mut(values: &mut [Self]) -> &[Self::Atomic] {
        // SAFETY: the exclusive borrow ends all plain access meanwhile.
        unsafe { Self::view(&RawSlice::new(values.as_mut_ptr(), values.len())) }
    }

    /// # Safety
    /// The elements are live and initialised for `'v`, and all access to them is atomic meanwhile.
    #[doc(hidden)]
    unsafe fn view<'v>(raw: &RawSlice<Self>) -> &'v [Self::Atomic];
}

#[cfg(target_has_atomic = "32")]
macro_rules! atomic_elements {
    ($($integer:ident $atomic:ident),+) => {$(
        impl Sealed for $integer {}
        impl AtomicElement for $integer {
            type Atomic = core::sync::atomic::$atomic;

            unsafe fn view<'v>(raw: &RawSlice<$integer>) -> &'v [core::sync::atomic::$atomic] {
                const {
                    assert!(size_of::<$integer>() == size_of::<core::sync::atomic::$atomic>());
                    assert!(align_of::<$integer>() == align_of::<core::sync::atomic::$atomic>());
                }
                // SAFETY: the caller's promise; same size, alignment and valid bits.
                unsafe { core::slice::from_raw_parts(raw.as_ptr().cast(), raw.len()) }
            }
        }
    )+};
}

#[cfg(target_has_atomic = "32")]
atomic_elements!(u32 AtomicU32, i32 AtomicI32);
// On some 32-bit targets the 64-bit atomics are aligned more strictly than the integers.
#[cfg(all(target_has_atomic = "64", target_pointer_width = "64"))]
atomic_elements!(u64 AtomicU64, i64 AtomicI64);

#[cfg(target_has_atomic = "32")]
macro_rules! atomic_floats {
    ($($float:ident $atomic:ident $name:ident),+) => {$(
        /// A floating-point number with atomic operations like those of [`core::sync::atomic`].
        /// They compare and exchange the bits until no other thread interferes.
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(core::sync::atomic::$atomic);

        impl $name {
            /// The number.
            #[inline]
            #[must_use]
            pub fn load(&self, order: Ordering) -> $float {
                $float::from_bits(self.0.load(order))
            }

            /// Writes the number. Returns the old one.
            #[inline]
            pub fn swap(&self, value: $float, order: Ordering) -> $float {
                $float::from_bits(self.0.swap(value.to_bits(), order))
            }

            /// Writes the second number if the current one equals the first, bit for bit.
            ///
            /// # Errors
            /// The current number if it differs.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $float,
                new: $float,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$float, $float> {
                let result = self.0.compare_exchange(current.to_bits(), new.to_bits(), success, failure);
                result.map($float::from_bits).map_err($float::from_bits)
            }

            /// Adds. Returns the old number.
            #[inline]
            pub fn fetch_add(&self, value: $float, order: Ordering) -> $float {
                self.update(order, |old| old + value)
            }

            /// Subtracts. Returns the old number.
            #[inline]
            pub fn fetch_sub(&self, value: $float, order: Ordering) -> $float {
                self.update(order, |old| old - value)
            }

            /// Keeps the smaller number; of a NaN and a number, the number. Returns the old number.
            #[inline]
            pub fn fetch_min(&self, value: $float, order: Ordering) -> $float {
                self.update(order, |old| old.min(value))
            }

            /// Keeps the greater number; of a NaN and a number, the number. Returns the old number.
            #[inline]
            pub fn fetch_max(&self, value: $float, order: Ordering) -> $float {
                self.update(order, |old| old.max(value))
            }

            #[inline]
            fn update(&self, order: Ordering, new: impl Fn($float) -> $float) -> $float {
                let change = |bits| Some(new($float::from_bits(bits)).to_bits());
                let (Ok(old) | Err(old)) = self.0.fetch_update(order, Ordering::Relaxed, change);
                $float::from_bits(old)
            }
        }

        impl Sealed for $float {}
        impl AtomicElement for $float {
            type Atomic = $name;

            unsafe fn view<'v>(raw: &RawSlice<$float>) -> &'v [$name] {
                const {
                    assert!(size_of::<$float>() == size_of::<$name>());
                    assert!(align_of::<$float>() == align_of::<$name>());
                }
                // SAFETY: the caller's promise; same size, alignment and valid bits.
                unsafe { core::slice::from_raw_parts(raw.as_ptr().cast(), raw.len()) }
            }
        }
    )+};
}

#[cfg(target_has_atomic = "32")]
atomic_floats!(f32 AtomicU32 AtomicF32);
#[cfg(all(target_has_atomic = "64", target_pointer_width = "64"))]
atomic_floats!(f64 AtomicU64 AtomicF64);
