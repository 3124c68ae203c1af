//! OpenVINO's GPU memory pool with all its rules: which whole buffer a request may reuse, by
//! layout, size and use.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Options, Strategy};
use crate::Error;
use crate::graph::Graph;
use crate::lifetime::align_up;
use crate::plan::{Memory, Plan};
use crate::problem::Problem;
use crate::sort;

/// Key of the padded pool: everything but batch and feature must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs)]
pub struct PaddedLayout {
    /// Memory format, as the runtime numbers it.
    pub format: u32,
    /// Element type, as the runtime numbers it.
    pub data_type: u32,
    /// Width in elements.
    pub x: u64,
    /// Height in elements.
    pub y: u64,
    /// Padding in elements, in the runtime's own encoding.
    pub padding: u64,
    /// Number of features.
    pub feature: u64,
    /// Batch size.
    pub batch: u64,
}

/// Layout of a request, as the pool uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolLayout {
    /// No padding: any buffer of sufficient size.
    #[default]
    Plain,
    /// Features in slices of 32 (`fs_b_yx_fsv32`): the pool takes it only when the number of
    /// features is a multiple of 32.
    Sliced {
        /// Number of features.
        feature: u64,
    },
    /// Padded: only buffers of the same shape, and the padding must be cleared again.
    Padded(PaddedLayout),
}

/// The pool's properties of a buffer besides size and life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PoolRequest {
    /// Layout.
    pub layout: PoolLayout,
    /// The size is an upper bound of a dynamic shape: a buffer is reused only if the request needs
    /// more than half of it.
    pub dynamic: bool,
    /// Never shares (images, buffers that the user asked to keep).
    pub exclusive: bool,
    /// Memory that the buffer needs; buffers of different memories never share.
    pub memory: Memory,
}

impl PoolRequest {
    /// A plain request in device memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { layout: PoolLayout::Plain, dynamic: false, exclusive: false, memory: Memory::Device }
    }

    /// The same with a layout.
    #[must_use]
    pub const fn layout(mut self, layout: PoolLayout) -> Self {
        self.layout = layout;
        self
    }

    /// The same with a dynamic shape.
    #[must_use]
    pub const fn dynamic(mut self) -> Self {
        self.dynamic = true;
        self
    }

    /// The same without sharing.
    #[must_use]
    pub const fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// The same in another memory.
    #[must_use]
    pub const fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }
}

/// The pool that an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolType {
    /// Reuse by size.
    NonPadded,
    /// Reuse by shape.
    Padded,
    /// No reuse.
    NoReusable,
}

impl PoolType {
    /// The name used in OpenVINO's dumps.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NonPadded => "non_padded_pool",
            Self::Padded => "padded_pool",
            Self::NoReusable => "no_reusable_pool",
        }
    }
}

/// One allocation of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolEntry {
    /// The pool it belongs to.
    pub pool: PoolType,
    /// Size in bytes.
    pub size: u64,
    /// Its memory.
    pub memory: Memory,
    /// Buffers of the problem that use it, in order of assignment.
    pub users: Vec<usize>,
    /// Users that must clear the padding first, because another user may have written to it. On an
    /// out-of-order queue the clearing must wait for the earlier readers: by the conflicts, they
    /// are strict ancestors of the user's writer.
    pub clear: Vec<usize>,
    layout: PoolLayout,
    alignment: u64,
}

/// Runs the pool over a problem and returns one entry for each allocation. `requests` has one
/// element for each buffer of the problem.
///
/// # Errors
/// [`Error::LengthMismatch`].
pub fn pool(problem: &Problem, requests: &[PoolRequest]) -> Result<Vec<PoolEntry>, Error> {
    let buffers = problem.buffers();
    if buffers.len() != requests.len() {
        return Err(Error::LengthMismatch { buffers: buffers.len(), other: requests.len() });
    }
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].size > 0).collect();
    sort::by_key(&mut order, |i| (Reverse(buffers[i].size), i));
    let mut entries: Vec<PoolEntry> = Vec::new();
    for i in order {
        let (size, request) = (buffers[i].size, &requests[i]);
        let pool = pool_of(request);
        let suits = |entry: &PoolEntry| {
            entry.pool == pool
                && pool != PoolType::NoReusable
                && entry.memory == request.memory
                && entry.size >= size
                && shape_suits(entry, request)
                && (!request.dynamic || u128::from(size) * 2 > u128::from(entry.size))
                && !entry.users.iter().any(|&user| problem.conflict(user, i))
        };
        // Requests are in descending order and so are entries, so the last suitable entry is the
        // smallest.
        match entries.iter_mut().rev().find(|entry| suits(entry)) {
            Some(entry) => {
                entry.users.push(i);
                entry.alignment = entry.alignment.max(buffers[i].alignment);
                if pool == PoolType::Padded {
                    entry.clear.push(i);
                }
            }
            None => entries.push(PoolEntry {
                pool,
                size,
                memory: request.memory,
                users: alloc::vec![i],
                clear: if pool == PoolType::Padded { alloc::vec![i] } else { Vec::new() },
                layout: request.layout,
                alignment: buffers[i].alignment,
            }),
        }
    }
    Ok(entries)
}

/// Sum of the entries' bytes for each memory: device, host.
#[must_use]
pub fn pool_bytes(entries: &[PoolEntry]) -> [u64; 2] {
    let mut ends = [0_u64; 2];
    for entry in entries {
        let end = &mut ends[usize::from(entry.memory == Memory::Host)];
        *end = align_up(*end, entry.alignment).unwrap_or(u64::MAX).saturating_add(entry.size);
    }
    ends
}

/// Plans a graph by these rules: the entries lie one after the other. Tensors with padding are
/// padded requests, those of dynamic size dynamic ones.
///
/// # Errors
/// As [`plan_graph`](super::plan_graph).
pub fn plan_graph(graph: &Graph, options: &Options<'_>) -> Result<(Problem, Plan), Error> {
    let options = Options { strategy: Strategy::WholeBuffer, ..*options };
    // The bound and its certificate hold whatever the offsets are.
    let (problem, mut plan) = super::plan_graph(graph, &options)?;
    let mut end = 0;
    for entry in pool(&problem, &requests(graph, &problem))? {
        // A problem has room for all buffers one after the other.
        let offset = align_up(end, entry.alignment).unwrap_or(u64::MAX);
        for user in entry.users {
            plan.offsets[user] = offset;
        }
        end = offset.saturating_add(entry.size);
    }
    plan.fill(&problem);
    Ok((problem, plan))
}

/// The requests of a graph's buffers. A graph knows bytes, so padded ones suit where the sizes with
/// and without padding are equal.
#[must_use]
pub fn requests(graph: &Graph, problem: &Problem) -> Vec<PoolRequest> {
    let mut requests = alloc::vec![PoolRequest::new(); problem.buffers().len()];
    for member in problem.members() {
        let Some(node) = graph.tensor_index(member.tensor.id).map(|tensor| &graph.tensors()[tensor]) else {
            continue;
        };
        let request = &mut requests[member.buffer];
        request.dynamic |= node.dynamic;
        if node.padding > 0 {
            let (x, padding) = (node.size - node.padding, node.padding);
            let layout = PaddedLayout { format: 0, data_type: 0, x, y: 1, padding, feature: 1, batch: 1 };
            request.layout = PoolLayout::Padded(layout);
        }
    }
    requests
}

fn pool_of(request: &PoolRequest) -> PoolType {
    match request.layout {
        _ if request.exclusive => PoolType::NoReusable,
        PoolLayout::Sliced { feature } if feature % 32 != 0 => PoolType::NoReusable,
        PoolLayout::Padded(_) => PoolType::Padded,
        _ => PoolType::NonPadded,
    }
}

fn shape_suits(entry: &PoolEntry, request: &PoolRequest) -> bool {
    match (entry.layout, request.layout) {
        (PoolLayout::Padded(have), PoolLayout::Padded(want)) => {
            let key = |shape: PaddedLayout| PaddedLayout { feature: 0, batch: 0, ..shape };
            key(have) == key(want) && want.feature <= have.feature && want.batch <= have.batch
        }
        (PoolLayout::Padded(_), _) | (_, PoolLayout::Padded(_)) => false,
        _ => true,
    }
}
