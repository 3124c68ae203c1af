//! Several memories with sizes, the best one first: fast on-chip memory, device memory, memory of a
//! neighbour, host memory.

use alloc::vec::Vec;

use super::plan_part;
use crate::Error;
use crate::plan::{Memory, Plan};
use crate::planner::Options;
use crate::problem::Problem;

/// One memory, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Space {
    /// Bytes of this memory for the arena.
    pub size: u64,
    /// Largest single object in it; the arena itself is one.
    pub max_alloc: Option<u64>,
}

impl Space {
    /// A memory with this size in bytes.
    #[must_use]
    pub const fn new(size: u64) -> Self {
        Self { size, max_alloc: None }
    }

    /// The same with a limit on single objects, in bytes.
    #[must_use]
    pub const fn max_alloc(mut self, bytes: u64) -> Self {
        self.max_alloc = Some(bytes);
        self
    }

    fn device_limit(&self) -> u64 {
        self.max_alloc.map_or(self.size, |object| object.min(self.size))
    }
}

/// The part in one memory: its own problem and plan, for its own [`Arena`](crate::arena::Arena).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// The buffers in this memory.
    pub problem: Problem,
    /// Their offsets in this memory.
    pub plan: Plan,
}

/// A problem spread over memories.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use]
pub struct Spread {
    /// For each buffer of the problem the index of its memory; `None` if it fits nowhere.
    pub memory: Vec<Option<usize>>,
    /// One part for each memory, in the order given.
    pub parts: Vec<Part>,
    /// Ids of the buffers that fit nowhere, in the order of the problem.
    pub spilled: Vec<u64>,
}

/// Fills the memories in order: each takes the buffers that fit among those that the earlier
/// memories left. A buffer is in one memory. The node budget of the options applies to each memory
/// separately; a capacity is ignored.
///
/// # Errors
/// As [`plan`](crate::plan()).
///
/// ```
/// use usm_pool::placement::{Space, spread};
/// use usm_pool::{Buffer, Options, Problem};
///
/// let buffers = vec![Buffer::new(0, 0, 4, 100), Buffer::new(1, 0, 2, 60), Buffer::new(2, 2, 4, 60), Buffer::new(3, 0, 4, 500)];
/// let problem = Problem::from_buffers(buffers)?;
/// let found = spread(&problem, &Options::default(), &[Space::new(64), Space::new(128)])?;
/// // 1 and 2 take turns in the small memory, 0 lies in the other one, 3 in neither.
/// assert_eq!(found.memory, [Some(1), Some(0), Some(0), None]);
/// assert_eq!((found.parts[0].plan.peak, found.parts[1].plan.peak), (60, 100));
/// assert_eq!(found.spilled, [3]);
/// # Ok::<(), usm_pool::Error>(())
/// ```
pub fn spread(problem: &Problem, options: &Options<'_>, spaces: &[Space]) -> Result<Spread, Error> {
    let mut options = *options;
    options.capacity = None;
    let mut found = Spread {
        memory: alloc::vec![None; problem.buffers().len()],
        parts: Vec::with_capacity(spaces.len()),
        spilled: Vec::new(),
    };
    for (index, space) in spaces.iter().enumerate() {
        // For `plan_part` this memory is the device and all others the host; it does not see
        // buffers in earlier memories.
        let left: Vec<usize> = (0..found.memory.len()).filter(|&i| found.memory[i].is_none()).collect();
        let rest = problem.subset(&left)?;
        let fits = |&size: &u64| size <= space.device_limit();
        let mut placement: Vec<Memory> = (rest.buffers().iter())
            .map(|buffer| if fits(&buffer.size) { Memory::Device } else { Memory::Host })
            .collect();
        let (problem, plan) = plan_part(&rest, &options, space.device_limit(), &mut placement)?;
        for (&buffer, memory) in left.iter().zip(placement) {
            if memory == Memory::Device {
                found.memory[buffer] = Some(index);
            }
        }
        found.parts.push(Part { problem, plan });
    }
    let nowhere = problem.buffers().iter().zip(&found.memory).filter(|(_, memory)| memory.is_none());
    found.spilled = nowhere.map(|(buffer, _)| buffer.id).collect();
    Ok(found)
}
