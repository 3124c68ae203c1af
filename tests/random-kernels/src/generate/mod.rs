//! Random correct kernels: every index is inside, items do not race, and all items of a group reach
//! its barriers. The results do not depend on the order of items.
//!
//! Floats stay small multiples of a small power of two, so that no compiler rounds, however it
//! contracts or reorders.

mod body;
mod expression;
mod jump;

use usm_kernel_ir::{
    Argument, Array, ArrayId, Atomic, Expr, ExprKind, Kernel, Literal, Parameter, Place, Query, Scalar,
    Space, Value, ValueId, VarId, Variable,
};

use crate::random::Random;

/// A kernel, a range, and arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kernel, verified.
    pub kernel: Kernel,
    /// Items in each dimension.
    pub global: Vec<u64>,
    /// Items of a group in each dimension.
    pub local: Vec<u64>,
    /// An argument for each parameter.
    pub arguments: Vec<Given>,
}

/// An argument.
#[derive(Clone, Debug)]
pub enum Given {
    /// The elements of an array.
    Array(Vec<u8>),
    /// A scalar.
    Value(Literal),
}

impl Given {
    /// The argument as the interpreter takes it.
    #[must_use]
    pub fn argument(&self) -> Argument<'_> {
        match self {
            Self::Array(bytes) => Argument::Array(bytes),
            Self::Value(value) => Argument::Value(*value),
        }
    }
}

/// The use of an array of local memory between two barriers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No item has written it.
    Fresh,
    /// Each item uses only its own element.
    Own,
    /// All items read all of it.
    Shared,
    /// All items change it by this operation.
    Atomic(Atomic),
}

pub(crate) struct Generator {
    pub(crate) random: Random,
    pub(crate) kernel: Kernel,
    /// Items of a group, and of the range.
    pub(crate) group: u64,
    pub(crate) items: u64,
    /// Variables that have a value at this point.
    pub(crate) known: Vec<VarId>,
    /// Loop counters, which only their loop sets.
    pub(crate) counters: Vec<VarId>,
    /// The state of each array of local memory.
    pub(crate) states: Vec<(ArrayId, State)>,
    /// The operation on each array of atomics.
    pub(crate) atomics: Vec<(ArrayId, Atomic)>,
    /// Whether the statement may be inside a condition that differs between items.
    pub(crate) divergent: bool,
    /// For each enclosing loop: whether it has no barrier, so that one item may leave it.
    pub(crate) loops: Vec<bool>,
    /// Whether barriers may follow: then no item ends early.
    pub(crate) barriers: bool,
    /// The counters of loops that ended, which other loops and statements may set again; `None`:
    /// each loop has its own.
    pub(crate) ended: Option<Vec<VarId>>,
    pub(crate) line: u32,
    /// The item's index in the range and in its group.
    pub(crate) item: VarId,
    pub(crate) local: VarId,
}

/// The program of a seed.
#[must_use]
pub fn program(seed: u64) -> Program {
    sized(seed, |_, dimensions| [13, 5, 3][dimensions - 1], false)
}

/// Like [`program`], with groups that are long in the fastest dimension.
#[must_use]
pub fn long_program(seed: u64) -> Program {
    sized(seed, |dimension, dimensions| if dimension + 1 == dimensions { 40 } else { 2 }, false)
}

/// Like [`program`], with barriers, and with many loops that items leave alone, that their group
/// leaves, and that have the counter of another loop.
#[must_use]
pub fn jumping_program(seed: u64) -> Program {
    sized(seed, |_, dimensions| [20, 5, 3][dimensions - 1], true)
}

/// `most`: the maximum items of a group in a dimension.
fn sized(seed: u64, most: fn(usize, usize) -> u64, jumps: bool) -> Program {
    let mut random = Random::new(seed);
    let dimensions = *random.pick(&[1, 1, 1, 2, 2, 3]);
    let local: Vec<u64> =
        (0..dimensions).map(|dimension| random.from(1, most(dimension, dimensions))).collect();
    let global: Vec<u64> =
        local.iter().map(|size| size * random.from(1, [4, 3, 2][dimensions - 1])).collect();
    let required = random.percent(60);
    let kind = if jumps { "jumping" } else { "random" };
    let kernel = Kernel {
        name: format!("{kind}_{seed}"),
        dimensions: dimensions as u8,
        group: required.then(|| local.clone()),
        trusted: false,
        unordered: Vec::new(),
        files: vec![format!("random_{seed}")],
        place: Place { file: 0, line: 1, column: 1 },
        parameters: Vec::new(),
        arrays: Vec::new(),
        structures: Vec::new(),
        prints: Vec::new(),
        values: Vec::new(),
        variables: Vec::new(),
        body: Vec::new(),
    };
    let barriers = jumps || random.percent(65);
    let mut generator = Generator {
        random,
        kernel,
        group: local.iter().product(),
        items: global.iter().product(),
        known: Vec::new(),
        counters: Vec::new(),
        states: Vec::new(),
        atomics: Vec::new(),
        divergent: false,
        loops: Vec::new(),
        barriers,
        ended: jumps.then(Vec::new),
        line: 1,
        item: VarId(0),
        local: VarId(0),
    };
    generator.parameters();
    generator.body();
    let arguments = generator.arguments();
    Program { kernel: generator.kernel, global, local, arguments }
}

/// The types with arithmetic, and `bool`.
pub(crate) const TYPES: &[Scalar] = {
    let (types, _) = Scalar::ALL.split_at(11);
    types
};

/// The type in which elements of a type are computed.
pub(crate) const fn computed(element: Scalar) -> Scalar {
    if element.is_half() { Scalar::F32 } else { element }
}

/// A value of an element, as one for arithmetic.
pub(crate) fn widened(value: Expr) -> Expr {
    if value.ty.is_half() {
        let place = value.place;
        value.cast(Scalar::F32, place)
    } else {
        value
    }
}

impl Generator {
    pub(crate) const fn place(&mut self) -> Place {
        self.line += 1;
        Place { file: 0, line: self.line, column: 1 }
    }

    pub(crate) fn scalar(&mut self) -> Scalar {
        *self.random.pick(TYPES)
    }

    fn element(&mut self) -> Scalar {
        *self.random.pick(&Scalar::ALL[1..])
    }

    pub(crate) fn array(&mut self, name: &str, element: Scalar, space: Space) -> ArrayId {
        let id = ArrayId(self.kernel.arrays.len() as u32);
        if space.is_parameter() {
            self.kernel.parameters.push(Parameter::Array(id));
        }
        let place = self.place();
        // Keywords of the target languages are valid names.
        let name = if self.random.percent(10) { "kernel" } else { name };
        self.kernel.arrays.push(Array { name: name.into(), element, space, place });
        id
    }

    pub(crate) fn variable(&mut self, name: &str, ty: Scalar) -> VarId {
        let place = self.place();
        self.kernel.variables.push(Variable { name: name.into(), ty, place });
        VarId(self.kernel.variables.len() as u32 - 1)
    }

    fn parameters(&mut self) {
        for _ in 0..self.random.from(1, 2) {
            let element = self.element();
            self.array("out", element, Space::Write);
        }
        for _ in 0..self.random.from(0, 2) {
            let element = self.element();
            self.array("from", element, Space::Read);
        }
        for _ in 0..self.random.from(0, 2) {
            let ty = self.scalar();
            let id = ValueId(self.kernel.values.len() as u32);
            let place = self.place();
            self.kernel.values.push(Value { name: "double".into(), ty, is_size: false, place });
            self.kernel.parameters.push(Parameter::Value(id));
        }
        if self.random.percent(50) {
            let (element, operation) = self.atomic();
            let id = self.array("count", element, Space::Atomic);
            self.atomics.push((id, operation));
        }
        if self.barriers {
            for _ in 0..self.random.from(0, 2) {
                let element =
                    if self.random.percent(30) { self.atomic().0 } else { *self.random.pick(&Scalar::ALL) };
                let len = self.group_items();
                let id = self.array("lm", element, Space::Local(len));
                self.states.push((id, State::Fresh));
            }
        }
    }

    /// An element type with atomic operations, and a commutative operation of it.
    pub(crate) fn atomic(&mut self) -> (Scalar, Atomic) {
        let all = [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64, Scalar::F32, Scalar::F64];
        let element = *self.random.pick(&all);
        (element, self.operation(element))
    }

    /// An atomic operation whose order does not matter.
    pub(crate) fn operation(&mut self, element: Scalar) -> Atomic {
        let count = if element.is_float() { 4 } else { 7 };
        if self.random.percent(40) { Atomic::Add } else { Atomic::ALL[self.random.below(count) as usize] }
    }

    /// Items of a group, as the length of local memory.
    fn group_items(&mut self) -> Expr {
        let place = self.place();
        if self.kernel.group.is_some() {
            return Expr::literal(Literal::integer(Scalar::U64, self.group), place);
        }
        let sizes = (0..self.kernel.dimensions).map(|d| Expr::query(Query::LocalSize, d, place));
        let product = sizes.reduce(|all, size| Expr::binary(usm_kernel_ir::Binary::Mul, all, size, place));
        product.unwrap_or_else(|| Expr::literal(Literal::integer(Scalar::U64, 1), place))
    }

    /// Elements of an array that is a parameter.
    fn len(&self, space: &Space) -> u64 {
        match space {
            Space::Write => self.items,
            Space::Atomic => 3,
            _ => self.items + 3,
        }
    }

    fn arguments(&mut self) -> Vec<Given> {
        let parameters = self.kernel.parameters.clone();
        let mut arguments = Vec::new();
        for parameter in parameters {
            arguments.push(match parameter {
                Parameter::Value(id) => Given::Value(self.literal(self.kernel.value(id).ty)),
                Parameter::Array(id) => {
                    let array = self.kernel.array(id).clone();
                    let mut bytes = Vec::new();
                    for _ in 0..self.len(&array.space) {
                        let (word, width) = self.literal(array.element).to_ne_bytes();
                        bytes.extend_from_slice(&word[..width]);
                    }
                    Given::Array(bytes)
                }
            });
        }
        arguments
    }

    /// A value, often a minimum or maximum.
    pub(crate) fn literal(&mut self, ty: Scalar) -> Literal {
        if ty.is_float() {
            let value = self.random.below(257) as i32 - 128;
            let value = f64::from(value) / f64::from(*self.random.pick(&[1_u8, 1, 1, 2, 4]));
            return if ty == Scalar::F32 { Literal::f32(value as f32) } else { Literal::f64(value) };
        }
        let word = match self.random.below(4) {
            0 => self.random.word(),
            1 => *self.random.pick(&[0, 1, u64::MAX, 1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1]),
            _ => self.random.below(12),
        };
        // Numbers of 16 bits below 2, so that sums of them stay finite.
        Literal::integer(ty, if ty.is_half() { word & 0xbfff } else { word })
    }

    pub(crate) fn number(&mut self, value: u64) -> Expr {
        let place = self.place();
        Expr::literal(Literal::integer(Scalar::U64, value), place)
    }

    pub(crate) fn of(&mut self, variable: VarId) -> Expr {
        let place = self.place();
        Expr::variable(variable, self.kernel.variable(variable).ty, place)
    }

    pub(crate) fn select(&mut self, condition: Expr, one: Expr, two: Expr) -> Expr {
        let (place, ty) = (self.place(), one.ty);
        Expr {
            kind: ExprKind::Select {
                condition: Box::new(condition),
                then: Box::new(one),
                other: Box::new(two),
            },
            ty,
            place,
        }
    }
}
