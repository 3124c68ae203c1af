//! Scarce memory: a process exhausts its own limit, never the machine's memory.

use std::cell::Cell;
use std::process::Stdio;
use std::time::Duration;

use usm_core::{DeviceInfo, DeviceType};

use crate::{process, skip};

/// Variable of a process that was started for one test.
const VARIABLE: &str = "USM_TEST_SCARCE";
/// Number of bytes above the process's initial use.
const ROOM: u64 = 1 << 30;
/// Size of each allocation while memory is scarce, in bytes.
pub const CHUNK: usize = 128 << 20;
/// Time limit of a process.
const LIMIT: Duration = Duration::from_secs(120);

thread_local! {
    /// The test of this thread, as its harness selects it. A harness without it runs one case at a
    /// time.
    static TEST: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Names this thread's test by its path in the program.
pub fn as_test<T>(path: &'static str, body: impl FnOnce() -> T) -> T {
    // The harness omits the name of the program.
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    TEST.with(|test| test.set(Some(name)));
    skip::named(name, body)
}

/// The owner of a device's memory, which limits what a test may allocate without harm to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The device's own memory, or an unimportant part of the machine's.
    OfTheDevice,
    /// The machine's memory, within the process's limit.
    OfTheProcess,
    /// The machine's memory, through a driver that ignores the process's limits.
    OfTheMachine,
}

impl Memory {
    /// The owner, as the device reports it.
    #[must_use]
    pub fn of(info: &DeviceInfo) -> Self {
        match info.device_type {
            _ if info.global_mem_size <= 4 << 30 && info.max_alloc_size <= 1 << 30 => Self::OfTheDevice,
            DeviceType::Gpu | DeviceType::Accelerator if info.integrated => Self::OfTheMachine,
            // If the device misreports it, the machine has this much.
            DeviceType::Gpu | DeviceType::Accelerator if info.global_mem_size < available() => {
                Self::OfTheDevice
            }
            _ => Self::OfTheProcess,
        }
    }
}

/// Number of bytes that the machine could provide; 0 if it does not report it.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Runs the body in a process with a low memory limit: in this one if nothing else runs in it,
/// otherwise in one that runs this test only and whose result is this test's. The error is the
/// reason why that is impossible.
///
/// # Errors
/// If processes have no such limit.
pub fn in_little_room(body: impl FnOnce()) -> Result<(), String> {
    match TEST.with(Cell::get) {
        Some(test) if std::env::var_os(VARIABLE).is_none() => {
            let ended = process::again(VARIABLE, "1", LIMIT, |command| {
                command.args([test, "--exact", "--nocapture", "--test-threads=1"]).stderr(Stdio::piped());
            });
            let ran = ended.well() && ended.out.contains("1 passed");
            assert!(ran, "{}\n{}\n{}", ended.end, ended.out, ended.errors);
            let _ = skip::repeat(&ended.errors);
            Ok(())
        }
        _ => Room::of(ROOM).map(|_room| body()),
    }
}

/// A limit of this process's address space; the drop removes it.
#[cfg(target_os = "linux")]
struct Room(libc::rlimit);

#[cfg(target_os = "linux")]
impl Room {
    fn of(bytes: u64) -> Result<Self, String> {
        let text = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
        let pages: u64 =
            text.split(' ').next().and_then(|word| word.parse().ok()).ok_or("no size in statm")?;
        // SAFETY: a query without pointers.
        let page =
            u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(|error| error.to_string())?;
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: room for the result.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut before) }, 0);
        let room = libc::rlimit { rlim_cur: (pages * page + bytes).min(before.rlim_max), ..before };
        // SAFETY: a limit of this process, whose later allocations may fail.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const room) }, 0);
        Ok(Self(before))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the previous limit.
        let _ = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const self.0) };
    }
}

#[cfg(not(target_os = "linux"))]
struct Room;

#[cfg(not(target_os = "linux"))]
impl Room {
    fn of(_: u64) -> Result<Self, String> {
        Err("no limit for the memory of a process on this system".to_owned())
    }
}
