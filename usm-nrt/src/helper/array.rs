//! Reshape without a copy.

use core::ffi::c_int;

use crate::export::export;

/// NumPy's maximum number of axes.
const MAX_AXES: usize = 64;

export! {
    /// Writes the strides in bytes under which shape `newdims` names the elements of an array of
    /// shape `dims` and strides `strides` in the same order: row by row, or column by column if
    /// `is_f_order`. Returns 1 if such strides exist, and 0 if only a copy can do it.
    fn numba_attempt_nocopy_reshape(
        nd: isize,
        dims: *const isize,
        strides: *const isize,
        newnd: isize,
        newdims: *const isize,
        newstrides: *mut isize,
        itemsize: isize,
        is_f_order: c_int,
    ) -> c_int {
        let (Ok(old), Ok(new)) = (usize::try_from(nd), usize::try_from(newnd)) else { return 0 };
        if old > MAX_AXES || new > MAX_AXES {
            return 0;
        }
        let read = |values: *const isize, count: usize| {
            let mut axes = [0; MAX_AXES];
            // SAFETY: the C caller's `count` values to read; no more than there is room for.
            unsafe { axes.as_mut_ptr().copy_from_nonoverlapping(values, count) };
            axes
        };
        let (dims, strides, newdims) = (read(dims, old), read(strides, old), read(newdims, new));
        let mut result = [0; MAX_AXES];
        let order = if is_f_order == 0 { Order::Rows } else { Order::Columns };
        if !reshape(&dims[..old], &strides[..old], &newdims[..new], itemsize, order, &mut result[..new]) {
            return 0;
        }
        // SAFETY: the C caller's `newnd` values to write; no more than there are.
        unsafe { newstrides.copy_from_nonoverlapping(result.as_ptr(), new) };
        1
    }
}

/// The axis that varies fastest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The last axis.
    Rows,
    /// The first axis.
    Columns,
}

/// Whether `dims` can be read as `newdims` without a copy; `result` then holds the strides.
///
/// The function cuts both shapes into the shortest runs of axes with equally many elements. Inside
/// a run the old axes must be contiguous, so that the new ones can divide it.
fn reshape(
    dims: &[isize],
    strides: &[isize],
    newdims: &[isize],
    itemsize: isize,
    order: Order,
    result: &mut [isize],
) -> bool {
    let elements = |dims: &[isize]| dims.iter().try_fold(1_isize, |product, &dim| product.checked_mul(dim));
    let (Some(old), Some(new)) = (elements(dims), elements(newdims)) else { return false };
    if old != new {
        return false;
    }
    if old == 0 {
        // There is no element, so every stride is right.
        result.fill(itemsize);
        return true;
    }
    // Drops axes of one element: their strides have no effect.
    let mut axes = [(0, 0); MAX_AXES];
    let mut count = 0;
    for (&dim, &stride) in dims.iter().zip(strides).filter(|(dim, _)| **dim != 1) {
        axes[count] = (dim, stride);
        count += 1;
    }
    let mut rest = &axes[..count];
    let mut new_start = 0;
    while new_start < newdims.len() && !rest.is_empty() {
        let Some((old_count, used)) = run(rest, &newdims[new_start..]) else { return false };
        let (group, left) = rest.split_at(old_count);
        if !is_dense(group, order) {
            return false;
        }
        let fastest = match order {
            Order::Rows => group[old_count - 1].1,
            Order::Columns => group[0].1,
        };
        let (run, strides) =
            (&newdims[new_start..new_start + used], &mut result[new_start..new_start + used]);
        if !split_run(run, strides, fastest, order) {
            return false;
        }
        new_start += used;
        rest = left;
    }
    // The remaining new axes have one element each.
    let last = match (new_start.checked_sub(1), order) {
        (None, _) => Some(itemsize),
        (Some(last), Order::Rows) => Some(result[last]),
        (Some(last), Order::Columns) => result[last].checked_mul(newdims[last]),
    };
    let Some(last) = last else { return false };
    result[new_start..].fill(last);
    true
}

/// The numbers of old and new axes in the first run of equally many elements.
fn run(old: &[(isize, isize)], new: &[isize]) -> Option<(usize, usize)> {
    let (mut old_count, mut used) = (1, 1);
    let (mut old_product, mut new_product) = (old.first()?.0, *new.first()?);
    while old_product != new_product {
        if new_product < old_product {
            new_product = new_product.checked_mul(*new.get(used)?)?;
            used += 1;
        } else {
            old_product = old_product.checked_mul(old.get(old_count)?.0)?;
            old_count += 1;
        }
    }
    Some((old_count, used))
}

/// Whether each axis starts where its faster neighbour ends.
fn is_dense(axes: &[(isize, isize)], order: Order) -> bool {
    axes.windows(2).all(|pair| {
        let (slow, fast) = match order {
            Order::Rows => (pair[0], pair[1]),
            Order::Columns => (pair[1], pair[0]),
        };
        fast.0.checked_mul(fast.1) == Some(slow.1)
    })
}

/// Divides a dense run into axes and writes their strides; false on overflow.
fn split_run(dims: &[isize], strides: &mut [isize], fastest: isize, order: Order) -> bool {
    let mut next = Some(fastest);
    for step in 0..dims.len() {
        let axis = match order {
            Order::Rows => dims.len() - 1 - step,
            Order::Columns => step,
        };
        let Some(stride) = next else { return false };
        strides[axis] = stride;
        next = stride.checked_mul(dims[axis]);
    }
    true
}
