//! Names and their meaning at a place of the source.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::RefCell;

use proc_macro2::Span;
use syn::{Error, Ident, ItemFn, Result};
use usm_kernel_ir::{
    ArrayId, Expr, ExprKind, Kernel, Scalar, Space, Stmt, StmtKind, SubGroups, VarId, Variable,
};

use crate::label::Loop;
use crate::meaning::{InlinedCall, Meaning};
use crate::module::Module;
use crate::place::place_of;
use crate::refusal::refuse;
use crate::view::View;

/// The kernel under construction, and the names at the current place.
pub(crate) struct Reader {
    pub(crate) kernel: Kernel,
    names: Vec<(String, Meaning)>,
    /// The largest dimension in the body, plus one.
    pub(crate) dimensions: u8,
    /// Statements that must run before the one that is being read.
    pub(crate) before: Vec<Stmt>,
    pub(crate) neighbours: Rc<Module>,
    /// The kernel's sub-group size, if it has one.
    pub(crate) sub_groups: Option<SubGroups>,
    /// Enclosing functions, innermost last.
    pub(crate) calls: Vec<InlinedCall>,
    /// Enclosing loops, innermost last.
    pub(crate) loops: Vec<Loop>,
    /// Variables of the parts of tuples, and whether they may be set.
    pub(crate) tuples: Vec<(Vec<VarId>, bool)>,
    /// The structures of tuples that are the fields of one, by the position in `tuples`.
    pub(crate) tuple_structures: BTreeMap<usize, usize>,
    /// The structures of arrays, by the position in [`Module::structures`]. The arrays of other
    /// types of fields follow that of the first.
    pub(crate) structures: BTreeMap<ArrayId, usize>,
    /// Named parts of arrays.
    pub(crate) views: Vec<View>,
    /// Lengths of the dimensions of arrays that have several.
    pub(crate) shapes: BTreeMap<ArrayId, Vec<u64>>,
    /// The arrays of the module's tables that the kernel uses.
    tables: BTreeMap<usize, ArrayId>,
    /// Statements that give these arrays their values.
    pub(crate) first: Vec<Stmt>,
    /// Names of a block that is not read yet, and the structures that they are.
    pub(crate) lookahead: RefCell<Vec<(String, Option<usize>)>>,
    /// The variable with the number of the item, in kernels that print.
    pub(crate) item: Option<VarId>,
    /// Number of inlined calls and their statements.
    put_in: usize,
}

/// Maximum number of inlined calls and their statements. Functions that call each other twice
/// double the number at each level.
const PUT_IN: usize = 1 << 16;

impl Reader {
    pub(crate) fn new(item: &ItemFn, neighbours: Rc<Module>) -> Self {
        let name = &item.sig.ident;
        let mut reader = Self::of_constants(neighbours);
        reader.kernel.name = name.to_string().trim_start_matches("r#").to_string();
        reader.kernel.trusted = item.sig.unsafety.is_some();
        reader.kernel.files = vec![name.span().file()];
        reader.kernel.place = place_of(name.span());
        reader
    }

    /// A reader outside of kernels, such as a constant's.
    pub(crate) fn of_constants(neighbours: Rc<Module>) -> Self {
        let kernel = Kernel {
            name: String::new(),
            dimensions: 1,
            group: None,
            trusted: false,
            unordered: Vec::new(),
            files: Vec::new(),
            place: usm_kernel_ir::Place::default(),
            parameters: Vec::new(),
            arrays: Vec::new(),
            structures: Vec::new(),
            prints: Vec::new(),
            values: Vec::new(),
            variables: Vec::new(),
            body: Vec::new(),
        };
        let constants = neighbours.constants.iter();
        let constants = constants.map(|(name, value)| (name.clone(), Meaning::Constant(*value)));
        let tables = neighbours.tables.iter().enumerate();
        let tables = tables.map(|(number, item)| (item.ident.to_string(), Meaning::Table(number)));
        let names = constants.chain(tables).collect();
        Self {
            kernel,
            names,
            dimensions: 0,
            before: Vec::new(),
            neighbours,
            sub_groups: None,
            calls: Vec::new(),
            loops: Vec::new(),
            tuples: Vec::new(),
            tuple_structures: BTreeMap::new(),
            structures: BTreeMap::new(),
            views: Vec::new(),
            shapes: BTreeMap::new(),
            tables: BTreeMap::new(),
            first: Vec::new(),
            lookahead: RefCell::default(),
            item: None,
            put_in: 0,
        }
    }

    /// Counts an inlined call or statement.
    pub(crate) fn count_inlined(&mut self, at: Span) -> Result<()> {
        self.put_in += 1;
        if self.put_in > PUT_IN {
            return refuse(
                at,
                format!("more than {PUT_IN} calls and statements of functions are put in here"),
            );
        }
        Ok(())
    }

    /// A variable that no name of the source refers to.
    pub(crate) fn add_hidden(&mut self, name: &str, ty: Scalar, place: usm_kernel_ir::Place) -> VarId {
        self.kernel.variables.push(Variable { name: name.into(), ty, place });
        VarId(self.kernel.variables.len() as u32 - 1)
    }

    /// Enters a function's body, whose names are constants and its parameters only. Returns the
    /// caller's names.
    pub(crate) fn enter_body(&mut self) -> Vec<(String, Meaning)> {
        let is_of_module = |meaning: &Meaning| matches!(meaning, Meaning::Constant(_) | Meaning::Table(_));
        let constants = self.names.iter().filter(|(_, meaning)| is_of_module(meaning));
        let constants = constants.cloned().collect();
        core::mem::replace(&mut self.names, constants)
    }

    pub(crate) fn restore(&mut self, names: Vec<(String, Meaning)>) {
        self.names = names;
    }

    pub(crate) fn name(&mut self, name: &Ident, meaning: Meaning) {
        self.names.push((name.to_string(), meaning));
    }

    pub(crate) fn variable(&mut self, name: &Ident, ty: Scalar, mutable: bool) -> VarId {
        let id = VarId(self.kernel.variables.len() as u32);
        let text = name.to_string().trim_start_matches("r#").to_string();
        self.kernel.variables.push(Variable { name: text, ty, place: place_of(name.span()) });
        self.name(name, Meaning::Variable { id, mutable });
        id
    }

    pub(crate) fn find(&self, name: &Ident) -> Result<Meaning> {
        let text = name.to_string();
        let entry = self.names.iter().rev().find(|(entry, _)| *entry == text);
        if entry.is_none() {
            self.neighbours.refuse_conditional(&text, name.span())?;
        }
        entry.map(|(_, meaning)| *meaning).ok_or_else(|| {
            Error::new(
                name.span(),
                format!(
                    "no parameter or variable is called `{text}`; a kernel sees nothing outside of itself: make it a parameter, or a constant in a module \
                     with `#[kernels]`"
                ),
            )
        })
    }

    /// Reads a value after others of the same expression, as Rust does: what the later one does
    /// before its statement, such as a call that writes, must not change the earlier ones.
    pub(crate) fn read_after<T>(
        &mut self,
        earlier: &mut [&mut Expr],
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut mark = self.before.len();
        let value_read = read(self)?;
        if self.before.len() == mark {
            return Ok(value_read);
        }
        let sets = sets_of(&self.before[mark..]);
        for value in earlier {
            if self.may_change(value) || reads(value, &sets) {
                let (ty, place) = (value.ty, value.place);
                let variable = self.add_hidden("kept", ty, place);
                let value = core::mem::replace(*value, Expr::variable(variable, ty, place));
                self.before.insert(mark, Stmt::new(StmtKind::Set(variable, value), place));
                mark += 1;
            }
        }
        Ok(value_read)
    }

    /// Whether a value reads memory that statements write.
    pub(crate) fn may_change(&self, value: &Expr) -> bool {
        let mut reads = false;
        value.for_each(&mut |expr| {
            if let ExprKind::Load(array, _) = expr.kind {
                let space = &self.kernel.array(array).space;
                reads |= !matches!(space, Space::Read | Space::Constant(_) | Space::Extent(_));
            }
        });
        reads
    }

    /// Whether these statements set what a value reads.
    pub(crate) fn is_set_by(value: &Expr, stmts: &[Stmt]) -> bool {
        reads(value, &sets_of(stmts))
    }

    /// The array of a constant of the module, which the kernel fills when an item starts.
    pub(crate) fn table(&mut self, number: usize) -> Result<ArrayId> {
        if let Some(id) = self.tables.get(&number) {
            return Ok(*id);
        }
        let item = Rc::clone(&self.neighbours.tables[number]);
        let before = core::mem::take(&mut self.before);
        let table = self.read_table(&item);
        self.before = before;
        let id = table?;
        self.tables.insert(number, id);
        Ok(id)
    }

    /// The current names, for restoring them.
    pub(crate) fn mark(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        self.names.truncate(mark);
    }
}

/// The variables that statements set.
fn sets_of(stmts: &[Stmt]) -> Vec<VarId> {
    let mut sets = Vec::new();
    let mut blocks = vec![stmts];
    while let Some(block) = blocks.pop() {
        for stmt in block {
            sets.extend(stmt.sets());
            blocks.extend(stmt.blocks());
        }
    }
    sets
}

/// Whether a value reads one of these variables.
fn reads(value: &Expr, variables: &[VarId]) -> bool {
    let mut reads = false;
    value.for_each(&mut |expr| {
        reads |= matches!(expr.kind, ExprKind::Variable(id) if variables.contains(&id));
    });
    reads
}
