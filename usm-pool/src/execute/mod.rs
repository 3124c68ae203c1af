//! Runs a plan on a device with substitute operators, and checks every read.
//!
//! The content of a tensor depends on the content that its operator reads, and on the position in
//! its root: each iteration of a loop gives it another one. A substitute operator writes its
//! outputs to the bytes of the plan, and reads its inputs after that, because a kernel may read to
//! its last moment. If a permit gives an input's bytes to an output, the operator reads that input
//! before it writes. If a plan gives the same bytes to two tensors that live together, one of them
//! has wrong content, and the read that finds it is counted.
//!
//! Constants are made in host memory, moved once, and shared by all streams. Each stream has its
//! own pool, inputs and state.

mod pattern;
mod schedule;
mod truth;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use usm_core::{AllocKind, AnyKind, Backend, Context, Device, MemoryType, Queue, UsmVec};

use crate::arena::{Arena, ArenaError};
use crate::constant::{ConstantBuilder, Constants, Readers, of_graph};
use crate::graph::{Graph, TensorKind};
use crate::plan::{Plan, Row};
use crate::problem::Problem;
use schedule::Step;
use truth::Truth;

/// The constants of a run. Bytes are those that the context counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConstantStats {
    /// Number of constants with content.
    pub count: usize,
    /// How many moved from host memory to device memory.
    pub transfers: usize,
    /// Bytes of constants in host memory before the transfer.
    pub host_bytes_before: u64,
    /// Bytes of constants in host memory after it.
    pub host_bytes_after: u64,
    /// Bytes of constants in device memory after it.
    pub device_bytes: u64,
}

/// The pool of one stream. Buffers at the same offset are one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pool {
    /// Places of tensors with padding.
    pub padded: usize,
    /// Places of all other tensors.
    pub non_padded: usize,
    /// Places that a tensor of dynamic size uses.
    pub dynamic: usize,
    /// Bytes that the pool holds.
    pub bytes: u64,
}

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadCounts {
    /// Reads of a tensor by an operator, and of an output by the caller.
    pub reads: u64,
    /// Reads that did not find the tensor's content.
    pub wrong: u64,
}

/// A graph, its plan, and its constants on a device.
///
/// ```
/// use usm_core::QueueOrder;
/// use usm_core::backend::host::HostHeap;
/// use usm_pool::execute::Network;
/// use usm_pool::{Graph, Op, Options, Tensor, TensorKind, plan_graph};
///
/// let graph = Graph::builder()
///     .tensor(Tensor::new(0, 256).kind(TensorKind::Constant))
///     .tensor(Tensor::new(1, 64))
///     .op(Op::new("gather").inputs([0]).outputs([1]))
///     .output(1)
///     .build()?;
/// let (problem, plan) = plan_graph(&graph, &Options::default())?;
/// let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
/// let network = Network::new(&graph, &problem, &plan, &queue)?;
/// let mut stream = network.stream(&queue, 0)?;
/// let checked = stream.run()?;
/// assert_eq!((checked.reads, checked.wrong), (2, 0));
/// assert_eq!(network.constant_stats().device_bytes, 256);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Network<'a, B: Backend> {
    graph: &'a Graph,
    problem: &'a Problem,
    plan: &'a Plan,
    /// For each tensor of the graph.
    rows: Vec<Option<Row>>,
    constants: Constants<B>,
    counts: ConstantStats,
}

impl<B: Backend> fmt::Debug for Network<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("operators", &self.graph.ops().len())
            .field("moved", &self.counts)
            .finish()
    }
}

impl<'a, B: Backend + 'static> Network<'a, B> {
    /// Makes the constants in host memory, and moves those that an operator reads.
    ///
    /// # Errors
    /// Those of allocation and copy; [`ArenaError::Unknown`] for a tensor of the plan that is not
    /// in the graph.
    pub fn new(
        graph: &'a Graph,
        problem: &'a Problem,
        plan: &'a Plan,
        queue: &Queue<B>,
    ) -> Result<Self, ArenaError> {
        let mut rows = alloc::vec![None; graph.tensors().len()];
        for row in &plan.rows {
            let tensor = graph.tensor_index(row.id).ok_or(ArenaError::Unknown { id: row.id })?;
            rows[tensor] = Some(*row);
        }
        let context = queue.context();
        let (mut builder, mut count, mut content) = (ConstantBuilder::new(), 0, Vec::new());
        let [host, device] = bytes(context);
        for (id, size) in of_graph(graph).filter(|&(_, size)| size > 0) {
            content.resize(length(size)?, 0);
            pattern::fill(&mut content, pattern::key(id, 0), 0);
            builder.insert(queue, context, id, &content)?;
            count += 1;
        }
        let host_bytes_before = bytes(context)[0].saturating_sub(host);
        let read: BTreeSet<u64> = graph
            .tensors()
            .iter()
            .filter(|node| !node.users.is_empty())
            .map(|node| graph.tensors()[node.root].id)
            .collect();
        let readers = |id| if read.contains(&id) { Readers::Device } else { Readers::Host };
        let (constants, transfer) = builder.transfer(queue, context, readers)?;
        context.collect();
        let after = bytes(context);
        let counts = ConstantStats {
            count,
            transfers: transfer.moved,
            host_bytes_before,
            host_bytes_after: after[0].saturating_sub(host),
            device_bytes: after[1].saturating_sub(device),
        };
        Ok(Self { graph, problem, plan, rows, constants, counts })
    }

    /// The constants of the run.
    #[must_use]
    pub fn constant_stats(&self) -> ConstantStats {
        self.counts
    }

    /// Memory of one more stream: a pool, the inputs and the state. The number makes the content of
    /// its tensors differ from that of other streams.
    ///
    /// # Errors
    /// Those of allocation and copy.
    pub fn stream<'n>(&'n self, queue: &'n Queue<B>, number: u32) -> Result<Stream<'n, B>, ArenaError> {
        let context = queue.context();
        let arena = Arena::new(self.plan, context, AllocKind::Device)?;
        // From here on all bytes of all tensors are initialised.
        for row in self.plan.rows.iter().filter(|row| row.size > 0) {
            let mut part = arena.tensor(row.id)?.allocation()?;
            let _ = queue.fill_bytes(&mut part, 0, length(row.size)?, &[0])?;
        }
        let mut stream = Stream {
            network: self,
            queue,
            arena,
            own: BTreeMap::new(),
            truth: Truth::default(),
            room: Vec::new(),
            salt: u64::from(number) + 1,
        };
        for (tensor, node) in self.graph.tensors().iter().enumerate() {
            let outside = matches!(node.kind, TensorKind::Input | TensorKind::State);
            if outside && node.root == tensor && node.size > 0 {
                let content = stream.content(tensor)?;
                let array = UsmVec::<u8, Device, B>::uninit(context, content.len())?;
                let array = array.write_from_slice(queue, content)?;
                stream.own.insert(tensor, array);
            }
        }
        queue.wait()?;
        Ok(stream)
    }
}

/// Live bytes of the context in host memory and in device memory.
fn bytes<B: Backend>(context: &Context<B>) -> [u64; 2] {
    let stats = context.stats();
    [MemoryType::UsmHost, MemoryType::UsmDevice].map(|of| stats.of(of).current as u64)
}

fn length(bytes: u64) -> usm_core::Result<usize> {
    usize::try_from(bytes).map_err(|_| usm_core::ErrorKind::SizeOverflow.into())
}

/// One stream: its pool, and the runs in it.
pub struct Stream<'n, B: Backend> {
    network: &'n Network<'n, B>,
    queue: &'n Queue<B>,
    arena: Arena<B>,
    /// Inputs and state, by the index of the root.
    own: BTreeMap<usize, UsmVec<u8, Device, B>>,
    /// The content of the arena by what was written.
    truth: Truth,
    /// Bytes on their way.
    room: Vec<u8>,
    salt: u64,
}

impl<B: Backend> fmt::Debug for Stream<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("arena", &self.arena).finish()
    }
}

impl<B: Backend + 'static> Stream<'_, B> {
    /// The pool.
    #[must_use]
    pub fn pool(&self) -> Pool {
        let Network { graph, problem, plan, .. } = self.network;
        let (mut padded_places, mut plain, mut dynamic) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for member in problem.members().iter().filter(|member| member.tensor.size > 0) {
            let at = (plan.placement[member.buffer], plan.offsets[member.buffer]);
            let Some(tensor) = graph.tensor_index(member.tensor.id) else { continue };
            let node = &graph.tensors()[tensor];
            if node.padding > 0 {
                padded_places.insert(at);
            }
            if node.dynamic {
                dynamic.insert(at);
            }
            plain.insert(at);
        }
        Pool {
            padded: padded_places.len(),
            non_padded: plain.difference(&padded_places).count(),
            dynamic: dynamic.len(),
            bytes: self.arena.bytes(),
        }
    }

    /// Runs the graph once, loops twice: in processing order on an in-order queue; otherwise with
    /// operators that overlap in one of the ways that data and ordering edges allow.
    ///
    /// # Errors
    /// The device's. Wrong content is no error; it is counted.
    pub fn run(&mut self) -> Result<ReadCounts, ArenaError> {
        let Network { graph, plan, .. } = self.network;
        let mut tally = ReadCounts::default();
        let mut wrong = BTreeSet::new();
        self.truth = Truth::default();
        for tensor in schedule::filled_before_the_run(graph) {
            self.write(tensor, self.key(graph.tensors()[tensor].root))?;
        }
        for step in schedule::steps(graph, plan, self.salt) {
            match step {
                Step::Fill(tensor) => self.write(tensor, self.key(graph.tensors()[tensor].root))?,
                Step::Start(op) => {
                    for input in schedule::inputs(graph, op) {
                        if !self.overwritten_ranges(op, input).is_empty() && !self.has_content(input, &[])? {
                            wrong.insert((op, input));
                            tally.wrong += 1;
                        }
                    }
                    // Every output depends on all that the operator reads.
                    let read = schedule::inputs(graph, op).into_iter().fold(op as u64, |key, input| {
                        let pieces = self.pieces(input);
                        pieces.iter().fold(key, |key, (_, piece)| pattern::mix(key ^ piece.rotate_left(17)))
                    });
                    for (at, &output) in graph.ops()[op].outputs.iter().enumerate() {
                        if graph.is_written(output) {
                            self.write(output, pattern::mix(read ^ pattern::mix(at as u64 ^ self.salt)))?;
                        }
                    }
                }
                Step::Finish(op) => {
                    for input in schedule::inputs(graph, op) {
                        let overwritten_ranges = self.overwritten_ranges(op, input);
                        if graph.tensors()[input].size == 0 {
                            continue;
                        }
                        tally.reads += 1;
                        // Wrong content that was found before the work in place counts once.
                        let right = self.has_content(input, &overwritten_ranges)?;
                        tally.wrong += u64::from(!right && !wrong.contains(&(op, input)));
                    }
                }
            }
        }
        for &output in graph.outputs().iter().filter(|&&output| graph.tensors()[output].size > 0) {
            tally.reads += 1;
            tally.wrong += u64::from(!self.has_content(output, &[])?);
        }
        Ok(tally)
    }

    /// The positions of an input that outputs with a permit lie on by the plan.
    fn overwritten_ranges(&self, op: usize, input: usize) -> Vec<Range<usize>> {
        let Network { graph, rows, .. } = self.network;
        let Some(from) = rows[input] else { return Vec::new() };
        let permits = graph.ops()[op].in_place.iter().filter(|&&(of, _)| of == input);
        permits
            .filter_map(|&(_, output)| rows[output])
            .filter(|to| (to.memory, to.offset) == (from.memory, from.offset) && to.size <= from.size)
            .map(|to| 0..to.size as usize)
            .collect()
    }

    /// The content that a tensor must have: ranges of its root, with their keys.
    fn pieces(&self, tensor: usize) -> Vec<(Range<u64>, u64)> {
        let node = &self.network.graph.tensors()[tensor];
        self.truth.pieces(node.root, node.root_offset..node.root_offset + node.size, self.key(node.root))
    }

    /// The content that a tensor has before the run.
    fn content(&mut self, tensor: usize) -> Result<&[u8], ArenaError> {
        let node = &self.network.graph.tensors()[tensor];
        self.room.resize(length(node.size)?, 0);
        let key = self.key(node.root);
        pattern::fill(&mut self.room, key, node.root_offset);
        Ok(&self.room)
    }

    fn key(&self, root: usize) -> u64 {
        let root = &self.network.graph.tensors()[root];
        pattern::key(root.id, if root.kind == TensorKind::Constant { 0 } else { self.salt })
    }

    fn write(&mut self, tensor: usize, key: u64) -> Result<(), ArenaError> {
        let node = &self.network.graph.tensors()[tensor];
        // Inputs and constants have their content, and state is written with what it has.
        if node.size == 0 || self.network.rows[tensor].is_none() {
            return Ok(());
        }
        let mut array = self.array(tensor)?;
        self.room.resize(length(node.size)?, 0);
        pattern::fill(&mut self.room, key, node.root_offset);
        self.queue.write_from_slice(&mut array, &self.room)?;
        self.truth.write(node.root, node.root_offset..node.root_offset + node.size, key);
        Ok(())
    }

    /// The bytes that the plan gives to a tensor.
    fn array(&self, tensor: usize) -> Result<UsmVec<u8, AnyKind, B>, ArenaError> {
        let node = &self.network.graph.tensors()[tensor];
        let part = self.arena.tensor(node.id)?.allocation()?;
        // SAFETY: `Network::stream` has zeroed the bytes of all tensors of the arena before it made
        // this, and nothing but initialised bytes has been copied there since.
        let array = unsafe { UsmVec::from_allocation(part, length(node.size)?) };
        array.map_err(|(_, error)| error.into())
    }

    /// Whether a tensor has its content, outside of some positions.
    fn has_content(&mut self, tensor: usize, but: &[Range<usize>]) -> Result<bool, ArenaError> {
        let Network { graph, rows, constants, .. } = self.network;
        let node = &graph.tensors()[tensor];
        let size = length(node.size)?;
        let root = length(graph.tensors()[node.root].size)?;
        if size == 0 {
            return Ok(true);
        }
        let (mut begin, mut room) = (length(node.root_offset)?, core::mem::take(&mut self.room));
        if rows[tensor].is_some() {
            begin = 0;
            room.resize(size, 0);
            self.queue.read_to_slice(&mut room, &self.array(tensor)?)?;
        } else if let Some(array) = self.own.get(&node.root) {
            room.resize(root, 0);
            self.queue.read_to_slice(&mut room, array)?;
        } else if let Some(array) = constants.get(graph.tensors()[node.root].id) {
            room.resize(root, 0);
            self.queue.read_to_slice(&mut room, array)?;
        } else {
            return Ok(false);
        }
        let content = &room[begin..][..size];
        let right = self.pieces(tensor).into_iter().all(|(range, key)| {
            let [low, high] = [range.start, range.end].map(|at| (at - node.root_offset) as usize);
            let but: Vec<Range<usize>> =
                but.iter().map(|but| but.start.max(low) - low..but.end.max(low) - low).collect();
            pattern::differences(&content[low..high], key, range.start, &but) == 0
        });
        self.room = room;
        Ok(right)
    }
}
