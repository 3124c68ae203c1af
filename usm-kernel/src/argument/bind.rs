//! The values that a launch passes for parameters.

use core::mem::MaybeUninit;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend, Kind, UninitVec, UsmVec};

use super::{Atomic, Output, Parameter, RawSlice, Read, Value, Write};
use crate::atomic::AtomicElement;

/// The argument that a launch passes for a parameter.
///
/// # Safety
/// For global memory [`usage`](Self::usage) names the allocation that [`raw`](Self::raw) lies in,
/// all elements are aligned and, except for [`Output`], initialised, written arguments say so, and
/// `Self` holds the borrow (`&` or `&mut`) that excludes conflicting host access while the launch
/// is submitted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for the kernel parameter `{P}`",
    label = "not an argument for `{P}`",
    note = "`Read<T>` takes `&UsmVec<T, _, _>`; `Write<T>` and `Atomic<T>` take `&mut UsmVec<T, _, _>`; `Value<T>` \
            takes a `T`; host views are never arguments"
)]
pub unsafe trait Bind<P: Parameter, B: Backend> {
    /// The form that is sent to the kernel.
    fn raw(&mut self) -> P::Raw;

    /// The allocation with its access; `None` for values.
    fn usage(&self) -> Option<(&Allocation<B>, Access)>;
}

// SAFETY: the array proves initialisation and alignment, the usage is its allocation's, and a read
// needs `&`.
unsafe impl<T: Pod + Send + Sync, K: Kind, B: Backend> Bind<Read<T>, B> for &UsmVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<T> {
        RawSlice::new(self.as_ptr().cast_mut(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Read))
    }
}

// SAFETY: as above; a write needs `&mut`.
unsafe impl<T: Pod + Send + Sync, K: Kind, B: Backend> Bind<Write<T>, B> for &mut UsmVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<T> {
        RawSlice::new(self.as_mut_ptr(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}

// SAFETY: as above; the elements may be uninitialised.
unsafe impl<T: Pod + Send + Sync, K: Kind, B: Backend> Bind<Output<T>, B> for &mut UninitVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<MaybeUninit<T>> {
        RawSlice::new(self.allocation().as_ptr().cast(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}

// SAFETY: as above.
unsafe impl<T: AtomicElement, K: Kind, B: Backend> Bind<Atomic<T>, B> for &mut UsmVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<T> {
        RawSlice::new(self.as_mut_ptr(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}

// SAFETY: it refers to no memory.
unsafe impl<T: Pod + Send + Sync, B: Backend> Bind<Value<T>, B> for T {
    fn raw(&mut self) -> T {
        *self
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}

// SAFETY: it refers to no memory.
unsafe impl<B: Backend> Bind<Value<u8>, B> for bool {
    fn raw(&mut self) -> u8 {
        u8::from(*self)
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}
