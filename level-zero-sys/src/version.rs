//! Versions of the interface.

use crate::macros::ze_enum;

ze_enum! {
    /// Version of the interface: major number in the upper half, minor in the lower.
    ze_api_version_t {
        ZE_API_VERSION_1_0 = 0x1_0000,
        ZE_API_VERSION_1_1 = 0x1_0001,
        ZE_API_VERSION_1_2 = 0x1_0002,
        ZE_API_VERSION_1_3 = 0x1_0003,
        ZE_API_VERSION_1_4 = 0x1_0004,
    }
}

impl ze_api_version_t {
    /// The major number. A driver with another one has another binary interface.
    #[must_use]
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The minor number. A later one only adds.
    #[must_use]
    pub const fn minor(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// The oldest version that the required functions and structures of this crate need.
    pub const MINIMUM: Self = ZE_API_VERSION_1_3;
}
