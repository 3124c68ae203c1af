//! Runs a kernel as its nodes say: the oracle of all writers, and the check of a launch without a device.
//!
//! Work-items run in turn up to a barrier. Every element remembers who touched it since the last one, so that a race is found in whatever order the
//! items run.

use alloc::vec;
use alloc::vec::Vec;

use crate::kernel::{
    Array, ArrayId, Atomic, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind, VarId,
};
use crate::operator::{Binary, Math, Unary};
use crate::phase::{Part, phases};
use crate::scalar::{Literal, Scalar};

/// What a launch is given: words of [`Literal::bits`] for the elements of parameters, by [`Kernel::arrays`]; others are empty.
#[derive(Clone, Debug)]
pub struct Input {
    /// Items of the range.
    pub global: Vec<u64>,
    /// Items of a group.
    pub local: Vec<u64>,
    /// The elements of each array that is a parameter.
    pub arrays: Vec<Vec<u64>>,
    /// Each scalar.
    pub values: Vec<Literal>,
}

/// The order in which items run between two barriers, and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First to last.
    Forwards,
    /// Last to first.
    Backwards,
    /// Another permutation for each number.
    Shuffled(u64),
}

/// What is wrong with a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An index that is not inside its array.
    Outside {
        /// The array.
        array: ArrayId,
        /// Where it is indexed.
        place: Place,
        /// Linear number of the work-item in the range.
        item: u64,
        /// The index.
        index: u64,
        /// Elements of the array.
        len: u64,
    },
    /// Two work-items touch one element between two barriers, one of them writes, and not both atomically.
    Race {
        /// The array.
        array: ArrayId,
        /// The element.
        index: u64,
        /// The first access: place and linear number of the work-item.
        first: (Place, u64),
        /// The second one.
        second: (Place, u64),
    },
    /// Local or private memory that is read before it is written.
    Unwritten {
        /// The array.
        array: ArrayId,
        /// Where it is read.
        place: Place,
        /// Linear number of the work-item.
        item: u64,
        /// The element.
        index: u64,
    },
    /// More steps than were allowed.
    Steps,
}

/// Where and by whom an element was touched since the last barrier.
#[derive(Clone, Copy, Default)]
struct Touch {
    /// Item, phase, place.
    write: Option<(u64, u64, Place)>,
    /// Two different items, where there are.
    reads: [Option<(u64, u64, Place)>; 2],
    atomic: Option<(u64, u64, Place)>,
    /// Whether it has a value.
    written: bool,
}

/// Runs one launch.
#[derive(Debug)]
pub struct Interpreter<'k> {
    kernel: &'k Kernel,
    input: Input,
    order: Order,
    steps: u64,
    memory: Vec<Memory>,
    groups: u64,
    group: u64,
    items: u64,
    /// Number of the stretch between two barriers, over all groups.
    phase: u64,
    item: u64,
}

struct Memory {
    words: Vec<u64>,
    touches: Vec<Touch>,
}

impl core::fmt::Debug for Memory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(&self.words).finish()
    }
}

/// What comes after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    On,
    Break,
    Continue,
    Return,
}

type Items = Vec<Vec<u64>>;

impl<'k> Interpreter<'k> {
    /// A launch of a verified kernel. `steps` limits the statements that all items run together.
    #[must_use]
    pub fn new(kernel: &'k Kernel, input: Input, order: Order, steps: u64) -> Self {
        Self {
            kernel,
            input,
            order,
            steps,
            memory: Vec::new(),
            groups: 1,
            group: 0,
            items: 1,
            phase: 0,
            item: 0,
        }
    }

    /// Runs it; the elements of all arrays afterwards.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn run(mut self) -> Result<Vec<Vec<u64>>, Fault> {
        let kernel = self.kernel;
        let counts =
            self.input.global.iter().zip(&self.input.local).map(|(global, local)| global / local.max(&1));
        self.groups = counts.fold(1, u64::saturating_mul);
        self.items = self.input.local.iter().copied().fold(1, u64::saturating_mul);
        for (index, _) in kernel.arrays.iter().enumerate() {
            let words = self.input.arrays.get(index).cloned().unwrap_or_default();
            let touches = vec![Touch { written: true, ..Touch::default() }; words.len()];
            self.memory.push(Memory { words, touches });
        }
        let split = phases(kernel);
        for step in 0..self.groups {
            self.group = self.place(step, self.groups);
            self.prepare()?;
            let mut variables = vec![vec![0; kernel.variables.len()]; self.items as usize];
            let mut ended = vec![false; self.items as usize];
            self.phase += 1;
            let _ = self.parts(&split.parts, &mut variables, &mut ended)?;
        }
        Ok(self.memory.into_iter().map(|memory| memory.words).collect())
    }

    fn place(&self, step: u64, count: u64) -> u64 {
        match self.order {
            Order::Forwards => step,
            Order::Backwards => count - 1 - step,
            // A step that shares no factor with the count visits all places.
            Order::Shuffled(seed) => {
                let mut stride = (seed | 1) % count.max(1);
                while stride == 0 || common(stride, count) != 1 {
                    stride += 1;
                }
                (u128::from(step) * u128::from(stride) + u128::from(seed)).rem_euclid(u128::from(count))
                    as u64
            }
        }
    }

    /// Local memory has no value when a group starts.
    fn prepare(&mut self) -> Result<(), Fault> {
        for index in 0..self.kernel.arrays.len() {
            let len = match &self.kernel.arrays[index].space {
                Space::Local(len) => self.expr(len, &mut Vec::new())?,
                // One for each item.
                Space::Private(len) => len.saturating_mul(self.items),
                _ => continue,
            };
            let len = usize::try_from(len).unwrap_or(usize::MAX).min(1 << 24);
            self.memory[index] =
                Memory { words: vec![0xA5A5_A5A5; len], touches: vec![Touch::default(); len] };
        }
        Ok(())
    }

    fn parts(
        &mut self,
        parts: &[Part<'_>],
        variables: &mut Items,
        ended: &mut [bool],
    ) -> Result<Next, Fault> {
        for part in parts {
            let next = match part {
                Part::Items(body) => {
                    self.phase += 1;
                    for step in 0..self.items {
                        self.item = self.place(step, self.items);
                        let item = self.item as usize;
                        if ended[item] {
                            continue;
                        }
                        let mut own = core::mem::take(&mut variables[item]);
                        for stmt in body {
                            match self.stmt(stmt, &mut own)? {
                                Next::On => {}
                                Next::Return => {
                                    ended[item] = true;
                                    break;
                                }
                                // To the end of the group's loop, for this item.
                                Next::Break | Next::Continue => break,
                            }
                        }
                        variables[item] = own;
                    }
                    Next::On
                }
                Part::Set(variable, value) => {
                    let word = self.uniform(value, variables)?;
                    variables.iter_mut().for_each(|own| own[variable.0 as usize] = word);
                    Next::On
                }
                Part::If(condition, then, other) => {
                    let chosen = if self.uniform(condition, variables)? != 0 { then } else { other };
                    self.parts(chosen, variables, ended)?
                }
                Part::While(condition, body) => {
                    let mut next = Next::On;
                    while self.uniform(condition, variables)? != 0 {
                        self.step()?;
                        next = self.parts(body, variables, ended)?;
                        if matches!(next, Next::Break | Next::Return) {
                            break;
                        }
                    }
                    if next == Next::Return { Next::Return } else { Next::On }
                }
                Part::For(variable, [start, end, step], body) => {
                    let ty = self.kernel.variable(*variable).ty;
                    let bounds = [start, end, step].map(|bound| self.uniform(bound, variables));
                    let [start, end, step] = bounds;
                    let mut next = Next::On;
                    let mut at = Some(start?);
                    let (end, step) = (end?, step?);
                    while let Some(here) = at.filter(|here| less(ty, *here, end)) {
                        self.step()?;
                        variables.iter_mut().for_each(|own| own[variable.0 as usize] = here);
                        next = self.parts(body, variables, ended)?;
                        if matches!(next, Next::Break | Next::Return) {
                            break;
                        }
                        at = further(ty, here, end, step);
                    }
                    if next == Next::Return { Next::Return } else { Next::On }
                }
                Part::Break => Next::Break,
                Part::Continue => Next::Continue,
                Part::Return => Next::Return,
            };
            if next != Next::On {
                return Ok(next);
            }
        }
        Ok(Next::On)
    }

    /// A value that is the same for all items: that of the first.
    fn uniform(&mut self, expr: &Expr, variables: &mut Items) -> Result<u64, Fault> {
        self.item = 0;
        let mut own = core::mem::take(&mut variables[0]);
        let word = self.expr(expr, &mut own);
        variables[0] = own;
        word
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.steps = self.steps.checked_sub(1).ok_or(Fault::Steps)?;
        Ok(())
    }

    fn block(&mut self, body: &[Stmt], own: &mut Vec<u64>) -> Result<Next, Fault> {
        for stmt in body {
            let next = self.stmt(stmt, own)?;
            if next != Next::On {
                return Ok(next);
            }
        }
        Ok(Next::On)
    }

    fn stmt(&mut self, stmt: &Stmt, own: &mut Vec<u64>) -> Result<Next, Fault> {
        self.step()?;
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let word = self.expr(value, own)?;
                own[variable.0 as usize] = word;
            }
            StmtKind::Store(array, index, value) => {
                let (index, word) = (self.expr(index, own)?, self.expr(value, own)?);
                let place = self.touch(*array, index, stmt.place, Access::Write)?;
                self.memory[array.0 as usize].words[place] = word;
            }
            StmtKind::Atomic(operation, array, index, value, old) => {
                let (index, by) = (self.expr(index, own)?, self.expr(value, own)?);
                let place = self.touch(*array, index, stmt.place, Access::Atomic)?;
                let ty = self.kernel.array(*array).element;
                let word = &mut self.memory[array.0 as usize].words[place];
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
            StmtKind::If(condition, then, other) => {
                let chosen = if self.expr(condition, own)? != 0 { then } else { other };
                return self.block(chosen, own);
            }
            StmtKind::While(condition, body) => {
                while self.expr(condition, own)? != 0 {
                    self.step()?;
                    match self.block(body, own)? {
                        Next::Break => break,
                        Next::Return => return Ok(Next::Return),
                        Next::On | Next::Continue => {}
                    }
                }
            }
            StmtKind::For(variable, start, end, step, body) => {
                return self.counting(*variable, [start, end, step], body, own);
            }
            StmtKind::Break => return Ok(Next::Break),
            StmtKind::Continue => return Ok(Next::Continue),
            StmtKind::Return => return Ok(Next::Return),
            StmtKind::Barrier { .. } => {}
        }
        Ok(Next::On)
    }

    fn counting(
        &mut self,
        variable: VarId,
        [start, end, step]: [&Expr; 3],
        body: &[Stmt],
        own: &mut Vec<u64>,
    ) -> Result<Next, Fault> {
        let ty = self.kernel.variable(variable).ty;
        let (start, end, step) = (self.expr(start, own)?, self.expr(end, own)?, self.expr(step, own)?);
        let mut at = Some(start);
        while let Some(here) = at.filter(|here| less(ty, *here, end)) {
            self.step()?;
            own[variable.0 as usize] = here;
            match self.block(body, own)? {
                Next::Break => break,
                Next::Return => return Ok(Next::Return),
                Next::On | Next::Continue => {}
            }
            at = further(ty, here, end, step);
        }
        Ok(Next::On)
    }

    /// Linear number of the item in the range of all groups.
    fn number(&self) -> u64 {
        self.group.wrapping_mul(self.items).wrapping_add(self.item)
    }

    /// Notes an access; the position of the element.
    fn touch(&mut self, id: ArrayId, index: u64, place: Place, access: Access) -> Result<usize, Fault> {
        let array: &Array = self.kernel.array(id);
        let number = self.number();
        let len = match array.space {
            Space::Private(len) => len,
            _ => self.memory[id.0 as usize].words.len() as u64,
        };
        if index >= len {
            return Err(Fault::Outside { array: id, place, item: number, index, len });
        }
        let position = match array.space {
            Space::Private(len) => self.item * len + index,
            _ => index,
        } as usize;
        // Groups are not ordered: to global memory a launch is one stretch between barriers of a group, and all of the others.
        let is_local = matches!(array.space, Space::Local(_));
        let (phase, items) = (self.phase, self.items);
        let touch = &mut self.memory[id.0 as usize].touches[position];
        if matches!(array.space, Space::Local(_) | Space::Private(_))
            && !touch.written
            && access == Access::Read
        {
            return Err(Fault::Unwritten { array: id, place, item: number, index });
        }
        let meets = |other: &(u64, u64, Place)| {
            let same_group = other.0 / items == number / items;
            other.0 != number && (other.1 == phase || (!is_local && !same_group))
        };
        let others = match access {
            Access::Read => [touch.write, touch.atomic, None, None],
            Access::Write => [touch.write, touch.atomic, touch.reads[0], touch.reads[1]],
            Access::Atomic => [touch.write, None, touch.reads[0], touch.reads[1]],
        };
        let is_shared = !matches!(array.space, Space::Private(_) | Space::Read | Space::Constant(_));
        if let Some(other) = others.iter().flatten().find(|other| is_shared && meets(other)) {
            return Err(Fault::Race { array: id, index, first: (other.2, other.0), second: (place, number) });
        }
        let own = Some((number, phase, place));
        match access {
            Access::Read => {
                let first = touch.reads[0];
                if first.is_none_or(|first| first.0 == number) {
                    touch.reads[0] = own;
                } else {
                    touch.reads = [own, first];
                }
            }
            Access::Write => touch.write = own,
            Access::Atomic => touch.atomic = own,
        }
        touch.written |= access != Access::Read;
        Ok(position)
    }

    fn expr(&mut self, expr: &Expr, own: &mut Vec<u64>) -> Result<u64, Fault> {
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => literal.bits,
            ExprKind::Variable(variable) => own[variable.0 as usize],
            ExprKind::Value(value) => self.input.values[value.0 as usize].bits,
            ExprKind::Len(array) => match self.kernel.array(*array).space {
                Space::Private(len) => len,
                _ => self.memory[array.0 as usize].words.len() as u64,
            },
            ExprKind::Query(query, dimension) => self.query(*query, usize::from(*dimension)),
            ExprKind::Load(array, index) => {
                let index = self.expr(index, own)?;
                let is_atomic = self.kernel.array(*array).space == Space::Atomic;
                let access = if is_atomic { Access::Atomic } else { Access::Read };
                let place = self.touch(*array, index, expr.place, access)?;
                self.memory[array.0 as usize].words[place]
            }
            ExprKind::Unary(operator, operand) => {
                let word = self.expr(operand, own)?;
                unary(*operator, expr.ty, word)
            }
            ExprKind::Binary(Binary::AndThen, left, right) => {
                if self.expr(left, own)? == 0 {
                    0
                } else {
                    self.expr(right, own)?
                }
            }
            ExprKind::Binary(Binary::OrElse, left, right) => {
                if self.expr(left, own)? != 0 {
                    1
                } else {
                    self.expr(right, own)?
                }
            }
            ExprKind::Binary(operator, left, right) => {
                let (one, two) = (self.expr(left, own)?, self.expr(right, own)?);
                compute(*operator, left.ty, one, two)
            }
            ExprKind::Cast(operand) => {
                let word = self.expr(operand, own)?;
                cast(operand.ty, expr.ty, word)
            }
            ExprKind::Select(condition, one, two) => {
                let chosen = if self.expr(condition, own)? != 0 { one } else { two };
                self.expr(chosen, own)?
            }
            ExprKind::Math(function, arguments) => {
                let mut words = [0; 2];
                for (word, argument) in words.iter_mut().zip(arguments) {
                    *word = self.expr(argument, own)?;
                }
                math(*function, expr.ty, words)
            }
        })
    }

    fn query(&self, query: Query, dimension: usize) -> u64 {
        let (global, local) = (&self.input.global, &self.input.local);
        let groups: Vec<u64> =
            global.iter().zip(local).map(|(global, local)| global / local.max(&1)).collect();
        match query {
            Query::LocalId => place_in(self.item, local)[dimension],
            Query::GroupId => place_in(self.group, &groups)[dimension],
            Query::GlobalId => {
                place_in(self.group, &groups)[dimension] * local[dimension]
                    + place_in(self.item, local)[dimension]
            }
            Query::GlobalSize => global[dimension],
            Query::LocalSize => local[dimension],
            Query::Groups => groups[dimension],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Atomic,
}

fn common(one: u64, two: u64) -> u64 {
    if two == 0 { one } else { common(two, one % two) }
}

/// Ids of a linear number, the last dimension fastest.
fn place_in(linear: u64, sizes: &[u64]) -> Vec<u64> {
    let mut rest = linear;
    let mut ids = vec![0; sizes.len()];
    for (id, size) in ids.iter_mut().zip(sizes).rev() {
        *id = rest % size.max(&1);
        rest /= size.max(&1);
    }
    ids
}

fn less(ty: Scalar, one: u64, two: u64) -> bool {
    if ty.is_signed() { (one as i64) < two as i64 } else { one < two }
}

/// The next value of a counting loop; nothing where it would pass the end.
fn further(ty: Scalar, here: u64, end: u64, step: u64) -> Option<u64> {
    let unsigned = |word: u64| Literal::integer(ty.unsigned(), word).bits;
    let step = unsigned(step).max(1);
    (unsigned(end.wrapping_sub(here)) > step).then(|| Literal::integer(ty, here.wrapping_add(step)).bits)
}

fn float(ty: Scalar, word: u64) -> f64 {
    let literal = Literal { ty, bits: word };
    if ty == Scalar::F32 { f64::from(literal.to_f32()) } else { literal.to_f64() }
}

/// A result in the type's own precision. One operation of `f64` on `f32` rounds as that of `f32` does.
fn rounded(ty: Scalar, value: f64) -> u64 {
    if ty == Scalar::F32 { Literal::f32(value as f32).bits } else { Literal::f64(value).bits }
}

fn unary(operator: Unary, ty: Scalar, word: u64) -> u64 {
    match operator {
        Unary::Neg if ty.is_float() => rounded(ty, -float(ty, word)),
        Unary::Neg => Literal::integer(ty, word.wrapping_neg()).bits,
        Unary::Not if ty == Scalar::Bool => u64::from(word == 0),
        Unary::Not => Literal::integer(ty, !word).bits,
    }
}

/// Two operands, as [`Binary`] says.
fn compute(operator: Binary, ty: Scalar, one: u64, two: u64) -> u64 {
    if ty.is_float() {
        let (one, two) = (float(ty, one), float(ty, two));
        let value = match operator {
            Binary::Add => one + two,
            Binary::Sub => one - two,
            Binary::Mul => one * two,
            Binary::Div => one / two,
            Binary::Rem => libm::fmod(one, two),
            Binary::Min => libm::fmin(one, two),
            Binary::Max => libm::fmax(one, two),
            Binary::Eq => return u64::from(one == two),
            Binary::Ne => return u64::from(one != two),
            Binary::Lt => return u64::from(one < two),
            Binary::Le => return u64::from(one <= two),
            Binary::Gt => return u64::from(one > two),
            Binary::Ge => return u64::from(one >= two),
            _ => 0.0,
        };
        return rounded(ty, value);
    }
    let mask = u64::from(ty.bits() - 1);
    let is_less = less(ty, one, two);
    let value = match operator {
        Binary::Add => one.wrapping_add(two),
        Binary::Sub => one.wrapping_sub(two),
        Binary::Mul => one.wrapping_mul(two),
        Binary::Div | Binary::Rem => {
            let least = ty.is_signed() && two == u64::MAX && one as i64 == ty.min();
            let two = if two == 0 || least { 1 } else { two };
            match (operator, ty.is_signed()) {
                (Binary::Div, true) => (one as i64).wrapping_div(two as i64) as u64,
                (Binary::Div, false) => one / two,
                (_, true) => (one as i64).wrapping_rem(two as i64) as u64,
                (_, false) => one % two,
            }
        }
        Binary::And => one & two,
        Binary::Or => one | two,
        Binary::Xor => one ^ two,
        Binary::Shl => one << (two & mask),
        Binary::Shr if ty.is_signed() => (one as i64 >> (two & mask)) as u64,
        Binary::Shr => one >> (two & mask),
        Binary::Min => {
            if is_less {
                one
            } else {
                two
            }
        }
        Binary::Max => {
            if is_less {
                two
            } else {
                one
            }
        }
        Binary::Eq => return u64::from(one == two),
        Binary::Ne => return u64::from(one != two),
        Binary::Lt => return u64::from(is_less),
        Binary::Ge => return u64::from(!is_less),
        Binary::Gt => return u64::from(less(ty, two, one)),
        Binary::Le => return u64::from(!less(ty, two, one)),
        Binary::AndThen => return u64::from(one != 0 && two != 0),
        Binary::OrElse => return u64::from(one != 0 || two != 0),
    };
    Literal::integer(ty, value).bits
}

fn cast(from: Scalar, to: Scalar, word: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        (true, true) => rounded(to, float(from, word)),
        (true, false) => {
            let value = float(from, word);
            let word = match to {
                Scalar::I8 => value as i8 as u64,
                Scalar::I16 => value as i16 as u64,
                Scalar::I32 => value as i32 as u64,
                Scalar::I64 => value as i64 as u64,
                Scalar::U8 => u64::from(value as u8),
                Scalar::U16 => u64::from(value as u16),
                Scalar::U32 => u64::from(value as u32),
                _ => value as u64,
            };
            Literal::integer(to, word).bits
        }
        // Once rounded: a 64-bit integer is not taken to `f32` by way of `f64`.
        (false, true) => match (from.is_signed(), to) {
            (true, Scalar::F32) => Literal::f32(word as i64 as f32).bits,
            (true, _) => Literal::f64(word as i64 as f64).bits,
            (false, Scalar::F32) => Literal::f32(word as f32).bits,
            (false, _) => Literal::f64(word as f64).bits,
        },
        (false, false) => Literal::integer(to, word).bits,
    }
}

fn math(function: Math, ty: Scalar, words: [u64; 2]) -> u64 {
    let (one, two) = (float(ty, words[0]), float(ty, words[1]));
    let value = match function {
        Math::Abs => libm::fabs(one),
        Math::Sqrt => libm::sqrt(one),
        Math::Floor => libm::floor(one),
        Math::Ceil => libm::ceil(one),
        Math::Trunc => libm::trunc(one),
        Math::Exp => libm::exp(one),
        Math::Ln => libm::log(one),
        Math::Sin => libm::sin(one),
        Math::Cos => libm::cos(one),
        Math::Pow => libm::pow(one, two),
    };
    rounded(ty, value)
}
