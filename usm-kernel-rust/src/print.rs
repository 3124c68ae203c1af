//! `print!` and `println!`.

use quote::ToTokens as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Ident, LitStr, Result};
use usm_kernel_ir::print::{Format, HEADS, LINES, Part, Print};
use usm_kernel_ir::{
    Array, ArrayId, Atomic, Binary, Expr, Literal, Parameter, Place, Query, Scalar, Space, Stmt, StmtKind,
    VarId, print,
};

use crate::literal;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

/// A value that is printed: its variable, and its column.
#[derive(Clone, Copy)]
struct Cell {
    variable: VarId,
    ty: Scalar,
    column: u32,
}

/// The values of a call.
struct Values<'r> {
    reader: &'r mut Reader,
    /// The values in the order of their evaluation, with their names.
    list: Vec<(Option<String>, Cell)>,
    /// The columns of integers, of f32 and of f64 that are taken.
    counts: [u32; 3],
}

impl Values<'_> {
    /// Evaluates a value.
    fn add(&mut self, value: &Rust, name: Option<String>) -> Result<()> {
        // As in Rust, where nothing else states a type.
        let open = if literal::is_integer(value) { Scalar::I32 } else { Scalar::F64 };
        let hint = literal::is_open(value).then_some(open);
        let number = self.reader.read_expr(value, hint)?;
        let (ty, place) = (number.ty, number.place);
        if ty.is_half() {
            return refuse(value.span(), "numbers of 16 bits are printed as `.to_f32()`");
        }
        let variable = self.reader.add_hidden("print", ty, place);
        self.reader.before.push(Stmt::new(StmtKind::Set(variable, number), place));
        let count = &mut self.counts[match ty {
            Scalar::F32 => 1,
            Scalar::F64 => 2,
            _ => 0,
        }];
        self.list.push((name, Cell { variable, ty, column: *count }));
        *count += 1;
        Ok(())
    }

    /// The texts and values of a text with places `{}`.
    fn parts(&mut self, literal: &LitStr, used: &mut [bool]) -> Result<Vec<Part>> {
        let wrong = |why: &str| refuse(literal.span(), why);
        let text = literal.value();
        let (mut parts, mut plain, mut rest, mut next) = (Vec::new(), String::new(), &text[..], 0);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain += before;
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain += &from[..1];
                rest = after;
                continue;
            }
            let Some((place, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}')) else {
                return wrong("a `{` or `}` alone: write `{{` or `}}` for the character");
            };
            rest = after;
            let (name, format) = place.split_once(':').unwrap_or((place, ""));
            let name = name.trim_end();
            let number = if name.is_empty() {
                next += 1;
                next - 1
            } else if let Ok(number) = name.parse() {
                number
            } else {
                self.find_named(name, literal)?
            };
            let Some((_, cell)) = self.list.get(number) else {
                return wrong("more places than values");
            };
            if let Some(used) = used.get_mut(number) {
                *used = true;
            }
            let format = match Format::parse(format.trim_end(), cell.ty) {
                Ok(format) => format,
                Err(message) => return wrong(&message),
            };
            if !plain.is_empty() {
                parts.push(Part::Text(core::mem::take(&mut plain)));
            }
            parts.push(Part::Value { ty: cell.ty, column: cell.column, format });
        }
        plain += rest;
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(parts)
    }

    /// The value of a name in the text: a named one, or a variable of the kernel.
    fn find_named(&mut self, name: &str, literal: &LitStr) -> Result<usize> {
        let has_name = |(other, _): &(Option<String>, Cell)| other.as_deref() == Some(name);
        if let Some(number) = self.list.iter().position(has_name) {
            return Ok(number);
        }
        let mut ident: Ident = match syn::parse_str(name) {
            Ok(ident) => ident,
            Err(_) => return refuse(literal.span(), format!("`{{{name}}}` is no name and no number")),
        };
        ident.set_span(literal.span());
        let value = Rust::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path: ident.into() });
        self.add(&value, Some(name.into()))?;
        Ok(self.list.len() - 1)
    }
}

impl Reader {
    /// Reads a `print!`: values are stored in the next line of hidden arrays, if there is one.
    pub(crate) fn read_print(&mut self, call: &syn::Macro, is_line: bool, out: &mut Vec<Stmt>) -> Result<()> {
        let at = place_of(call.path.span());
        let arguments = call.parse_body_with(Punctuated::<Rust, syn::Token![,]>::parse_terminated)?;
        let mut arguments = arguments.iter();
        let text = match arguments.next() {
            None => LitStr::new("", call.path.span()),
            Some(Rust::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => text.clone(),
            Some(other) => {
                let text = other.to_token_stream();
                return refuse(other.span(), format!("a literal text is needed first: `\"{{}}\", {text}`"));
            }
        };
        let mut values = Values { reader: self, list: Vec::new(), counts: [HEADS, 0, 0] };
        for argument in arguments {
            match argument {
                Rust::Assign(assign) => {
                    let Rust::Path(name) = &*assign.left else {
                        return refuse(assign.left.span(), "a value of `print!` has a name or none");
                    };
                    let name = name.path.get_ident().map(Ident::to_string);
                    values.add(&assign.right, name)?;
                }
                value => values.add(value, None)?,
            }
        }
        let explicit = values.list.len();
        let mut used = vec![false; explicit];
        let mut parts = values.parts(&text, &mut used)?;
        if used.contains(&false) {
            return refuse(text.span(), "a value that the text does not name");
        }
        if is_line {
            parts.push(Part::Text("\n".into()));
        }
        let cells: Vec<Cell> = values.list.iter().map(|(_, cell)| *cell).collect();
        self.store_cells(&cells, at, out);
        self.kernel.prints.push(Print { parts });
        Ok(())
    }

    /// Stores the number of the print, the item and the values in the next line, if any.
    fn store_cells(&mut self, cells: &[Cell], at: Place, out: &mut Vec<Stmt>) {
        let number = |ty, value| Expr::literal(Literal::integer(ty, value), at);
        let slot = self.add_hidden("line", Scalar::U32, at);
        let counter = self.log_array(Scalar::U32, at);
        let (zero, one) = (number(Scalar::U64, 0), number(Scalar::U32, 1));
        out.append(&mut self.before);
        out.push(Stmt::new(
            StmtKind::Atomic {
                operation: Atomic::Add,
                array: counter,
                index: zero.clone(),
                value: one.clone(),
                old: Some(slot),
            },
            at,
        ));
        let slot = Expr::variable(slot, Scalar::U32, at);
        let line = slot.clone().cast(Scalar::U64, at);
        let heads = [(number(Scalar::I64, self.kernel.prints.len() as u64), 0), (self.item_number(at), 1)];
        let mut stores = Vec::new();
        let mut set = |ty, column: u32, value: Expr, reader: &mut Reader| {
            let array = reader.log_array(ty, at);
            let start = number(Scalar::U64, u64::from(column) * LINES);
            let index = Expr::binary(Binary::Add, start, line.clone(), at);
            stores.push(Stmt::new(StmtKind::Store { array, index, value }, at));
        };
        for (value, column) in heads {
            set(Scalar::I64, column, value, self);
        }
        for cell in cells {
            let (value, ty) = (Expr::variable(cell.variable, cell.ty, at), print::column_type(cell.ty));
            let value = if cell.ty == ty { value } else { value.cast(ty, at) };
            set(ty, cell.column, value, self);
        }
        let fits = Expr::binary(Binary::Lt, line, number(Scalar::U64, LINES), at);
        // The counter never returns to 0, or two items would have one line.
        let is_full = Expr::binary(Binary::Ge, slot, number(Scalar::U32, print::COUNTED.into()), at);
        let back = Stmt::new(
            StmtKind::Atomic { operation: Atomic::Sub, array: counter, index: zero, value: one, old: None },
            at,
        );
        let full = Stmt::new(StmtKind::If { condition: is_full, then: vec![back], other: Vec::new() }, at);
        out.push(Stmt::new(StmtKind::If { condition: fits, then: stores, other: vec![full] }, at));
    }

    /// The linear number of the item; dimensions are known only at the end.
    fn item_number(&mut self, at: Place) -> Expr {
        let id = self.item.get_or_insert_with(|| {
            self.kernel.variables.push(usm_kernel_ir::Variable {
                name: "item".into(),
                ty: Scalar::I64,
                place: at,
            });
            VarId(self.kernel.variables.len() as u32 - 1)
        });
        Expr::variable(*id, Scalar::I64, at)
    }

    /// The statement that sets the number of the item, before all others.
    pub(crate) fn item_statement(&self) -> Option<Stmt> {
        let (id, at) = (self.item?, self.kernel.place);
        let mut item = Expr::query(Query::GlobalId, 0, at);
        for dimension in 1..self.kernel.dimensions {
            let size = Expr::query(Query::GlobalSize, dimension, at);
            item = Expr::binary(Binary::Mul, item, size, at);
            item = Expr::binary(Binary::Add, item, Expr::query(Query::GlobalId, dimension, at), at);
        }
        Some(Stmt::new(StmtKind::Set(id, item.cast(Scalar::I64, at)), at))
    }

    /// The hidden array of a type, a parameter after those of the program.
    fn log_array(&mut self, ty: Scalar, at: Place) -> ArrayId {
        let name = print::array_name(ty);
        if let Some(position) = self.kernel.arrays.iter().position(|array| array.name == name) {
            return ArrayId(position as u32);
        }
        let id = ArrayId(self.kernel.arrays.len() as u32);
        let space = if ty == Scalar::U32 { Space::Atomic } else { Space::Write };
        self.kernel.arrays.push(Array { name, element: ty, space, place: at });
        self.kernel.parameters.push(Parameter::Array(id));
        id
    }
}
