//! A finished plan: the offset of every tensor, the peak, and the proof of its bound.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::dependency::Queue;
use crate::graph::Graph;
use crate::planner::Strategy;
use crate::problem::Problem;
use crate::report::quoted;
use crate::verify::{self, Violation};

/// The memory of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Memory {
    /// The device's own memory.
    #[default]
    Device,
    /// Host memory that the device can reach.
    Host,
}

impl Memory {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host",
        }
    }
}

/// One tensor of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The caller's id.
    pub id: u64,
    /// First instant of the half-open life.
    pub lower: u64,
    /// First instant after the life.
    pub upper: u64,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
    /// Offset from the start of its memory's arena in bytes.
    pub offset: u64,
    /// The memory.
    pub memory: Memory,
    /// Index of the buffer it lies in; tensors in the same buffer share its bytes.
    pub buffer: usize,
}

/// Why no plan can have a peak below the bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificate {
    /// All these buffers are live at this instant.
    TimeCut {
        /// The instant.
        time: u64,
        /// Ids of the buffers.
        buffers: Vec<u64>,
    },
    /// These buffers are pairwise in conflict.
    Antichain {
        /// Ids of the buffers.
        buffers: Vec<u64>,
    },
    /// The search found no plan below this capacity.
    Search {
        /// Nodes visited.
        nodes: u64,
        /// The capacity in bytes without a plan.
        capacity: u64,
    },
}

impl Certificate {
    /// Whether the bound is only a claim: that a search was exhaustive. Other certificates are
    /// proofs, which [`Plan::verify`] checks.
    #[must_use]
    pub const fn is_claim(&self) -> bool {
        matches!(self, Self::Search { .. })
    }
}

/// Use of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The memory.
    pub memory: Memory,
    /// Bytes that its arena needs.
    pub peak: u64,
    /// Number of buffers in it.
    pub buffers: usize,
}

/// The offset of every tensor. Sizes and offsets in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Plan {
    /// One row for each tensor, in the order of the problem.
    pub rows: Vec<Row>,
    /// Offset of each buffer in its memory, in the order of the problem's buffers.
    pub offsets: Vec<u64>,
    /// Memory of each buffer.
    pub placement: Vec<Memory>,
    /// Largest `offset + size`, summed over the memories.
    pub peak: u64,
    /// Plain sum of the tensors' sizes, views apart.
    pub naive: u64,
    /// Best proven lower bound on the peak.
    pub lower_bound: u64,
    /// The proof of the bound.
    pub certificate: Certificate,
    /// The strategy that made the plan (never `Auto`).
    pub strategy: Strategy,
    /// The queue it is safe on.
    pub queue: Queue,
    /// The requested capacity.
    pub capacity: Option<u64>,
    /// Search nodes visited.
    pub nodes: u64,
    /// Operators (earlier, later) that the executor must order by events, in addition to the data
    /// dependencies.
    pub ordering_edges: Vec<(usize, usize)>,
    /// Use of each memory, device first.
    pub memories: Vec<MemoryUse>,
    /// Ids of the buffers that did not fit in device memory.
    pub spilled: Vec<u64>,
}

impl Plan {
    /// A plan in device memory from one offset for each buffer.
    pub(crate) fn new(
        problem: &Problem,
        offsets: Vec<u64>,
        strategy: Strategy,
        (lower_bound, certificate): (u64, Certificate),
    ) -> Self {
        let naive = problem.naive();
        let mut plan = Self {
            rows: Vec::new(),
            placement: alloc::vec![Memory::Device; offsets.len()],
            offsets,
            peak: 0,
            naive,
            lower_bound,
            certificate,
            strategy,
            queue: problem.queue(),
            capacity: None,
            nodes: 0,
            ordering_edges: problem.ordering_edges().to_vec(),
            memories: Vec::new(),
            spilled: Vec::new(),
        };
        plan.fill(problem);
        plan
    }

    /// Recomputes rows, memories and peak from `offsets` and `placement`.
    pub(crate) fn fill(&mut self, problem: &Problem) {
        self.rows.clear();
        for member in problem.members() {
            let tensor = &member.tensor;
            self.rows.push(Row {
                id: tensor.id,
                lower: tensor.lower,
                upper: tensor.upper,
                size: tensor.size,
                alignment: tensor.alignment,
                // The buffer ends below 2^64 and the tensor inside it.
                offset: self.offsets[member.buffer].saturating_add(member.offset),
                memory: self.placement[member.buffer],
                buffer: member.buffer,
            });
        }
        self.memories.clear();
        for memory in [Memory::Device, Memory::Host] {
            let here = problem
                .buffers()
                .iter()
                .zip(&self.offsets)
                .zip(&self.placement)
                .filter(|(_, at)| **at == memory);
            let buffers = here.clone().count();
            let peak =
                here.map(|((buffer, &offset), _)| offset.saturating_add(buffer.size)).max().unwrap_or(0);
            if buffers > 0 || memory == Memory::Device {
                self.memories.push(MemoryUse { memory, peak, buffers });
            }
        }
        self.peak = self.memories.iter().map(|used| used.peak).fold(0, u64::saturating_add);
    }

    /// Number of placed buffers; views and tensors in place add none.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.offsets.len()
    }

    /// Whether the peak is the least possible, by the certificate of the bound.
    #[must_use]
    pub fn optimal(&self) -> bool {
        self.peak == self.lower_bound
    }

    /// Whether the plan fits in the requested capacity.
    #[must_use]
    pub fn feasible(&self) -> bool {
        self.capacity.is_none_or(|capacity| self.peak <= capacity)
    }

    /// The row of a tensor.
    #[must_use]
    pub fn row(&self, id: u64) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Checks the whole plan against its problem with the independent checker. Returns the peak of
    /// each memory, device first. Afterwards the bound is proven, unless its certificate [is a
    /// claim](Certificate::is_claim).
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn verify(&self, problem: &Problem) -> Result<[u64; 2], Violation> {
        verify::plan(self, problem)
    }

    /// The plan as CSV: `id,lower,upper,size,alignment,offset,memory,name,operator`, one line a
    /// tensor, with a header. The last two, a tensor's name and the operator that writes it, come
    /// from the graph and are empty where there is none.
    #[must_use]
    pub fn to_csv(&self, graph: Option<&Graph>) -> String {
        const HEADER: &str = "id,lower,upper,size,alignment,offset,memory,name,operator\n";
        // A usual line is this long.
        let mut text = String::with_capacity(HEADER.len() + 64 * self.rows.len());
        text += HEADER;
        for row in &self.rows {
            let Row { id, lower, upper, size, alignment, offset, memory, .. } = *row;
            for number in [id, lower, upper, size, alignment, offset] {
                push_number(&mut text, number);
                text.push(',');
            }
            text += memory.name();
            let (name, operator) = graph.map_or((None, None), |graph| graph.labels(id));
            for label in [name, operator] {
                text.push(',');
                quoted(&mut text, label.unwrap_or_default());
            }
            text.push('\n');
        }
        text
    }
}

/// Appends a number in decimal. `write!` takes four times as long, which counts in large tables.
fn push_number(text: &mut String, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend(digits[first..].iter().map(|&digit| char::from(digit)));
}

impl fmt::Display for Plan {
    /// One line for people: buffers, peak, bound, naive sum, strategy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proof = match self.optimal() {
            true if self.certificate.is_claim() => "optimal, says the search",
            true => "optimal",
            false => "not proven optimal",
        };
        write!(
            f,
            "{} buffers on an {} queue: peak {} bytes, lower bound {} bytes ({proof}), plain sum {} bytes, by {}",
            self.buffers(),
            self.queue.name(),
            self.peak,
            self.lower_bound,
            self.naive,
            self.strategy.name()
        )
    }
}
