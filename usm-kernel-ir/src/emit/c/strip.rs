//! Items of a row together, where a loop can surround the loop over them.
//!
//! A compiler makes vectors of a loop over items, but seldom if each item runs a loop of its own.
//! The items of a phase do not depend on each other, so a loop with the same rounds for a row may
//! go around them. Their values then lie in arrays, which the compiler keeps in registers.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::host::Host;
use super::stmt::Round;
use crate::kernel::{Expr, ExprKind, Kernel, Space, Stmt, StmtKind, VarId, for_each};
use crate::phase::{Home, is_of_row};

/// Items of a strip: eight registers of eight numbers of 32 bits.
const ITEMS: u64 = 64;
/// The most variables with an array.
const ARRAYS: usize = 16;
/// A loop with at most so many known rounds stays inside: the compiler writes the rounds out.
const ROUNDS: u64 = 16;

/// A phase, divided at the loops that go around the items.
pub(super) struct Strips<'k> {
    pieces: Vec<Piece<'k>>,
    /// Variables with a value for each item.
    arrays: Vec<VarId>,
    /// Variables of the loops around the items.
    counters: Vec<VarId>,
}

enum Piece<'k> {
    /// Each item runs these statements.
    Items(Vec<&'k Stmt>),
    Around(VarId, [&'k Expr; 3], Vec<Piece<'k>>),
}

impl<'k> Strips<'k> {
    /// The division of a phase without checks; `None` if no loop goes around its items.
    pub(super) fn of(kernel: &Kernel, (homes, rows): (&[Home], &[bool]), body: &[&'k Stmt]) -> Option<Self> {
        let mut goes = true;
        let mut private = false;
        let mut note = |space: &Space| private |= matches!(space, Space::Private(_));
        for stmt in body {
            let stmts = core::slice::from_ref(*stmt);
            for_each(
                stmts,
                &mut |stmt| match &stmt.kind {
                    StmtKind::Store { array, .. } => note(&kernel.array(*array).space),
                    StmtKind::Set(..) | StmtKind::If { .. } | StmtKind::For { .. } => {}
                    StmtKind::Break | StmtKind::Continue => {}
                    // An item may wait for an earlier one.
                    _ => goes = false,
                },
                &mut |_| (),
            );
            for_each(stmts, &mut |_| (), &mut |expr| {
                if let ExprKind::Load(array, _) = expr.kind {
                    note(&kernel.array(array).space);
                }
            });
        }
        if !goes || private || body.iter().any(|stmt| leaves_loop(stmt)) {
            return None;
        }
        let mut strips = Self { pieces: Vec::new(), arrays: Vec::new(), counters: Vec::new() };
        strips.pieces = strips.divide((kernel, homes, rows, body), body);
        if strips.counters.is_empty() {
            return None;
        }
        let mut lists = Vec::new();
        collect(&strips.pieces, false, &mut lists);
        for (place, (stmts, _)) in lists.iter().enumerate() {
            for id in variables_of(stmts) {
                let is_phase = homes.get(id.0 as usize) == Some(&Home::Phase);
                if !is_phase || strips.arrays.contains(&id) || strips.counters.contains(&id) {
                    continue;
                }
                let others = lists.iter().enumerate().filter(|(other, _)| *other != place);
                let is_in_others =
                    others.into_iter().any(|(_, (stmts, _))| variables_of(stmts).contains(&id));
                let lives_on = lists[place].1 && !begins_with(stmts, id);
                if is_in_others || lives_on {
                    strips.arrays.push(id);
                }
            }
        }
        (strips.arrays.len() <= ARRAYS).then_some(strips)
    }

    fn divide(&mut self, phase: Phase<'_>, body: &[&'k Stmt]) -> Vec<Piece<'k>> {
        let mut pieces = Vec::new();
        for stmt in body {
            if let Some((variable, bounds, inner)) = outer_loop(phase, stmt) {
                self.counters.push(variable);
                let inner = self.divide(phase, &inner);
                pieces.push(Piece::Around(variable, bounds, inner));
            } else if let Some(Piece::Items(stmts)) = pieces.last_mut() {
                stmts.push(*stmt);
            } else {
                pieces.push(Piece::Items(Vec::from([*stmt])));
            }
        }
        pieces
    }
}

/// A kernel, the places of its variables, those that are the same for a row, and a phase.
type Phase<'p> = (&'p Kernel, &'p [Home], &'p [bool], &'p [&'p Stmt]);
/// A loop's variable, its bounds and its statements.
type Around<'k> = (VarId, [&'k Expr; 3], Vec<&'k Stmt>);

/// The parts of a loop that may go around the items of a row.
fn outer_loop<'k>((kernel, homes, rows, body): Phase<'_>, stmt: &'k Stmt) -> Option<Around<'k>> {
    let StmtKind::For { variable, start, end, step, body: inner } = &stmt.kind else { return None };
    let is_short = match (&start.kind, &end.kind) {
        (ExprKind::Literal(start), ExprKind::Literal(end)) => end.bits.wrapping_sub(start.bits) <= ROUNDS,
        _ => false,
    };
    let bounds = [start, end, step];
    let is_same = bounds.iter().all(|bound| is_of_row(kernel, rows, bound));
    let is_own = homes.get(variable.0 as usize) == Some(&Home::Phase);
    let mut sets = 0;
    for stmt in body {
        let mut count = |stmt: &Stmt| sets += u32::from(stmt.sets() == Some(*variable));
        for_each(core::slice::from_ref(*stmt), &mut count, &mut |_| ());
    }
    let goes = !is_short && is_same && is_own && sets == 1 && !inner.iter().any(leaves_loop);
    goes.then(|| (*variable, bounds, inner.iter().collect()))
}

/// Whether a statement leaves or continues the loop around it.
fn leaves_loop(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(leaves_loop),
        _ => false,
    }
}

/// The lists of statements that items run, and whether a loop goes around each.
fn collect<'p, 'k>(pieces: &'p [Piece<'k>], inside: bool, lists: &mut Vec<(&'p [&'k Stmt], bool)>) {
    for piece in pieces {
        match piece {
            Piece::Items(stmts) => lists.push((stmts, inside)),
            Piece::Around(_, _, pieces) => collect(pieces, true, lists),
        }
    }
}

/// The variables that statements set or read.
fn variables_of(stmts: &[&Stmt]) -> Vec<VarId> {
    let mut variables = Vec::new();
    for stmt in stmts {
        let stmts = core::slice::from_ref(*stmt);
        for_each(stmts, &mut |stmt| variables.extend(stmt.sets()), &mut |_| ());
        for_each(stmts, &mut |_| (), &mut |expr| {
            if let ExprKind::Variable(id) = expr.kind {
                variables.push(id);
            }
        });
    }
    variables.sort_unstable();
    variables.dedup();
    variables
}

/// Whether statements set a variable before anything else.
fn begins_with(stmts: &[&Stmt], id: VarId) -> bool {
    let first = stmts.iter().find(|stmt| variables_of(&[**stmt]).contains(&id));
    first.is_some_and(|stmt| match &stmt.kind {
        StmtKind::Set(variable, value) if *variable == id => {
            let mut reads = false;
            value.for_each(&mut |expr| reads |= matches!(expr.kind, ExprKind::Variable(read) if read == id));
            !reads
        }
        _ => false,
    })
}

impl<'k> Host<'_, 'k> {
    /// Writes the items of a row between two local ids: whole strips, and one with the rest.
    pub(super) fn strips(&mut self, strips: &Strips<'_>, [from, to]: [&str; 2]) {
        self.line(&format!("for (; {from} + {ITEMS} <= {to}; {from} += {ITEMS}) {{"));
        self.strip(strips, from, &ITEMS.to_string());
        self.line("}");
        self.line(&format!("if ({from} < {to}) {{"));
        self.line(&format!("const ulong usm_lanes = {to} - {from};"));
        self.strip(strips, from, "usm_lanes");
        self.line("}");
    }

    /// Writes a strip of so many lanes.
    fn strip(&mut self, strips: &Strips<'_>, from: &str, lanes: &str) {
        for id in &strips.arrays {
            self.declare(*id, &format!("[{ITEMS}]"));
        }
        for id in &strips.counters {
            self.declare(*id, "");
        }
        self.writer.strip.clone_from(&strips.arrays);
        self.pieces(&strips.pieces, strips, [from, lanes]);
        self.writer.strip.clear();
    }

    fn declare(&mut self, id: VarId, len: &str) {
        let ty = self.writer.ty(self.writer.kernel.variable(id).ty);
        let line = format!("{ty} {}{len};", self.writer.variable_name(id));
        self.line(&line);
    }

    fn pieces(&mut self, pieces: &[Piece<'_>], strips: &Strips<'_>, [from, lanes]: [&str; 2]) {
        for piece in pieces {
            match piece {
                Piece::Items(stmts) => {
                    self.state_independence();
                    self.line(&format!("for (ulong usm_lane = 0; usm_lane < {lanes}; ++usm_lane) {{"));
                    self.line(&format!("const ulong usm_lid_0 = {from} + usm_lane;"));
                    self.enter(0);
                    let defined_before: Vec<VarId> =
                        strips.arrays.iter().chain(&strips.counters).copied().collect();
                    self.item(stmts, (&[], None), &defined_before);
                    self.line("}");
                }
                Piece::Around(variable, bounds, pieces) => {
                    self.line("{");
                    self.recompute(bounds);
                    let failure = self.writer.checks.map(|_| "usm_failed".to_string());
                    let round = Round { asks: true, failure, ..Round::default() };
                    let end = self.writer.begin_counting(*variable, *bounds, &round, 1);
                    self.pieces(pieces, strips, [from, lanes]);
                    self.writer.end_counting(end, 1);
                    self.line("}");
                }
            }
        }
    }
}
