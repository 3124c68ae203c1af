//! Operators, with the same meaning on every target.

use crate::scalar::Scalar;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$item_doc])* $item),+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$item),+];

            /// Its name in the text form.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$item => $text),+ }
            }

            /// The one of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$item),)+ _ => None }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// An operator with two operands of one type.
    Binary {
        /// Sum; integers wrap.
        Add = "add",
        /// Difference; integers wrap.
        Sub = "sub",
        /// Product; integers wrap.
        Mul = "mul",
        /// Quotient, towards zero. A divisor of zero counts as one, and so does -1 below the least
        /// value.
        Div = "div",
        /// Remainder with the sign of the dividend, also of floats. Divisors count as in
        /// [`Div`](Self::Div).
        Rem = "rem",
        /// Bits in both.
        And = "and",
        /// Bits in either.
        Or = "or",
        /// Bits in one of them.
        Xor = "xor",
        /// Shift to the left by the low bits of the right operand.
        Shl = "shl",
        /// Shift to the right by the low bits of the right operand; signed integers keep their
        /// sign.
        Shr = "shr",
        /// Minimum. Of a NaN and a number it is the number.
        Min = "min",
        /// Maximum. Of a NaN and a number it is the number.
        Max = "max",
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Le = "le",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Ge = "ge",
        /// Logical and; the second is not evaluated if the first is false.
        AndThen = "and-then",
        /// Logical or; the second is not evaluated if the first is true.
        OrElse = "or-else",
    }
}

impl Binary {
    /// The comparison of integers that is true where this one is false.
    pub(crate) const fn negated(self) -> Option<Self> {
        match self {
            Self::Lt => Some(Self::Ge),
            Self::Le => Some(Self::Gt),
            Self::Gt => Some(Self::Le),
            Self::Ge => Some(Self::Lt),
            Self::Ne => Some(Self::Eq),
            _ => None,
        }
    }

    /// The comparison with its operands exchanged.
    pub(crate) const fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            other => other,
        }
    }
}

named! {
    /// An operator with one operand.
    Unary {
        /// The negative; integers wrap.
        Neg = "neg",
        /// All bits inverted; for `bool` the other value.
        Not = "not",
    }
}

impl Binary {
    /// Whether a group can collect values with it: the order of the values affects only the
    /// rounding of floating point numbers.
    #[must_use]
    pub const fn collects(self, ty: Scalar) -> bool {
        match self {
            Self::Add | Self::Mul | Self::Min | Self::Max => self.takes(ty),
            Self::And | Self::Or | Self::Xor => self.takes(ty),
            _ => false,
        }
    }

    /// Whether the result is always a `bool`.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }

    /// Whether operands of this type support the operator.
    #[must_use]
    pub const fn takes(self, ty: Scalar) -> bool {
        match self {
            _ if ty.is_half() => false,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Rem | Self::Min | Self::Max => {
                !matches!(ty, Scalar::Bool)
            }
            Self::Lt | Self::Le | Self::Gt | Self::Ge => !matches!(ty, Scalar::Bool),
            Self::And | Self::Or | Self::Xor => !ty.is_float(),
            Self::Shl | Self::Shr => ty.is_integer(),
            Self::Eq | Self::Ne => true,
            Self::AndThen | Self::OrElse => matches!(ty, Scalar::Bool),
        }
    }
}

impl Unary {
    /// Whether an operand of this type supports the operator.
    #[must_use]
    pub const fn takes(self, ty: Scalar) -> bool {
        match self {
            Self::Neg => ty.is_signed() || ty.is_float(),
            Self::Not => !ty.is_float() && !ty.is_half(),
        }
    }
}
