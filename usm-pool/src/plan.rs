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
    /// The memory of this number among those of the graph.
    Own(u8),
}

impl Memory {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host",
            Self::Own(_) => "memory",
        }
    }

    /// The name of a graph's own memory, or else the [name](Self::name).
    #[must_use]
    pub fn name_in(self, graph: Option<&Graph>) -> &str {
        match (self, graph) {
            (Self::Own(number), Some(graph)) => {
                graph.memories().get(usize::from(number)).map_or(self.name(), |space| &space.name)
            }
            _ => self.name(),
        }
    }

    /// 0 for the device, 1 for the host, and then the graph's own memories.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Device => 0,
            Self::Host => 1,
            Self::Own(number) => 2 + number as u64,
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

/// How a plan uses the memories of its graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// Bytes that operators read and write, times the cost of their memory: at most `u64::MAX`.
    pub cost: u64,
    /// These buffers cost no less in any memories.
    pub cost_bound: u64,
    /// The instants that prove it, each for buffers that live at none of those before.
    pub times: Vec<u64>,
    /// For each memory a bound on its peak for the buffers in it, and the proof.
    pub bounds: Vec<(u64, Certificate)>,
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
    /// Use of each memory, device first. Those of the graph, if it has memories.
    pub memories: Vec<MemoryUse>,
    /// How the memories of the graph are used, if it has memories.
    pub memory_plan: Option<MemoryPlan>,
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
            memory_plan: None,
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
        let own = self.memory_plan.as_ref().map(|memory_plan| 0..memory_plan.bounds.len());
        let all: Vec<Memory> = match own {
            Some(own) => own.map(|number| Memory::Own(number as u8)).collect(),
            None => alloc::vec![Memory::Device, Memory::Host],
        };
        for memory in all {
            let residents = problem
                .buffers()
                .iter()
                .zip(&self.offsets)
                .zip(&self.placement)
                .filter(|(_, at)| **at == memory);
            let buffers = residents.clone().count();
            let peak =
                residents.map(|((buffer, &offset), _)| offset.saturating_add(buffer.size)).max().unwrap_or(0);
            if buffers > 0 || memory != Memory::Host {
                self.memories.push(MemoryUse { memory, peak, buffers });
            }
        }
        self.peak = self.memories.iter().map(|used| used.peak).fold(0, u64::saturating_add);
    }

    /// Whether the buffers lie in several memories.
    #[must_use]
    pub fn is_spread(&self) -> bool {
        self.memories.iter().filter(|used| used.buffers > 0).count() > 1
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
    pub fn verify(&self, problem: &Problem) -> Result<Vec<u64>, Violation> {
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
            quoted(&mut text, memory.name_in(graph));
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
