//! Types of values in registers and memory.

/// A type. Untyped bits count as unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Unsigned(u32),
    Signed(u32),
    Float(u32),
    Predicate,
}

impl Type {
    /// The type of a word without its dot.
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "pred" => Self::Predicate,
            "u8" | "b8" => Self::Unsigned(8),
            "u16" | "b16" => Self::Unsigned(16),
            "u32" | "b32" => Self::Unsigned(32),
            "u64" | "b64" => Self::Unsigned(64),
            "s8" => Self::Signed(8),
            "s16" => Self::Signed(16),
            "s32" => Self::Signed(32),
            "s64" => Self::Signed(64),
            "f32" => Self::Float(32),
            "f64" => Self::Float(64),
            _ => return None,
        })
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) | Self::Float(bits) => bits,
            Self::Predicate => 1,
        }
    }

    pub(super) fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::Float(_))
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(self, Self::Signed(_))
    }

    /// The bits of this type, zero-extended.
    pub(super) fn unsigned(self, value: u64) -> u64 {
        let bits = self.bits();
        if bits >= 64 { value } else { value & ((1 << bits) - 1) }
    }

    /// The bits of this type, sign-extended.
    pub(super) fn signed(self, value: u64) -> i64 {
        let above = 64 - self.bits().min(64);
        (value << above) as i64 >> above
    }

    /// A register's value extended as the type requires.
    pub(super) fn carried(self, value: u64) -> u64 {
        if self.is_signed() { self.signed(value) as u64 } else { self.unsigned(value) }
    }
}
