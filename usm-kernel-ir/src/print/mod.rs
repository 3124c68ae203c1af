//! What a kernel prints: items store values in lines of hidden arrays, which a launch reads at its
//! end.
//!
//! No target has a form of its own for it. An atomic operation gives an item the number of a line,
//! and the item stores its values in columns: integers, and floats of each type. The arrays are the
//! last parameters of the kernel, and their names say that each line has one writer.

mod format;
mod sound;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::kernel::{Array, ArrayId, Kernel, Parameter};
use crate::scalar::Scalar;

pub use format::Format;
pub use sound::has_sound_lines;

/// The most lines of a launch that are kept.
pub const LINES: u64 = 1 << 14;
/// The columns of integers that each line has: the number of its print, and the item.
pub const HEADS: u32 = 2;
/// The number of lines from which on a kernel stops to count them.
pub const COUNTED: u32 = 1 << 31;
/// Bytes of text that are shown at once, and one line more.
const PIECE: usize = 1 << 20;
/// The start of the names of such arrays.
const LOG: &str = "print ";

/// What one `print!` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// Texts and values, in their order.
    pub parts: Vec<Part>,
}

/// A part of what a `print!` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A text.
    Text(String),
    /// The value in a column.
    Value {
        /// Its type.
        ty: Scalar,
        /// The number of its column among those of [`column_type`].
        column: u32,
        /// How it is written.
        format: Format,
    },
}

/// The type of the column for values of a type.
#[must_use]
pub const fn column_type(ty: Scalar) -> Scalar {
    match ty {
        Scalar::F32 | Scalar::F64 => ty,
        _ => Scalar::I64,
    }
}

/// The name of the array with columns of a type, or with the number of lines: `u32`.
#[must_use]
pub fn array_name(ty: Scalar) -> String {
    format!("{LOG}{ty}")
}

impl Array {
    /// Whether items store what they print in it, so that no two of them store in one element.
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.name.starts_with(LOG)
    }
}

impl Kernel {
    /// The arrays of what it prints, in the order of the parameters, and their numbers of elements.
    /// Those of Python's kernels have their lengths from Python.
    #[must_use]
    pub fn logs(&self) -> Vec<(ArrayId, u64)> {
        let ids = self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Array(id) if self.array(*id).is_log() => Some(*id),
            _ => None,
        });
        ids.map(|id| (id, self.log_length(self.array(id).element))).collect()
    }

    fn log_length(&self, ty: Scalar) -> u64 {
        if ty == Scalar::U32 {
            return 1;
        }
        let mut columns = if ty == Scalar::I64 { HEADS } else { 0 };
        for part in self.prints.iter().flat_map(|print| &print.parts) {
            if let Part::Value { ty: of, column, .. } = part
                && column_type(*of) == ty
            {
                columns = columns.max(column.saturating_add(1));
            }
        }
        u64::from(columns).saturating_mul(LINES)
    }

    /// Shows what the items printed, in pieces of whole lines, those of an item together and in
    /// their order. `contents` are the bytes of [`logs`](Self::logs).
    pub fn show_lines(&self, contents: &[Vec<u8>], show: &mut dyn FnMut(&str)) {
        let logs = self.logs();
        let cell = |ty: Scalar, at: u64| {
            let array = logs.iter().position(|(id, _)| self.array(*id).element == ty);
            let size = ty.bytes() as usize;
            let bytes = array.and_then(|array| contents.get(array)?.get(at as usize * size..)?.get(..size));
            let mut word = [0; 8];
            let from = if cfg!(target_endian = "big") { 8 - size } else { 0 };
            word[from..from + size].copy_from_slice(bytes.unwrap_or(&[0; 8][..size]));
            u64::from_ne_bytes(word)
        };
        let total = cell(Scalar::U32, 0);
        let mut lines: Vec<(u64, u64)> =
            (0..total.min(LINES)).map(|line| (cell(Scalar::I64, LINES + line), line)).collect();
        lines.sort_unstable();
        let mut text = String::new();
        for (_, line) in lines {
            let print = self.prints.get(cell(Scalar::I64, line) as usize);
            for part in print.iter().flat_map(|print| &print.parts) {
                match part {
                    Part::Text(part) => text += part,
                    Part::Value { ty, column, format } => {
                        text += &format.write(*ty, cell(column_type(*ty), u64::from(*column) * LINES + line));
                    }
                }
            }
            if text.len() >= PIECE {
                show(&text);
                text.clear();
            }
        }
        if total > LINES {
            let (name, excess) = (&self.name, total - LINES);
            let least = if total >= u64::from(COUNTED) { "at least " } else { "" };
            text += &format!("kernel {name}: {least}{excess} more lines are lost: a launch keeps {LINES}\n");
        }
        if !text.is_empty() {
            show(&text);
        }
    }
}
