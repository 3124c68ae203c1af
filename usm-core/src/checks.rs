//! Checks of arguments that several operations make.

use crate::error::{ErrorKind, Result};

#[inline]
pub(crate) fn check_same_context(expected: u64, found: u64) -> Result<()> {
    if found == expected { Ok(()) } else { Err(ErrorKind::WrongContext { expected, found }.into()) }
}

/// Refuses a pattern whose width runtimes do not support, or does not divide the range and its
/// start (an address, or an offset in a buffer).
#[inline]
pub(crate) fn check_pattern(pattern: &[u8], at: usize, len: usize) -> Result<()> {
    let width = pattern.len();
    if matches!(width, 1 | 2 | 4 | 8 | 16) && len % width == 0 && at % width == 0 {
        Ok(())
    } else {
        Err(ErrorKind::BadPattern { width, len }.into())
    }
}

pub(crate) fn check_disjoint(dst: usize, src: usize, len: usize) -> Result<()> {
    if dst.abs_diff(src) < len {
        return Err(ErrorKind::Overlap { dst, src, len }.into());
    }
    Ok(())
}
