//! Which operators write which bytes, and the order that this demands.
//!
//! A tensor has the content that its operator gave it. A view has the bytes of its root, so an
//! operator that writes a view replaces the content of other tensors. Accesses to the same bytes of
//! a root keep their processing order if one of them is a write.

use alloc::vec::Vec;

use super::{Graph, GraphError, TensorNode};

impl TensorNode {
    fn end(&self) -> u64 {
        self.root_offset.saturating_add(self.size)
    }

    /// Whether both have a byte of one root.
    fn meets(&self, other: &Self) -> bool {
        self.root == other.root && self.root_offset.max(other.root_offset) < self.end().min(other.end())
    }

    /// Whether all bytes of the other one are bytes of this one.
    fn covers(&self, other: &Self) -> bool {
        self.root == other.root && self.root_offset <= other.root_offset && other.end() <= self.end()
    }
}

impl Graph {
    /// Whether an operator writes the tensor. An operator that reads all bytes of its output, as
    /// tensors of the same root, makes a view and writes nothing.
    pub(crate) fn is_written(&self, tensor: usize) -> bool {
        let node = &self.tensors[tensor];
        let Some(op) = node.producer else { return false };
        let inputs = self.ops[op].inputs.iter().map(|&input| &self.tensors[input]);
        let mut read: Vec<(u64, u64)> = inputs
            .filter(|input| input.root == node.root)
            .map(|input| (input.root_offset, input.end()))
            .collect();
        if read.is_empty() {
            return true;
        }
        read.sort_unstable();
        let mut at = node.root_offset;
        for (low, high) in read {
            if low <= at {
                at = at.max(high);
            }
        }
        at < node.end()
    }

    /// The operators that must end before `op` begins, with repetitions. They may include later
    /// ones, whose results the operator reads in the next iteration of a loop.
    ///
    /// A view without a producer stands for the writers of the bytes under it.
    pub(crate) fn predecessors(&self, op: usize) -> Vec<usize> {
        let mut predecessors = Vec::new();
        for &input in &self.ops[op].inputs {
            let node = &self.tensors[input];
            predecessors.extend(node.producer);
            // The first iteration of a loop reads what is there before the producer runs.
            if node.producer.is_none_or(|producer| producer >= op) || self.rewritten[node.root] {
                predecessors.extend(self.writers_under(input).filter(|&writer| writer < op));
            }
        }
        for &output in &self.ops[op].outputs {
            let node = &self.tensors[output];
            if self.rewritten[node.root] && self.is_written(output) {
                let members = self.family(node.root).iter().map(|&member| &self.tensors[member]);
                let overlaps = members.filter(|other| other.meets(node));
                let accesses = overlaps.flat_map(|other| other.users.iter().copied().chain(other.producer));
                predecessors.extend(accesses.filter(|&access| access < op));
            }
        }
        predecessors
    }

    /// Operators that write bytes of `tensor`.
    fn writers_under(&self, tensor: usize) -> impl Iterator<Item = usize> + '_ {
        let node = &self.tensors[tensor];
        self.family(node.root).iter().filter_map(move |&member| {
            let other = &self.tensors[member];
            other.producer.filter(|_| other.meets(node) && self.is_written(member))
        })
    }

    /// For each root whether some of its bytes are written after another operator has used them, so
    /// that results alone do not order its operators.
    pub(crate) fn find_rewritten(&self) -> Vec<bool> {
        let is_rewritten = |family: &Vec<usize>| {
            let nodes = || family.iter().map(|&member| &self.tensors[member]);
            let written_members = || family.iter().copied().filter(|&member| self.is_written(member));
            let writes =
                || written_members().filter_map(|member| Some((member, self.tensors[member].producer?)));
            let first_read = nodes().filter_map(|node| node.users.first().copied()).min();
            let last_write = writes().map(|(_, op)| op).max();
            if first_read.zip(last_write).is_some_and(|(read, write)| read < write) {
                let earlier = |(member, op): (usize, usize)| {
                    let overlaps = nodes().filter(|node| node.meets(&self.tensors[member]));
                    overlaps.flat_map(|node| node.users.first()).any(|&user| user < op)
                };
                if writes().any(earlier) {
                    return true;
                }
            }
            let range = |member: usize| (self.tensors[member].root_offset, self.tensors[member].end());
            let mut ranges: Vec<(u64, u64)> = written_members().map(range).collect();
            ranges.sort_unstable();
            let mut top = 0;
            ranges.into_iter().any(|(low, high)| {
                let meets = low < top.min(high);
                top = top.max(high);
                meets
            })
        };
        self.families.iter().map(is_rewritten).collect()
    }

    /// Refuses an operator that reads a tensor after another one has replaced all of its bytes in
    /// the same iteration of a loop: the first iteration might find its content, the next ones not.
    pub(super) fn check_iterations(&self) -> Result<(), GraphError> {
        for (writer, node) in self.ops.iter().enumerate() {
            let innermost = self.loops.iter().filter(|&&(first, last)| (first..=last).contains(&writer));
            let Some(&(_, last)) = innermost.min_by_key(|&&(first, last)| last - first) else { continue };
            for &output in &node.outputs {
                let target = &self.tensors[output];
                if !self.rewritten[target.root] || !self.is_written(output) {
                    continue;
                }
                for &member in self.family(target.root) {
                    let other = &self.tensors[member];
                    let is_older = other.producer.is_some_and(|producer| producer < writer);
                    let is_replaced = is_older && other.size > 0 && target.covers(other);
                    let late_reader = other.users.iter().find(|&&user| writer < user && user <= last);
                    if let (true, Some(&op)) = (is_replaced, late_reader) {
                        return Err(GraphError::Replaced { op, tensor: other.id, writer });
                    }
                }
            }
        }
        Ok(())
    }
}
