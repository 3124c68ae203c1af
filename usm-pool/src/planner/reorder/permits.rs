//! What the permits of an operator can save at most.
//!
//! An output over an input saves the bytes that both have. An output lies over one input, and no
//! two outputs share bytes, so what an operator saves is at most a flow: from the inputs to the
//! outputs along the permits, through each at most its size. Losing one of them loses at most its
//! size, which the proof of descents needs.

use alloc::vec::Vec;

use super::lives::Root;

/// Permits that share inputs or outputs with each other. Roots are named by index.
#[derive(Clone, Debug)]
pub(super) struct Permits {
    /// Roots that must end with the operator.
    pub(super) ends: Vec<u32>,
    /// Roots that must begin with it.
    pub(super) begins: Vec<u32>,
    /// Permits by their positions in both lists.
    pairs: Vec<(usize, usize)>,
}

/// Most roots of the shorter list whose subsets are compared.
const COMPARED: usize = 8;

impl Permits {
    /// The permits of an operator, in groups that share nothing.
    pub(super) fn groups(pairs: &[(u32, u32)]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for &(source, target) in pairs {
            let shares = |group: &Self| group.ends.contains(&source) || group.begins.contains(&target);
            let (mut overlaps, rest): (Vec<Self>, Vec<Self>) = groups.into_iter().partition(shares);
            groups = rest;
            let one =
                Self { ends: alloc::vec![source], begins: alloc::vec![target], pairs: alloc::vec![(0, 0)] };
            overlaps.push(one);
            let mut all = Self { ends: Vec::new(), begins: Vec::new(), pairs: Vec::new() };
            for group in overlaps {
                for (end, begin) in group.pairs {
                    let pair =
                        (place(&mut all.ends, group.ends[end]), place(&mut all.begins, group.begins[begin]));
                    if !all.pairs.contains(&pair) {
                        all.pairs.push(pair);
                    }
                }
            }
            groups.push(all);
        }
        groups
    }

    /// The same with time backwards.
    pub(super) fn reversed(&self) -> Self {
        let pairs = self.pairs.iter().map(|&(end, begin)| (begin, end)).collect();
        Self { ends: self.begins.clone(), begins: self.ends.clone(), pairs }
    }

    /// The most bytes that they save, if these roots end and these begin with the operator.
    pub(super) fn count_savings(
        &self,
        roots: &[Root],
        ends: impl Fn(u32) -> bool,
        begins: impl Fn(u32) -> bool,
    ) -> u64 {
        let room = |root: u32| roots[root as usize].room;
        if let ([end], [begin]) = (&self.ends[..], &self.begins[..]) {
            return if ends(*end) && begins(*begin) { room(*end).min(room(*begin)) } else { 0 };
        }
        let reverse;
        let shorter = if self.ends.len() <= self.begins.len() {
            self
        } else {
            reverse = self.reversed();
            &reverse
        };
        let few = shorter.ends.len();
        if few > COMPARED {
            // Saved in every order: more than can be.
            return shorter.ends.iter().map(|&root| room(root)).sum();
        }
        let is_there = |root: u32| {
            if self.ends.contains(&root) { ends(root) } else { begins(root) }
        };
        let is_live: Vec<bool> = shorter.ends.iter().map(|&root| is_there(root)).collect();
        let other: Vec<bool> = shorter.begins.iter().map(|&root| is_there(root)).collect();
        // The least cut: some roots of the shorter list, and all that the others reach.
        let cut = |cut: usize| {
            let is_cut = |at: usize| cut >> at & 1 == 1;
            let cut_rooms = (0..few).filter(|&at| is_live[at] && is_cut(at)).map(|at| room(shorter.ends[at]));
            let is_reached = |at: &usize| {
                other[*at]
                    && shorter.pairs.iter().any(|&(end, begin)| begin == *at && is_live[end] && !is_cut(end))
            };
            let beyond = (0..other.len()).filter(is_reached).map(|at| room(shorter.begins[at]));
            cut_rooms.chain(beyond).sum::<u64>()
        };
        (0..1 << few).map(cut).min().unwrap_or(0)
    }
}

/// The position of a root in a list, which gets it if necessary.
fn place(list: &mut Vec<u32>, root: u32) -> usize {
    list.iter().position(|&other| other == root).unwrap_or_else(|| {
        list.push(root);
        list.len() - 1
    })
}
