//! Modules and kernels.

use core::ffi::{c_char, c_void};

use crate::macros::{handle, tagged_default, ze_enum, ze_flags};
use crate::structure::*;

handle!(ze_module_handle_t, "A module: device code of one program.");
handle!(ze_module_build_log_handle_t, "The log of a build.");
handle!(ze_kernel_handle_t, "A kernel with its arguments.");

/// Bytes of a kernel's identifier.
pub const ZE_MAX_KERNEL_UUID_SIZE: usize = 16;
/// Bytes of a module's identifier.
pub const ZE_MAX_MODULE_UUID_SIZE: usize = 16;

ze_enum! {
    /// Format of the device code.
    ze_module_format_t {
        ZE_MODULE_FORMAT_IL_SPIRV = 0,
        ZE_MODULE_FORMAT_NATIVE = 1,
    }
}

ze_flags! {
    /// Traits of a kernel.
    ze_kernel_flags_t {
        ZE_KERNEL_FLAG_FORCE_RESIDENCY = 1 << 0,
        ZE_KERNEL_FLAG_EXPLICIT_RESIDENCY = 1 << 1,
    }
}

ze_flags! {
    /// The kinds of memory that a kernel accesses through pointers in memory.
    ze_kernel_indirect_access_flags_t {
        ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST = 1 << 0,
        ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE = 1 << 1,
        ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED = 1 << 2,
    }
}

/// Specialisation constants of SPIR-V.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_module_constants_t {
    pub numConstants: u32,
    pub pConstantIds: *const u32,
    pub pConstantValues: *mut *const c_void,
}

/// Argument of `zeModuleCreate`; size in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_module_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub format: ze_module_format_t,
    pub inputSize: usize,
    pub pInputModule: *const u8,
    pub pBuildFlags: *const c_char,
    pub pConstants: *const ze_module_constants_t,
}

tagged_default!(ze_module_desc_t, ZE_STRUCTURE_TYPE_MODULE_DESC);

/// Argument of `zeKernelCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_kernel_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_kernel_flags_t,
    pub pKernelName: *const c_char,
}

tagged_default!(ze_kernel_desc_t, ZE_STRUCTURE_TYPE_KERNEL_DESC);

/// A kernel's identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_kernel_uuid_t {
    pub kid: [u8; ZE_MAX_KERNEL_UUID_SIZE],
    pub mid: [u8; ZE_MAX_MODULE_UUID_SIZE],
}

/// Answer of `zeKernelGetProperties`; memory sizes in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_kernel_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub numKernelArgs: u32,
    pub requiredGroupSizeX: u32,
    pub requiredGroupSizeY: u32,
    pub requiredGroupSizeZ: u32,
    pub requiredNumSubGroups: u32,
    pub requiredSubgroupSize: u32,
    pub maxSubgroupSize: u32,
    pub maxNumSubgroups: u32,
    pub localMemSize: u32,
    pub privateMemSize: u32,
    pub spillMemSize: u32,
    pub uuid: ze_kernel_uuid_t,
}

tagged_default!(ze_kernel_properties_t, ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES);

/// Chained to `zeKernelGetProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_kernel_preferred_group_size_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub preferredMultiple: u32,
}

tagged_default!(
    ze_kernel_preferred_group_size_properties_t,
    ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES
);

/// Work-groups along each dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_group_count_t {
    pub groupCountX: u32,
    pub groupCountY: u32,
    pub groupCountZ: u32,
}

/// Work-items of a group along each dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_group_size_t {
    pub groupSizeX: u32,
    pub groupSizeY: u32,
    pub groupSizeZ: u32,
}
