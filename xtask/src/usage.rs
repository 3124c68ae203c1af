//! The processor time of a program, with that of the programs that it waited for.

use core::cell::Cell;
use core::time::Duration;
use std::io;
use std::process::{Child, ExitStatus};

thread_local! {
    /// The processor time of the programs that this thread waited for.
    static TOTAL: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The processor time of all programs that this thread has waited for by [`wait`], or that were
/// added by [`add`]. Zero on systems where it cannot be had.
pub(crate) fn total() -> Duration {
    TOTAL.get()
}

/// Counts the time of programs that another thread waited for.
pub(crate) fn add(time: Duration) {
    TOTAL.set(TOTAL.get().saturating_add(time));
}

/// Waits for the program's end, and counts its processor time for this thread.
pub(crate) fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let (status, time) = system::wait(child)?;
    add(time);
    Ok(status)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod system {
    use core::ffi::{c_int, c_long};
    use core::time::Duration;
    use std::io;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, ExitStatus};

    /// `struct timeval` of 64-bit Linux.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Time {
        seconds: c_long,
        microseconds: c_long,
    }

    impl Time {
        fn duration(self) -> Duration {
            let micros = self.seconds.saturating_mul(1_000_000).saturating_add(self.microseconds);
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        }
    }

    /// `struct rusage` of 64-bit Linux: two times and 14 counters.
    #[repr(C)]
    #[derive(Default)]
    struct Usage {
        user: Time,
        system: Time,
        counters: [c_long; 14],
    }

    unsafe extern "C" {
        fn wait4(process: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
    }

    pub(super) fn wait(child: &mut Child) -> io::Result<(ExitStatus, Duration)> {
        // The child may wait for input that no one writes.
        drop(child.stdin.take());
        let process = c_int::try_from(child.id()).map_err(io::Error::other)?;
        let (mut status, mut usage) = (0, Usage::default());
        loop {
            // SAFETY: the two pointers are to values of the C library's own layout, which live
            // through the call. The process is a child that nobody has waited for: `Child` is
            // borrowed exclusively, and `wait4` is the only wait in this crate for it.
            let waited_process = unsafe { wait4(process, &raw mut status, 0, &raw mut usage) };
            if waited_process == process {
                let time = usage.user.duration() + usage.system.duration();
                return Ok((ExitStatus::from_raw(status), time));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod system {
    use core::time::Duration;
    use std::io;
    use std::process::{Child, ExitStatus};

    pub(super) fn wait(child: &mut Child) -> io::Result<(ExitStatus, Duration)> {
        Ok((child.wait()?, Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn the_time_of_a_program_counts_with_that_of_its_children() {
        let before = total();
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut child =
            Command::new("sh").args(["-c", &format!("sh -c '{work}'; exit 7")]).spawn().expect("sh");
        assert_eq!(wait(&mut child).expect("an end").code(), Some(7));
        let used = total() - before;
        assert!(used > Duration::from_millis(5) && used < Duration::from_secs(60), "{used:?}");
    }
}
