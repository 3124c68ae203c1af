//! The tables of a plan for every value, in the order in which an evaluation reads them.
//!
//! A plan lists the roots below each root, so every offset is written once. The bound comes first:
//! of the plans, those after one that meets it are left out.
//! What an evaluation refuses is left to [`usm_pool::range::at`], which names the reason.

use usm_pool::Buffer;
use usm_pool::range::{At, Term, evaluate};

/// Size, alignment, root and offset in the root of a tensor.
pub(super) type Item = (Vec<Term>, u64, u32, Vec<Term>);

#[derive(Debug)]
pub(super) struct Evaluation {
    amounts: Vec<Amount>,
    roots: usize,
    stacks: Vec<Stack>,
    views: Vec<View>,
    units: Vec<Unit>,
}

/// A size or an offset. Most of them are a number or a multiple of a dimension.
#[derive(Debug)]
enum Amount {
    Number(u64),
    /// The dimension, its factor, and what is added.
    Linear(u32, u64, u64),
    Terms(Vec<Term>),
}

/// One plan: its roots, each after those below it.
#[derive(Debug)]
struct Stack {
    roots: Vec<Root>,
    /// Positions of the roots below, for one root after the other.
    below: Vec<u32>,
}

#[derive(Debug)]
struct Root {
    item: u32,
    alignment: u64,
    /// Where its list of roots below ends.
    below_end: u32,
}

/// A tensor inside of a root.
#[derive(Debug)]
struct View {
    item: u32,
    /// Index of the amount that is its offset there.
    inside: u32,
    alignment: u64,
    root: u32,
}

/// The lives of the blocks whose alignment is at least the unit.
#[derive(Debug)]
struct Unit {
    bytes: u64,
    /// Tensors that begin to be live and that end, in the order of time, ends first.
    changes: Vec<(u32, bool)>,
    /// Each tensor with the changes at which it begins and ends.
    lives: Vec<(u32, u32, u32)>,
}

/// Most instants close to the heaviest one that are compared.
const CLOSE: usize = 64;

impl Amount {
    fn new(terms: &[Term]) -> Self {
        use Term::{Add, Dimension, Multiply, Number};
        let (product, rest) = match terms {
            [product @ .., Number(rest), Add] if !product.is_empty() => (product, *rest),
            whole => (whole, 0),
        };
        match *product {
            [Number(number)] if rest == 0 => Self::Number(number),
            [Dimension(dimension)] => Self::Linear(dimension, 1, rest),
            [Dimension(dimension), Number(factor), Multiply]
            | [Number(factor), Dimension(dimension), Multiply] => Self::Linear(dimension, factor, rest),
            _ => Self::Terms(terms.to_vec()),
        }
    }

    fn of(&self, values: &[u64]) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Linear(dimension, factor, rest) => {
                values.get(*dimension as usize)?.checked_mul(*factor)?.checked_add(*rest)
            }
            Self::Terms(terms) => evaluate(terms, values).ok(),
        }
    }
}

impl Evaluation {
    /// `None` for tables that contradict themselves.
    pub(super) fn new(items: &[Item], plans: &[Vec<(u32, u32)>], blocks: &[(Buffer, u32)]) -> Option<Self> {
        // The size of each tensor, and then the offsets of views.
        let mut amounts: Vec<Amount> = items.iter().map(|(size, ..)| Amount::new(size)).collect();
        let mut views = Vec::new();
        for (at, (_, alignment, root, inside)) in items.iter().enumerate() {
            let home = items.get(*root as usize)?;
            if !alignment.is_power_of_two() || home.2 != *root {
                return None;
            }
            if *root as usize != at {
                views.push(View {
                    item: at as u32,
                    inside: amounts.len() as u32,
                    alignment: *alignment,
                    root: *root,
                });
                amounts.push(if inside.is_empty() { Amount::Number(0) } else { Amount::new(inside) });
            }
        }
        let stacks = plans.iter().map(|pairs| Stack::new(items, pairs));
        let stacks = stacks.collect::<Option<Vec<_>>>()?;
        let mut alignments: Vec<u64> = blocks.iter().map(|(block, _)| block.alignment).collect();
        alignments.sort_unstable();
        alignments.dedup();
        let units = alignments.into_iter().map(|unit| Unit::new(unit, blocks));
        let units = units.collect::<Option<Vec<_>>>()?;
        let roots = items.len() - views.len();
        Some(Self { amounts, roots, stacks, views, units })
    }

    /// Writes the offsets. Returns the plan and the bound in bytes on an in-order queue; no bound
    /// where many instants are equally heavy. `None` if there is something to refuse.
    pub(super) fn at(&self, values: &[u64], offsets: &mut [u64]) -> Option<(At, Option<u64>)> {
        let mut room = vec![0; self.amounts.len() + 2 * self.roots];
        let (amounts, rest) = room.split_at_mut(self.amounts.len());
        let (begins, ends) = rest.split_at_mut(self.roots);
        for (value, amount) in amounts.iter_mut().zip(&self.amounts) {
            *value = amount.of(values)?;
        }
        let bound = self.bound(amounts);
        let mut best: Option<At> = None;
        for (plan, stack) in self.stacks.iter().enumerate() {
            let least = best.map_or(u64::MAX, |best| best.peak);
            let peak = stack.peak(amounts, begins, ends, least)?;
            if peak < least {
                best = Some(At::new(plan, peak));
                for (root, begin) in stack.roots.iter().zip(&*begins) {
                    offsets[root.item as usize] = *begin;
                }
                if Some(peak) == bound {
                    break;
                }
            }
        }
        for view in &self.views {
            let inside = amounts[view.inside as usize];
            let end = inside.checked_add(amounts[view.item as usize])?;
            let offset = offsets[view.root as usize].checked_add(inside)?;
            if end > amounts[view.root as usize] || offset & (view.alignment - 1) != 0 {
                return None;
            }
            offsets[view.item as usize] = offset;
        }
        best.map(|best| (best, bound))
    }

    fn bound(&self, amounts: &[u64]) -> Option<u64> {
        self.units.iter().try_fold(0, |most, unit| Some(unit.bound(amounts)?.max(most)))
    }
}

impl Stack {
    fn new(items: &[Item], pairs: &[(u32, u32)]) -> Option<Self> {
        let mut lists = vec![Vec::new(); items.len()];
        let mut order: Vec<u32> = Vec::new();
        let mut position = vec![u32::MAX; items.len()];
        let is_root = |item: u32| items.get(item as usize).is_some_and(|of| of.2 == item);
        for &(below, above) in pairs {
            if !is_root(below) || !is_root(above) {
                return None;
            }
            lists[above as usize].push(below);
            // A pair follows all pairs that have its first root above.
            if position[below as usize] == u32::MAX {
                position[below as usize] = order.len() as u32;
                order.push(below);
            }
        }
        for item in (0..items.len() as u32).filter(|&item| is_root(item)) {
            if position[item as usize] == u32::MAX {
                position[item as usize] = order.len() as u32;
                order.push(item);
            }
        }
        let (mut roots, mut below) = (Vec::with_capacity(order.len()), Vec::with_capacity(pairs.len()));
        for (at, &item) in order.iter().enumerate() {
            below.extend(lists[item as usize].iter().map(|&low| position[low as usize]));
            let begin = roots.last().map_or(0, |root: &Root| root.below_end as usize);
            if below[begin..].iter().any(|&low| low as usize >= at) {
                return None;
            }
            let alignment = items[item as usize].1;
            roots.push(Root { item, alignment, below_end: below.len() as u32 });
        }
        Some(Self { roots, below })
    }

    /// The peak, with the begin of each root; a larger number if it is not below `least`. `None`
    /// for an end beyond 64 bits.
    fn peak(&self, amounts: &[u64], begins: &mut [u64], ends: &mut [u64], least: u64) -> Option<u64> {
        let (mut peak, mut from) = (0, 0);
        for (at, root) in self.roots.iter().enumerate() {
            let to = root.below_end as usize;
            let mut begin = 0;
            for &low in &self.below[from..to] {
                begin = ends[low as usize].max(begin);
            }
            from = to;
            let begin = begin.checked_add(root.alignment - 1)? & !(root.alignment - 1);
            let end = begin.checked_add(amounts[root.item as usize])?;
            (begins[at], ends[at]) = (begin, end);
            peak = end.max(peak);
            if peak >= least {
                // The largest number is no peak: its end is one byte further.
                return (least != u64::MAX).then_some(peak);
            }
        }
        Some(peak)
    }
}

impl Unit {
    fn new(bytes: u64, blocks: &[(Buffer, u32)]) -> Option<Self> {
        let mut times = Vec::new();
        let lives = blocks.iter().filter(|(block, _)| block.lower < block.upper && block.alignment >= bytes);
        for &(block, item) in lives {
            times.push((block.lower, true, item));
            times.push((block.upper, false, item));
        }
        times.sort_unstable();
        let changes: Vec<_> = times.into_iter().map(|(_, begins, item)| (item, begins)).collect();
        let mut lives: Vec<(u32, u32, u32)> = Vec::new();
        let mut life = vec![0; 1 + blocks.iter().map(|(_, item)| *item as usize).max().unwrap_or(0)];
        for (&(item, begins), at) in changes.iter().zip(0_u32..) {
            if begins {
                life[item as usize] = lives.len();
                lives.push((item, at, u32::MAX));
            } else {
                lives[life[item as usize]].2 = at;
            }
        }
        bytes.is_power_of_two().then_some(Self { bytes, changes, lives })
    }
    /// The heaviest instant, less what the topmost block may leave free of its last unit.
    fn bound(&self, amounts: &[u64]) -> Option<u64> {
        let rest = self.bytes - 1;
        let round_up = |item: u32| Some(amounts[item as usize].checked_add(rest)? & !rest);
        let (mut load, mut most) = (0_u64, 0);
        for &(item, begins) in &self.changes {
            if begins {
                load = load.checked_add(round_up(item)?)?;
                most = most.max(load);
            } else {
                load -= round_up(item)?;
            }
        }
        // Less than a unit is free, so that only loads close to the largest count.
        let (mut load, mut best, mut close) = (0_u64, 0, 0);
        for (at, &(item, begins)) in self.changes.iter().enumerate() {
            if !begins {
                load -= round_up(item)?;
                continue;
            }
            load += round_up(item)?;
            if load + rest >= most && load > best {
                close += 1;
                if close > CLOSE {
                    return None;
                }
                best = best.max(load - self.free(at, amounts)?);
            }
        }
        Some(best)
    }

    /// The most bytes that a block which is live after a change leaves free of its last unit.
    fn free(&self, at: usize, amounts: &[u64]) -> Option<u64> {
        let rest = self.bytes - 1;
        let mut free = 0;
        for &(item, begin, end) in &self.lives {
            if begin as usize <= at && at < end as usize {
                let size = amounts[item as usize];
                free = free.max((size.checked_add(rest)? & !rest) - size);
            }
        }
        Some(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use usm_pool::bound::time_cut;
    use usm_pool::range::{self, Dimension};

    /// Numbers without another crate.
    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    fn size(state: &mut u64) -> Vec<Term> {
        use Term::{Add, Dimension, Divide, Multiply, Number};
        let number = |state: &mut u64| Number(64 * random(state, 9));
        match random(state, 5) {
            0 => vec![number(state)],
            1 => vec![Dimension(0), number(state), Multiply],
            2 => vec![number(state), Dimension(1), Multiply, number(state), Add],
            3 => vec![Dimension(0), Dimension(1), Multiply, number(state), Multiply],
            _ => vec![Dimension(1), Number(1 + random(state, 3)), Divide, Number(8), Multiply],
        }
    }

    /// The same plan, offsets and bound as the functions that read the tables as they are.
    #[test]
    fn an_evaluation_is_what_the_tables_say() {
        let state = &mut 41;
        let (mut bounds, mut refused) = (0, 0);
        for _ in 0..400 {
            let roots = 1 + random(state, 12) as usize;
            let mut items: Vec<Item> = Vec::new();
            for at in 0..roots {
                items.push((size(state), 1 << random(state, 8), at as u32, Vec::new()));
            }
            for _ in 0..random(state, 4) {
                let root = random(state, roots as u64) as u32;
                let inside = if random(state, 2) == 0 { Vec::new() } else { size(state) };
                items.push((size(state), 1 << random(state, 3), root, inside));
            }
            let blocks: Vec<(Buffer, u32)> = (0..roots as u32)
                .map(|item| {
                    let begin = random(state, 9);
                    let end = begin + random(state, 9);
                    let block = Buffer::new(u64::from(item), begin, end, 1);
                    (block.aligned(items[item as usize].1), item)
                })
                .collect();
            let plans: Vec<Vec<(u32, u32)>> = (0..1 + random(state, 4))
                .map(|_| {
                    let mut order: Vec<u32> = (0..roots as u32).collect();
                    for at in 1..roots {
                        order.swap(at, random(state, at as u64 + 1) as usize);
                    }
                    let pairs = (0..roots).flat_map(|low| (low + 1..roots).map(move |high| (low, high)));
                    let pairs = pairs.map(|(low, high)| (order[low], order[high]));
                    let together = |&(low, high): &(u32, u32)| {
                        let (low, high) = (blocks[low as usize].0, blocks[high as usize].0);
                        low.lower < high.upper && high.lower < low.upper
                    };
                    pairs.filter(|pair| together(pair) || random(state, 4) == 0).collect()
                })
                .collect();
            let evaluation = Evaluation::new(&items, &plans, &blocks).expect("tables");
            let dimensions = [Dimension { low: 1, high: 9, step: 1 }; 2];
            let lists: Vec<&[(u32, u32)]> = plans.iter().map(Vec::as_slice).collect();
            for _ in 0..4 {
                let values = [1 + random(state, 9), 1 + random(state, 9)];
                let (mut offsets, mut sizes) = (vec![0; items.len()], vec![0; items.len()]);
                let row = |at: usize| {
                    let (size, alignment, root, inside) = &items[at];
                    range::Item { size, alignment: *alignment, root: *root, inside }
                };
                let at = range::at(&dimensions, items.len(), row, &lists, &values, &mut offsets, &mut sizes);
                let mut ours = vec![7; items.len()];
                let made = evaluation.at(&values, &mut ours);
                let Ok(at) = at else {
                    refused += 1;
                    assert_eq!(made, None);
                    continue;
                };
                let (best, bound) = made.expect("a plan");
                let sized = |&(block, item): &(Buffer, u32)| Buffer { size: sizes[item as usize], ..block };
                let cut = time_cut(&blocks.iter().map(sized).collect::<Vec<_>>()).bytes;
                if let Some(bound) = bound {
                    bounds += 1;
                    assert_eq!(bound, cut);
                }
                assert_eq!((best, ours), (at, offsets));
            }
        }
        assert!(bounds > 100 && refused > 100, "{bounds} bounds, {refused} refused");
    }
}
