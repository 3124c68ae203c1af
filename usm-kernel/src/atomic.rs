//! Elements that kernels may change by atomic operations.

use core::fmt::Debug;

use bytemuck::Pod;

use crate::argument::Sealed;

/// An integer with an atomic twin of the same size and alignment; sealed.
pub trait AtomicElement: Sealed + Pod + Send + Sync {
    /// The atomic type.
    type Atomic: Debug + Send + Sync + 'static;

    /// The same memory, changed by atomic operations only, as long as the borrow lasts.
    fn from_mut(values: &mut [Self]) -> &[Self::Atomic];
}

macro_rules! atomic_elements {
    ($($integer:ident $atomic:ident),+) => {$(
        impl Sealed for $integer {}
        impl AtomicElement for $integer {
            type Atomic = core::sync::atomic::$atomic;

            fn from_mut(values: &mut [$integer]) -> &[core::sync::atomic::$atomic] {
                const {
                    assert!(size_of::<$integer>() == size_of::<core::sync::atomic::$atomic>());
                    assert!(align_of::<$integer>() == align_of::<core::sync::atomic::$atomic>());
                }
                // SAFETY: same size, alignment and valid bits; the exclusive borrow ends all plain access meanwhile.
                unsafe { core::slice::from_raw_parts(values.as_mut_ptr().cast(), values.len()) }
            }
        }
    )+};
}

#[cfg(target_has_atomic = "32")]
atomic_elements!(u32 AtomicU32, i32 AtomicI32);
// On some 32-bit targets the 64-bit atomics are aligned more strictly than the integers.
#[cfg(all(target_has_atomic = "64", target_pointer_width = "64"))]
atomic_elements!(u64 AtomicU64, i64 AtomicI64);
