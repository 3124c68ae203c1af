//! Drivers and devices.

use core::ffi::{c_char, c_void};

use level_zero_sys::*;

use super::{api, at, count, is_driver, list, put};
use crate::device;
use crate::state::{DRIVER, enter};

api! {
    zeInit(state, flags: ze_init_flags_t) {
        let _ = flags;
    }
    zeDriverGet(state, pCount: *mut u32, phDrivers: *mut ze_driver_handle_t) {
        list(pCount, phDrivers.cast(), &[DRIVER])?;
    }
    zeDriverGetApiVersion(state, hDriver: ze_driver_handle_t, version: *mut ze_api_version_t) {
        is_driver(hDriver)?;
        put(version, ZE_API_VERSION_1_4)?;
    }
    zeDriverGetProperties(state, hDriver: ze_driver_handle_t, pDriverProperties: *mut ze_driver_properties_t) {
        is_driver(hDriver)?;
        let out = at(pDriverProperties)?;
        out.driverVersion = 1;
        out.uuid.id = *b"usm test driver ";
    }
    zeDriverGetIpcProperties(state, hDriver: ze_driver_handle_t, pIpcProperties: *mut ze_driver_ipc_properties_t) {
        is_driver(hDriver)?;
        at(pIpcProperties)?.flags = ZE_IPC_PROPERTY_FLAG_MEMORY;
    }
    zeDriverGetExtensionFunctionAddress(state, hDriver: ze_driver_handle_t, name: *const c_char, ppFunctionAddress: *mut *mut c_void) {
        is_driver(hDriver)?;
        let _ = name;
        put(ppFunctionAddress, core::ptr::null_mut())?;
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    zeDeviceGet(state, hDriver: ze_driver_handle_t, pCount: *mut u32, phDevices: *mut ze_device_handle_t) {
        is_driver(hDriver)?;
        list(pCount, phDevices.cast(), &state.devices)?;
    }
    zeDeviceGetSubDevices(state, hDevice: ze_device_handle_t, pCount: *mut u32, phSubdevices: *mut ze_device_handle_t) {
        state.device(hDevice)?;
        list(pCount, phSubdevices.cast(), &[])?;
    }
    zeDeviceGetProperties(state, hDevice: ze_device_handle_t, pDeviceProperties: *mut ze_device_properties_t) {
        let number = state.device(hDevice)?;
        let index = state.devices.iter().position(|known| *known == number).unwrap_or(0);
        device::properties(index, at(pDeviceProperties)?);
    }
    zeDeviceGetComputeProperties(state, hDevice: ze_device_handle_t, pComputeProperties: *mut ze_device_compute_properties_t) {
        state.device(hDevice)?;
        device::compute(at(pComputeProperties)?);
    }
    zeDeviceGetModuleProperties(state, hDevice: ze_device_handle_t, pModuleProperties: *mut ze_device_module_properties_t) {
        state.device(hDevice)?;
        let out = at(pModuleProperties)?;
        (out.spirvVersionSupported, out.maxArgumentsSize) = (0x0001_0002, 2048);
        out.flags = ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
    }
    zeDeviceGetMemoryProperties(state, hDevice: ze_device_handle_t, pCount: *mut u32, pMemProperties: *mut ze_device_memory_properties_t) {
        state.device(hDevice)?;
        if count(pCount, pMemProperties.is_null(), 1)? > 0 {
            device::memory(at(pMemProperties)?);
        }
    }
    zeDeviceGetMemoryAccessProperties(state, hDevice: ze_device_handle_t, pMemAccessProperties: *mut ze_device_memory_access_properties_t) {
        state.device(hDevice)?;
        device::access(at(pMemAccessProperties)?);
    }
    zeDeviceGetCommandQueueGroupProperties(state, hDevice: ze_device_handle_t, pCount: *mut u32, pCommandQueueGroupProperties: *mut ze_command_queue_group_properties_t) {
        state.device(hDevice)?;
        if count(pCount, pCommandQueueGroupProperties.is_null(), 1)? > 0 {
            device::queue_group(at(pCommandQueueGroupProperties)?);
        }
    }
    zeDeviceCanAccessPeer(state, hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t, value: *mut ze_bool_t) {
        state.device(hDevice)?;
        state.device(hPeerDevice)?;
        put(value, 1)?;
    }
    zeDeviceGetP2PProperties(state, hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t, pP2PProperties: *mut ze_device_p2p_properties_t) {
        state.device(hDevice)?;
        state.device(hPeerDevice)?;
        at(pP2PProperties)?.flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS | ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS;
    }
}
