//! Modules, functions and launches.

use alloc::sync::Arc;
use core::ffi::{CStr, c_char, c_void};
use core::{ptr, slice};

use crate::code::{
    Answer, INVALID_CONTEXT, INVALID_HANDLE, INVALID_IMAGE, INVALID_PTX, INVALID_VALUE, NOT_FOUND,
};
use crate::command::Action;
use crate::export::{functions, put};
use crate::kernel::{Function, Launch, MAX_GROUP, Module};
use crate::ptx;
use crate::state::{State, find};

/// `CU_JIT_ERROR_LOG_BUFFER` and `_SIZE_BYTES`.
const LOG: i32 = 5;
const LOG_BYTES: i32 = 6;

functions! {
    cuModuleLoadData(module: *mut usize, image: *const c_char) |state| {
        put(module, state.load(image, |_| ())?)?;
    }
    cuModuleLoadDataEx(
        module: *mut usize, image: *const c_char, count: u32, options: *const i32, values: *const *mut c_void
    ) |state| {
        let value = |wanted: i32| {
            let options = if count == 0 { &[][..] } else { slice::from_raw_parts(options, count as usize) };
            let place = options.iter().position(|option| *option == wanted)?;
            Some(values.add(place).read())
        };
        let loaded = state.load(image, |log| {
            let (Some(room), Some(bytes)) = (value(LOG), value(LOG_BYTES)) else { return };
            let Some(most) = (bytes as usize).checked_sub(1) else { return };
            let text = &log.as_bytes()[..log.len().min(most)];
            ptr::copy_nonoverlapping(text.as_ptr(), room.cast(), text.len());
            room.cast::<u8>().add(text.len()).write(0);
        });
        put(module, loaded?)?;
    }
    cuModuleUnload(module: usize) |state| {
        state.current()?;
        state.modules.remove(&module).ok_or(INVALID_HANDLE)?;
        state.functions.retain(|_, function| function.module != module);
        if state.runs(module) {
            state.misuse(format_args!("a module is unloaded while its functions run"));
        }
    }
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) |state| {
        state.current()?;
        if name.is_null() {
            return Err(INVALID_VALUE);
        }
        let name = CStr::from_ptr(name).to_bytes();
        let code = Arc::clone(&find(&mut state.modules, module)?.code);
        let entry = code.entries.iter().position(|entry| entry.name.as_bytes() == name).ok_or(NOT_FOUND)?;
        let number = state.number();
        state.functions.insert(number, Function { module, code, entry });
        put(function, number)?;
    }
    cuFuncGetAttribute(value: *mut i32, attribute: i32, function: usize) |state| {
        let entry = find(&mut state.functions, function)?.entry();
        put(value, match attribute {
            0 => entry.most_threads.unwrap_or(MAX_GROUP) as i32,
            1 => entry.shared_bytes as i32,
            3 => entry.local_bytes as i32,
            2 | 4..=15 => 0,
            _ => return Err(INVALID_VALUE),
        })?;
    }
    cuFuncGetParamInfo(function: usize, index: usize, offset: *mut usize, bytes: *mut usize) |state| {
        let entry = find(&mut state.functions, function)?.entry();
        let parameter = entry.parameters.get(index).ok_or(INVALID_VALUE)?;
        put(offset, parameter.offset)?;
        put(bytes, parameter.bytes)?;
    }
    cuLaunchKernel(
        function: usize,
        groups_x: u32, groups_y: u32, groups_z: u32,
        group_x: u32, group_y: u32, group_z: u32,
        shared_bytes: u32, stream: usize,
        values: *const *const u8, extra: *const *mut c_void
    ) |state| {
        state.note(format_args!("{stream:#x}"));
        state.current()?;
        let function = find(&mut state.functions, function)?.clone();
        let stream = state.stream(stream)?;
        if find(&mut state.streams, stream)?.context != find(&mut state.modules, function.module)?.context {
            return Err(INVALID_CONTEXT);
        }
        let entry = function.entry();
        if !extra.is_null() || (values.is_null() && !entry.parameters.is_empty()) {
            return Err(INVALID_VALUE);
        }
        let mut parameters = vec![0; entry.parameter_bytes()];
        for (index, parameter) in entry.parameters.iter().enumerate() {
            let value = values.add(index).read();
            ptr::copy_nonoverlapping(value, parameters.as_mut_ptr().add(parameter.offset), parameter.bytes);
        }
        let (group, groups) = ([group_x, group_y, group_z], [groups_x, groups_y, groups_z]);
        let launch = Launch { function, group, groups, shared_bytes: shared_bytes as usize, parameters };
        launch.check()?;
        state.submit(stream, Action::Launch(Arc::new(launch)))?;
    }
}

impl State {
    /// Loads a module from a text and writes the errors in it to `log`.
    ///
    /// # Safety
    /// `image` is null, a text that ends with a zero, or bytes that cannot begin a text.
    unsafe fn load(&mut self, image: *const c_char, log: impl FnOnce(&str)) -> Answer<usize> {
        let context = self.current()?;
        if image.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: `image` has at least one byte.
        let first = unsafe { image.cast::<u8>().read() };
        if !first.is_ascii() || first.is_ascii_control() && !first.is_ascii_whitespace() {
            log("machine code of a GPU, which this is not");
            return Err(INVALID_IMAGE);
        }
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(image) };
        let parsed = text.to_str().map_err(|error| error.to_string()).and_then(ptx::parse);
        let code = Arc::new(parsed.map_err(|reason| {
            log(&format!("error: {reason}"));
            INVALID_PTX
        })?);
        let module = self.number();
        self.modules.insert(module, Module { context, code });
        Ok(module)
    }
}
