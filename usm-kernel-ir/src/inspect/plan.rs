//! The part of a kernel that its accesses to some arrays follow from.
//!
//! What an index or a condition takes from memory is not known before the launch. A variable with
//! such a value is *open*. A condition that is open stands for both answers, and an open loop for
//! one round, because all its rounds access the same elements where an index is not open. So a plan
//! has every access that a launch can have, and [`Plan::exact`] says that it has no other.

use alloc::vec;
use alloc::vec::Vec;

use super::Doubt;
use crate::interpret::Deed;
use crate::kernel::{ArrayId, Expr, ExprKind, Kernel, Place, Space, Stmt, StmtKind, VarId};
use crate::operator::Binary;

/// A step of a plan.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Set(VarId, Expr),
    Touch {
        array: ArrayId,
        deed: Deed,
        index: Expr,
        place: Place,
    },
    If(Expr, Vec<Node>, Vec<Node>),
    /// The nodes of the condition, the condition, the body.
    While(Vec<Node>, Expr, Vec<Node>),
    For(VarId, [Expr; 3], Vec<Node>),
    Break,
    Continue,
    Return,
    Barrier {
        local: bool,
        global: bool,
    },
}

/// The steps that the accesses to some arrays follow from.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    /// Whether a launch has exactly these accesses, not fewer.
    pub(super) exact: bool,
    pub(super) has_barriers: bool,
    /// Accesses whose index follows from memory.
    pub(super) unknowns: Vec<(ArrayId, Place)>,
}

/// The accesses in question.
#[derive(Clone, Copy, Debug)]
pub(super) enum Targets<'t> {
    /// All accesses to these arrays, and their order.
    Order(&'t [ArrayId]),
    /// Those of them that a launch surely has: neither index nor condition follows from memory.
    Sure(&'t [ArrayId]),
    /// The indices of these accesses. Those that follow from memory are left out.
    Bounds(&'t [(ArrayId, Place)]),
}

impl Targets<'_> {
    fn contains(self, array: ArrayId, place: Place) -> bool {
        match self {
            Self::Order(arrays) | Self::Sure(arrays) => arrays.contains(&array),
            Self::Bounds(places) => places.contains(&(array, place)),
        }
    }
}

struct Planner<'k> {
    kernel: &'k Kernel,
    targets: Targets<'k>,
    /// Accesses whose index follows from memory.
    unknowns: Vec<(ArrayId, Place)>,
    open: Vec<bool>,
    /// The depth of the block that has all uses of a variable; 0 for the kernel's body.
    homes: Vec<u32>,
    exact: bool,
    /// Whether an open condition is around.
    inside: bool,
    /// Whether items may have returned under an open condition.
    is_returned: bool,
    /// Enclosing loops: whether an open condition of its body is around.
    loops: Vec<bool>,
}

impl Plan {
    /// The plan for these accesses.
    ///
    /// # Errors
    /// An index that follows from memory, or a barrier under a condition that does.
    pub(super) fn new(kernel: &Kernel, targets: Targets<'_>) -> Result<Self, Doubt> {
        let open = vec![false; kernel.variables.len()];
        let homes = homes(kernel);
        let mut planner = Planner {
            kernel,
            targets,
            unknowns: Vec::new(),
            open,
            homes,
            exact: true,
            inside: false,
            is_returned: false,
            loops: Vec::new(),
        };
        loop {
            let before = planner.open.iter().filter(|open| **open).count();
            planner.open_in(&kernel.body, 0, 0);
            if planner.open.iter().filter(|open| **open).count() == before {
                break;
            }
        }
        let nodes = planner.block(&kernel.body)?;
        let exact = planner.exact || matches!(targets, Targets::Sure(_));
        let mut matters = vec![false; kernel.variables.len()];
        loop {
            let before = matters.iter().filter(|matters| **matters).count();
            mark(&nodes, &mut matters);
            if matters.iter().filter(|matters| **matters).count() == before {
                break;
            }
        }
        let nodes = prune(nodes, &matters);
        let has_barriers = has_barrier(&nodes);
        Ok(Self { nodes, exact, has_barriers, unknowns: planner.unknowns })
    }

    /// Visits the expressions.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&Expr)) {
        for_each(&self.nodes, visit);
    }
}

impl Plan {
    /// Visits the arrays of accesses.
    pub(super) fn for_each_touch(&self, visit: &mut dyn FnMut(ArrayId)) {
        for_each_touch(&self.nodes, visit);
    }
}

fn for_each_touch(nodes: &[Node], visit: &mut dyn FnMut(ArrayId)) {
    for node in nodes {
        match node {
            Node::Touch { array, .. } => visit(*array),
            Node::If(_, one, two) | Node::While(one, _, two) => {
                for_each_touch(one, visit);
                for_each_touch(two, visit);
            }
            Node::For(.., body) => for_each_touch(body, visit),
            _ => {}
        }
    }
}

fn for_each(nodes: &[Node], visit: &mut dyn FnMut(&Expr)) {
    for node in nodes {
        match node {
            Node::Set(_, one) | Node::Touch { index: one, .. } => one.for_each(visit),
            Node::If(condition, then, other) => {
                condition.for_each(visit);
                for_each(then, visit);
                for_each(other, visit);
            }
            Node::While(before, condition, body) => {
                for_each(before, visit);
                condition.for_each(visit);
                for_each(body, visit);
            }
            Node::For(_, ends, body) => {
                ends.iter().for_each(|end| end.for_each(visit));
                for_each(body, visit);
            }
            Node::Break | Node::Continue | Node::Return | Node::Barrier { .. } => {}
        }
    }
}

/// For each variable the depth of the block that sets it first and has all its uses.
fn homes(kernel: &Kernel) -> Vec<u32> {
    let mut homes = vec![0; kernel.variables.len()];
    let mut all = vec![0; kernel.variables.len()];
    count(&kernel.body, &mut all);
    home_in(&kernel.body, 0, &all, &mut homes);
    homes
}

fn home_in(body: &[Stmt], depth: u32, all: &[u32], homes: &mut [u32]) {
    for (place, stmt) in body.iter().enumerate() {
        if let StmtKind::Set(variable, value) = &stmt.kind {
            let mut own = false;
            value.for_each(&mut |one| {
                own |= matches!(one.kind, ExprKind::Variable(used) if used == *variable)
            });
            set_home((*variable, own), &body[place..], depth, all, homes);
        }
        if let StmtKind::For { variable, .. } = &stmt.kind {
            set_home((*variable, false), &body[place..], depth, all, homes);
        }
        for block in stmt.blocks() {
            home_in(block, depth + 1, all, homes);
        }
    }
}

fn set_home((variable, own): (VarId, bool), rest: &[Stmt], depth: u32, all: &[u32], homes: &mut [u32]) {
    let at = variable.0 as usize;
    if own || depth <= homes[at] {
        return;
    }
    let mut positions = vec![0; all.len()];
    count(rest, &mut positions);
    if positions[at] == all[at] {
        homes[at] = depth;
    }
}

/// Counts the uses of each variable.
fn count(body: &[Stmt], uses: &mut [u32]) {
    for stmt in body {
        if let Some(variable) = stmt.sets() {
            uses[variable.0 as usize] += 1;
        }
        stmt.for_each_expr(&mut |outer| {
            outer.for_each(&mut |one| {
                if let ExprKind::Variable(variable) = one.kind {
                    uses[variable.0 as usize] += 1;
                }
            });
        });
        for block in stmt.blocks() {
            count(block, uses);
        }
    }
}

impl Planner<'_> {
    /// Whether a value follows from memory. Floating point numbers count as such, because their
    /// last bits may differ between devices.
    fn is_open(&self, expr: &Expr) -> bool {
        let mut has_load = false;
        expr.for_each(&mut |one| {
            has_load |= one.ty.is_float();
            has_load |= match &one.kind {
                ExprKind::Variable(variable) => self.open[variable.0 as usize],
                ExprKind::Load(array, _) => !matches!(self.kernel.array(*array).space, Space::Extent(_)),
                ExprKind::Math(function, _) => !function.counts(),
                ExprKind::Bits(_) => true,
                _ => false,
            };
        });
        has_load
    }

    /// Whether a loop stands for one round: its condition is open, or an open condition leaves it.
    fn is_loose(&self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::While(condition, body) => self.is_open(condition) || self.leaves(body, false),
            StmtKind::For { start, end, step, body, .. } => {
                [start, end, step].iter().any(|one| self.is_open(one)) || self.leaves(body, false)
            }
            _ => false,
        }
    }

    /// Whether a jump of the loop with this body stands under an open condition.
    fn leaves(&self, body: &[Stmt], open: bool) -> bool {
        body.iter().any(|stmt| match &stmt.kind {
            StmtKind::Break | StmtKind::Continue => open,
            StmtKind::If { condition, then, other } => {
                let open = open || self.is_open(condition);
                self.leaves(then, open) || self.leaves(other, open)
            }
            _ => false,
        })
    }

    /// Whether some items return under an open condition, so that others run the next round alone.
    fn returns(&self, body: &[Stmt], open: bool) -> bool {
        body.iter().any(|stmt| {
            let open = open
                || self.is_loose(stmt)
                || matches!(&stmt.kind, StmtKind::If { condition, .. } if self.is_open(condition));
            let is_return = matches!(stmt.kind, StmtKind::Return);
            (open && is_return) || stmt.blocks().into_iter().any(|block| self.returns(block, open))
        })
    }

    /// The nodes of the body of a loop.
    fn rounds(&mut self, body: &[Stmt], loose: bool) -> Result<Vec<Node>, Doubt> {
        self.loops.push(loose);
        self.is_returned |= self.returns(body, self.inside);
        let nodes = if loose { self.open_block(body) } else { self.block(body) };
        self.loops.pop();
        nodes
    }

    /// Marks the variables that a block of this depth makes open. `open_depth` is the depth of the
    /// innermost block under an open condition, or 0. What is set there is open behind that block,
    /// where the variable still exists, and known inside it.
    fn open_in(&mut self, body: &[Stmt], depth: u32, open_depth: u32) {
        for stmt in body {
            let within = |open: bool| if open { depth + 1 } else { open_depth };
            match &stmt.kind {
                StmtKind::Set(variable, value) => {
                    let open = self.is_open(value);
                    self.open[variable.0 as usize] |= open || open_depth > self.homes[variable.0 as usize];
                }
                StmtKind::Atomic { old: Some(old), .. }
                | StmtKind::CompareExchange { old: Some(old), .. } => {
                    self.open[old.0 as usize] = true;
                }
                StmtKind::Collect { variable, .. } | StmtKind::Broadcast { variable, .. } => {
                    self.open[variable.0 as usize] = true;
                }
                StmtKind::If { condition, then, other } => {
                    let within = within(self.is_open(condition));
                    self.open_in(then, depth + 1, within);
                    self.open_in(other, depth + 1, within);
                }
                StmtKind::While(_, body) => {
                    let within = within(self.is_loose(stmt));
                    self.open_in(body, depth + 1, within);
                }
                StmtKind::For { variable, body, .. } => {
                    let loose = self.is_loose(stmt);
                    self.open[variable.0 as usize] |= loose || open_depth > self.homes[variable.0 as usize];
                    self.open_in(body, depth + 1, within(loose));
                }
                _ => {}
            }
        }
    }

    fn block(&mut self, body: &[Stmt]) -> Result<Vec<Node>, Doubt> {
        let mut nodes = Vec::new();
        for stmt in body {
            self.stmt(stmt, &mut nodes)?;
        }
        Ok(nodes)
    }

    /// The nodes of a block under an open condition.
    fn open_block(&mut self, body: &[Stmt]) -> Result<Vec<Node>, Doubt> {
        let before = core::mem::replace(&mut self.inside, true);
        let nodes = self.block(body);
        self.inside = before;
        if nodes.as_ref().is_ok_and(|nodes| touches(nodes)) {
            self.exact = false;
        }
        nodes
    }

    fn stmt(&mut self, stmt: &Stmt, nodes: &mut Vec<Node>) -> Result<(), Doubt> {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                self.loads(value, nodes)?;
                if !self.open[variable.0 as usize] {
                    nodes.push(Node::Set(*variable, value.clone()));
                }
            }
            StmtKind::Store { array, index, value } => {
                self.loads(index, nodes)?;
                self.loads(value, nodes)?;
                self.touch(*array, Deed::Write, index, stmt.place, nodes)?;
            }
            StmtKind::Atomic { array, index, value, .. } => {
                self.loads(index, nodes)?;
                self.loads(value, nodes)?;
                self.touch(*array, Deed::Atomic, index, stmt.place, nodes)?;
            }
            StmtKind::CompareExchange { array, index, expected, new, .. } => {
                self.loads(index, nodes)?;
                self.loads(expected, nodes)?;
                self.loads(new, nodes)?;
                self.touch(*array, Deed::Atomic, index, stmt.place, nodes)?;
            }
            StmtKind::Collect { value, .. } => {
                self.loads(value, nodes)?;
                self.barrier((true, false), stmt.place, nodes)?;
            }
            StmtKind::Broadcast { value, from, .. } => {
                self.loads(value, nodes)?;
                self.loads(from, nodes)?;
                self.barrier((true, false), stmt.place, nodes)?;
            }
            StmtKind::Barrier { local, global } => {
                self.barrier((*local, *global), stmt.place, nodes)?;
            }
            StmtKind::If { condition, then, other } => {
                self.loads(condition, nodes)?;
                if self.is_open(condition) {
                    for block in [then, other] {
                        nodes.extend(self.open_block(block)?);
                    }
                } else {
                    let (then, other) = (self.block(then)?, self.block(other)?);
                    nodes.push(Node::If(condition.clone(), then, other));
                }
            }
            StmtKind::While(condition, body) => {
                let loose = self.is_loose(stmt);
                let mut before = Vec::new();
                // A condition is evaluated once at least, and again after a body that returns.
                let outer = (self.is_returned, self.inside);
                self.is_returned |= self.returns(body, self.inside);
                self.inside |= loose;
                let loads = self.loads(condition, &mut before);
                (self.is_returned, self.inside) = outer;
                let body = self.rounds(body, loose);
                loads?;
                if loose {
                    if touches(&before) {
                        self.exact = false;
                    }
                    nodes.extend(before);
                    nodes.extend(body?);
                } else {
                    nodes.push(Node::While(before, condition.clone(), body?));
                }
            }
            StmtKind::For { variable, start, end, step, body } => {
                for one in [start, end, step] {
                    self.loads(one, nodes)?;
                }
                let loose = self.is_loose(stmt);
                let body = self.rounds(body, loose);
                if loose {
                    nodes.extend(body?);
                } else {
                    nodes.push(Node::For(*variable, [start.clone(), end.clone(), step.clone()], body?));
                }
            }
            // A loose loop stands for one whole round.
            StmtKind::Break | StmtKind::Continue if self.loops.last() == Some(&true) => {}
            StmtKind::Break => nodes.push(Node::Break),
            StmtKind::Continue => nodes.push(Node::Continue),
            StmtKind::Return if self.inside => (self.exact, self.is_returned) = (false, true),
            StmtKind::Return => nodes.push(Node::Return),
            StmtKind::Fence { .. } => {}
        }
        Ok(())
    }

    fn barrier(
        &self,
        (local, global): (bool, bool),
        place: Place,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Doubt> {
        if matches!(self.targets, Targets::Bounds(_)) {
            return Ok(());
        }
        if self.inside {
            return Err(Doubt::Barrier(place));
        }
        nodes.push(Node::Barrier { local, global });
        Ok(())
    }

    fn touch(
        &mut self,
        array: ArrayId,
        deed: Deed,
        index: &Expr,
        place: Place,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Doubt> {
        if !self.targets.contains(array, place) {
            return Ok(());
        }
        let is_sure = matches!(self.targets, Targets::Sure(_));
        if is_sure && (self.inside || self.is_returned) {
            return Ok(());
        }
        if self.is_open(index) {
            if is_sure {
                return Ok(());
            }
            if matches!(self.targets, Targets::Bounds(_)) {
                self.unknowns.push((array, place));
                return Ok(());
            }
            return Err(Doubt::Memory(place));
        }
        nodes.push(Node::Touch { array, deed, index: index.clone(), place });
        Ok(())
    }

    /// The loads of an expression.
    fn loads(&mut self, expr: &Expr, nodes: &mut Vec<Node>) -> Result<(), Doubt> {
        match &expr.kind {
            ExprKind::Load(array, index) => {
                self.loads(index, nodes)?;
                let is_atomic = self.kernel.array(*array).space == Space::Atomic;
                let deed = if is_atomic { Deed::Atomic } else { Deed::Read };
                self.touch(*array, deed, index, expr.place, nodes)
            }
            ExprKind::Binary { operator: operator @ (Binary::AndThen | Binary::OrElse), left, right } => {
                self.loads(left, nodes)?;
                let mut more = Vec::new();
                self.loads(right, &mut more)?;
                match *operator {
                    Binary::AndThen => self.under(left, more, Vec::new(), nodes),
                    _ => self.under(left, Vec::new(), more, nodes),
                }
                Ok(())
            }
            ExprKind::Select { condition, then, other } => {
                self.loads(condition, nodes)?;
                let mut accesses = [Vec::new(), Vec::new()];
                self.loads(then, &mut accesses[0])?;
                self.loads(other, &mut accesses[1])?;
                let [then, other] = accesses;
                self.under(condition, then, other, nodes);
                Ok(())
            }
            _ => expr.operands().into_iter().try_for_each(|operand| self.loads(operand, nodes)),
        }
    }

    /// Adds the accesses of the two answers of a condition.
    fn under(&mut self, condition: &Expr, then: Vec<Node>, other: Vec<Node>, nodes: &mut Vec<Node>) {
        if then.is_empty() && other.is_empty() {
            return;
        }
        if self.is_open(condition) {
            self.exact = false;
            if !matches!(self.targets, Targets::Sure(_)) {
                nodes.extend(then);
                nodes.extend(other);
            }
        } else {
            nodes.push(Node::If(condition.clone(), then, other));
        }
    }
}

/// Whether nodes access anything.
fn touches(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Touch { .. } => true,
        Node::If(_, then, other) => touches(then) || touches(other),
        Node::While(before, _, body) => touches(before) || touches(body),
        Node::For(.., body) => touches(body),
        _ => false,
    })
}

fn has_barrier(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Barrier { .. } => true,
        Node::If(_, then, other) => has_barrier(then) || has_barrier(other),
        Node::While(_, _, body) | Node::For(.., body) => has_barrier(body),
        _ => false,
    })
}

/// Whether a node has an effect on accesses, if these variables are needed. A jump has one where
/// its loop has.
fn matters(node: &Node, marks: &[bool], in_loop: bool) -> bool {
    let any = |nodes: &[Node], in_loop| nodes.iter().any(|node| matters(node, marks, in_loop));
    match node {
        Node::Set(variable, _) => marks[variable.0 as usize],
        Node::Touch { .. } | Node::Return | Node::Barrier { .. } => true,
        Node::If(_, then, other) => any(then, in_loop) || any(other, in_loop),
        Node::While(before, _, body) => any(before, false) || any(body, false),
        Node::For(variable, _, body) => marks[variable.0 as usize] || any(body, false),
        Node::Break | Node::Continue => in_loop,
    }
}

/// Marks the variables that nodes need which matter.
fn mark(nodes: &[Node], marks: &mut Vec<bool>) {
    mark_in(nodes, marks, false);
}

fn mark_in(nodes: &[Node], marks: &mut Vec<bool>, in_loop: bool) {
    for node in nodes {
        if !matters(node, marks, in_loop) {
            continue;
        }
        let mut uses = |expr: &Expr| {
            expr.for_each(&mut |one| {
                if let ExprKind::Variable(variable) = one.kind {
                    marks[variable.0 as usize] = true;
                }
            });
        };
        match node {
            Node::Set(_, one) | Node::Touch { index: one, .. } => uses(one),
            Node::If(condition, then, other) => {
                uses(condition);
                mark_in(then, marks, in_loop);
                mark_in(other, marks, in_loop);
            }
            Node::While(before, condition, body) => {
                uses(condition);
                mark_in(before, marks, true);
                mark_in(body, marks, true);
            }
            Node::For(_, ends, body) => {
                ends.iter().for_each(uses);
                mark_in(body, marks, true);
            }
            Node::Break | Node::Continue | Node::Return | Node::Barrier { .. } => {}
        }
    }
}

fn prune(nodes: Vec<Node>, marks: &[bool]) -> Vec<Node> {
    prune_in(nodes, marks, false)
}

fn prune_in(nodes: Vec<Node>, marks: &[bool], in_loop: bool) -> Vec<Node> {
    let rest = nodes.into_iter().filter(|node| matters(node, marks, in_loop));
    rest.map(|node| match node {
        Node::If(condition, then, other) => {
            Node::If(condition, prune_in(then, marks, in_loop), prune_in(other, marks, in_loop))
        }
        Node::While(before, condition, body) => {
            Node::While(prune_in(before, marks, true), condition, prune_in(body, marks, true))
        }
        Node::For(variable, ends, body) => Node::For(variable, ends, prune_in(body, marks, true)),
        node => node,
    })
    .collect()
}
