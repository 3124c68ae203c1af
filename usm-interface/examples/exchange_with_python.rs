//! Exchanges a buffer with Python as text: a Python process describes its buffer, and this process
//! proves where the buffer's bytes lie.
//!
//! `cargo run -p usm-interface --example exchange_with_python` needs `python3` and no package. The
//! package `usm` shares arrays inside one process (`examples/python/exchange.py`).

use core::error::Error;
use std::process::Command;

use usm_interface::{Allocation, Field, Policy, Spelling, dict};

/// The dictionary that NumPy would export for `a[::-1, ::2]`, here of a ctypes buffer. Python
/// prints the buffer's address and length too.
const SCRIPT: &str = "
import ctypes
buffer = (ctypes.c_float * 24)(*range(24))
first = ctypes.addressof(buffer) + 3 * 6 * 4
print(ctypes.addressof(buffer), ctypes.sizeof(buffer))
print({'data': (first, False), 'shape': (4, 3), 'strides': (-24, 8), 'typestr': '<f4', 'version': 3})
";

fn main() -> Result<(), Box<dyn Error>> {
    let python = std::env::var_os("USM_PYTHON").unwrap_or_else(|| "python3".into());
    let output = match Command::new(python).args(["-c", SCRIPT]).output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout)?,
        _ => {
            println!("no python3 here");
            return Ok(());
        }
    };
    let mut lines = output.lines();
    let (base, len) = lines.next().and_then(|line| line.split_once(' ')).ok_or("no buffer")?;
    let allocation = Allocation { base: base.parse()?, len: len.parse()? };

    let mut fields = [Field::EMPTY; 1];
    let array =
        dict::parse::<8>(lines.next().ok_or("no dictionary")?, None, &Policy::default(), &mut fields)?;
    array.check_inside(allocation)?;
    println!("strides {:?}, {:?} around data[0]", array.layout().strides(), array.layout().extent());

    // With one element less the proof fails.
    let short = Allocation { len: allocation.len - 8, ..allocation };
    assert!(array.check_inside(short).is_err());

    // Back to Python, which reads the text with `ast.literal_eval`.
    let mut text = String::new();
    array.write(&mut text, Spelling::Python)?;
    println!("{text}");
    Ok(())
}
