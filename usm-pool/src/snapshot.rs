//! A snapshot of memory: live blocks and history, in the formats of two viewers and as a picture.
//!
//! [`Snapshot::pickle`] opens in PyTorch's `memory_viz`, [`Snapshot::trace`] in Perfetto. Contexts
//! and pools fill a snapshot; this module never calls a runtime.

mod picture;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::pickle::Pickle;

/// Memory of some devices at one moment.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "a snapshot's maker fills every field")]
pub struct Snapshot {
    /// One for each context.
    pub devices: Vec<Device>,
}

/// Memory of one context.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "as of the snapshot")]
pub struct Device {
    /// The name of the context.
    pub name: String,
    /// Bytes of the device's memory.
    pub total: u64,
    /// The memory that the runtime allocated.
    pub segments: Vec<Segment>,
    /// The history, oldest first.
    pub events: Vec<Event>,
}

/// One allocation of a runtime.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "as of the snapshot")]
pub struct Segment {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Its kind: `host`, `shared` or `device`.
    pub kind: &'static str,
    /// Parts of it in use, by address, disjoint.
    pub blocks: Vec<Block>,
}

/// The request for a block, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "as of the snapshot")]
pub struct Origin {
    /// The number of the queue; 0 if unknown.
    pub queue: u64,
    /// The calls that led to the request, innermost first.
    pub frames: Vec<Frame>,
}

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "as of the snapshot")]
pub struct Frame {
    /// The source file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function.
    pub name: String,
}

/// An allocated part of a segment.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "as of the snapshot")]
pub struct Block {
    /// First byte.
    pub address: u64,
    /// Bytes, up to the next block.
    pub size: u64,
    /// Bytes as requested; 0 once its owner has freed it.
    pub requested: u64,
    /// Whether its owner has freed it, and unfinished work may still use it.
    pub is_pending: bool,
    /// The request.
    pub origin: Origin,
}

/// An action on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "all actions of a context")]
pub enum Action {
    /// Allocated.
    Allocate,
    /// Freed.
    Free,
    /// Refused.
    Refuse,
}

/// One event of a history.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "as of the snapshot")]
pub struct Event {
    /// The action.
    pub action: Action,
    /// First byte; 0 for a refusal.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Microseconds since the beginning of 1970.
    pub time: u64,
    /// The memory's kind.
    pub kind: &'static str,
    /// Bytes of that kind in use after the event.
    pub current: u64,
    /// Whether the block lies in the segment of a pool; any other block is a segment itself.
    pub in_segment: bool,
    /// The request.
    pub origin: Origin,
}

impl Device {
    /// Bytes of blocks in use, as requested.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        let blocks = self.segments.iter().flat_map(|segment| &segment.blocks);
        sum(blocks.map(|block| block.requested))
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

impl Snapshot {
    /// A pickle with the keys of `torch.cuda.memory._snapshot()`. Devices are numbers, in the order
    /// of this snapshot; `device_names` has their names.
    #[must_use]
    pub fn pickle(&self) -> Vec<u8> {
        let mut out = Pickle::new();
        out.dict(|out| {
            out.key("segments").list(|out| {
                for (index, device) in self.devices.iter().enumerate() {
                    device.segments.iter().for_each(|segment| segment.pickle(out, index));
                }
            });
            out.key("device_traces").list(|out| {
                for device in &self.devices {
                    out.list(|out| device.events.iter().for_each(|event| event.pickle(out, device)));
                }
            });
            out.key("allocator_settings").dict(|_| {});
            out.key("device_names").list(|out| {
                for device in &self.devices {
                    out.text(&device.name);
                }
            });
        });
        out.finish()
    }

    /// A JSON document of trace events: a process for each context, a counter for each kind, a
    /// slice for each block from its allocation to its free, an instant for each refusal.
    #[must_use]
    pub fn trace(&self) -> String {
        let mut json = String::from("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
        let mut comma = "";
        for (process, device) in self.devices.iter().enumerate() {
            let _ = write!(
                json,
                "{comma}{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":"
            );
            crate::html::text(&mut json, &device.name);
            json.push_str("}}");
            comma = ",\n";
            let mut open: BTreeMap<u64, &Event> = BTreeMap::new();
            for event in &device.events {
                let Event { time, size, kind, current, address, .. } = event;
                let _ = write!(
                    json,
                    "{comma}{{\"ph\":\"C\",\"pid\":{process},\"ts\":{time},\"name\":\"{kind}\",\"args\":{{\"bytes\":{current}}}}}"
                );
                match event.action {
                    Action::Allocate => drop(open.insert(*address, event)),
                    Action::Free => {
                        if let Some(began) = open.remove(address) {
                            write_slice(&mut json, process, began, Some(*time));
                        }
                    }
                    Action::Refuse => {
                        let _ = write!(
                            json,
                            "{comma}{{\"ph\":\"i\",\"s\":\"p\",\"pid\":{process},\"ts\":{time},\"name\":\"refused {size} bytes of {kind}\"}}"
                        );
                    }
                }
            }
            open.values().for_each(|began| write_slice(&mut json, process, began, None));
        }
        json.push_str("]}\n");
        json
    }
}

/// The life of a block: asynchronous, because lives overlap arbitrarily.
fn write_slice(json: &mut String, process: usize, began: &Event, end: Option<u64>) {
    let Event { time, address, size, kind, origin: Origin { queue, frames }, .. } = began;
    let id = format!("\"{address:#x}.{time}\"");
    let name = format!("\"{size} bytes\",\"cat\":\"{kind}\",\"id\":{id},\"pid\":{process}");
    let _ = write!(
        json,
        ",\n{{\"ph\":\"b\",\"ts\":{time},\"name\":{name},\"args\":{{\"address\":\"{address:#x}\",\"bytes\":{size},\"queue\":{queue}"
    );
    if let Some(frame) = frames.first() {
        json.push_str(",\"at\":");
        crate::html::text(json, &format!("{}:{} {}", frame.file, frame.line, frame.name));
    }
    json.push_str("}}");
    if let Some(end) = end {
        let _ = write!(json, ",\n{{\"ph\":\"e\",\"ts\":{end},\"name\":{name}}}");
    }
}

impl Segment {
    /// The viewer needs blocks that tile the segment: free parts are `inactive`.
    fn pickle(&self, out: &mut Pickle, device: usize) {
        let used = self.blocks.iter().filter(|block| !block.is_pending);
        out.dict(|out| {
            out.key("device").number(device as u64);
            out.key("address").number(self.address);
            out.key("total_size").number(self.size);
            out.key("allocated_size").number(sum(used.map(|block| block.size)));
            out.key("active_size").number(sum(self.blocks.iter().map(|block| block.size)));
            out.key("requested_size").number(sum(self.blocks.iter().map(|block| block.requested)));
            out.key("stream").number(self.blocks.first().map_or(0, |block| block.origin.queue));
            out.key("segment_type").text(if self.size > SMALL { "large" } else { "small" });
            out.key("segment_pool_id").tuple(|out| {
                out.number(0);
                out.number(0);
            });
            out.key("is_expandable").boolean(false);
            out.key("frames").list(|_| {});
            out.key("kind").text(self.kind);
            out.key("blocks").list(|out| self.tiles(out));
        });
    }

    fn tiles(&self, out: &mut Pickle) {
        let end = self.address.saturating_add(self.size);
        let mut at = self.address;
        let tile = |out: &mut Pickle, address: u64, sizes: (u64, u64), state: &str, frames: &[Frame]| {
            out.dict(|out| {
                out.key("address").number(address);
                out.key("size").number(sizes.0);
                out.key("requested_size").number(sizes.1);
                out.key("state").text(state);
                out.key("frames").list(|out| frames.iter().for_each(|frame| frame.pickle(out)));
            });
        };
        for block in &self.blocks {
            if block.address > at {
                tile(out, at, (block.address - at, 0), "inactive", &[]);
            }
            let state = if block.is_pending { "active_pending_free" } else { "active_allocated" };
            tile(out, block.address, (block.size, block.requested), state, &block.origin.frames);
            at = block.address.saturating_add(block.size);
        }
        if end > at {
            tile(out, at, (end - at, 0), "inactive", &[]);
        }
    }
}

impl Frame {
    fn pickle(&self, out: &mut Pickle) {
        out.dict(|out| {
            out.key("filename").text(&self.file);
            out.key("line").number(u64::from(self.line));
            out.key("name").text(&self.name);
        });
    }
}

/// PyTorch calls larger segments large.
const SMALL: u64 = 2 << 20;

impl Event {
    fn pickle(&self, out: &mut Pickle, device: &Device) {
        let mut one = |action: &str| {
            out.dict(|out| {
                out.key("action").text(action);
                out.key("addr").number(self.address);
                out.key("size").number(self.size);
                out.key("stream").number(self.origin.queue);
                out.key("time_us").number(self.time);
                let frames = &self.origin.frames;
                out.key("frames").list(|out| frames.iter().for_each(|frame| frame.pickle(out)));
                if self.action == Action::Refuse {
                    out.key("device_free").number(device.total.saturating_sub(self.current));
                }
            });
        };
        match self.action {
            // Without a pool each block is a segment.
            Action::Allocate => {
                if !self.in_segment {
                    one("segment_alloc");
                }
                one("alloc");
            }
            Action::Free => {
                one("free_requested");
                one("free_completed");
                if !self.in_segment {
                    one("segment_free");
                }
            }
            Action::Refuse => one("oom"),
        }
    }
}
