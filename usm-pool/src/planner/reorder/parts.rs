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
        let mut decisions: Vec<bool> = Vec::new();
        loop {
            if decisions.len() == self.path.len() {
                if self.left == 0 {
                    for (&op, &is_in) in self.path.iter().zip(&decisions).rev() {
                        if is_in {
                            walk.take_back(op);
                        }
                    }
                    return false;
                }
                self.left -= 1;
                let count = decisions.iter().filter(|&&is_in| is_in).count();
                if count < self.path.len() {
                    self.second = self.second.min(walk.level);
                }
                if count > 0 && (walk.level, Reverse(count)) < self.best {
                    self.best = (walk.level, Reverse(count));
                    self.set.clone_from(&decisions);
                }
                // Back to the last operator that was taken, and leaves it out.
                loop {
                    match decisions.pop() {
                        Some(true) => {
                            walk.take_back(self.path[decisions.len()]);
                            decisions.push(false);
                            break;
                        }
                        Some(false) => {}
                        None => return true,
                    }
                }
                continue;
            }
            let op = self.path[decisions.len()];
            let ready = walk.is_ready(op);
            if ready {
                walk.run(op);
            }
            decisions.push(ready);
        }
    }
}
