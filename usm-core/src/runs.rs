//! The processor's part of a copy between two layouts, and of a fill.
//!
//! Elements of 1, 2, 4, 8 and 16 bytes are one load and one store each, in loops that the compiler
//! makes vectors of where the strides are common ones. If the source is dense along another axis
//! than the destination, both are walked in tiles, so that each cache line is read once.

use core::mem::MaybeUninit;

use crate::backend::StridedAxis as Axis;
use crate::memcpy;
use crate::strided::Plan;

/// # Safety
/// Every run of the plan is valid at both addresses, for reading and for writing, and the ranges do
/// not overlap.
pub(crate) unsafe fn copy_runs(plan: &Plan, dst: *mut u8, src: *const u8) {
    let copy: unsafe fn(&Plan, *mut u8, *const u8) = match plan.run {
        1 => copy_elements::<u8, 64>,
        2 => copy_elements::<u16, 64>,
        4 => copy_elements::<u32, 64>,
        8 => copy_elements::<u64, 32>,
        16 => copy_elements::<u128, 32>,
        _ => copy_wide_runs,
    };
    // SAFETY: the caller's promise; the type is as wide as a run.
    unsafe { copy(plan, dst, src) };
}

/// # Safety
/// As [`copy_runs`], for runs of one `T`.
unsafe fn copy_elements<T: Copy, const TILE: usize>(plan: &Plan, dst: *mut u8, src: *const u8) {
    let axes = plan.axes();
    let place = |to, from| (dst.wrapping_add(to), src.wrapping_add(from));
    let outcome = match (plan.with_tiles(), axes.last()) {
        (Some(tiled_plan), _) => {
            let [.., outer, inner] = tiled_plan.axes() else { return };
            tiled_plan.visit(2, |to, from| {
                let (to, from) = place(to, from);
                // SAFETY: the caller's promise, for the runs along these axes.
                unsafe { copy_tiles::<T, TILE>(to, from, *outer, *inner) };
                Ok(())
            })
        }
        (None, Some(inner)) => plan.visit(1, |to, from| {
            let (to, from) = place(to, from);
            // SAFETY: the caller's promise, for the runs along this axis.
            unsafe { copy_line::<T>(to, from, *inner) };
            Ok(())
        }),
        (None, None) => plan.visit(0, |to, from| {
            let (to, from) = place(to, from);
            // SAFETY: the caller's promise.
            unsafe { copy_element::<T>(to, from) };
            Ok(())
        }),
    };
    debug_assert!(outcome.is_ok(), "the closures never fail");
}

/// # Safety
/// As [`copy_runs`], for runs of any width.
unsafe fn copy_wide_runs(plan: &Plan, dst: *mut u8, src: *const u8) {
    let outcome = plan.visit(0, |to, from| {
        // SAFETY: the caller's promise.
        unsafe { memcpy::copy(dst.wrapping_add(to), src.wrapping_add(from), plan.run) };
        Ok(())
    });
    debug_assert!(outcome.is_ok(), "the closure never fails");
}

/// Copies the elements along two axes in tiles of `TILE` by `TILE` elements. A dense tile goes
/// through a buffer: whole cache lines are read and written even where their addresses, a power of
/// two apart, fall on the same places of the cache.
///
/// # Safety
/// As [`copy_runs`], for the runs along the axes.
unsafe fn copy_tiles<T: Copy, const TILE: usize>(dst: *mut u8, src: *const u8, outer: Axis, inner: Axis) {
    let size = size_of::<T>();
    let is_dense = inner.to == size && outer.from == size as isize;
    let mut buffer = [[MaybeUninit::<T>::uninit(); TILE]; TILE];
    for row in (0..outer.extent).step_by(TILE) {
        let rows = TILE.min(outer.extent - row);
        for column in (0..inner.extent).step_by(TILE) {
            let columns = TILE.min(inner.extent - column);
            let to = dst.wrapping_add(row * outer.to + column * inner.to);
            let from =
                src.wrapping_offset(row as isize * outer.from).wrapping_offset(column as isize * inner.from);
            if !is_dense || rows < TILE || columns < TILE {
                for row in 0..rows {
                    let (to, from) =
                        (to.wrapping_add(row * outer.to), from.wrapping_offset(row as isize * outer.from));
                    // SAFETY: the caller's promise.
                    unsafe { copy_line::<T>(to, from, Axis { extent: columns, ..inner }) };
                }
                continue;
            }
            for (column, line) in buffer.iter_mut().enumerate() {
                let from = from.wrapping_offset(column as isize * inner.from);
                // SAFETY: the elements of a line are dense along the outer axis; bytes need no
                // alignment and may be uninitialised.
                *line = unsafe { from.cast::<[MaybeUninit<T>; TILE]>().read_unaligned() };
            }
            #[expect(clippy::needless_range_loop, reason = "the index is of the inner arrays")]
            for row in 0..TILE {
                let line: [MaybeUninit<T>; TILE] = core::array::from_fn(|column| buffer[column][row]);
                let to = to.wrapping_add(row * outer.to).cast::<[MaybeUninit<T>; TILE]>();
                // SAFETY: as above, along the inner axis of the destination.
                unsafe { to.write_unaligned(line) };
            }
        }
    }
}

/// Copies the elements along one axis.
///
/// # Safety
/// As [`copy_runs`], for the runs along the axis.
unsafe fn copy_line<T: Copy>(dst: *mut u8, src: *const u8, Axis { extent, to, from }: Axis) {
    let size = size_of::<T>();
    // The compiler makes vectors of loops over constant steps.
    macro_rules! steps {
        ($to:expr, $from:expr) => {
            for index in 0..extent {
                let (to, from) = (dst.wrapping_add(index * $to), src.wrapping_offset(index as isize * $from));
                // SAFETY: the caller's promise.
                unsafe { copy_element::<T>(to, from) };
            }
        };
    }
    let (one, is_dense) = (size as isize, to == size);
    if is_dense && from == -one {
        steps!(size, -(size as isize));
    } else if is_dense && from == 2 * one {
        steps!(size, 2 * size as isize);
    } else if is_dense && from == 0 {
        // SAFETY: the caller's promise, for the first and only element.
        let element = unsafe { src.cast::<MaybeUninit<T>>().read_unaligned() };
        // SAFETY: the caller's promise.
        unsafe { fill_with::<MaybeUninit<T>>(dst, element, extent) };
    } else if is_dense {
        steps!(size, from);
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_spread_line::<T>(dst, src, Axis { extent, to, from }) };
    }
}

/// Copies the elements along one axis with gaps: several loads before their stores.
///
/// # Safety
/// As [`copy_line`].
unsafe fn copy_spread_line<T: Copy>(dst: *mut u8, src: *const u8, Axis { extent, to, from }: Axis) {
    const AT_ONCE: usize = 8;
    let place = |index: usize| (dst.wrapping_add(index * to), src.wrapping_offset(index as isize * from));
    let whole = extent / AT_ONCE * AT_ONCE;
    for first in (0..whole).step_by(AT_ONCE) {
        let elements: [MaybeUninit<T>; AT_ONCE] = core::array::from_fn(|next| {
            let (_, from) = place(first + next);
            // SAFETY: the caller's promise; bytes may be uninitialised.
            unsafe { from.cast::<MaybeUninit<T>>().read_unaligned() }
        });
        for (next, element) in elements.into_iter().enumerate() {
            let (to, _) = place(first + next);
            // SAFETY: the caller's promise; source and destination do not overlap.
            unsafe { to.cast::<MaybeUninit<T>>().write_unaligned(element) };
        }
    }
    for index in whole..extent {
        let (to, from) = place(index);
        // SAFETY: the caller's promise.
        unsafe { copy_element::<T>(to, from) };
    }
}

/// # Safety
/// Both addresses are valid for a `T`, of any alignment.
#[inline(always)]
unsafe fn copy_element<T: Copy>(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller's promise; bytes may be uninitialised.
    let element = unsafe { src.cast::<MaybeUninit<T>>().read_unaligned() };
    // SAFETY: the caller's promise.
    unsafe { dst.cast::<MaybeUninit<T>>().write_unaligned(element) };
}

/// # Safety
/// `count` elements at `dst` may be written.
#[inline(always)]
unsafe fn fill_with<T: Copy>(dst: *mut u8, element: T, count: usize) {
    for index in 0..count {
        // SAFETY: the caller's promise.
        unsafe { dst.cast::<T>().wrapping_add(index).write_unaligned(element) };
    }
}

/// Repeats `pattern` over `len` bytes, a multiple of its width.
///
/// # Safety
/// The bytes at `dst` may be written, and the pattern is not among them.
pub(crate) unsafe fn fill_pattern(dst: *mut u8, pattern: &[u8], len: usize) {
    let fill: unsafe fn(*mut u8, &[u8], usize) = match pattern.len() {
        0 => return,
        1 => fill_elements::<u8>,
        2 => fill_elements::<u16>,
        4 => fill_elements::<u32>,
        8 => fill_elements::<u64>,
        16 => fill_elements::<u128>,
        _ => fill_by_doubling,
    };
    // SAFETY: the caller's promise; the type is as wide as the pattern.
    unsafe { fill(dst, pattern, len) };
}

/// # Safety
/// As [`fill_pattern`], for a pattern as wide as `T`.
unsafe fn fill_elements<T: Copy>(dst: *mut u8, pattern: &[u8], len: usize) {
    // SAFETY: the pattern is as wide as the type.
    let element = unsafe { pattern.as_ptr().cast::<MaybeUninit<T>>().read_unaligned() };
    // SAFETY: the caller's promise.
    unsafe { fill_with(dst, element, len / size_of::<T>()) };
}

/// Copies what is written already, up to a block that stays in the processor's cache.
///
/// # Safety
/// As [`fill_pattern`].
unsafe fn fill_by_doubling(dst: *mut u8, pattern: &[u8], len: usize) {
    const BLOCK: usize = 16 << 10;
    let mut filled_len = pattern.len().min(len);
    // SAFETY: the caller's promise; the pattern is not among the bytes.
    unsafe { dst.copy_from_nonoverlapping(pattern.as_ptr(), filled_len) };
    let mut block = filled_len;
    while filled_len < len {
        let next = block.min(len - filled_len);
        // SAFETY: as above; the block lies before what is written now.
        unsafe { dst.wrapping_add(filled_len).copy_from_nonoverlapping(dst, next) };
        filled_len += next;
        if filled_len <= BLOCK {
            block = filled_len;
        }
    }
}

#[cfg(all(test, feature = "alloc", not(loom)))]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::strided::Strided;

    /// Element by element, without plans, axes in an order or tiles.
    fn oracle(
        target: &mut [u8],
        to: &[isize],
        source: &[u8],
        from: (usize, &[isize]),
        shape: &[usize],
        item: usize,
    ) {
        let count: usize = shape.iter().product();
        for flat in 0..count {
            let (mut rest, mut place, mut origin) = (flat, 0_isize, from.0 as isize);
            for axis in (0..shape.len()).rev() {
                let index = (rest % shape[axis]) as isize;
                rest /= shape[axis];
                place += index * to[axis];
                origin += index * from.1[axis];
            }
            let (place, origin) = (place as usize, origin as usize);
            target[place..place + item].copy_from_slice(&source[origin..origin + item]);
        }
    }

    #[test]
    fn every_order_of_axes_and_every_width_is_copied_as_element_by_element() {
        // More and less than a tile, also with a rest.
        for shape in [[5, 70, 67], [129, 2, 66], [64, 64, 1], [3, 1, 200]] {
            for item in [1_usize, 2, 3, 4, 8, 12, 16] {
                for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
                    for step in [1_isize, 2, -1] {
                        let unit = item as isize;
                        let mut from = [0; 3];
                        let mut next = unit * step.abs();
                        for axis in order.into_iter().rev() {
                            from[axis] = next;
                            next *= shape[axis] as isize;
                        }
                        let mut first = 0;
                        if step < 0 {
                            first = from[2] as usize * (shape[2] - 1);
                            from[2] = -from[2];
                        }
                        let to = [unit * (shape[1] * shape[2]) as isize, unit * shape[2] as isize, unit];
                        let source: Vec<u8> =
                            (0..next as usize).map(|at| (at * 7 + at / 251) as u8).collect();
                        let size = shape.iter().product::<usize>() * item;
                        let (mut target, mut expected) = (vec![0; size], vec![0; size]);
                        oracle(&mut expected, &to, &source, (first, &from), &shape, item);
                        let layouts = (
                            Strided::new(0, item, &shape, &to).expect("a layout"),
                            Strided::new(first, item, &shape, &from).expect("a layout"),
                        );
                        let plan = Plan::new(&layouts.0, &layouts.1).expect("a plan").expect("elements");
                        // SAFETY: both layouts were made for these vectors.
                        unsafe { copy_runs(&plan, target.as_mut_ptr(), source.as_ptr()) };
                        assert!(target == expected, "{shape:?} {item} {order:?} {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_pattern_of_any_width_fills_its_bytes_and_no_others() {
        for width in [1, 2, 3, 4, 8, 12, 16, 40] {
            for count in [0, 1, 2, 5, 1000, 4099] {
                let pattern: Vec<u8> = (1..=width as u8).collect();
                let len = width * count;
                let mut bytes = vec![0; len + 1];
                // SAFETY: inside the vector.
                unsafe { fill_pattern(bytes.as_mut_ptr(), &pattern, len) };
                assert!(bytes[..len].chunks(width).all(|chunk| chunk == pattern), "{width} {count}");
                assert_eq!(bytes[len], 0);
            }
        }
    }
}
