//! Macros for the shapes of the C header: enumerations, bit sets, handles and tagged structures.

/// A C enumeration as an open set: it keeps the values that a later driver adds, without undefined
/// behaviour.
macro_rules! ze_enum {
    ($(#[$meta:meta])* $name:ident { $($constant:ident = $value:expr),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        $(pub const $constant: $name = $name($value);)*

        impl $name {
            /// Every constant of this crate.
            pub const CONSTANTS: &'static [(&'static str, u32)] = &[$((stringify!($constant), $value)),*];
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match Self::CONSTANTS.iter().find(|(_, value)| *value == self.0) {
                    Some((name, _)) => formatter.write_str(name),
                    None => write!(formatter, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
}

/// A C bit set. It keeps the bits that a later driver adds.
macro_rules! ze_flags {
    ($(#[$meta:meta])* $name:ident { $($constant:ident = $value:expr),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        $(pub const $constant: $name = $name($value);)*

        impl $name {
            /// Every bit of this crate.
            pub const CONSTANTS: &'static [(&'static str, u32)] = &[$((stringify!($constant), $value)),*];

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(formatter, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

/// An opaque pointer with a type of its own.
macro_rules! handle {
    ($name:ident, $meaning:literal) => {
        #[doc = $meaning]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub *mut core::ffi::c_void);

        // SAFETY: the handle is only a number here. The specification says which functions several
        // threads may call at once, and calling them is unsafe.
        unsafe impl Send for $name {}
        // SAFETY: as for Send.
        unsafe impl Sync for $name {}

        impl $name {
            /// No object.
            pub const NULL: Self = Self(core::ptr::null_mut());

            /// Whether the handle names no object.
            #[must_use]
            pub const fn is_null(self) -> bool {
                self.0.is_null()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NULL
            }
        }
    };
}

/// `Default` for a tagged structure: its tag, no chain, zeros elsewhere.
macro_rules! tagged_default {
    ($name:ident, $tag:ident) => {
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: all fields are integers, pointers, or arrays and transparent wrappers of
                // those; zero is a valid value of each.
                let zero: Self = unsafe { core::mem::zeroed() };
                Self { stype: $tag, ..zero }
            }
        }

        impl $name {
            /// The tag of this structure.
            pub const STYPE: ze_structure_type_t = $tag;
        }
    };
}

pub(crate) use {handle, tagged_default, ze_enum, ze_flags};
