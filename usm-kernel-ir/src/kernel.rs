//! The nodes. A kernel is a tree of statements and expressions. Expressions may read memory and
//! have no other effects.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::builtin::Math;
use crate::operator::{Binary, Unary, named};
use crate::print::Print;
use crate::scalar::{Literal, Scalar};
use crate::structure::Structure;

/// A place in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Position in [`Kernel::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A kernel: parameters, arrays, variables and a body that each work-item runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name, as messages use it.
    pub name: String,
    /// Dimensions of its ranges, 1 to 3; dimension 0 is the slowest.
    pub dimensions: u8,
    /// The only local size of a launch, one number for each dimension; 0 allows any.
    pub group: Option<Vec<u64>>,
    /// Whether the author guarantees that indices are inside and items do not race.
    pub trusted: bool,
    /// The arrays of which items may access one element without an order:
    /// [`Claims::unordered`](crate::proof::Claims::unordered). Code for devices accesses them by
    /// relaxed atomic operations or volatile, code for the host makes no vectors of items, and no
    /// value that is read from them counts as the same for all items of a group. Not part of the
    /// text form.
    pub unordered: Vec<ArrayId>,
    /// The files of [`Place`]s.
    pub files: Vec<String>,
    /// The place of its name.
    pub place: Place,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// Arrays: those of parameters, local and private ones.
    pub arrays: Vec<Array>,
    /// The structures among the parameters: of arrays whose elements are their fields, and of
    /// values, each by its first field. If fields of elements have several types, an array for
    /// each other type follows the parameter; the other fields of a value follow the first.
    pub structures: Vec<(Parameter, Structure)>,
    /// What each `print!` of Rust prints; Python's kernels know theirs.
    pub prints: Vec<Print>,
    /// Parameters that are scalars.
    pub values: Vec<Value>,
    /// Variables of an item.
    pub variables: Vec<Variable>,
    /// The statements that each item runs.
    pub body: Vec<Stmt>,
}

/// Position in [`Kernel::arrays`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayId(pub u32);

/// Position in [`Kernel::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

/// Position in [`Kernel::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// An array in global or constant memory.
    Array(ArrayId),
    /// A scalar.
    Value(ValueId),
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Name.
    pub name: String,
    /// Type of the elements.
    pub element: Scalar,
    /// The memory that it lies in.
    pub space: Space,
    /// The place of its declaration.
    pub place: Place,
}

/// The start of the names of arrays of one element whose index is an assertion: it is 0 where the
/// assertion is true.
pub const ASSERTION: &str = "assert ";

impl Array {
    /// The text of the assertion that an index of this array is, if it is one.
    #[must_use]
    pub fn assertion(&self) -> Option<&str> {
        self.name.strip_prefix(ASSERTION)
    }
}

/// The memory of an array, and the allowed accesses.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// Global memory, only read. The launch determines the length.
    Read,
    /// Global memory, read and written. The launch determines the length.
    Write,
    /// Global memory, changed by atomic operations only. The launch determines the length.
    Atomic,
    /// A table of this many elements in constant memory.
    Constant(u64),
    /// Local memory of a group. Range and scalars determine its length. Elements have no value when
    /// a group starts: to read one is a fault of [`check`](crate::check), and gives zero in code.
    Local(Expr),
    /// Private memory of an item with this many elements. They have no value when an item starts,
    /// as those of local memory.
    Private(u64),
    /// No memory: element `i` of this many is `i`, a `u64`. An index in one of several dimensions
    /// of an array is loaded from it, so that it is proven or checked as every index is. Its length
    /// may follow from lengths of parameters, too.
    Extent(Expr),
}

impl Space {
    /// Whether it is a parameter.
    #[must_use]
    pub const fn is_parameter(&self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Atomic | Self::Constant(_))
    }
}

/// A parameter that is a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Scalar,
    /// Whether the host gives a `usize`, which is a `u64` to the kernel.
    pub is_size: bool,
    /// The place of its declaration.
    pub place: Place,
}

/// A variable of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Name; not unique.
    pub name: String,
    /// Type.
    pub ty: Scalar,
    /// The place of its declaration.
    pub place: Place,
}

/// A value to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Scalar,
    /// Its place.
    pub place: Place,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// A variable.
    Variable(VarId),
    /// A parameter that is a scalar.
    Value(ValueId),
    /// Number of elements of an array; `u64`.
    Len(ArrayId),
    /// An id or size in a dimension; `u64`.
    Query(Query, u8),
    /// An element of an array at a `u64`. On an atomic array it is a relaxed load.
    Load(ArrayId, Box<Expr>),
    /// One operand.
    Unary(Unary, Box<Expr>),
    /// Two operands.
    Binary {
        /// What is computed of them.
        operator: Binary,
        /// The first operand.
        left: Box<Expr>,
        /// The second operand.
        right: Box<Expr>,
    },
    /// A conversion to the expression's type with the meaning of Rust's `as`: integers are cut,
    /// floats saturate, and NaN becomes 0.
    Cast(Box<Expr>),
    /// The bits of a floating point number as the unsigned integer of its width, or back.
    Bits(Box<Expr>),
    /// One of two values. The other one is not evaluated.
    Select {
        /// Decides.
        condition: Box<Expr>,
        /// The value if the condition is true.
        then: Box<Expr>,
        /// The value if it is false.
        other: Box<Expr>,
    },
    /// A built-in function.
    Math(Math, Vec<Expr>),
}

named! {
    /// An id or a size.
    Query {
        /// Position of the item in the range.
        GlobalId = "global-id",
        /// Position of the item in its group.
        LocalId = "local-id",
        /// Position of the group.
        GroupId = "group-id",
        /// Items of the range.
        GlobalSize = "global-size",
        /// Items of a group.
        LocalSize = "local-size",
        /// Groups.
        Groups = "groups",
    }
}

impl Query {
    /// Whether the value depends on the division of the range into groups.
    #[must_use]
    pub const fn needs_groups(self) -> bool {
        !matches!(self, Self::GlobalId | Self::GlobalSize)
    }
}

named! {
    /// An atomic operation: relaxed, with device scope. Its result is the old value.
    Atomic {
        /// Sum; wraps.
        Add = "add",
        /// Difference; wraps.
        Sub = "sub",
        /// The smaller one.
        Min = "min",
        /// The greater one.
        Max = "max",
        /// Bits in both.
        And = "and",
        /// Bits in either.
        Or = "or",
        /// Bits in one of them.
        Xor = "xor",
        /// The new value.
        Exchange = "exchange",
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Its kind.
    pub kind: StmtKind,
    /// Its place.
    pub place: Place,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// Sets a variable.
    Set(VarId, Expr),
    /// Sets an element.
    Store {
        /// The array.
        array: ArrayId,
        /// Position of the element; `u64`.
        index: Expr,
        /// The new value.
        value: Expr,
    },
    /// Changes an element of 32 or 64 bits atomically.
    Atomic {
        /// What becomes of the old value and the operand.
        operation: Atomic,
        /// The array.
        array: ArrayId,
        /// Position of the element; `u64`.
        index: Expr,
        /// The operand.
        value: Expr,
        /// The variable that receives the old value.
        old: Option<VarId>,
    },
    /// Atomically sets an element to a new value if it equals the expected one bit for bit.
    CompareExchange {
        /// The array.
        array: ArrayId,
        /// Position of the element; `u64`.
        index: Expr,
        /// The value that is compared.
        expected: Box<Expr>,
        /// The value that is stored if the element equals `expected`.
        new: Box<Expr>,
        /// The variable that receives the old value.
        old: Option<VarId>,
    },
    /// Collects a value of all items of the group in the order of their local ids. A barrier for
    /// local memory.
    Collect {
        /// Which values an item's result combines.
        collection: Collection,
        /// The operator that combines two values.
        operator: Binary,
        /// The variable that receives the result.
        variable: VarId,
        /// The item's own value.
        value: Expr,
    },
    /// Sets the variable to one item's value. A barrier for local memory.
    Broadcast {
        /// The variable that receives the value.
        variable: VarId,
        /// The item's own value.
        value: Expr,
        /// Linear local id of the item whose value counts. An id outside of the group counts as the
        /// last one.
        from: Expr,
    },
    /// Runs one of two blocks.
    If {
        /// Decides.
        condition: Expr,
        /// Runs if the condition is true.
        then: Vec<Stmt>,
        /// Runs if it is false.
        other: Vec<Stmt>,
    },
    /// Runs the body while the condition is true.
    While(Expr, Vec<Stmt>),
    /// Counts up with an integer. An overflow ends the loop.
    For {
        /// The integer, which the body reads.
        variable: VarId,
        /// Its first value.
        start: Expr,
        /// The end, which it does not reach.
        end: Expr,
        /// What each iteration adds. Zero counts as one.
        step: Expr,
        /// Runs for each value.
        body: Vec<Stmt>,
    },
    /// Leaves the innermost loop.
    Break,
    /// Continues with the next round of the innermost loop.
    Continue,
    /// Ends the item.
    Return,
    /// Waits for all items of the group. The flags select local memory, global memory, or both.
    Barrier {
        /// Orders accesses to local memory.
        local: bool,
        /// Orders accesses to global memory by the group's items.
        global: bool,
    },
    /// Orders the item's own accesses before and after it, for all items of the device. It does not
    /// wait, and does not make a race legal.
    Fence {
        /// Accesses to local memory.
        local: bool,
        /// Accesses to global memory.
        global: bool,
    },
}

named! {
    /// An item's result of a collective operation.
    Collection {
        /// The result over all items.
        Reduce = "reduce",
        /// The result over the items up to and including itself.
        Inclusive = "inclusive",
        /// The result over the items before itself. For the first item it is the neutral value; for
        /// a minimum that is the greatest value.
        Exclusive = "exclusive",
    }
}

impl Kernel {
    /// An array of the kernel.
    ///
    /// # Panics
    /// If there is none, which [`verify`](crate::verify) refuses.
    #[must_use]
    pub fn array(&self, id: ArrayId) -> &Array {
        &self.arrays[id.0 as usize]
    }

    /// A variable of the kernel.
    ///
    /// # Panics
    /// As [`array`](Self::array).
    #[must_use]
    pub fn variable(&self, id: VarId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// A scalar of the kernel.
    ///
    /// # Panics
    /// As [`array`](Self::array).
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// Whether the kernel depends on the division of the range into groups: barriers, local memory,
    /// ids in groups.
    #[must_use]
    pub fn needs_groups(&self) -> bool {
        let mut needs = self.arrays.iter().any(|array| matches!(array.space, Space::Local(_)));
        needs |= self.body.iter().any(Stmt::has_barrier);
        let mut note = |expr: &Expr| {
            needs |= matches!(expr.kind, ExprKind::Query(query, _) if query.needs_groups());
        };
        self.for_each(&mut |_| (), &mut note);
        for array in &self.arrays {
            if let Space::Extent(len) = &array.space {
                len.for_each(&mut note);
            }
        }
        needs
    }

    /// Whether its device functions get the sizes of the range and ignore items beyond it, so that
    /// any range may be rounded up to whole groups: kernels that neither need nor state groups.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        self.group.is_none() && !self.parameters.is_empty() && !self.needs_groups()
    }

    /// Arrays whose lengths the body reads, in order.
    #[must_use]
    pub fn lengths(&self) -> Vec<ArrayId> {
        let mut logs = Vec::new();
        self.for_each(&mut |_| (), &mut |expr| {
            if let ExprKind::Len(array) = expr.kind {
                if self.array(array).space.is_parameter() && !logs.contains(&array) {
                    logs.push(array);
                }
            }
        });
        logs.sort_unstable();
        logs
    }

    /// Whether an array, a parameter, a variable or a value has this type.
    pub(crate) fn uses(&self, ty: Scalar) -> bool {
        let mut occurs = self.arrays.iter().any(|array| array.element == ty)
            || self.values.iter().any(|value| value.ty == ty)
            || self.variables.iter().any(|variable| variable.ty == ty);
        self.for_each(&mut |_| (), &mut |expr| occurs |= expr.ty == ty);
        occurs
    }

    /// The bytes of a work-item's private arrays.
    #[must_use]
    pub fn private_bytes(&self) -> u64 {
        let bytes = |array: &Array| match array.space {
            Space::Private(len) => len.saturating_mul(array.element.bytes()),
            _ => 0,
        };
        self.arrays.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// The place with its file: `file:line:column`.
    #[must_use]
    pub fn locate(&self, place: Place) -> String {
        let file = self.files.get(place.file as usize).map_or("?", String::as_str);
        alloc::format!("{file}:{}:{}", place.line, place.column)
    }

    /// Visits all statements and expressions of the body.
    pub fn for_each(&self, stmt: &mut dyn FnMut(&Stmt), expr: &mut dyn FnMut(&Expr)) {
        for_each(&self.body, stmt, expr);
    }
}

/// Visits statements and expressions, outer ones first.
pub(crate) fn for_each(body: &[Stmt], stmt: &mut dyn FnMut(&Stmt), expr: &mut dyn FnMut(&Expr)) {
    for one in body {
        stmt(one);
        one.for_each_expr(&mut |outer| outer.for_each(expr));
        for block in one.blocks() {
            for_each(block, stmt, expr);
        }
    }
}

impl Stmt {
    /// The inner blocks.
    #[must_use]
    pub fn blocks(&self) -> Vec<&[Stmt]> {
        match &self.kind {
            StmtKind::If { then, other, .. } => alloc::vec![then, other],
            StmtKind::While(_, body) | StmtKind::For { body, .. } => alloc::vec![body],
            _ => Vec::new(),
        }
    }

    /// As [`blocks`](Self::blocks).
    pub(crate) fn blocks_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match &mut self.kind {
            StmtKind::If { then, other, .. } => alloc::vec![then, other],
            StmtKind::While(_, body) | StmtKind::For { body, .. } => alloc::vec![body],
            _ => Vec::new(),
        }
    }

    /// As [`for_each_expr`](Self::for_each_expr).
    pub(crate) fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            StmtKind::Set(_, one)
            | StmtKind::Collect { value: one, .. }
            | StmtKind::If { condition: one, .. }
            | StmtKind::While(one, _) => visit(one),
            StmtKind::Store { index: one, value: two, .. }
            | StmtKind::Atomic { index: one, value: two, .. }
            | StmtKind::Broadcast { value: one, from: two, .. } => [one, two].into_iter().for_each(visit),
            StmtKind::CompareExchange { index, expected, new, .. } => {
                visit(index);
                visit(expected);
                visit(new);
            }
            StmtKind::For { start, end, step, .. } => [start, end, step].into_iter().for_each(visit),
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier { .. }
            | StmtKind::Fence { .. } => {}
        }
    }

    /// Visits the outermost expressions.
    pub fn for_each_expr<'s>(&'s self, visit: &mut dyn FnMut(&'s Expr)) {
        match &self.kind {
            StmtKind::Set(_, value) => visit(value),
            StmtKind::Store { index, value, .. } | StmtKind::Atomic { index, value, .. } => {
                visit(index);
                visit(value);
            }
            StmtKind::CompareExchange { index, expected, new, .. } => {
                visit(index);
                visit(expected);
                visit(new);
            }
            StmtKind::Collect { value, .. } => visit(value),
            StmtKind::Broadcast { value, from, .. } => {
                visit(value);
                visit(from);
            }
            StmtKind::If { condition, .. } | StmtKind::While(condition, _) => visit(condition),
            StmtKind::For { start, end, step, .. } => {
                visit(start);
                visit(end);
                visit(step);
            }
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier { .. }
            | StmtKind::Fence { .. } => {}
        }
    }

    /// The variable that it sets, if any.
    #[must_use]
    pub const fn sets(&self) -> Option<VarId> {
        match self.kind {
            StmtKind::Set(variable, _)
            | StmtKind::For { variable, .. }
            | StmtKind::Collect { variable, .. }
            | StmtKind::Broadcast { variable, .. } => Some(variable),
            StmtKind::Atomic { old: variable, .. } | StmtKind::CompareExchange { old: variable, .. } => {
                variable
            }
            _ => None,
        }
    }

    /// Whether the items of a group wait for each other at it.
    #[must_use]
    pub const fn is_barrier(&self) -> bool {
        matches!(self.kind, StmtKind::Barrier { .. } | StmtKind::Collect { .. } | StmtKind::Broadcast { .. })
    }

    /// Whether it contains a barrier.
    #[must_use]
    pub fn has_barrier(&self) -> bool {
        self.is_barrier() || self.blocks().into_iter().flatten().any(Self::has_barrier)
    }
}

impl Expr {
    /// The operands.
    #[must_use]
    pub fn operands(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Load(_, one) | ExprKind::Unary(_, one) | ExprKind::Cast(one) | ExprKind::Bits(one) => {
                alloc::vec![&**one]
            }
            ExprKind::Binary { left: one, right: two, .. } => alloc::vec![&**one, &**two],
            ExprKind::Select { condition, then, other } => alloc::vec![&**condition, &**then, &**other],
            ExprKind::Math(_, arguments) => arguments.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// As [`operands`](Self::operands).
    pub(crate) fn operands_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Load(_, one) | ExprKind::Unary(_, one) | ExprKind::Cast(one) | ExprKind::Bits(one) => {
                alloc::vec![&mut **one]
            }
            ExprKind::Binary { left: one, right: two, .. } => alloc::vec![&mut **one, &mut **two],
            ExprKind::Select { condition, then, other } => {
                alloc::vec![&mut **condition, &mut **then, &mut **other]
            }
            ExprKind::Math(_, arguments) => arguments.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// Visits it and all operands, outer ones first.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        for operand in self.operands() {
            operand.for_each(visit);
        }
    }
}
