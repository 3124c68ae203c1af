//! Sizes of rows, slots and the block that holds them. Refuses sizes that no memory has.

/// Fewest slots.
pub(super) const MIN_SLOTS: usize = 8;
/// Number of rows that `slots` slots serve.
pub(super) const fn rows_for(slots: usize) -> Option<usize> {
    match slots.checked_mul(2) {
        Some(double) => Some(double / 3),
        None => None,
    }
}

/// Number of slots for `rows` rows; `None` if no memory has that many.
pub(super) fn slots_for(rows: usize) -> Option<usize> {
    if rows <= MIN_SLOTS * 2 / 3 {
        return Some(MIN_SLOTS);
    }
    rows.checked_add(rows / 2)?.checked_add(1)?.checked_next_power_of_two()
}

/// Offsets of the parts of a row, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) key: usize,
    pub(super) value: usize,
    pub(super) value_at: usize,
    pub(super) row: usize,
}

/// The key follows the hash.
pub(super) const KEY_AT: usize = size_of::<usize>();

impl Shape {
    /// The shape for keys and values of these sizes in bytes; both start on a word.
    pub(super) fn new(key: isize, value: isize) -> Option<Self> {
        const WORD: usize = size_of::<usize>();
        let (key, value) = (usize::try_from(key).ok()?, usize::try_from(value).ok()?);
        let value_at = KEY_AT.checked_add(key.checked_next_multiple_of(WORD)?)?;
        let row = value_at.checked_add(value.checked_next_multiple_of(WORD)?)?;
        Some(Self { key, value, value_at, row })
    }
}

/// Size of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    /// The narrowest width that can name every row of `slots` slots.
    const fn of(slots: usize) -> Self {
        if slots <= 0x80 {
            Self::One
        } else if slots <= 0x8000 {
            Self::Two
        } else if slots as u64 <= 0x8000_0000 {
            Self::Four
        } else {
            Self::Eight
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The integer type that stores a slot.
pub(super) trait Slot: Copy {
    fn get(self) -> isize;
    /// The row number fits: see [`Width::of`].
    fn new(row: isize) -> Self;
}

macro_rules! slot {
    ($($type:ty)*) => {$(
        impl Slot for $type {
            #[inline(always)]
            fn get(self) -> isize {
                self as isize
            }
            #[inline(always)]
            fn new(row: isize) -> Self {
                row as Self
            }
        }
    )*};
}
slot!(i8 i16 i32 i64);

/// Calls a generic function with the type of a table's slots.
macro_rules! by_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            $crate::container::layout::Width::One => $function::<i8>($($argument),*),
            $crate::container::layout::Width::Two => $function::<i16>($($argument),*),
            $crate::container::layout::Width::Four => $function::<i32>($($argument),*),
            $crate::container::layout::Width::Eight => $function::<i64>($($argument),*),
        }
    };
}
pub(super) use by_width;

/// The parts of a table's block.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) slots: usize,
    pub(super) rows: usize,
    /// Bytes of the rows; the slots begin behind them.
    pub(super) slots_at: usize,
    pub(super) bytes: usize,
    pub(super) width: Width,
}

impl Plan {
    pub(super) fn new(slots: usize, shape: Shape) -> Option<Self> {
        let rows = rows_for(slots)?;
        let width = Width::of(slots);
        let slots_at = rows.checked_mul(shape.row)?;
        let bytes = slots_at.checked_add(slots.checked_mul(width.bytes())?)?;
        Some(Self { slots, rows, slots_at, bytes, width })
    }
}
