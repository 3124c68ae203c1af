//! The processor's part of a copy between two layouts.

use core::mem::MaybeUninit;
use core::ptr;

use crate::strided::{Axis, Plan};

/// Copies the runs along an axis, from the given first addresses.
type CopyAxis = unsafe fn(*mut u8, *const u8, usize, Axis);

/// # Safety
/// Every run of the plan is valid at both addresses, for reading and for writing, and the ranges do
/// not overlap.
pub(crate) unsafe fn copy_runs(plan: &Plan, dst: *mut u8, src: *const u8) {
    let (axes, run) = (plan.axes(), plan.run);
    let (inner, line_axes) = match axes.last() {
        Some(inner) => (*inner, 1),
        None => (Axis { extent: 1, to: 0, from: 0 }, 0),
    };
    // A run as wide as an integer is one load and one store; a call of `memcpy` for each took four
    // times as long.
    let copy_axis: CopyAxis = match run {
        1 => copy_fixed_runs::<1>,
        2 => copy_fixed_runs::<2>,
        4 => copy_fixed_runs::<4>,
        8 => copy_fixed_runs::<8>,
        16 => copy_fixed_runs::<16>,
        _ => copy_any_runs,
    };
    let copied = plan.visit(line_axes, |to, from| {
        // SAFETY: the caller's promise, for the runs along this axis.
        unsafe { copy_axis(dst.wrapping_add(to), src.wrapping_add(from), run, inner) };
        Ok(())
    });
    debug_assert!(copied.is_ok(), "the closure never fails");
}

/// # Safety
/// As [`copy_runs`], for the runs along `axis`, which are `RUN` bytes.
unsafe fn copy_fixed_runs<const RUN: usize>(dst: *mut u8, src: *const u8, _: usize, axis: Axis) {
    let place = |index: usize| {
        let (to, from) = (dst.wrapping_add(index * axis.to), src.wrapping_offset(index as isize * axis.from));
        (to.cast::<MaybeUninit<[u8; RUN]>>(), from.cast::<MaybeUninit<[u8; RUN]>>())
    };
    for index in 0..axis.extent {
        let (to, from) = place(index);
        // SAFETY: the caller's promise; bytes need no alignment and may be uninitialised.
        let value = unsafe { from.read() };
        // SAFETY: as above.
        unsafe { to.write(value) };
    }
}

/// # Safety
/// As [`copy_runs`], for the runs along `axis`.
unsafe fn copy_any_runs(dst: *mut u8, src: *const u8, run: usize, axis: Axis) {
    for index in 0..axis.extent {
        let (to, from) = (dst.wrapping_add(index * axis.to), src.wrapping_offset(index as isize * axis.from));
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(from, to, run) };
    }
}
