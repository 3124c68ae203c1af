//! Columns that a producer has handed over.

use core::ffi::{CStr, c_void};

use super::{ArrowArray, ArrowDeviceArray, ArrowSchema, OwnedStructure, Structure};
use crate::arrow::format::Format;
use crate::arrow::validate::{self, Column, RawLevel, Used, validate};
use crate::dlpack::{Device, DeviceType};
use crate::error::{Error, Key, LimitError, ProtocolError, Result, TypeError};

/// Maximum number of structures from a column to its values.
pub const MAX_LEVELS: usize = 64;

/// A column with its type, on any device.
#[derive(Debug)]
pub struct ImportedColumn {
    schema: OwnedStructure<ArrowSchema>,
    array: OwnedStructure<ArrowDeviceArray>,
}

impl ImportedColumn {
    /// A column on a device.
    #[must_use]
    pub const fn new(schema: OwnedStructure<ArrowSchema>, array: OwnedStructure<ArrowDeviceArray>) -> Self {
        Self { schema, array }
    }

    /// A column in host memory.
    #[must_use]
    pub fn on_host(schema: OwnedStructure<ArrowSchema>, array: OwnedStructure<ArrowArray>) -> Self {
        let array = ArrowDeviceArray { array: array.into_raw(), ..ArrowDeviceArray::RELEASED };
        // SAFETY: the array was owned, and is again.
        Self { schema, array: unsafe { OwnedStructure::from_raw(array) } }
    }

    /// Whether entries are missing, as the producer counted them: of the column, of what is below
    /// it, and of its dictionary. True also where it did not count and there is a bitmap. What is
    /// below a structure belongs to other columns.
    #[must_use]
    pub fn may_lack_entries(&self) -> bool {
        may_lack_entries(self.schema.get(), &self.array.get().array)
    }

    /// The event that the producer's work ends with, as the device type has it: a pointer to a
    /// `cudaEvent_t`, `hipEvent_t` or `sycl::event`. NULL if nothing is in flight.
    #[must_use]
    pub const fn sync_event(&self) -> *mut c_void {
        self.array.get().sync_event
    }

    /// The device. The host has the number -1 in Arrow and 0 here.
    ///
    /// # Errors
    /// [`ProtocolError::BadDevice`], or a device number outside 32 bits.
    pub fn device(&self) -> Result<Device> {
        let array = self.array.get();
        if array.device_type == DeviceType::Cpu.code() {
            return Ok(Device::CPU);
        }
        Device::from_codes(array.device_type, i32::try_from(array.device_id).unwrap_or(-1))
    }

    /// Reads and checks the column. Missing entries are counted if that is needed, on the host.
    ///
    /// # Errors
    /// A refusal that names the field; see [`validate`]. [`LimitError::TooManyDims`] for more
    /// structures than `N`, whatever the further ones are.
    pub fn column<const N: usize>(&self) -> Result<Column<N>> {
        let device = self.device()?;
        // Each structure has a dimension of the column.
        let mut levels = [RawLevel::new(""); N];
        let count = self.read(device, &mut levels)?;
        validate(levels.get(..count).unwrap_or_default(), device)
    }

    /// Reads the chain of structures, and returns its length. What the checks refuse anyway ends
    /// the chain.
    fn read<'a>(&'a self, device: Device, levels: &mut [RawLevel<'a>]) -> Result<usize> {
        let (mut schema, mut array) = (self.schema.get(), &self.array.get().array);
        let mut used = None;
        let mut width = 0;
        let limit = levels.len().min(MAX_LEVELS);
        for (at, level) in levels.iter_mut().take(limit).enumerate() {
            // SAFETY: both are owned and not released, or children of such.
            *level = unsafe { read_level(schema, array) }?;
            used = match (at, used) {
                (0, _) => Used::of(level, at).ok(),
                (_, Some(outer)) => Used::within(outer, width, level, at).ok(),
                (_, None) => None,
            };
            if let Some(used) = used.filter(|_| device == Device::CPU && level.null_count != 0) {
                // SAFETY: the bitmap of a column in host memory has a bit for each entry.
                level.null_count = unsafe { missing(array, used) };
            }
            let length = at.saturating_add(1);
            match validate::format(level, at) {
                Ok(Format::Lists(entries)) => width = entries,
                _ => return Ok(length),
            }
            if array.n_children != 1 || schema.n_children != 1 {
                return Ok(length);
            }
            let null_error = || Key::Children.error(ProtocolError::NullField);
            // SAFETY: the schema has one child, valid as long as itself.
            schema = unsafe { child(schema.children) }.ok_or_else(null_error)?;
            // SAFETY: so has the array.
            array = unsafe { child(array.children) }.ok_or_else(null_error)?;
        }
        Err(Key::Ndim.error(LimitError::TooManyDims { limit }))
    }
}

impl OwnedStructure<ArrowArray> {
    /// As [`ImportedColumn::may_lack_entries`], for a column of this type.
    #[must_use]
    pub fn may_lack_entries(&self, schema: &OwnedStructure<ArrowSchema>) -> bool {
        may_lack_entries(schema.get(), self.get())
    }
}

fn may_lack_entries(schema: &ArrowSchema, array: &ArrowArray) -> bool {
    // SAFETY: both are owned, so they are as the interface requires them.
    let is_structure = unsafe { read_level(schema, array) }.is_ok_and(|level| level.format == "+s");
    let levels = if is_structure { 1 } else { MAX_LEVELS };
    // SAFETY: as above.
    unsafe { lacks_entries(array, levels) }
}

/// Whether an array, or what is below it, lacks entries, so many levels deep. It may where nobody
/// counted them and there is a bitmap.
///
/// # Safety
/// The array is as the interface requires it.
unsafe fn lacks_entries(array: &ArrowArray, levels: usize) -> bool {
    let has_bitmap = || {
        let is_there = array.n_buffers > 0 && !array.buffers.is_null() && array.buffers.is_aligned();
        // SAFETY: there is a first buffer.
        is_there && !unsafe { *array.buffers }.is_null()
    };
    if array.null_count > 0 || array.null_count < 0 && has_bitmap() {
        return true;
    }
    let Some(rest) = levels.checked_sub(1).filter(|rest| *rest > 0) else { return false };
    let lacks = |below: *mut ArrowArray| {
        if below.is_null() || !below.is_aligned() {
            return false;
        }
        // SAFETY: children and dictionaries of a valid structure are valid.
        let below = unsafe { &*below };
        // SAFETY: as above.
        !below.is_released() && unsafe { lacks_entries(below, rest) }
    };
    if lacks(array.dictionary) {
        return true;
    }
    if array.children.is_null() || !array.children.is_aligned() {
        return false;
    }
    // More are no column's.
    let Ok(count @ 0..=0xFFFF) = usize::try_from(array.n_children) else { return true };
    // SAFETY: there are so many pointers, and they stay as long as the array.
    unsafe { core::slice::from_raw_parts(array.children, count) }.iter().any(|child| lacks(*child))
}

/// The only child.
///
/// # Safety
/// NULL, or a pointer that is NULL or valid for `'a`.
unsafe fn child<'a, T>(children: *mut *mut T) -> Option<&'a T> {
    if !children.is_aligned() {
        return None;
    }
    // SAFETY: the caller's promise.
    let first = *unsafe { children.as_ref() }?;
    if !first.is_aligned() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { first.as_ref() }
}

/// The fields of one pair of structures.
///
/// # Safety
/// Both are as the interface requires them.
unsafe fn read_level<'a>(schema: &'a ArrowSchema, array: &ArrowArray) -> Result<RawLevel<'a>> {
    if schema.is_released() || array.is_released() {
        return Err(Key::Release.error(ProtocolError::Released));
    }
    if schema.format.is_null() {
        return Err(Key::Format.error(ProtocolError::NullField));
    }
    // SAFETY: the interface requires a text that ends with NUL.
    let format = unsafe { CStr::from_ptr(schema.format) };
    let format_error = || -> Error { Key::Format.error(TypeError::UnknownFormat) };
    let format = format.to_str().map_err(|_| format_error())?;
    let has_buffers = array.n_buffers > 0;
    if has_buffers && (array.buffers.is_null() || !array.buffers.is_aligned()) {
        return Err(Key::Buffers.error(ProtocolError::NullField));
    }
    let buffer = |index: i64, place: *mut *const c_void| match array.n_buffers > index {
        // SAFETY: there are more buffers than `index`, and `place` is that one's.
        true => u64::try_from(unsafe { *place }.addr()).unwrap_or(u64::MAX),
        false => 0,
    };
    Ok(RawLevel {
        length: array.length,
        null_count: array.null_count,
        offset: array.offset,
        buffers: array.n_buffers,
        // Where the two differ, one is more than the format has, or a child is missing.
        children: array.n_children.max(schema.n_children),
        has_validity: buffer(0, array.buffers) != 0,
        data: buffer(1, array.buffers.wrapping_add(1)),
        has_dictionary: !schema.dictionary.is_null() || !array.dictionary.is_null(),
        ..RawLevel::new(format)
    })
}

/// Number of missing entries among those that are used; what the producer says if it has no bitmap.
///
/// # Safety
/// The first buffer of `array`, if there is one, is NULL or a bitmap in host memory with a bit for
/// each entry.
unsafe fn missing(array: &ArrowArray, used: Used) -> i64 {
    if array.n_buffers < 1 {
        return array.null_count;
    }
    // SAFETY: there is a first buffer.
    let bitmap = unsafe { *array.buffers }.cast::<u8>();
    let Some(end) = used.start.checked_add(used.count).and_then(|end| usize::try_from(end).ok()) else {
        return -1;
    };
    if used.count == 0 {
        return 0;
    }
    if bitmap.is_null() {
        return array.null_count;
    }
    // SAFETY: the caller's promise: bits up to the last used entry.
    let bytes = unsafe { core::slice::from_raw_parts(bitmap, end.div_ceil(8)) };
    let is_missing = |entry: &usize| {
        let byte = bytes.get(entry / 8).copied().unwrap_or(0xff);
        byte.wrapping_shr(u32::try_from(entry % 8).unwrap_or(0)) & 1 == 0
    };
    let start = usize::try_from(used.start).unwrap_or(end);
    i64::try_from((start..end).filter(is_missing).count()).unwrap_or(i64::MAX)
}
