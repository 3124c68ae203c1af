//! Ranks: the order in which candidates at the same offset are tried.

use alloc::vec::Vec;

use super::model::Model;

/// The keys of a rank, the most important first; all descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Length of the life, fullest clique, area.
    WidthTotalArea,
    /// Fullest clique, area, length of the life.
    TotalAreaWidth,
    /// Fullest clique, length of the life, area.
    TotalWidthArea,
}

/// A rule with the items' keys, disturbed by a seed.
#[derive(Debug)]
pub(super) struct Order {
    rule: Rule,
    width: Vec<u128>,
    area: Vec<u128>,
}

impl Order {
    /// `noise` in thousandths: every key grows by a random share up to that. Zero leaves the rule
    /// undisturbed.
    pub(super) fn new(model: &Model, rule: Rule, noise: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut order = Self { rule, width: Vec::new(), area: Vec::new() };
        for item in &model.items {
            let factor = if noise == 0 { 1000 } else { 1000 + random.random_below(noise) };
            let factor = u128::from(factor);
            order.width.push(u128::from(item.width) * factor);
            order.area.push((u128::from(item.width) * u128::from(item.size)).saturating_mul(factor));
        }
        order
    }

    /// Sorts the items of a part; `rest` is the room of the unplaced items of each clique.
    pub(super) fn sort(&self, model: &Model, rest: &[u64], items: &mut [u32]) {
        let key = |&item: &u32| {
            let i = item as usize;
            let (width, area) = (self.width[i], self.area[i]);
            let total = u128::from(model.cliques_of(i).map(|clique| rest[clique]).max().unwrap_or(0));
            let keys = match self.rule {
                Rule::WidthTotalArea => (width, total, area),
                Rule::TotalAreaWidth => (total, area, width),
                Rule::TotalWidthArea => (total, width, area),
            };
            (core::cmp::Reverse(keys), item)
        };
        items.sort_by_cached_key(key);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn random_below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
