//! The memory of a launch, and each access to it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::arithmetic::calculate;
use super::instruction::{CONSTANT_WINDOW, LOCAL_WINDOW, SHARED_WINDOW};
use super::program::{Operation, Space, Update};
use super::types::Type;
use crate::code::{Code, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};

/// An allocation: its address for the program, its bytes, and its address for the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) own: usize,
}

/// An invalid access.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) code: Code,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

/// The memory of one item while it runs.
#[derive(Debug)]
pub(super) struct Memory<'m> {
    /// Sorted by address.
    pub(super) ranges: &'m [Range],
    pub(super) parameters: &'m mut [u64],
    pub(super) shared: &'m mut [u64],
    pub(super) local: &'m mut [u64],
    pub(super) constants: &'m [u64],
    /// The range of the last access.
    pub(super) last: usize,
}

impl Memory<'_> {
    /// The driver's address of a value. With `written`, the memory must be writable.
    #[inline]
    fn find(&mut self, space: Space, address: u64, bytes: usize, written: bool) -> Result<usize, Wrong> {
        let wrong = |code| Wrong { code, address, bytes };
        if address % bytes as u64 != 0 {
            return Err(wrong(MISALIGNED_ADDRESS));
        }
        // An address in a window belongs to no allocation.
        let (space, offset) = match space {
            Space::Generic if address >= LOCAL_WINDOW => (Space::Local, address - LOCAL_WINDOW),
            Space::Generic if address >= SHARED_WINDOW => (Space::Shared, address - SHARED_WINDOW),
            Space::Generic if address >= CONSTANT_WINDOW => (Space::Constant, address - CONSTANT_WINDOW),
            space => (space, address),
        };
        let (start, all) = match space {
            Space::Parameter => (self.parameters.as_mut_ptr() as usize, size_of_val(self.parameters)),
            Space::Shared => (self.shared.as_mut_ptr() as usize, size_of_val(self.shared)),
            Space::Local => (self.local.as_mut_ptr() as usize, size_of_val(self.local)),
            Space::Constant if written => (0, 0),
            Space::Constant => (self.constants.as_ptr() as usize, size_of_val(self.constants)),
            Space::Generic | Space::Global => {
                let inside = |range: &Range| {
                    let offset = (address as usize).wrapping_sub(range.start);
                    (offset < range.bytes && bytes <= range.bytes - offset).then(|| range.own + offset)
                };
                if let Some(own) = self.ranges.get(self.last).and_then(inside) {
                    return Ok(own);
                }
                let behind = self.ranges.partition_point(|range| range.start as u64 <= address);
                self.last = behind.wrapping_sub(1);
                return self.ranges.get(self.last).and_then(inside).ok_or(wrong(ILLEGAL_ADDRESS));
            }
        };
        let all = all as u64;
        if offset >= all || bytes as u64 > all - offset {
            return Err(wrong(ILLEGAL_ADDRESS));
        }
        Ok(start + offset as usize)
    }

    #[inline]
    pub(super) fn load(&mut self, space: Space, of: Type, address: u64) -> Result<u64, Wrong> {
        let place = self.find(space, address, of.bytes(), false)?;
        // SAFETY: inside a live range and aligned, in each case. The program must order concurrent
        // writes.
        Ok(unsafe {
            match of.bytes() {
                1 => of.carried(u64::from((place as *const u8).read_volatile())),
                2 => of.carried(u64::from((place as *const u16).read_volatile())),
                4 => of.carried(u64::from((place as *const u32).read_volatile())),
                _ => (place as *const u64).read_volatile(),
            }
        })
    }

    #[inline]
    pub(super) fn store(&mut self, space: Space, of: Type, address: u64, value: u64) -> Result<(), Wrong> {
        let place = self.find(space, address, of.bytes(), true)?;
        // SAFETY: as for a load.
        unsafe {
            match of.bytes() {
                1 => (place as *mut u8).write_volatile(value as u8),
                2 => (place as *mut u16).write_volatile(value as u16),
                4 => (place as *mut u32).write_volatile(value as u32),
                _ => (place as *mut u64).write_volatile(value),
            }
        }
        Ok(())
    }

    /// Updates a value atomically with regard to all streams. Returns the previous value.
    pub(super) fn update(
        &mut self,
        space: Space,
        update: Update,
        of: Type,
        address: u64,
        [b, c]: [u64; 2],
    ) -> Result<u64, Wrong> {
        let place = self.find(space, address, of.bytes(), true)?;
        let next = |old: u64| match update {
            Update::Exchange => b,
            Update::CompareExchange if of.unsigned(old) == of.unsigned(b) => c,
            Update::CompareExchange => old,
            Update::Add => made(Operation::Add, of, old, b),
            Update::Minimum => made(Operation::Minimum, of, old, b),
            Update::Maximum => made(Operation::Maximum, of, old, b),
            Update::And => old & b,
            Update::Or => old | b,
            Update::Xor => old ^ b,
        };
        let order = (Ordering::AcqRel, Ordering::Acquire);
        if of.bytes() == 4 {
            // SAFETY: inside a live range and aligned.
            let place = unsafe { AtomicU32::from_ptr(place as *mut u32) };
            let old = place.fetch_update(order.0, order.1, |old| Some(next(u64::from(old)) as u32));
            return Ok(u64::from(old.unwrap_or_else(|old| old)));
        }
        // SAFETY: as above.
        let place = unsafe { AtomicU64::from_ptr(place as *mut u64) };
        Ok(place.fetch_update(order.0, order.1, |old| Some(next(old))).unwrap_or_else(|old| old))
    }
}

fn made(operation: Operation, of: Type, a: u64, b: u64) -> u64 {
    calculate(operation, of, [a, b, 0]).unwrap_or(a)
}
