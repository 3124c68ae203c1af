//! The predecessor-closed parts of a list of operators.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::walk::Walk;

/// Compares all predecessor-closed parts of a path.
pub(super) struct Parts<'p> {
    pub(super) path: &'p [u32],
    pub(super) best: (u64, Reverse<usize>),
    pub(super) set: Vec<bool>,
    /// The fewest bytes of a part that is not the whole path.
    pub(super) second: u64,
    pub(super) left: usize,
}

impl Parts<'_> {
    /// Takes and leaves out each operator in turn; false if there are too many parts.
    pub(super) fn compare(&mut self, walk: &mut Walk<'_>) -> bool {
        // An explicit stack: a path may be as long as the graph.
        let mut decided: Vec<bool> = Vec::new();
        loop {
            if decided.len() == self.path.len() {
                if self.left == 0 {
                    for (&op, &taken) in self.path.iter().zip(&decided).rev() {
                        if taken {
                            walk.take_back(op);
                        }
                    }
                    return false;
                }
                self.left -= 1;
                let count = decided.iter().filter(|&&taken| taken).count();
                if count < self.path.len() {
                    self.second = self.second.min(walk.level);
                }
                if count > 0 && (walk.level, Reverse(count)) < self.best {
                    self.best = (walk.level, Reverse(count));
                    self.set.clone_from(&decided);
                }
                // Back to the last operator that was taken, and leaves it out.
                loop {
                    match decided.pop() {
                        Some(true) => {
                            walk.take_back(self.path[decided.len()]);
                            decided.push(false);
                            break;
                        }
                        Some(false) => {}
                        None => return true,
                    }
                }
                continue;
            }
            let op = self.path[decided.len()];
            let ready = walk.is_ready(op);
            if ready {
                walk.run(op);
            }
            decided.push(ready);
        }
    }
}
