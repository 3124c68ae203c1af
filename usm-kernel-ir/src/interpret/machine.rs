//! Executes the steps of all items.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::Order;
use super::code::{Code, Step, code};
use super::fault::{Deed, Fault, Site, WorkItem};
use super::input::Input;
use super::shadow::{Element, Touch};
use super::value::{cast, compute, is_less, math, neutral, next_of_loop, unary};
use crate::kernel::{
    ArrayId, Atomic, Collection, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind,
};
use crate::operator::Binary;

/// Steps between two calls of `go_on`: some milliseconds.
const OFTEN: u64 = 1 << 16;

pub(super) struct Machine<'k> {
    kernel: &'k Kernel,
    input: Input,
    order: Order,
    left: u64,
    /// Whether the caller stopped the run.
    is_stopped: bool,
    words: Vec<Vec<u64>>,
    /// Records of the arrays that items share, and of those without an initial value.
    shadows: Vec<Vec<Element>>,
    watched: bool,
    /// Whether local and private memory begins with values, which are zero.
    zeros: bool,
    group: u64,
    /// Items of a group.
    items: u64,
    /// Numbers of the intervals between two barriers over all groups: for local and for global
    /// memory.
    phases: [u32; 2],
    item: u64,
    global_ids: [u64; 3],
    local_ids: [u64; 3],
    group_ids: [u64; 3],
}

/// An item between two barriers.
#[derive(Clone)]
struct Item {
    variables: Vec<u64>,
    /// For each loop, the next value, the end and the step.
    counts: Vec<(Option<u64>, u64, u64)>,
    /// For each loop, the number of rounds that began.
    rounds: Vec<u64>,
    step: usize,
    stop: Stop,
    /// The item's part in a collective operation: its value, and the lane that it reads.
    operands: [u64; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Barrier(Place),
    End(Place),
}

impl<'k> Machine<'k> {
    pub(super) fn new(kernel: &'k Kernel, mut input: Input, order: Order, steps: u64) -> Self {
        let words = core::mem::take(&mut input.arrays);
        let shadow = |(array, words): (&crate::Array, &Vec<u64>)| match array.space {
            Space::Write | Space::Atomic => vec![Element::with_value(); words.len()],
            _ => Vec::new(),
        };
        let shadows = kernel.arrays.iter().zip(&words).map(shadow).collect();
        let items = input.local.iter().product();
        Self {
            kernel,
            input,
            order,
            left: steps,
            is_stopped: false,
            words,
            shadows,
            watched: true,
            zeros: false,
            group: 0,
            items,
            phases: [0; 2],
            item: 0,
            global_ids: [0; 3],
            local_ids: [0; 3],
            group_ids: [0; 3],
        }
    }

    /// Without `watched`, accesses are not recorded.
    pub(super) fn watch(mut self, watched: bool) -> Self {
        self.watched = watched;
        if !watched {
            self.shadows.iter_mut().for_each(Vec::clear);
        }
        self
    }

    /// With `zeros`, local and private memory begins with values.
    pub(super) fn zeros(self, zeros: bool) -> Self {
        Self { zeros, ..self }
    }

    /// Returns the words of all arrays. `None` if `go_on`, called before each group and now and
    /// then as its items run, returned false.
    pub(super) fn run(mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Vec<Vec<u64>>>, Fault> {
        let code = code(self.kernel);
        let groups: u64 = self.input.groups.iter().product();
        let fresh = Item {
            variables: vec![0; self.kernel.variables.len()],
            counts: vec![(None, 0, 0); code.loops],
            rounds: vec![0; code.loops],
            step: 0,
            stop: Stop::Barrier(self.kernel.place),
            operands: [0; 2],
        };
        for step in 0..groups {
            if !go_on() {
                return Ok(None);
            }
            self.group = self.order.place(step, groups);
            self.group_ids = ids(self.group, &self.input.groups);
            self.prepare();
            match self.one_group(&code, vec![fresh.clone(); self.items as usize], go_on) {
                Err(_) if self.is_stopped => return Ok(None),
                ran => ran?,
            }
        }
        Ok(Some(self.words))
    }

    /// Local and private memory is zero when a group starts, as in all code. Without `zeros` that
    /// is no value, if reads are recorded.
    fn prepare(&mut self) {
        for (index, array) in self.kernel.arrays.iter().enumerate() {
            let len = match array.space {
                Space::Local(_) => self.input.lengths[index],
                // One for each item.
                Space::Private(len) => len * self.items,
                _ => continue,
            } as usize;
            self.words[index].clear();
            self.words[index].resize(len, 0);
            self.shadows[index].clear();
            let fresh = if self.zeros { Element::with_value() } else { Element::default() };
            self.shadows[index].resize(if self.watched { len } else { 0 }, fresh);
        }
    }

    fn one_group(
        &mut self,
        code: &Code<'k>,
        mut items: Vec<Item>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Fault> {
        self.after_barrier(true, true)?;
        loop {
            for step in 0..self.items {
                let place = self.order.place(step, self.items);
                self.enter(place);
                self.item(code, &mut items[place as usize], go_on)?;
            }
            let Some(wait) = self.meet(code, &items)? else { return Ok(()) };
            match wait.kind {
                StmtKind::Barrier { local, global } => self.after_barrier(local, global)?,
                _ => {
                    collect(self.kernel, wait, &mut items);
                    self.after_barrier(true, false)?;
                }
            }
        }
    }

    fn after_barrier(&mut self, local: bool, global: bool) -> Result<(), Fault> {
        for (phase, has_order) in self.phases.iter_mut().zip([local, global]) {
            *phase = phase.checked_add(u32::from(has_order)).ok_or(Fault::Steps)?;
        }
        Ok(())
    }

    fn enter(&mut self, item: u64) {
        self.item = item;
        self.local_ids = ids(item, &self.input.local);
        for dimension in 0..3 {
            self.global_ids[dimension] =
                self.group_ids[dimension] * self.input.local[dimension] + self.local_ids[dimension];
        }
    }

    /// The step at which all items wait, in the same round of every enclosing loop. `None` if all
    /// of them ended.
    fn meet(&mut self, code: &Code<'k>, items: &[Item]) -> Result<Option<&'k Stmt>, Fault> {
        let waiting = items.iter().position(|item| matches!(item.stop, Stop::Barrier(_)));
        let Some((waiting, one)) = waiting.map(|place| (place, &items[place])) else { return Ok(None) };
        let Some(Step::Wait(stmt, loops_around)) = code.steps.get(one.step.wrapping_sub(1)) else {
            return Ok(None);
        };
        let differs = |other: &Item| {
            let same_rounds =
                || loops_around.iter().all(|number| one.rounds[*number] == other.rounds[*number]);
            other.step != one.step || other.stop != one.stop || !same_rounds()
        };
        let Some(found) = items.iter().position(differs) else { return Ok(Some(stmt)) };
        let (there, ended) = match items[found].stop {
            Stop::Barrier(place) => (place, false),
            Stop::End(place) => (place, true),
        };
        self.enter(waiting as u64);
        let waits = self.site(stmt.place);
        self.enter(found as u64);
        Err(Fault::Divergence { items: Box::new([waits, self.site(there)]), ended })
    }

    /// Runs an item up to the next barrier, or to its end.
    fn item(
        &mut self,
        code: &Code<'k>,
        item: &mut Item,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Fault> {
        if matches!(item.stop, Stop::End(_)) {
            return Ok(());
        }
        loop {
            self.left = self.left.checked_sub(1).ok_or(Fault::Steps)?;
            if self.left % OFTEN == 0 && !go_on() {
                self.is_stopped = true;
                return Err(Fault::Steps);
            }
            let at = item.step;
            item.step += 1;
            match &code.steps[at] {
                Step::Plain(stmt) => self.stmt(stmt, &mut item.variables)?,
                Step::Jump(to) => item.step = *to,
                Step::Unless(condition, to) => {
                    if self.expr(condition, &item.variables)? == 0 {
                        item.step = *to;
                    }
                }
                Step::Count(number, [start, end, step]) => {
                    let start = self.expr(start, &item.variables)?;
                    let (end, step) = (self.expr(end, &item.variables)?, self.expr(step, &item.variables)?);
                    item.counts[*number] = (Some(start), end, step);
                    item.rounds[*number] = 0;
                }
                Step::Next(number, variable, out) => {
                    let ty = self.kernel.variable(*variable).ty;
                    let (at, end, step) = item.counts[*number];
                    match at.filter(|at| is_less(ty, *at, end)) {
                        Some(at) => {
                            item.variables[variable.0 as usize] = at;
                            item.counts[*number].0 = next_of_loop(ty, at, end, step);
                        }
                        None => item.step = *out,
                    }
                }
                Step::Enter(number) => item.rounds[*number] = 0,
                Step::Round(number) => item.rounds[*number] += 1,
                Step::Wait(stmt, _) => {
                    match &stmt.kind {
                        StmtKind::Collect { value, .. } => {
                            item.operands[0] = self.expr(value, &item.variables)?
                        }
                        StmtKind::Broadcast { value, from, .. } => {
                            item.operands =
                                [self.expr(value, &item.variables)?, self.expr(from, &item.variables)?];
                        }
                        _ => {}
                    }
                    item.stop = Stop::Barrier(stmt.place);
                    return Ok(());
                }
                Step::End(place) => {
                    item.stop = Stop::End(*place);
                    return Ok(());
                }
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt, own: &mut [u64]) -> Result<(), Fault> {
        match &stmt.kind {
            StmtKind::Set(variable, value) => own[variable.0 as usize] = self.expr(value, own)?,
            StmtKind::Store { array, index, value } => {
                let (index, word) = (self.expr(index, own)?, self.expr(value, own)?);
                let place = self.record_access(*array, index, stmt.place, Deed::Write)?;
                self.words[array.0 as usize][place] = word;
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let (index, by) = (self.expr(index, own)?, self.expr(value, own)?);
                // An exchange whose old value nobody asks for is a store.
                if *operation != Atomic::Exchange || old.is_some() {
                    self.needs_value(*array, index, stmt.place)?;
                }
                let place = self.record_access(*array, index, stmt.place, Deed::Atomic)?;
                let ty = self.kernel.array(*array).element;
                let word = &mut self.words[array.0 as usize][place];
                let before = *word;
                let binary = match operation {
                    Atomic::Add => Binary::Add,
                    Atomic::Sub => Binary::Sub,
                    Atomic::Min => Binary::Min,
                    Atomic::Max => Binary::Max,
                    Atomic::And => Binary::And,
                    Atomic::Or => Binary::Or,
                    Atomic::Xor | Atomic::Exchange => Binary::Xor,
                };
                *word = if *operation == Atomic::Exchange { by } else { compute(binary, ty, before, by) };
                if let Some(old) = old {
                    own[old.0 as usize] = before;
                }
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let index = self.expr(index, own)?;
                let (expected, new) = (self.expr(expected, own)?, self.expr(new, own)?);
                self.needs_value(*array, index, stmt.place)?;
                let place = self.record_access(*array, index, stmt.place, Deed::Atomic)?;
                let word = &mut self.words[array.0 as usize][place];
                let before = *word;
                if before == expected {
                    *word = new;
                }
                if let Some(old) = old {
                    own[old.0 as usize] = before;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn site(&self, place: Place) -> Site {
        let item = WorkItem { ids: self.global_ids, dimensions: self.kernel.dimensions };
        Site { item, place, located: self.kernel.locate(place).into() }
    }

    /// The place of an action by the item with this number.
    fn site_of(&self, touch: &Touch) -> Site {
        let (group, item) = (u64::from(touch.group), u64::from(touch.item) % self.items);
        let (group, local) = (ids(group, &self.input.groups), ids(item, &self.input.local));
        let ids = core::array::from_fn(|d| group[d] * self.input.local[d] + local[d]);
        let item = WorkItem { ids, dimensions: self.kernel.dimensions };
        Site { item, place: touch.place, located: self.kernel.locate(touch.place).into() }
    }

    /// Records an access. Returns the position of the element.
    fn record_access(&mut self, id: ArrayId, index: u64, place: Place, deed: Deed) -> Result<usize, Fault> {
        let (array, len) = (self.kernel.array(id), self.input.lengths[id.0 as usize]);
        if index >= len {
            return Err(Fault::Outside {
                array: array.name.clone(),
                id,
                at: Box::new(self.site(place)),
                index,
                len,
            });
        }
        let position = self.position(id, index);
        let touch = Touch {
            item: (self.group * self.items + self.item) as u32,
            group: self.group as u32,
            phase: self.phases[usize::from(!matches!(array.space, Space::Local(_)))],
            place,
        };
        // Arrays that are only read have no record.
        let Some(element) = self.shadows[id.0 as usize].get_mut(position) else { return Ok(position) };
        if !element.is_written && deed == Deed::Read {
            return Err(self.unwritten(id, index, place));
        }
        if matches!(array.space, Space::Private(_)) {
            element.is_written = true;
        } else if let Some((other, did)) = element.record_access(touch, deed) {
            let accesses = Box::new([(self.site_of(&other), did), (self.site(place), deed)]);
            return Err(Fault::Race { array: array.name.clone(), index, accesses });
        }
        Ok(position)
    }

    /// The position of an element; each item has its own private arrays.
    fn position(&self, id: ArrayId, index: u64) -> usize {
        match self.kernel.array(id).space {
            Space::Private(len) => (self.item * len + index) as usize,
            _ => index as usize,
        }
    }

    /// Whether an element that an atomic operation reads has a value.
    fn needs_value(&self, id: ArrayId, index: u64, place: Place) -> Result<(), Fault> {
        let inside = self.watched && index < self.input.lengths[id.0 as usize];
        let shadow = &self.shadows[id.0 as usize];
        let element = inside.then(|| shadow.get(self.position(id, index))).flatten();
        match element {
            Some(element) if !element.is_written => Err(self.unwritten(id, index, place)),
            _ => Ok(()),
        }
    }

    fn unwritten(&self, id: ArrayId, index: u64, place: Place) -> Fault {
        Fault::Unwritten { array: self.kernel.array(id).name.clone(), at: self.site(place), index }
    }

    fn expr(&mut self, expr: &Expr, own: &[u64]) -> Result<u64, Fault> {
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => literal.bits,
            ExprKind::Variable(variable) => own[variable.0 as usize],
            ExprKind::Value(value) => self.input.values[value.0 as usize].bits,
            ExprKind::Len(array) => self.input.lengths[array.0 as usize],
            ExprKind::Query(query, dimension) => {
                let numbers = match query {
                    Query::GlobalId => &self.global_ids,
                    Query::LocalId => &self.local_ids,
                    Query::GroupId => &self.group_ids,
                    Query::GlobalSize => &self.input.global,
                    Query::LocalSize => &self.input.local,
                    Query::Groups => &self.input.groups,
                };
                numbers[usize::from(*dimension)]
            }
            ExprKind::Load(array, index) => {
                let index = self.expr(index, own)?;
                let is_atomic = self.kernel.array(*array).space == Space::Atomic;
                let deed = if is_atomic { Deed::Atomic } else { Deed::Read };
                let place = self.record_access(*array, index, expr.place, deed)?;
                if matches!(self.kernel.array(*array).space, Space::Extent(_)) {
                    return Ok(index);
                }
                self.words[array.0 as usize][place]
            }
            ExprKind::Unary(operator, operand) => {
                let word = self.expr(operand, own)?;
                unary(*operator, expr.ty, word)
            }
            ExprKind::Binary { operator: operator @ (Binary::AndThen | Binary::OrElse), left, right } => {
                let one = self.expr(left, own)?;
                if (one != 0) == (*operator == Binary::AndThen) { self.expr(right, own)? } else { one }
            }
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.expr(left, own)?, self.expr(right, own)?);
                compute(*operator, left.ty, one, two)
            }
            ExprKind::Cast(operand) => {
                let word = self.expr(operand, own)?;
                cast(operand.ty, expr.ty, word)
            }
            // A word is its bits.
            ExprKind::Bits(operand) => self.expr(operand, own)?,
            ExprKind::Select { condition, then, other } => {
                let block = if self.expr(condition, own)? != 0 { then } else { other };
                self.expr(block, own)?
            }
            ExprKind::Math(function, arguments) => {
                let mut words = [0; 3];
                for (word, argument) in words.iter_mut().zip(arguments) {
                    *word = self.expr(argument, own)?;
                }
                math(*function, expr.ty, words)
            }
        })
    }
}

/// Gives each item its result of a collective operation.
fn collect(kernel: &Kernel, stmt: &Stmt, items: &mut [Item]) {
    match &stmt.kind {
        StmtKind::Collect { collection, operator, variable, .. } => {
            let ty = kernel.variable(*variable).ty;
            let mut sum: Option<u64> = None;
            for item in items.iter_mut() {
                let before = sum.unwrap_or_else(|| neutral(*operator, ty).bits);
                let value = sum.map_or(item.operands[0], |sum| compute(*operator, ty, sum, item.operands[0]));
                sum = Some(value);
                let own = if *collection == Collection::Exclusive { before } else { value };
                item.variables[variable.0 as usize] = own;
            }
            if let (Collection::Reduce, Some(sum)) = (collection, sum) {
                items.iter_mut().for_each(|item| item.variables[variable.0 as usize] = sum);
            }
        }
        StmtKind::Broadcast { variable, .. } => {
            let values: Vec<u64> = items.iter().map(|item| item.operands[0]).collect();
            let last = values.len().saturating_sub(1);
            for item in items.iter_mut() {
                let from = usize::try_from(item.operands[1]).unwrap_or(last).min(last);
                item.variables[variable.0 as usize] = values[from];
            }
        }
        _ => {}
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
