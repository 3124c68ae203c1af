//! Readable dumps to the C library's standard output, which has a buffer of its own.

use alloc::ffi::CString;
use alloc::format;
use alloc::string::String;
use core::ffi::{c_char, c_int};
use core::fmt::Write;

use super::HashContainer;

unsafe extern "C" {
    fn puts(text: *const c_char) -> c_int;
}

pub(super) fn dict(dict: &HashContainer) {
    print("Dict dump", dict, true);
}

pub(super) fn set(set: &HashContainer) {
    print("set dump", set, false);
}

/// Prints a line for the sizes, one for each element and one for their number.
fn print(title: &str, table: &HashContainer, values: bool) {
    let (shape, elements) = table.elements();
    line(title);
    line(&format!("   key_size = {}", shape.key));
    if values {
        line(&format!("   val_size = {}", shape.value));
    }
    let mut count = 0;
    for (key, hash, value) in elements {
        let mut text = String::from("  key=");
        hex(&mut text, key, shape.key);
        let _ = write!(text, " hash={hash}");
        if values {
            text.push_str(" value=");
            hex(&mut text, value, shape.value);
        }
        line(&text);
        count += 1;
    }
    line(&format!("elements = {count}"));
}

fn hex(text: &mut String, bytes: *const u8, size: usize) {
    for index in 0..size {
        // SAFETY: a live element of that size; volatile, because padding in it may never have been
        // written.
        let byte = unsafe { bytes.wrapping_add(index).read_volatile() };
        let _ = write!(text, "{byte:02x} ");
    }
}

fn line(text: &str) {
    // The text is made above and has no zero byte.
    let Ok(text) = CString::new(text) else { return };
    // SAFETY: text that ends with a zero byte.
    unsafe { puts(text.as_ptr()) };
}
