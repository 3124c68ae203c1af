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

impl Command {
    /// Whether the command launches that kernel object.
    pub(crate) fn runs(&self, kernel: usize) -> bool {
        matches!(&self.action, Action::Launch(launch) if launch.number == kernel)
    }

    fn is_endless(&self) -> bool {
        matches!(&self.action, Action::Launch(launch) if launch.is_endless())
    }

    fn follows_all(&self) -> bool {
        matches!(self.action, Action::Barrier) && self.waits.is_empty()
    }

    /// Whether the command reads or writes a part of a range.
    pub(crate) fn touches(&self, start: usize, bytes: usize) -> bool {
        let inside = |address: usize| address >= start && address - start < bytes;
        match &self.action {
            Action::Copy { to, from, .. } => inside(*to) || inside(*from),
            Action::Region { to, from, .. } => inside(to.start) || inside(from.start),
            Action::Fill { to, .. } => inside(*to),
            Action::Launch(launch) => launch.pointers().any(inside),
            Action::Nothing | Action::Barrier | Action::Fence(_) => false,
        }
    }
}

/// The work of a command. The caller keeps the memory at the addresses alive until the command
/// completes.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Nothing,
    /// Delays later commands of its list. Without events of its own it also waits for all earlier
    /// ones.
    Barrier,
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

/// One side of a copy of a box: first byte, and the pitches of rows and slices.
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
    /// Executes every ready command, or one command if the driver is lazy.
    pub(crate) fn progress(&mut self) {
        while self.step() {
            if self.lazy {
                return;
            }
        }
    }

    /// Executes one ready command, if there is one.
    fn step(&mut self) -> bool {
        let (events, lists, reorder) = (&self.events, &self.lists, self.reorder);
        let ready = self.queues.iter_mut().find_map(|(number, queue)| {
            let any_order = reorder && lists.get(number).is_some_and(|list| list.immediate && !list.in_order);
            let candidates = if any_order { queue.len() } else { queue.len().min(1) };
            let index = (0..candidates).rev().find(|index| {
                let (command, held) = (&queue[*index], queue.iter().take(*index));
                let signalled = |event| events.get(event).copied().unwrap_or(true);
                command.waits.iter().all(signalled)
                    && !command.is_endless()
                    && held.clone().all(|earlier| !matches!(earlier.action, Action::Barrier))
                    && (*index == 0 || !command.follows_all())
            })?;
            queue.remove(index)
        });
        let Some(command) = ready else { return false };
        match command.action {
            Action::Nothing | Action::Barrier => {}
            Action::Copy { to, from, bytes } => copy(to, from, bytes),
            Action::Region { to, from, width, height, depth } => {
                for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
                    copy(to.row(y, z), from.row(y, z), width);
                }
            }
            Action::Fill { to, pattern, bytes } => {
                for (index, value) in pattern.iter().cycle().take(bytes).enumerate() {
                    // SAFETY: the caller of the fill keeps `bytes` bytes at `to` until the command
                    // completes.
                    unsafe { (to as *mut u8).wrapping_add(index).write(*value) };
                }
            }
            Action::Launch(launch) => {
                if let Err(fault) = self.run(&launch) {
                    // Like a page fault of a device: nothing that follows is reliable.
                    eprintln!("usm-level-zero-driver: {fault}");
                    self.misuses += 1;
                    self.faults.lose_device();
                    return false;
                }
            }
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
    // SAFETY: the caller of the copy keeps both ranges until the command completes; they may
    // overlap.
    unsafe { core::ptr::copy(from as *const u8, to as *mut u8, bytes) };
}
