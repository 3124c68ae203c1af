//! Runs a plan for all items of a launch.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::lanes::{Ids, Lanes, Mask};
use super::plan::{Node, Plan};
use super::record::{Access, OWNERS, Record};
use super::{Clash, Doubt, MOST_ACCESSES, Verdict};
use crate::interpret::{Deed, Element, Site, Touch, WorkItem, is_less, length_with, next_of_loop};
use crate::kernel::{ArrayId, Expr, Kernel, Place, Query, Space};
use crate::proof::Shape;

/// Items that run at once, in a launch without barriers.
const LANES: u64 = 1024;

/// The number of parts that estimate a large launch.
const SAMPLES: u64 = 64;
/// The parts that run before the estimate: a race is usually among them.
const UNTIL_ESTIMATE: u64 = 512;

/// The end of a run before its last item.
enum Stop {
    Doubt(Doubt),
    /// An access that conflicts with an earlier one: its array, element, item and place.
    Clash(ArrayId, u64),
    /// The two accesses of an element.
    Both(Box<[(Site, Deed); 2]>),
}

pub(super) struct Run<'r> {
    kernel: &'r Kernel,
    plan: &'r Plan,
    shape: &'r Shape<'r>,
    global: [u64; 3],
    local: [u64; 3],
    groups: [u64; 3],
    /// Whether lanes are the items of one group.
    needs_groups: bool,
    /// For each array, its length, or 0 for one that the plan does not access.
    lengths: Vec<u64>,
    records: Vec<Option<Record>>,
    /// The element whose accesses are sought.
    sought: Option<(ArrayId, u64, Element)>,
    ids: Ids,
    /// The number of each lane's item, and its group.
    items: Vec<u32>,
    of_group: Vec<u32>,
    /// Counts of barriers over all groups: for local and for global memory.
    phases: [u32; 2],
    continues: Vec<Mask>,
    breaks: Vec<Mask>,
    accesses: u64,
    steps: u64,
    left: u64,
    /// Accesses with an index outside, where these are in question.
    outside: Option<Vec<(ArrayId, Place)>>,
}

/// The accesses of a plan for bounds with an index outside; `None` if it takes too many steps.
pub(super) fn outside(
    kernel: &Kernel,
    plan: &Plan,
    shape: &Shape<'_>,
    steps: u64,
) -> Option<Vec<(ArrayId, Place)>> {
    let mut arrays = Vec::new();
    plan.for_each_touch(&mut |array| {
        if !arrays.contains(&array) {
            arrays.push(array);
        }
    });
    let mut run = Run::new(kernel, plan, &[], shape, steps).ok()?;
    for array in arrays {
        *run.lengths.get_mut(array.0 as usize)? = run.length(array);
    }
    run.outside = Some(Vec::new());
    run.all().ok()?;
    run.outside
}

/// Whether the accesses of these arrays conflict.
pub(super) fn run(
    kernel: &Kernel,
    plan: &Plan,
    arrays: &[ArrayId],
    shape: &Shape<'_>,
    steps: u64,
) -> Verdict {
    let mut first = match Run::new(kernel, plan, arrays, shape, steps) {
        Ok(first) => first,
        Err(doubt) => return Verdict::Undecided(doubt),
    };
    let (array, index) = match first.all() {
        Ok(()) => return Verdict::Free,
        Err(Stop::Doubt(doubt)) => return Verdict::Undecided(doubt),
        Err(Stop::Clash(array, index)) => (array, index),
        Err(Stop::Both(_)) => return Verdict::Undecided(Doubt::Long),
    };
    // The second run seeks the other item.
    let (records, lengths) = (vec![], first.lengths);
    let mut second = Run { records, lengths, ..Run::fresh(kernel, plan, shape, first.needs_groups, steps) };
    second.sought = Some((array, index, Element::with_value()));
    match second.all() {
        Err(Stop::Both(accesses)) => {
            let clash = Box::new(Clash { array, index, accesses: *accesses });
            if plan.exact { Verdict::Race(clash) } else { Verdict::Undecided(Doubt::Possible(clash)) }
        }
        _ => Verdict::Undecided(Doubt::Long),
    }
}

impl<'r> Run<'r> {
    fn fresh(
        kernel: &'r Kernel,
        plan: &'r Plan,
        shape: &'r Shape<'r>,
        needs_groups: bool,
        steps: u64,
    ) -> Self {
        let three = |sizes: &[u64]| core::array::from_fn(|d| sizes.get(d).copied().unwrap_or(1));
        let (global, local): ([u64; 3], [u64; 3]) = (three(shape.global), three(shape.local));
        let groups = core::array::from_fn(|d| global[d].checked_div(local[d]).unwrap_or(0));
        let zero = || core::array::from_fn(|_| Lanes::One(0));
        Self {
            kernel,
            plan,
            shape,
            global,
            local,
            groups,
            needs_groups,
            lengths: Vec::new(),
            records: Vec::new(),
            sought: None,
            ids: Ids {
                lanes: 0,
                queries: core::array::from_fn(|_| zero()),
                variables: vec![Lanes::One(0); kernel.variables.len()],
            },
            items: Vec::new(),
            of_group: Vec::new(),
            phases: [0; 2],
            continues: Vec::new(),
            breaks: Vec::new(),
            accesses: 0,
            steps,
            left: steps,
            outside: None,
        }
    }

    fn new(
        kernel: &'r Kernel,
        plan: &'r Plan,
        arrays: &[ArrayId],
        shape: &'r Shape<'r>,
        steps: u64,
    ) -> Result<Self, Doubt> {
        let is_local = |id: &ArrayId| matches!(kernel.array(*id).space, Space::Local(_));
        let needs_groups = plan.has_barriers || arrays.iter().any(is_local);
        let mut run = Self::fresh(kernel, plan, shape, needs_groups, steps);
        let product = |sizes: [u64; 3]| sizes.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        let fits = product(run.global).is_some_and(|items| items < OWNERS);
        let group = product(run.local).unwrap_or(u64::MAX);
        if !fits || (needs_groups && group > 1 << 16) || run.local.contains(&0) {
            return Err(Doubt::Long);
        }
        let mut elements = 0_u64;
        for index in 0..kernel.arrays.len() {
            let id = ArrayId(index as u32);
            let len = match &kernel.array(id).space {
                _ if !arrays.contains(&id) => 0,
                _ => run.length(id),
            };
            elements = elements.saturating_add(len);
            run.lengths.push(len);
        }
        if elements > MOST_ACCESSES {
            return Err(Doubt::Long);
        }
        for (index, len) in run.lengths.iter().enumerate() {
            let id = ArrayId(index as u32);
            let len = *len as usize;
            run.records.push(match (arrays.contains(&id), needs_groups) {
                (false, _) => None,
                (true, _) if is_local(&id) => Some(Record::of_group(len)),
                (true, true) => Some(Record::of_groups(len)),
                (true, false) => Some(Record::of_items(len)),
            });
        }
        Ok(run)
    }

    /// Whether a sample of all parts predicts more than 1.5 times the limit of accesses or of
    /// steps. The run itself would need seconds to reach that limit.
    fn is_far_too_long(&self) -> bool {
        let steps = self.steps;
        let stride = self.parts() / SAMPLES;
        let mut sample = Run {
            lengths: self.lengths.clone(),
            outside: Some(Vec::new()),
            ..Run::fresh(self.kernel, self.plan, self.shape, self.needs_groups, steps)
        };
        for number in 0..SAMPLES {
            match sample.part(number * stride + stride / 2) {
                Ok(()) => {}
                Err(Stop::Doubt(Doubt::Long)) => return true,
                // The run itself says where.
                Err(_) => return false,
            }
        }
        let is_over = |count: u64, most: u64| count.saturating_mul(stride) > most + most / 2;
        is_over(sample.accesses, MOST_ACCESSES) || is_over(steps - sample.left, steps)
    }

    fn all(&mut self) -> Result<(), Stop> {
        for part in 0..self.parts() {
            if part == UNTIL_ESTIMATE && self.sought.is_none() && self.is_far_too_long() {
                return Err(Stop::Doubt(Doubt::Long));
            }
            self.part(part)?;
        }
        Ok(())
    }

    /// The number of groups, or of parts of the range.
    fn parts(&self) -> u64 {
        match self.needs_groups {
            true => self.groups.iter().product(),
            false => self.global.iter().product::<u64>().div_ceil(LANES),
        }
    }

    fn part(&mut self, part: u64) -> Result<(), Stop> {
        let lanes = match self.needs_groups {
            true => self.local.iter().product(),
            false => LANES.min(self.global.iter().product::<u64>() - part * LANES),
        };
        self.enter(part, lanes as usize);
        self.ids.variables.fill(Lanes::One(0));
        self.barrier(true, true)?;
        let plan = self.plan;
        self.block(&plan.nodes, Mask::full(lanes as usize)).map(drop)
    }

    /// Sets the ids of all lanes of a group, or of a part of the range.
    fn enter(&mut self, part: u64, lanes: usize) {
        let Self { global, local, groups, needs_groups, .. } = *self;
        self.ids.lanes = lanes;
        self.items.clear();
        self.of_group.clear();
        let mut columns: [[Vec<u64>; 3]; 3] = Default::default();
        let group = ids(part, &groups);
        for lane in 0..lanes as u64 {
            let (item, of_group) = if needs_groups {
                let own = ids(lane, &local);
                (core::array::from_fn(|d| group[d] * local[d] + own[d]), part)
            } else {
                (ids(part * LANES + lane, &global), 0)
            };
            self.items.push(linear(&item, &global) as u32);
            self.of_group.push(of_group as u32);
            for (d, id) in item.iter().enumerate() {
                columns[0][d].push(*id);
                columns[1][d].push(id % local[d]);
                columns[2][d].push(id / local[d]);
            }
        }
        let [global_ids, local_ids, group_ids] = columns.map(|column| column.map(Lanes::Many));
        for (row, query) in Query::ALL.iter().enumerate() {
            self.ids.queries[row] = match query {
                Query::GlobalId => global_ids.clone(),
                Query::LocalId => local_ids.clone(),
                Query::GroupId => group_ids.clone(),
                Query::GlobalSize => global.map(Lanes::One),
                Query::LocalSize => local.map(Lanes::One),
                Query::Groups => groups.map(Lanes::One),
            };
        }
    }

    /// The number of an array's elements.
    fn length(&self, id: ArrayId) -> u64 {
        length_of(self.kernel, self.shape, id)
    }

    fn value(&mut self, expr: &Expr) -> Result<Lanes, Stop> {
        let (kernel, shape) = (self.kernel, self.shape);
        let lengths = |id: ArrayId| length_of(kernel, shape, id);
        let lanes = self.ids.value(expr, shape.values, &lengths, &mut self.left);
        if self.left == 0 { Err(Stop::Doubt(Doubt::Long)) } else { Ok(lanes) }
    }

    fn barrier(&mut self, local: bool, global: bool) -> Result<(), Stop> {
        for (phase, has_order) in self.phases.iter_mut().zip([local, global]) {
            *phase = phase.checked_add(u32::from(has_order)).ok_or(Stop::Doubt(Doubt::Long))?;
        }
        Ok(())
    }

    /// Runs nodes; returns the lanes that come to their end.
    fn block(&mut self, nodes: &[Node], mut mask: Mask) -> Result<Mask, Stop> {
        for node in nodes {
            if mask.count == 0 {
                break;
            }
            mask = self.node(node, mask)?;
        }
        Ok(mask)
    }

    fn node(&mut self, node: &Node, mask: Mask) -> Result<Mask, Stop> {
        let none = || Mask::none(mask.lanes.len());
        match node {
            Node::Set(variable, value) => {
                let value = self.value(value)?;
                if let Some(words) = self.ids.variable(*variable) {
                    words.set(value, &mask);
                }
                Ok(mask)
            }
            Node::Touch { array, deed, index, place } => {
                let index = self.value(index)?;
                self.touch(*array, *deed, &index, *place, &mask)?;
                Ok(mask)
            }
            Node::If(condition, then, other) => {
                let condition = self.value(condition)?;
                let (yes, no) = mask.split(&condition);
                let (yes, no) = (self.block(then, yes)?, self.block(other, no)?);
                Ok(yes.or(&no))
            }
            Node::While(before, condition, body) => {
                let mut left = none();
                let mut mask = mask;
                loop {
                    mask = self.block(before, mask)?;
                    if mask.count == 0 {
                        return Ok(left);
                    }
                    let condition = self.value(condition)?;
                    let (yes, no) = mask.split(&condition);
                    left = left.or(&no);
                    mask = self.round(body, yes, &mut left)?;
                }
            }
            Node::For(variable, ends, body) => self.count(*variable, ends, body, mask),
            Node::Break => {
                let empty = none();
                if let Some(breaks) = self.breaks.last_mut() {
                    *breaks = breaks.clone().or(&mask);
                }
                Ok(empty)
            }
            Node::Continue => {
                let empty = none();
                if let Some(continues) = self.continues.last_mut() {
                    *continues = continues.clone().or(&mask);
                }
                Ok(empty)
            }
            Node::Return => Ok(none()),
            Node::Barrier { local, global } => {
                if !mask.all {
                    return Err(Stop::Doubt(Doubt::Barrier(self.kernel.place)));
                }
                self.barrier(*local, *global)?;
                Ok(mask)
            }
        }
    }

    /// Runs the body of a loop; returns the lanes with a next round, and adds those that leave.
    fn round(&mut self, body: &[Node], mask: Mask, left: &mut Mask) -> Result<Mask, Stop> {
        if mask.count == 0 {
            return Ok(mask);
        }
        self.left = self.left.saturating_sub(mask.lanes.len() as u64);
        if self.left == 0 {
            return Err(Stop::Doubt(Doubt::Long));
        }
        self.breaks.push(Mask::none(mask.lanes.len()));
        self.continues.push(Mask::none(mask.lanes.len()));
        let result = self.block(body, mask);
        let (breaks, continues) = (self.breaks.pop(), self.continues.pop());
        if let Some(breaks) = breaks {
            *left = left.clone().or(&breaks);
        }
        let result = result?;
        Ok(match continues {
            Some(continues) => result.or(&continues),
            None => result,
        })
    }

    fn count(
        &mut self,
        variable: crate::VarId,
        [start, end, step]: &[Expr; 3],
        body: &[Node],
        mask: Mask,
    ) -> Result<Mask, Stop> {
        let ty = self.kernel.variable(variable).ty;
        let (mut at, end, step) = (self.value(start)?, self.value(end)?, self.value(step)?);
        let mut left = Mask::none(mask.lanes.len());
        let mut mask = mask;
        loop {
            let goes_on = match (&at, &end) {
                (Lanes::One(at), Lanes::One(end)) => Lanes::One(u64::from(is_less(ty, *at, *end))),
                _ => {
                    let less = |lane| u64::from(is_less(ty, at.get(lane), end.get(lane)));
                    Lanes::Many((0..mask.lanes.len()).map(less).collect())
                }
            };
            let (yes, no) = mask.split(&goes_on);
            left = left.or(&no);
            if yes.count == 0 {
                return Ok(left);
            }
            if let Some(words) = self.ids.variable(variable) {
                words.set(at.clone(), &yes);
            }
            // The next value; the loop ends where there is none.
            let mut has_next = Lanes::One(1);
            match (&mut at, &end, &step) {
                (Lanes::One(at), Lanes::One(end), Lanes::One(step)) => {
                    match next_of_loop(ty, *at, *end, *step) {
                        Some(next) => *at = next,
                        None => has_next = Lanes::One(0),
                    }
                }
                _ => {
                    let next: Vec<Option<u64>> = (0..yes.lanes.len())
                        .map(|lane| next_of_loop(ty, at.get(lane), end.get(lane), step.get(lane)))
                        .collect();
                    has_next = Lanes::Many(next.iter().map(|next| u64::from(next.is_some())).collect());
                    at = Lanes::Many(next.into_iter().map(Option::unwrap_or_default).collect());
                }
            }
            mask = self.round(body, yes, &mut left)?;
            let (more, rest) = mask.split(&has_next);
            left = left.or(&rest);
            mask = more;
        }
    }

    fn touch(
        &mut self,
        array: ArrayId,
        deed: Deed,
        index: &Lanes,
        place: Place,
        mask: &Mask,
    ) -> Result<(), Stop> {
        self.accesses = self.accesses.saturating_add(mask.count as u64);
        if self.accesses > MOST_ACCESSES {
            return Err(Stop::Doubt(Doubt::Long));
        }
        let is_local = matches!(self.kernel.array(array).space, Space::Local(_));
        let phase = self.phases[usize::from(!is_local)];
        let len = self.lengths.get(array.0 as usize).copied().unwrap_or(0);
        if let Some(outside) = &mut self.outside {
            let is_outside = |lane: usize| mask.lanes[lane] && index.get(lane) >= len;
            if !outside.contains(&(array, place)) && (0..mask.lanes.len()).any(is_outside) {
                outside.push((array, place));
            }
            return Ok(());
        }
        if self.sought.is_some() {
            return self.seek(array, deed, index, place, mask, phase);
        }
        let Some(Some(record)) = self.records.get_mut(array.0 as usize) else { return Ok(()) };
        for lane in 0..mask.lanes.len() {
            if !mask.lanes[lane] {
                continue;
            }
            let index = index.get(lane);
            // An index outside accesses nothing: code that checks runs.
            if index >= len {
                continue;
            }
            let access = Access { item: self.items[lane], group: self.of_group[lane], phase, deed };
            if record.add(index as usize, access) {
                return Err(Stop::Clash(array, index));
            }
        }
        Ok(())
    }

    /// Records the accesses of the sought element.
    fn seek(
        &mut self,
        array: ArrayId,
        deed: Deed,
        index: &Lanes,
        place: Place,
        mask: &Mask,
        phase: u32,
    ) -> Result<(), Stop> {
        let Some((sought, at, element)) = &mut self.sought else { return Ok(()) };
        if *sought != array {
            return Ok(());
        }
        for lane in 0..mask.lanes.len() {
            if !mask.lanes[lane] || index.get(lane) != *at {
                continue;
            }
            // Without barriers every item is as far from others as those of other groups.
            let item = self.items[lane];
            let group = if self.needs_groups { self.of_group[lane] } else { item };
            let touch = Touch { item, group, phase, place };
            if let Some((other, did)) = element.record_access(touch, deed) {
                let sites = [(self.site(&other), did), (self.site(&touch), deed)];
                return Err(Stop::Both(Box::new(sites)));
            }
        }
        Ok(())
    }

    fn site(&self, touch: &Touch) -> Site {
        let ids = ids(u64::from(touch.item), &self.global);
        let item = WorkItem::new(ids, self.kernel.dimensions);
        Site { item, place: touch.place, located: self.kernel.locate(touch.place).into() }
    }
}

fn length_of(kernel: &Kernel, shape: &Shape<'_>, id: ArrayId) -> u64 {
    match &kernel.array(id).space {
        Space::Constant(len) | Space::Private(len) => *len,
        Space::Local(len) | Space::Extent(len) => {
            let lengths = |id: ArrayId| length_of(kernel, shape, id);
            length_with(len, shape.global, shape.local, shape.values, &lengths)
        }
        _ => shape.lengths.get(id.0 as usize).copied().unwrap_or(0),
    }
}

/// The ids of a linear number, the last dimension fastest.
fn ids(linear: u64, sizes: &[u64; 3]) -> [u64; 3] {
    let mut rest = linear;
    let mut ids = [0; 3];
    for (id, size) in ids.iter_mut().zip(sizes).rev() {
        *id = rest % size.max(&1);
        rest /= size.max(&1);
    }
    ids
}

fn linear(ids: &[u64; 3], sizes: &[u64; 3]) -> u64 {
    ids.iter().zip(sizes).fold(0, |all, (id, size)| all * size + id)
}
