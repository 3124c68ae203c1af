//! Constants: created in host memory, moved to device memory once their users are known, and shared
//! by all batches and streams.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;

use usm_core::{AllocKind, AnyKind, Backend, Device, Host, MemorySource, Queue, UsmVec};

use crate::graph::{Graph, TensorKind};

/// Where the users of a constant read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Readers {
    /// Only kernels on the device: device memory is best.
    Device,
    /// Also the host (a host operator, a shape computation): the constant must stay host
    /// accessible.
    Host,
}

/// Constants that are being built, all in host memory.
pub struct ConstantBuilder<B: Backend> {
    values: BTreeMap<u64, UsmVec<u8, Host, B>>,
}

impl<B: Backend> fmt::Debug for ConstantBuilder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConstantBuilder").field("constants", &self.values.len()).finish()
    }
}

impl<B: Backend> Default for ConstantBuilder<B> {
    fn default() -> Self {
        Self { values: BTreeMap::new() }
    }
}

/// Result of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// Constants that moved to device memory.
    pub moved: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Constants that stay in host memory because the host reads them.
    pub kept: usize,
    /// Constants that stay because device memory had no room.
    pub refused: usize,
}

impl<B: Backend> ConstantBuilder<B> {
    /// No constants yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies a constant's bytes into host memory. A repeated id replaces the value.
    ///
    /// # Errors
    /// The allocation's error; [`usm_core::ErrorKind::ZeroSize`] for a constant without bytes.
    pub fn insert<S: MemorySource<B>>(
        &mut self,
        queue: &Queue<B>,
        source: &S,
        id: u64,
        bytes: &[u8],
    ) -> usm_core::Result<()> {
        if bytes.is_empty() {
            return Err(usm_core::ErrorKind::ZeroSize.into());
        }
        self.values.insert(id, UsmVec::from_slice_in(queue, source, bytes)?);
        Ok(())
    }

    /// Moves every constant that only the device reads: allocates device memory, copies, waits, and
    /// drops the host copy. Constants without room in device memory stay in host memory, which the
    /// device can read too. Clone the result to share it.
    ///
    /// # Errors
    /// A copy that failed.
    pub fn transfer<S: MemorySource<B>>(
        self,
        queue: &Queue<B>,
        source: &S,
        readers: impl Fn(u64) -> Readers,
    ) -> usm_core::Result<(Constants<B>, Transfer)> {
        let mut report = Transfer::default();
        let mut values = BTreeMap::new();
        for (id, host) in self.values {
            if readers(id) == Readers::Host {
                report.kept += 1;
                values.insert(id, host.into_any());
                continue;
            }
            let bytes = host.len();
            match UsmVec::<u8, Device, B>::uninit(source, bytes) {
                Ok(room) => {
                    let (device, _) = room.copy_from(queue, &host)?;
                    queue.wait()?;
                    report.moved += 1;
                    report.bytes += bytes as u64;
                    values.insert(id, device.into_any());
                }
                Err(_) => {
                    report.refused += 1;
                    values.insert(id, host.into_any());
                }
            }
        }
        Ok((Constants { values: Arc::new(values) }, report))
    }
}

/// Finished constants. A clone shares the memory: one set serves all batches and streams of a
/// network.
pub struct Constants<B: Backend> {
    values: Arc<BTreeMap<u64, UsmVec<u8, AnyKind, B>>>,
}

impl<B: Backend> Clone for Constants<B> {
    fn clone(&self) -> Self {
        Self { values: self.values.clone() }
    }
}

impl<B: Backend> fmt::Debug for Constants<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constants").field("constants", &self.values.len()).finish()
    }
}

impl<B: Backend> Constants<B> {
    /// The bytes of a constant, for reading.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&UsmVec<u8, AnyKind, B>> {
        self.values.get(&id)
    }

    /// Kind of the memory that a constant lies in.
    #[must_use]
    pub fn kind(&self, id: u64) -> Option<AllocKind> {
        self.get(id).map(UsmVec::kind)
    }
}

/// Ids and sizes in bytes of the constants of a graph.
pub fn of_graph(graph: &Graph) -> impl Iterator<Item = (u64, u64)> + '_ {
    let constants =
        graph.tensors().iter().filter(|node| node.kind == TensorKind::Constant && node.alias.is_none());
    constants.map(|node| (node.id, node.size))
}
