//! What items have certainly written.

use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use super::value::Word;
use crate::kernel::{Expr, Kernel, VarId};

/// Whether all elements of an array are written.
#[derive(Clone, Copy, Default)]
pub(super) struct Full {
    /// By each item.
    pub(super) own: bool,
    /// By each item the elements whose index differs from its linear local id by a multiple of the
    /// number of items.
    pub(super) part: bool,
    /// By the first item.
    pub(super) first: bool,
    /// By some item, before a barrier.
    pub(super) shared: bool,
}

/// A variable's value, and its form.
type Variable = (Word, Option<Rc<Expr>>);

/// A point of the walk, for the items that reach it.
#[derive(Clone)]
pub(super) struct State {
    variables: Vec<Variable>,
    pub(super) full: Vec<Full>,
    /// For each array the elements that an item has written: its number, and the index.
    pub(super) own: Vec<Rc<BTreeSet<(u32, u64)>>>,
    /// Elements that were written before a barrier.
    shared: Vec<Rc<BTreeSet<u64>>>,
    /// The items that may be here.
    pub(super) mask: Rc<[bool]>,
}

impl State {
    pub(super) fn new(kernel: &Kernel, items: usize) -> Self {
        let arrays = kernel.arrays.len();
        Self {
            variables: vec![(Word::Unknown, None); kernel.variables.len()],
            full: vec![Full::default(); arrays],
            own: vec![Rc::default(); arrays],
            shared: vec![Rc::default(); arrays],
            mask: vec![true; items].into(),
        }
    }

    /// The number of its parts.
    pub(super) fn size(&self) -> usize {
        self.variables.len() + self.full.len()
    }

    pub(super) fn is_reached(&self) -> bool {
        self.mask.contains(&true)
    }

    pub(super) fn leave(&mut self) {
        self.mask = vec![false; self.mask.len()].into();
    }

    pub(super) fn variable(&self, variable: VarId) -> &Variable {
        &self.variables[variable.0 as usize]
    }

    /// Sets a variable of the items that are here.
    pub(super) fn set(&mut self, variable: VarId, word: Word, form: Option<Rc<Expr>>) {
        let entry = &mut self.variables[variable.0 as usize];
        let word = match self.mask.contains(&false) {
            true => Word::each(
                &self.mask,
                |item, is_active| if is_active { word.at(item) } else { entry.0.at(item) },
            ),
            false => word,
        };
        *entry = (word, form);
    }

    pub(super) fn write(&mut self, array: usize, index: &Word, len: u64) {
        for (item, _) in self.mask.iter().enumerate().filter(|(_, is_active)| **is_active) {
            let Some(index) = index.at(item).filter(|index| *index < len) else { continue };
            Rc::make_mut(&mut self.own[array]).insert((item as u32, index));
        }
        self.full[array].own |= self.mask.len() == 1 && self.own[array].len() as u64 == len;
    }

    pub(super) fn publish(&mut self, array: usize) {
        if self.own[array].is_empty() {
            return;
        }
        let shared = Rc::make_mut(&mut self.shared[array]);
        let active_items = self.own[array].iter().filter(|(item, _)| self.mask[*item as usize]);
        shared.extend(active_items.map(|(_, index)| *index));
    }

    /// Whether the elements that the items of a mask read are written.
    pub(super) fn is_written(&self, array: usize, index: &Word, len: Option<u64>, mask: &[bool]) -> bool {
        let (full, shared) = (self.full[array], &self.shared[array]);
        if full.own || full.shared || len.is_some_and(|len| shared.len() as u64 == len) {
            return true;
        }
        let Some(len) = len else { return false };
        let mut items = mask.iter().enumerate().filter(|(_, is_active)| **is_active);
        items.all(|(item, _)| {
            index.at(item).is_some_and(|index| {
                // Nothing is read outside of the array.
                index >= len || shared.contains(&index) || self.own[array].contains(&(item as u32, index))
            })
        })
    }

    /// The state behind two branches.
    pub(super) fn join(one: Self, two: Self) -> Self {
        match (one.is_reached(), two.is_reached()) {
            (_, false) => return one,
            (false, true) => return two,
            (true, true) => {}
        }
        let (first, second) = (one.mask, two.mask);
        let variables = one.variables.into_iter().zip(two.variables).map(|(one, two)| {
            let form = if one.1 == two.1 { one.1 } else { None };
            if one.0 == two.0 {
                return (one.0, form);
            }
            let value = |item: usize, _| match (first[item], second[item]) {
                (true, true) => one.0.at(item).filter(|value| two.0.at(item) == Some(*value)),
                (true, false) => one.0.at(item),
                _ => two.0.at(item),
            };
            (Word::each(&first, value), form)
        });
        let full = one.full.iter().zip(&two.full).map(|(one, two)| Full {
            own: one.own && two.own,
            part: one.part && two.part,
            first: one.first && two.first,
            shared: one.shared && two.shared,
        });
        let own = one.own.into_iter().zip(two.own).map(|(one, two)| {
            if Rc::ptr_eq(&one, &two) {
                return one;
            }
            let is_common = |element: &&(u32, u64),
                             is_active_here: &[bool],
                             is_active_there: &[bool],
                             other: &BTreeSet<(u32, u64)>| {
                let item = element.0 as usize;
                is_active_here[item] && (!is_active_there[item] || other.contains(*element))
            };
            let ones = one.iter().filter(|element| is_common(element, &first, &second, &two));
            let twos = two.iter().filter(|element| is_common(element, &second, &first, &one));
            Rc::new(ones.chain(twos).copied().collect())
        });
        let shared = one.shared.into_iter().zip(two.shared).map(|(one, two)| match Rc::ptr_eq(&one, &two) {
            true => one,
            false => Rc::new(one.intersection(&two).copied().collect()),
        });
        Self {
            variables: variables.collect(),
            full: full.collect(),
            own: own.collect(),
            shared: shared.collect(),
            mask: first.iter().zip(&*second).map(|(one, two)| *one || *two).collect(),
        }
    }
}
