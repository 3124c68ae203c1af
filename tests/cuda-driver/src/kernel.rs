//! Modules, their functions, and launches.

use alloc::sync::Arc;

use crate::code::{Answer, Code, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, SUCCESS};
use crate::memory::{Kind, Origin};
use crate::ptx;
use crate::state::State;

/// Maximum items of a group, in total and in each direction.
pub(crate) const MAX_GROUP: u32 = 1024;
pub(crate) const MAX_SIZES: [u32; 3] = [1024, 1024, 64];
/// Maximum groups of a launch in each direction.
pub(crate) const MAX_GROUPS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Shared memory of a group, in bytes.
pub(crate) const SHARED_MEMORY: usize = 49_152;

/// A module of a context.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) context: usize,
    pub(crate) code: Arc<ptx::Module>,
}

/// A function of a module.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) module: usize,
    pub(crate) code: Arc<ptx::Module>,
    /// The index of the entry in the module.
    pub(crate) entry: usize,
}

impl Function {
    pub(crate) fn entry(&self) -> &ptx::Entry {
        &self.code.entries[self.entry]
    }
}

/// A function with all arguments of a launch.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) function: Function,
    pub(crate) group: [u32; 3],
    pub(crate) groups: [u32; 3],
    pub(crate) shared_bytes: usize,
    pub(crate) parameters: Vec<u8>,
}

impl Launch {
    /// Checks the launch against the device's limits.
    pub(crate) fn check(&self) -> Answer {
        let entry = self.function.entry();
        let within = |sizes: &[u32; 3], most: &[u32; 3]| {
            sizes.iter().zip(most).all(|(size, most)| (1..=*most).contains(size))
        };
        let items: u32 = self.group.iter().product();
        let shape = within(&self.group, &MAX_SIZES)
            && within(&self.groups, &MAX_GROUPS)
            && items <= entry.most_threads.unwrap_or(MAX_GROUP).min(MAX_GROUP)
            && entry.required.is_none_or(|required| required == self.group);
        if !shape || self.shared_bytes > SHARED_MEMORY {
            return Err(INVALID_VALUE);
        }
        if self.shared_bytes + entry.shared_bytes > SHARED_MEMORY {
            return Err(LAUNCH_OUT_OF_RESOURCES);
        }
        Ok(())
    }

    /// Every parameter that may be an address.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = usize> {
        let parameters = self.function.entry().parameters.iter();
        parameters.filter(|parameter| parameter.bytes == size_of::<usize>()).map(|parameter| {
            let bytes = self.parameters.get(parameter.offset..).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(0, |bytes| usize::from_ne_bytes(*bytes))
        })
    }

    /// Runs the launch to the end on checked memory.
    pub(crate) fn run(&self, ranges: &[ptx::Range], reversed: bool, turns: Option<u64>) -> Code {
        let outcome = ptx::run(&ptx::Launch {
            entry: self.function.entry(),
            constants: &self.function.code.constants,
            group: self.group,
            groups: self.groups,
            parameters: &self.parameters,
            shared_bytes: self.shared_bytes,
            ranges,
            reversed,
            turns,
        });
        outcome.map_or_else(
            |fault| {
                eprintln!("usm-cuda-driver: {fault}");
                fault.code
            },
            |()| SUCCESS,
        )
    }
}

impl State {
    /// The memory that a kernel of a context can access: that of its device and its peers, and
    /// memory shared with the host.
    pub(crate) fn reached(&mut self, context: usize, command: u64, launch: &Launch) -> Vec<ptx::Range> {
        for pointer in launch.pointers() {
            self.is_born(command, pointer);
        }
        let Some(found) = self.contexts.get(&context) else { return Vec::new() };
        let reached = self.allocations.iter().filter(|(_, live)| {
            live.kind != Kind::Device || live.device == found.device || found.peers.contains(&live.context)
        });
        let range = |(start, live): (&usize, &crate::memory::Allocation)| ptx::Range {
            start: *start,
            bytes: live.size,
            own: self.own(live, *start),
        };
        reached.map(range).collect()
    }

    /// Counts a use of stream-ordered memory before its allocation or after its free.
    pub(crate) fn is_born(&mut self, command: u64, address: usize) {
        let Some((_, live)) = self.lookup(address) else { return };
        // The address may have been allocated again: then the operation used the earlier
        // allocation.
        if let Origin::Pool { born, .. } = live.origin {
            match (command < born, self.unfinished.contains(&born)) {
                (false, true) => self.misuse(format_args!("{address:#x} is used before its allocation")),
                (true, false) => self.misuse(format_args!("{address:#x} is used after its free")),
                _ => {}
            }
        }
    }
}
