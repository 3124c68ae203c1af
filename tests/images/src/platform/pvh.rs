//! A PC without firmware: the PVH entry, the first serial port, and qemu's exit device.

use core::arch::asm;
use core::fmt;

/// Data register of the first serial port.
const SERIAL_DATA: u16 = 0x3f8;
/// Its line status register; bit 5 says that a byte can be sent.
const SERIAL_STATUS: u16 = 0x3fd;
const CAN_SEND: u8 = 1 << 5;
/// qemu's `isa-debug-exit`: writing n ends qemu with status 2 n + 1.
const EXIT_PORT: u16 = 0xf4;
/// Tells our success (status 33) from an error of qemu itself (status 1).
const SUCCESS: u8 = 16;
const FAILURE: u8 = 17;

/// The serial port.
pub(crate) struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: reading the status register changes nothing but the status itself.
            while unsafe { read_port(SERIAL_STATUS) } & CAN_SEND == 0 {}
            // SAFETY: the data register takes any byte.
            unsafe { write_port(SERIAL_DATA, byte) };
        }
        Ok(())
    }
}

/// Ends the virtual machine: status 33, or 35 for a failure.
pub(crate) fn exit(success: bool) -> ! {
    // SAFETY: the exit device takes any byte; without one the write goes nowhere.
    unsafe { write_port(EXIT_PORT, if success { SUCCESS } else { FAILURE }) };
    loop {
        core::hint::spin_loop();
    }
}

/// # Safety
///
/// Writing `value` to `port` must not change memory that Rust knows of.
unsafe fn write_port(port: u16, value: u8) {
    // SAFETY: ports are reachable in ring 0, where the image runs; the caller vouches for the
    // device.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, nomem, preserves_flags)) };
}

/// # Safety
///
/// Reading `port` must not change memory that Rust knows of.
unsafe fn read_port(port: u16) -> u8 {
    let value;
    // SAFETY: ports are reachable in ring 0, where the image runs; the caller vouches for the
    // device.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, nomem, preserves_flags)) };
    value
}
