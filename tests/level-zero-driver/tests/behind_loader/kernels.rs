//! SPIR-V kernels, executed by the driver.

use core::ffi::{CStr, c_char};

use level_zero_sys::*;

use super::{NO_EVENT, NO_WAITS, SECOND, Session, call};

/// A kernel object of the module for tests.
pub(crate) fn kernel(session: &Session, name: &CStr) -> Result<ze_kernel_handle_t, Error> {
    kernel_of(session, include_bytes!("../device/kernels.spv"), name)
}

fn kernel_of(session: &Session, code: &[u8], name: &CStr) -> Result<ze_kernel_handle_t, Error> {
    let module_description = ze_module_desc_t {
        format: ZE_MODULE_FORMAT_IL_SPIRV,
        inputSize: code.len(),
        pInputModule: code.as_ptr(),
        ..Default::default()
    };
    let mut module = ze_module_handle_t::NULL;
    let (context, device, no_log) = (session.context, session.devices[0], core::ptr::null_mut());
    call!(session, zeModuleCreate(context, device, &raw const module_description, &raw mut module, no_log))?;
    let description = ze_kernel_desc_t { pKernelName: name.as_ptr(), ..Default::default() };
    let mut kernel = ze_kernel_handle_t::NULL;
    call!(session, zeKernelCreate(module, &raw const description, &raw mut kernel))?;
    Ok(kernel)
}

pub(crate) fn launch(
    session: &Session,
    kernel: ze_kernel_handle_t,
    groups: u32,
    event: ze_event_handle_t,
) -> Result<(), Error> {
    let groups = ze_group_count_t { groupCountX: groups, groupCountY: 1, groupCountZ: 1 };
    let commands = session.commands;
    call!(session, zeCommandListAppendLaunchKernel(commands, kernel, &raw const groups, event, 0, NO_WAITS))?;
    Ok(())
}

pub(crate) fn kernels_run(session: &Session) {
    let reverse = kernel(session, c"reverse").expect("a kernel");
    let pointer = session.device_memory(80).expect("memory").cast::<f32>();
    // SAFETY: the driver's device memory is host memory of that many bytes, and no work runs.
    let values = unsafe { core::slice::from_raw_parts_mut(pointer, 20) };
    values.iter_mut().zip(0_u8..).for_each(|(value, index)| *value = f32::from(index));
    call!(session, zeKernelSetGroupSize(reverse, 10, 1, 1)).expect("a size");
    call!(session, zeKernelSetArgumentValue(reverse, 0, 8, (&raw const pointer).cast()))
        .expect("an argument");
    let incomplete = Session::refusal("zeCommandListAppendLaunchKernel", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_eq!(launch(session, reverse, 2, NO_EVENT), incomplete);
    let wrong = Session::refusal("zeKernelSetArgumentValue", ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    assert_eq!(call!(session, zeKernelSetArgumentValue(reverse, 0, 4, (&raw const pointer).cast())), wrong);
    call!(session, zeKernelSetArgumentValue(reverse, 1, 40, core::ptr::null())).expect("local memory");
    let event = session.event(0);
    launch(session, reverse, 2, event).expect("launched");
    assert_eq!(call!(session, zeEventHostSynchronize(event, SECOND)), Ok(ZE_RESULT_SUCCESS));
    assert_eq!(values[..10], [9.0; 10]);
    assert_eq!(values[10..], [29.0; 10]);

    let unknown = Session::refusal("zeKernelCreate", ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
    assert_eq!(kernel(session, c"nothing"), unknown);
    let description = ze_module_desc_t { inputSize: 4, pInputModule: b"junk".as_ptr(), ..Default::default() };
    let (mut module, mut log, mut bytes) = (ze_module_handle_t::NULL, ze_module_build_log_handle_t::NULL, 0);
    let (context, device, out) = (session.context, session.devices[0], &raw mut module);
    let built = call!(session, zeModuleCreate(context, device, &raw const description, out, &raw mut log));
    assert_eq!(built, Session::refusal("zeModuleCreate", ZE_RESULT_ERROR_MODULE_BUILD_FAILURE));
    call!(session, zeModuleBuildLogGetString(log, &raw mut bytes, core::ptr::null_mut())).expect("a length");
    let mut text = vec![0 as c_char; bytes];
    call!(session, zeModuleBuildLogGetString(log, &raw mut bytes, text.as_mut_ptr())).expect("a text");
    assert_eq!(text.last(), Some(&0));
    assert!(text.len() > 10);
}

/// A kernel may follow a pointer in memory with the flag of that memory's kind. Without the flag it
/// is a fault, as on a device.
pub(crate) fn memory_behind_pointers_needs_its_flag(session: &Session) {
    let code = include_bytes!("../device/wrong.spv");
    let indirect = kernel_of(session, code, c"indirect").expect("a kernel");
    let (node, target) =
        (session.device_memory(8).expect("memory"), session.device_memory(4).expect("memory"));
    // SAFETY: the driver's device memory is host memory of eight bytes, and no work runs.
    unsafe { node.cast::<u64>().write(target as u64) };
    call!(session, zeKernelSetArgumentValue(indirect, 0, 8, (&raw const node).cast())).expect("an argument");
    let event = session.event(0);
    call!(session, zeKernelSetIndirectAccess(indirect, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE))
        .expect("a flag");
    launch(session, indirect, 1, event).expect("launched");
    assert_eq!(call!(session, zeEventHostSynchronize(event, SECOND)), Ok(ZE_RESULT_SUCCESS));
    // SAFETY: as above, of four bytes.
    assert_eq!(unsafe { target.cast::<u32>().read() }, 7);
    call!(session, zeKernelSetIndirectAccess(indirect, ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED))
        .expect("a flag");
    let event = session.event(1);
    launch(session, indirect, 1, event).expect("launched");
    let lost = Session::refusal("zeEventHostSynchronize", ZE_RESULT_ERROR_DEVICE_LOST);
    assert_eq!(call!(session, zeEventHostSynchronize(event, SECOND)), lost);
}
