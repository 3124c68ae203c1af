//! Large copies by the processor, divided between the threads of the pool.

use crate::memcpy;
use crate::runs::copy_runs;
#[cfg(feature = "threads")]
use crate::stores;
use crate::strided::Plan;

/// Bytes from which on a copy is divided: a smaller one is in the caches.
#[cfg(feature = "threads")]
const LEAST: usize = if cfg!(test) { 16 << 10 } else { 16 << 20 };
/// Bytes of a part, about.
#[cfg(feature = "threads")]
const PART: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Bytes of one run from which on what is written goes past the caches, which hold less: memory is
/// then not read before it is written.
#[cfg(feature = "threads")]
const PAST_CACHES: usize = if cfg!(test) { 32 << 10 } else { 32 << 20 };

/// As [`copy_runs`]; the threads of the pool help with a large copy.
///
/// # Safety
/// As [`copy_runs`].
pub(crate) unsafe fn copy_runs_divided(plan: &Plan, dst: *mut u8, src: *const u8) {
    #[cfg(feature = "threads")]
    if plan.runs() * plan.run >= LEAST {
        if let Some(parts) = plan.parts(PART) {
            // SAFETY: the caller's promise.
            return unsafe { copy_parts(plan, &parts, dst, src) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { copy_runs(plan, dst, src) }
}

/// Copies `len` bytes, which may overlap; the threads of the pool help with many.
///
/// # Safety
/// Both ranges are live; nothing else accesses the target or writes the source.
pub(crate) unsafe fn copy_bytes(dst: *mut u8, src: *const u8, len: usize) {
    if dst.addr().abs_diff(src.addr()) < len {
        // SAFETY: the caller's promise.
        return unsafe { dst.copy_from(src, len) };
    }
    #[cfg(feature = "threads")]
    if len >= LEAST {
        // SAFETY: the caller's promise; the ranges do not overlap.
        return unsafe { copy_runs_divided(&Plan::of_run(len), dst, src) };
    }
    // SAFETY: as above.
    unsafe { memcpy::copy(dst, src, len) };
}

/// # Safety
/// As [`copy_runs`].
#[cfg(feature = "threads")]
unsafe fn copy_parts(plan: &Plan, parts: &crate::strided::Parts, dst: *mut u8, src: *const u8) {
    use core::ops::{ControlFlow, Range};

    use crate::threads;

    /// Addresses that threads share.
    struct Ends(*mut u8, *const u8);
    // SAFETY: each part has other runs, which are valid by the caller's promise.
    unsafe impl Sync for Ends {}

    impl Ends {
        /// # Safety
        /// As [`copy_runs`].
        unsafe fn copy(&self, plan: &Plan, past_caches: bool) {
            if past_caches {
                let (to, from) = (self.0.wrapping_add(plan.to), self.1.wrapping_add(plan.from));
                // SAFETY: the caller's promise, for the plan's one run.
                return unsafe { stores::copy(to, from, plan.run) };
            }
            // SAFETY: the caller's promise.
            unsafe { copy_runs(plan, self.0, self.1) };
        }
    }

    let ends = Ends(dst, src);
    let past_caches = plan.axes().is_empty() && plan.run >= PAST_CACHES;
    let copy = |range: Range<u64>| {
        let part = plan.part(parts, range.start as usize..range.end as usize);
        // SAFETY: some of the plan's runs.
        unsafe { ends.copy(&part, past_caches) };
    };
    let own_work = |range| {
        copy(range);
        ControlFlow::Continue(())
    };
    if threads::divide(parts.count as u64, None, own_work, |shares| shares.for_each(copy)).is_err() {
        // The number of threads that the user stated is none; nothing ran.
        copy(0..parts.count as u64);
    }
}

#[cfg(all(test, feature = "threads"))]
mod tests {
    use alloc::vec;
    use core::num::NonZeroUsize;

    use super::*;
    use crate::Strided;

    /// Each layout goes in parts and at once, to the same bytes.
    #[test]
    fn divided_copies_equal_whole_ones() {
        crate::threads::set(NonZeroUsize::new(4).expect("four")).expect("a number of threads");
        let mut divided = 0;
        for (item, shape, to, from) in [
            (1, vec![40_009], vec![1], vec![1]),
            (4, vec![131, 97], vec![400, 4], vec![4, 524]),
            (4, vec![131, 97], vec![-400, 4], vec![800, -8]),
            (8, vec![3, 5, 1_009], vec![50_000, 9_000, 8], vec![0, -8_072, -8]),
            (2, vec![2, 2, 2, 2_111], vec![40_000, 20_000, 10_000, 4], vec![2, 4, 8, 16]),
            (16, vec![67, 61], vec![16 * 61, 16], vec![16, 16 * 67]),
            (3, vec![7_919], vec![5], vec![0]),
        ] {
            let place = |strides: &[isize]| -> (usize, usize) {
                let steps = shape.iter().zip(strides).map(|(extent, stride)| (extent - 1) as isize * stride);
                let reach = |sign: isize| steps.clone().filter(|step| step.signum() == sign).sum::<isize>();
                let low = reach(-1).unsigned_abs();
                (low, low + reach(1).unsigned_abs() + item)
            };
            let ((to_start, to_size), (from_start, from_size)) = (place(&to), place(&from));
            let layout = |start, strides| Strided::new(start, item, &shape, strides).expect("a layout");
            let plan = Plan::new(&layout(to_start, &to), &layout(from_start, &from));
            let plan = plan.expect("a copy").expect("elements");
            let source: vec::Vec<u8> = (0..from_size).map(|at| (at * 167 % 251) as u8).collect();
            let (mut whole, mut parts) = (vec![255; to_size], vec![255; to_size]);
            // SAFETY: the layouts lie in the vectors.
            unsafe { copy_runs(&plan, whole.as_mut_ptr(), source.as_ptr()) };
            // SAFETY: as above.
            unsafe { copy_runs_divided(&plan, parts.as_mut_ptr(), source.as_ptr()) };
            assert!(whole == parts, "{shape:?}");
            divided += usize::from(plan.parts(PART).is_some_and(|parts| parts.count > 1));
        }
        assert_eq!(divided, 7, "all of them have parts");
    }
}
