//! Planning without a heap: at most `N` buffers in arrays, also at compile time.

use crate::lifetime::align_up;
use crate::{Buffer, ConflictView, Error};

/// Offsets for `N` buffers and the bytes they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fixed<const N: usize> {
    /// Offset of each buffer in bytes.
    pub offsets: [u64; N],
    /// Largest `offset + size` in bytes.
    pub peak: u64,
}

/// Places `N` buffers greedily by descending size, each at the lowest offset that is free; lives
/// that overlap conflict. A `const fn`: a microcontroller's plan can be a constant of its program,
/// and the size of its arena an array length.
///
/// # Errors
/// [`Error::ReversedLifetime`], [`Error::BadAlignment`], or [`Error::SizeOverflow`].
///
/// ```
/// use usm_pool::{Buffer, fixed, verify};
///
/// const BUFFERS: [Buffer; 3] =
///     [Buffer::new(0, 0, 2, 96).aligned(16), Buffer::new(1, 1, 3, 64).aligned(16), Buffer::new(2, 2, 4, 96).aligned(16)];
/// const PLAN: fixed::Fixed<3> = match fixed::plan(&BUFFERS) {
///     Ok(plan) => plan,
///     Err(_) => panic!("the table is well-formed"),
/// };
/// static ARENA: [u8; PLAN.peak as usize] = [0; PLAN.peak as usize];
/// assert_eq!(ARENA.len(), 160);
/// assert_eq!(verify::intervals(&BUFFERS, &PLAN.offsets, 160), Ok(160));
/// ```
pub const fn plan<const N: usize>(buffers: &[Buffer; N]) -> Result<Fixed<N>, Error> {
    place(buffers, None)
}

/// As [`plan`], with an explicit conflict relation (out-of-order queues), a constant table too.
///
/// # Errors
/// As [`plan`], and [`Error::LengthMismatch`].
pub const fn plan_with_conflicts<const N: usize>(
    buffers: &[Buffer; N],
    conflicts: &ConflictView<'_>,
) -> Result<Fixed<N>, Error> {
    if conflicts.len() != N {
        return Err(Error::LengthMismatch { buffers: N, other: conflicts.len() });
    }
    place(buffers, Some(conflicts))
}

const fn place<const N: usize>(
    buffers: &[Buffer; N],
    conflicts: Option<&ConflictView<'_>>,
) -> Result<Fixed<N>, Error> {
    let mut result = Fixed { offsets: [0; N], peak: 0 };
    let mut is_placed = [false; N];
    let mut sum = 0_u64;
    let mut i = 0;
    while i < N {
        let Buffer { id, lower, upper, size, alignment } = buffers[i];
        if lower > upper {
            return Err(Error::ReversedLifetime { id, lower, upper });
        }
        if !alignment.is_power_of_two() {
            return Err(Error::BadAlignment { id, alignment });
        }
        // Checks that all buffers fit on top of each other, each moved up by its alignment, so
        // nothing below can overflow. A `Problem` makes the same check, so both refuse the same
        // tables.
        let room = match align_up(size, alignment) {
            Some(room) => room.checked_add(alignment - 1),
            None => None,
        };
        sum = match room {
            Some(room) => match sum.checked_add(room) {
                Some(sum) => sum,
                None => return Err(Error::SizeOverflow { id, size, sum }),
            },
            None => return Err(Error::SizeOverflow { id, size, sum }),
        };
        i += 1;
    }
    let mut round = 0;
    while round < N {
        // The largest remaining buffer, the first of equals.
        let mut next = N;
        let mut k = 0;
        while k < N {
            if !is_placed[k] && (next == N || buffers[k].size > buffers[next].size) {
                next = k;
            }
            k += 1;
        }
        let offset = find_lowest(buffers, conflicts, &result.offsets, &is_placed, next);
        result.offsets[next] = offset;
        if offset + buffers[next].size > result.peak {
            result.peak = offset + buffers[next].size;
        }
        is_placed[next] = true;
        round += 1;
    }
    Ok(result)
}

/// The lowest aligned offset at which buffer `next` meets no placed buffer that it conflicts with.
const fn find_lowest<const N: usize>(
    buffers: &[Buffer; N],
    conflicts: Option<&ConflictView<'_>>,
    offsets: &[u64; N],
    is_placed: &[bool; N],
    next: usize,
) -> u64 {
    let item = &buffers[next];
    let mut at = 0_u64;
    if item.size == 0 {
        return at;
    }
    // A conflicting buffer in the way moves this one above its end. After each move another pass
    // checks the new offset.
    let mut k = 0;
    while k < N {
        let other = &buffers[k];
        let end = offsets[k] + other.size;
        let meets = is_placed[k] && at < end && offsets[k] < at + item.size;
        if meets && in_conflict(buffers, conflicts, next, k) {
            at = (end + (item.alignment - 1)) & !(item.alignment - 1);
            k = 0;
        } else {
            k += 1;
        }
    }
    at
}

const fn in_conflict<const N: usize>(
    buffers: &[Buffer; N],
    conflicts: Option<&ConflictView<'_>>,
    i: usize,
    j: usize,
) -> bool {
    match conflicts {
        Some(view) => view.contains(i, j) || view.contains(j, i),
        None => buffers[i].lifetime().overlaps(buffers[j].lifetime()),
    }
}
