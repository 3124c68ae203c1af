//! Finds the local and private arrays that may be read where nobody has written.
//!
//! Code sets these arrays to zero at first ([`with_zeros`](crate::zero::with_zeros)); the others
//! cost nothing. A walk keeps, for each array, the elements that have certainly been written. It
//! walks for one item with unknown ids, which knows an index by its form: the linear local id, or
//! the variable of a loop over the array. If that does not suffice for a local array, it walks for
//! all items of a group of known sizes at once, and computes with their ids.

mod form;
mod loops;
mod state;
mod value;

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use crate::kernel::{ArrayId, Atomic, Expr, Kernel, Query, Space, Stmt, StmtKind, VarId};
use state::{Full, State};
use value::Word;

/// Values that a walk may compute, over all items. Beyond, arrays count as read too early.
const BUDGET: u64 = 1 << 21;
/// Maximum number of items that are walked at once.
const ITEMS: u64 = 1024;
/// Maximum number of elements of an array whose elements are told apart.
const ELEMENTS: u64 = 1 << 16;

/// An array that code sets to zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) array: ArrayId,
    /// The local sizes of launches that need no zeros.
    pub(crate) unless: Option<Vec<u64>>,
}

/// The local and private arrays of a verified kernel that its code sets to zero at first, because
/// some item may read an element that nobody has written. Every element of the others is written
/// before it is read.
#[must_use]
pub fn zeroed(kernel: &Kernel) -> Vec<ArrayId> {
    needs(kernel).into_iter().map(|need| need.array).collect()
}

pub(crate) fn needs(kernel: &Kernel) -> Vec<Need> {
    let is_local = |array: &ArrayId| matches!(kernel.array(*array).space, Space::Local(_));
    let all = (0..kernel.arrays.len() as u32).map(ArrayId);
    let own: Vec<ArrayId> =
        all.filter(|id| matches!(kernel.array(*id).space, Space::Local(_) | Space::Private(_))).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let early_reads = Walker::new(kernel, None).read_early(&own);
    let (mut local, private): (Vec<_>, Vec<_>) = early_reads.into_iter().partition(is_local);
    let mut conditional_needs = Vec::new();
    match &kernel.group {
        _ if local.is_empty() => {}
        Some(group) if !group.contains(&0) => {
            if group.iter().product::<u64>() <= ITEMS {
                local = Walker::new(kernel, Some(group)).read_early(&local);
            }
        }
        Some(_) => {}
        None => {
            for group in likely_groups(kernel, &local) {
                let left = Walker::new(kernel, Some(&group)).read_early(&local);
                conditional_needs.extend(
                    local
                        .iter()
                        .filter(|id| !left.contains(id))
                        .map(|id| Need { array: *id, unless: Some(group.clone()) }),
                );
                local = left;
            }
        }
    }
    let certain_needs = local.into_iter().chain(private).map(|array| Need { array, unless: None });
    conditional_needs.into_iter().chain(certain_needs).collect()
}

/// Sizes of groups with as many items as an array has elements, for a kernel that does not state
/// its group.
fn likely_groups(kernel: &Kernel, local: &[ArrayId]) -> Vec<Vec<u64>> {
    let walker = Walker::new(kernel, None);
    let mut groups = Vec::new();
    for id in local {
        let Some(len) = walker.lens[id.0 as usize].filter(|len| (1..=ITEMS).contains(len)) else { continue };
        let side = len.isqrt();
        let group = match kernel.dimensions {
            1 => vec![len],
            2 if side * side == len => vec![side; 2],
            _ => continue,
        };
        if !groups.contains(&group) && groups.len() < 4 {
            groups.push(group);
        }
    }
    groups
}

struct Walker<'k> {
    kernel: &'k Kernel,
    /// The local ids of the items that are walked; `None` for one item with unknown ids.
    ids: Option<Vec<[u64; 3]>>,
    /// Items of a group in each dimension.
    sizes: Vec<Option<u64>>,
    /// Elements of each array.
    lens: Vec<Option<u64>>,
    asked: Vec<bool>,
    early: Vec<bool>,
    left: u64,
}

impl<'k> Walker<'k> {
    fn new(kernel: &'k Kernel, group: Option<&Vec<u64>>) -> Self {
        let group_size = group.or(kernel.group.as_ref());
        let size = |d: usize| group_size.and_then(|sizes| sizes.get(d).copied()).filter(|size| *size != 0);
        let sizes: Vec<Option<u64>> = (0..usize::from(kernel.dimensions)).map(size).collect();
        let ids = group.map(|group| {
            let mut ids = vec![[0; 3]];
            for (dimension, size) in group.iter().enumerate() {
                let along = |id: &[u64; 3]| {
                    let mut id = *id;
                    (0..*size).map(move |at| {
                        id[dimension] = at;
                        id
                    })
                };
                ids = ids.iter().flat_map(along).collect();
            }
            ids
        });
        let count = kernel.arrays.len();
        let mut walker = Self {
            kernel,
            ids,
            sizes,
            lens: vec![None; count],
            asked: vec![false; count],
            early: vec![false; count],
            left: BUDGET,
        };
        let state = State::new(kernel, walker.items());
        for (index, array) in kernel.arrays.iter().enumerate() {
            walker.lens[index] = match &array.space {
                Space::Constant(len) | Space::Private(len) => Some(*len),
                Space::Local(len) | Space::Extent(len) => walker.value(len, &state, &state.mask).same(),
                _ => None,
            };
        }
        walker
    }

    fn items(&self) -> usize {
        self.ids.as_ref().map_or(1, Vec::len)
    }

    /// The arrays that may be read where nobody has written.
    fn read_early(mut self, arrays: &[ArrayId]) -> Vec<ArrayId> {
        arrays.iter().for_each(|id| self.asked[id.0 as usize] = true);
        let mut state = State::new(self.kernel, self.items());
        self.block(&self.kernel.body, &mut state);
        arrays.iter().copied().filter(|id| self.left == 0 || self.early[id.0 as usize]).collect()
    }

    fn spend(&mut self, values: u64) {
        self.left = self.left.saturating_sub(values);
    }

    fn block(&mut self, body: &[Stmt], state: &mut State) {
        for stmt in body {
            if self.left == 0 || !state.is_reached() {
                return;
            }
            self.stmt(stmt, state);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut State) {
        let mask = Rc::clone(&state.mask);
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let word = self.value(value, state, &mask);
                let form = self.form(value, state);
                state.set(*variable, word, form);
            }
            StmtKind::Store { array, index, value } => {
                let _ = self.value(value, state, &mask);
                let word = self.value(index, state, &mask);
                self.write(*array, &word, index, state);
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let _ = self.value(value, state, &mask);
                let index = self.value(index, state, &mask);
                // An exchange whose old value nobody asks for reads nothing.
                if *operation != Atomic::Exchange || old.is_some() {
                    self.read(*array, &index, state, &mask);
                }
                self.forget(*old, state);
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                for value in [expected, new] {
                    let _ = self.value(value, state, &mask);
                }
                let index = self.value(index, state, &mask);
                self.read(*array, &index, state, &mask);
                self.forget(*old, state);
            }
            StmtKind::Collect { variable, value, .. } => {
                let _ = self.value(value, state, &mask);
                self.forget(Some(*variable), state);
                self.publish(state);
            }
            StmtKind::Broadcast { variable, value, from } => {
                let _ = (self.value(value, state, &mask), self.value(from, state, &mask));
                self.forget(Some(*variable), state);
                self.publish(state);
            }
            StmtKind::If { condition, then, other } => self.branch(condition, then, other, state),
            StmtKind::While(condition, body) => self.repeat(condition, body, state),
            StmtKind::For { variable, start, end, step, body } => {
                self.count(*variable, [start, end, step], body, state);
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Return => state.leave(),
            StmtKind::Barrier { local: true, .. } => self.publish(state),
            StmtKind::Barrier { .. } | StmtKind::Fence { .. } => {}
        }
    }

    fn forget(&self, variable: Option<VarId>, state: &mut State) {
        variable.into_iter().for_each(|variable| state.set(variable, Word::Unknown, None));
    }

    /// All items see what items have written to local memory.
    fn publish(&mut self, state: &mut State) {
        for index in 0..self.asked.len() {
            if !self.asked[index] || !matches!(self.kernel.arrays[index].space, Space::Local(_)) {
                continue;
            }
            let Full { own, part, first, shared } = state.full[index];
            state.full[index].shared = shared || own || part || first;
            self.spend(state.own[index].len() as u64);
            state.publish(index);
        }
    }

    fn branch(&mut self, condition: &Expr, then: &[Stmt], other: &[Stmt], state: &mut State) {
        let mask = Rc::clone(&state.mask);
        let word = self.value(condition, state, &mask);
        self.spend((state.size() * self.items()) as u64);
        let (mut one, mut two) = (state.clone(), state.clone());
        one.mask = value::narrow(&mask, &word, 1);
        two.mask = value::narrow(&mask, &word, 0);
        self.block(then, &mut one);
        self.block(other, &mut two);
        let firsts = self.is_first(condition, state) && one.is_reached();
        let positions: Vec<usize> =
            (0..self.asked.len()).filter(|index| firsts && one.full[*index].own).collect();
        *state = State::join(one, two);
        positions.into_iter().for_each(|index| state.full[index].first = true);
    }

    fn write(&mut self, array: ArrayId, word: &Word, index: &Expr, state: &mut State) {
        let at = array.0 as usize;
        if !self.asked[at] {
            return;
        }
        if self.is_own_element(array, index, state) {
            state.full[at].part = true;
        }
        let Some(len) = self.lens[at].filter(|len| *len <= ELEMENTS) else { return };
        self.spend(self.items() as u64);
        state.write(at, word, len);
    }

    /// Records a read by the items of a mask.
    fn read(&mut self, array: ArrayId, index: &Word, state: &State, mask: &[bool]) {
        let at = array.0 as usize;
        if self.asked[at] && !state.is_written(at, index, self.lens[at], mask) {
            self.early[at] = true;
        }
    }

    fn size(&self, query: Query, dimension: u8) -> Option<u64> {
        (query == Query::LocalSize)
            .then(|| self.sizes.get(usize::from(dimension)).copied())
            .flatten()
            .flatten()
    }
}

#[cfg(test)]
mod tests;
