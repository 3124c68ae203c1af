//! Commands and their execution on the host.

use level_zero_sys::*;

use crate::kernel::Launch;
use crate::state::State;

/// One command of a list.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) action: Action,
    /// Events that must be signalled before.
    pub(crate) waits: Vec<usize>,
    /// The event that is signalled after.
    pub(crate) signal: Option<usize>,
}

/// What a command does. Addresses were given by the caller, who keeps the memory until the command is done.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Nothing,
    Copy {
        to: usize,
        from: usize,
        bytes: usize,
    },
    Region {
        to: Side,
        from: Side,
        width: usize,
        height: usize,
        depth: usize,
    },
    Fill {
        to: usize,
        pattern: Vec<u8>,
        bytes: usize,
    },
    Launch(Launch),
    /// The end of a submission.
    Fence(usize),
}

/// One side of a copy of a box: first byte, bytes from row to row and from slice to slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) start: usize,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

impl Side {
    pub(crate) fn new(base: usize, region: &ze_copy_region_t, pitch: u32, slice: u32) -> Self {
        let (pitch, slice) = (pitch as usize, slice as usize);
        let start = base
            .wrapping_add(region.originX as usize)
            .wrapping_add(pitch.wrapping_mul(region.originY as usize))
            .wrapping_add(slice.wrapping_mul(region.originZ as usize));
        Self { start, pitch, slice }
    }

    fn row(&self, y: usize, z: usize) -> usize {
        self.start.wrapping_add(self.pitch.wrapping_mul(y)).wrapping_add(self.slice.wrapping_mul(z))
    }
}

impl State {
    /// Executes what can be executed: everything, or one command when the driver is lazy.
    pub(crate) fn progress(&mut self) {
        while self.step() {
            if self.lazy {
                return;
            }
        }
    }

    /// Executes the first command whose waits are over, in the order of the queues.
    fn step(&mut self) -> bool {
        let signalled = |events: &alloc::collections::BTreeMap<usize, bool>, waits: &[usize]| {
            waits.iter().all(|event| events.get(event).copied().unwrap_or(true))
        };
        let events = &self.events;
        let ready = self.queues.values_mut().find_map(|queue| {
            let command = queue.front()?;
            let stuck = matches!(&command.action, Action::Launch(launch) if launch.is_endless());
            (!stuck && signalled(events, &command.waits)).then(|| queue.pop_front()).flatten()
        });
        let Some(command) = ready else { return false };
        match command.action {
            Action::Nothing => {}
            Action::Copy { to, from, bytes } => copy(to, from, bytes),
            Action::Region { to, from, width, height, depth } => {
                for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
                    copy(to.row(y, z), from.row(y, z), width);
                }
            }
            Action::Fill { to, pattern, bytes } => {
                for (index, value) in pattern.iter().cycle().take(bytes).enumerate() {
                    // SAFETY: the caller of the fill keeps `bytes` bytes at `to` until the command is done.
                    unsafe { (to as *mut u8).wrapping_add(index).write(*value) };
                }
            }
            Action::Launch(launch) => launch.run(),
            Action::Fence(fence) => {
                if let Some(signalled) = self.fences.get_mut(&fence) {
                    *signalled = true;
                }
            }
        }
        if let Some(signalled) = command.signal.and_then(|event| self.events.get_mut(&event)) {
            *signalled = true;
        }
        true
    }
}

fn copy(to: usize, from: usize, bytes: usize) {
    // SAFETY: the caller of the copy keeps both ranges until the command is done; they may overlap.
    unsafe { core::ptr::copy(from as *const u8, to as *mut u8, bytes) };
}
