//! Modules and kernels.

use alloc::ffi::CString;
use alloc::sync::Arc;
use core::ffi::{CStr, c_char, c_void};

use level_zero_sys::*;

use super::{api, at, count, put, slice, tagged};
use crate::kernel::{Argument, Kernel, MAX_GROUP, Module};
use crate::spirv;
use crate::state::{enter, find, handle, number, take};

api! {
    zeModuleCreate(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_module_desc_t, phModule: *mut ze_module_handle_t, phBuildLog: *mut ze_module_build_log_handle_t) {
        state.context(hContext)?;
        state.device(hDevice)?;
        let description = at(desc.cast_mut())?;
        tagged(description.stype, ze_module_desc_t::STYPE)?;
        let code = slice(description.pInputModule.cast_mut(), description.inputSize as u32)?;
        let built = match description.format {
            ZE_MODULE_FORMAT_IL_SPIRV => spirv::Module::parse(code),
            format => Err(format!("format {} is not taken", format.0)),
        };
        let said = built.as_ref().err().map_or(String::new(), |reason| format!("error: {reason}"));
        if !phBuildLog.is_null() {
            let number = state.number();
            state.logs.insert(number, CString::new(said).unwrap_or_default());
            put(phBuildLog, ze_module_build_log_handle_t(handle(number)))?;
        }
        let code = Arc::new(built.map_err(|_| ZE_RESULT_ERROR_MODULE_BUILD_FAILURE)?);
        let (number, context) = (state.number(), state.context(hContext)?);
        state.modules.insert(number, Module { code, context });
        put(phModule, ze_module_handle_t(handle(number)))?;
    }
    zeModuleDestroy(state, hModule: ze_module_handle_t) {
        take(&mut state.modules, hModule.0)?;
    }
    zeModuleGetKernelNames(state, hModule: ze_module_handle_t, pCount: *mut u32, pNames: *mut *const c_char) {
        let known = find(&mut state.modules, hModule.0)?.code.entries.len() as u32;
        let room = count(pCount, pNames.is_null(), known)?;
        let module = find(&mut state.modules, hModule.0)?;
        for (index, entry) in module.code.entries.iter().enumerate().take(room as usize) {
            put(pNames.wrapping_add(index), entry.name.as_ptr())?;
        }
    }
    zeModuleGetGlobalPointer(state, hModule: ze_module_handle_t, pGlobalName: *const c_char, pSize: *mut usize, pptr: *mut *mut c_void) {
        find(&mut state.modules, hModule.0)?;
        let _ = (pGlobalName, pSize, pptr);
        return Err(ZE_RESULT_ERROR_INVALID_GLOBAL_NAME);
    }
    zeModuleBuildLogGetString(state, hModuleBuildLog: ze_module_build_log_handle_t, pSize: *mut usize, pBuildLog: *mut c_char) {
        let text = find(&mut state.logs, hModuleBuildLog.0)?.as_bytes_with_nul();
        let size = at(pSize)?;
        if !pBuildLog.is_null() {
            for (index, byte) in text.iter().enumerate().take(*size) {
                put(pBuildLog.wrapping_add(index), *byte as c_char)?;
            }
        }
        *size = text.len();
    }
    zeModuleBuildLogDestroy(state, hModuleBuildLog: ze_module_build_log_handle_t) {
        take(&mut state.logs, hModuleBuildLog.0)?;
    }
    zeKernelCreate(state, hModule: ze_module_handle_t, desc: *const ze_kernel_desc_t, phKernel: *mut ze_kernel_handle_t) {
        let description = at(desc.cast_mut())?;
        tagged(description.stype, ze_kernel_desc_t::STYPE)?;
        let module = find(&mut state.modules, hModule.0)?.clone();
        at(description.pKernelName.cast_mut())?;
        let kernel = Kernel::new(&module, CStr::from_ptr(description.pKernelName));
        let kernel = kernel.ok_or(ZE_RESULT_ERROR_INVALID_KERNEL_NAME)?;
        let number = state.number();
        state.kernels.insert(number, kernel);
        put(phKernel, ze_kernel_handle_t(handle(number)))?;
    }
    zeKernelDestroy(state, hKernel: ze_kernel_handle_t) {
        let number = number(hKernel.0)?;
        let runs = state.queues.values().flatten().any(|command| command.runs(number));
        state.unless(runs)?;
        take(&mut state.kernels, hKernel.0)?;
    }
    zeKernelSetGroupSize(state, hKernel: ze_kernel_handle_t, groupSizeX: u32, groupSizeY: u32, groupSizeZ: u32) {
        let sizes = [groupSizeX, groupSizeY, groupSizeZ];
        let items = sizes.iter().map(|size| u64::from(*size)).product::<u64>();
        if items == 0 || items > u64::from(MAX_GROUP) {
            return Err(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION);
        }
        find(&mut state.kernels, hKernel.0)?.group = sizes;
    }
    zeKernelSuggestGroupSize(state, hKernel: ze_kernel_handle_t, globalSizeX: u32, globalSizeY: u32, globalSizeZ: u32, groupSizeX: *mut u32, groupSizeY: *mut u32, groupSizeZ: *mut u32) {
        find(&mut state.kernels, hKernel.0)?;
        let _ = (globalSizeY, globalSizeZ);
        let size = (1..=64).rev().find(|size| globalSizeX % *size == 0).unwrap_or(1);
        put(groupSizeX, size)?;
        put(groupSizeY, 1)?;
        put(groupSizeZ, 1)?;
    }
    zeKernelSetArgumentValue(state, hKernel: ze_kernel_handle_t, argIndex: u32, argSize: usize, pArgValue: *const c_void) {
        let argument = if pArgValue.is_null() {
            Argument::Local(argSize)
        } else {
            Argument::Value(slice(pArgValue.cast::<u8>().cast_mut(), argSize as u32)?.to_vec())
        };
        find(&mut state.kernels, hKernel.0)?.set(argIndex as usize, argument)?;
    }
    zeKernelSetIndirectAccess(state, hKernel: ze_kernel_handle_t, flags: ze_kernel_indirect_access_flags_t) {
        find(&mut state.kernels, hKernel.0)?.indirect = flags;
    }
    zeKernelGetProperties(state, hKernel: ze_kernel_handle_t, pKernelProperties: *mut ze_kernel_properties_t) {
        let kernel = find(&mut state.kernels, hKernel.0)?;
        kernel.properties(at(pKernelProperties)?);
    }
}
