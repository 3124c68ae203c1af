//! Reads a kernel from text.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::tree::{Tree, TreeKind, read};
use crate::builtin::Math;
use crate::error::Refusal;
use crate::kernel::{
    Array, ArrayId, Atomic, Collection, Expr, ExprKind, Kernel, Parameter, Place, Query, Space, Stmt,
    StmtKind, Value, ValueId, VarId, Variable,
};
use crate::operator::{Binary, Unary};
use crate::print::{Format, Part, Print};
use crate::scalar::{Literal, Scalar};
use crate::structure::Structure;
use crate::sub_group::{Lane, SubGroups};

/// Reads the text form. The kernel is not [verified](crate::verify) yet.
///
/// # Errors
/// The fault, with its place in the text.
pub fn parse(text: &str) -> Result<Kernel, Refusal> {
    kernel(&read(text)?)
}

/// The rest of a list.
struct Items<'t> {
    items: core::slice::Iter<'t, Tree>,
    place: Place,
}

impl<'t> Items<'t> {
    fn of(tree: &'t Tree) -> Result<Self, Refusal> {
        match &tree.kind {
            TreeKind::List(items) => Ok(Self { items: items.iter(), place: tree.place }),
            _ => Err(Refusal::new(tree.place, "a list `(..)` is needed here")),
        }
    }

    fn list_with_head(tree: &'t Tree) -> Result<(&'t str, Self), Refusal> {
        let mut items = Self::of(tree)?;
        Ok((items.word()?, items))
    }

    fn next(&mut self) -> Result<&'t Tree, Refusal> {
        self.items.next().ok_or_else(|| Refusal::new(self.place, "this list is too short"))
    }

    fn peek(&self) -> Option<&'t Tree> {
        self.items.as_slice().first()
    }

    fn word(&mut self) -> Result<&'t str, Refusal> {
        let tree = self.next()?;
        match &tree.kind {
            TreeKind::Word(word) => Ok(word),
            _ => Err(Refusal::new(tree.place, "a word is needed here")),
        }
    }

    fn text(&mut self) -> Result<String, Refusal> {
        let tree = self.next()?;
        match &tree.kind {
            TreeKind::Text(text) => Ok(text.clone()),
            _ => Err(Refusal::new(tree.place, "a text in quotes is needed here")),
        }
    }

    fn number(&mut self) -> Result<u64, Refusal> {
        let place = self.peek().map_or(self.place, |tree| tree.place);
        let word = self.word()?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        number.map_err(|_| Refusal::new(place, format!("`{word}` is no number of 64 bits")))
    }

    /// A position behind a mark such as `#`.
    fn position(&mut self, sign: char, what: &str) -> Result<u32, Refusal> {
        let place = self.peek().map_or(self.place, |tree| tree.place);
        let word = self.word()?;
        let number = word.strip_prefix(sign).and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| Refusal::new(place, format!("`{word}` is no {what}: write `{sign}0`")))
    }

    fn array(&mut self) -> Result<ArrayId, Refusal> {
        self.position('#', "array").map(ArrayId)
    }

    fn parameter(&mut self) -> Result<Parameter, Refusal> {
        let next = self.peek();
        let is_array =
            next.is_some_and(|next| matches!(&next.kind, TreeKind::Word(word) if word.starts_with('#')));
        Ok(match is_array {
            true => Parameter::Array(self.array()?),
            false => Parameter::Value(ValueId(self.position('%', "parameter")?)),
        })
    }

    fn variable(&mut self) -> Result<VarId, Refusal> {
        self.position('$', "variable").map(VarId)
    }

    fn scalar(&mut self) -> Result<Scalar, Refusal> {
        let place = self.peek().map_or(self.place, |tree| tree.place);
        let word = self.word()?;
        Scalar::from_name(word).ok_or_else(|| Refusal::new(place, format!("`{word}` is no type")))
    }

    fn expr(&mut self) -> Result<Expr, Refusal> {
        expr(self.next()?)
    }

    fn block(&mut self, kernel: &mut Kernel) -> Result<Vec<Stmt>, Refusal> {
        let tree = self.next()?;
        let (head, items) = Items::list_with_head(tree)?;
        if head != "do" {
            return Err(Refusal::new(tree.place, "a block `(do ..)` is needed here"));
        }
        block(items, kernel)
    }

    /// A variable for the old value, if it comes next.
    fn old_value(&mut self) -> Result<Option<VarId>, Refusal> {
        let is =
            matches!(self.peek(), Some(Tree { kind: TreeKind::Word(word), .. }) if word.starts_with('$'));
        if is { self.variable().map(Some) } else { Ok(None) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Tree { kind: TreeKind::Word(found), .. }) if found == word)
    }

    /// Reads the word if it comes next.
    fn takes(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.items.next();
        }
        is
    }

    fn place(&mut self) -> Result<Place, Refusal> {
        let place = self.peek().map_or(self.place, |tree| tree.place);
        let word = self.word()?;
        let wrong = || Refusal::new(place, format!("`{word}` is no place: write `@file:line:column`"));
        let mut numbers =
            word.strip_prefix('@').ok_or_else(wrong)?.split(':').map(|number| number.parse().ok());
        let mut one = || numbers.next().flatten().ok_or_else(wrong);
        let place = Place { file: one()?, line: one()?, column: one()? };
        if numbers.next().is_some() { Err(wrong()) } else { Ok(place) }
    }

    fn end(mut self) -> Result<(), Refusal> {
        match self.items.next() {
            None => Ok(()),
            Some(tree) => Err(Refusal::new(tree.place, "this list is too long")),
        }
    }
}

fn kernel(tree: &Tree) -> Result<Kernel, Refusal> {
    let (head, mut items) = Items::list_with_head(tree)?;
    if head != "kernel" {
        return Err(Refusal::new(tree.place, "`(kernel ..)` is needed here"));
    }
    let name = items.text()?;
    let dimensions = items.number()?;
    let dimensions = u8::try_from(dimensions).unwrap_or(u8::MAX);
    let place = items.place()?;
    let mut kernel = Kernel {
        name,
        dimensions,
        group: None,
        trusted: false,
        unordered: Vec::new(),
        files: Vec::new(),
        place,
        parameters: Vec::new(),
        arrays: Vec::new(),
        structures: Vec::new(),
        prints: Vec::new(),
        values: Vec::new(),
        variables: Vec::new(),
        body: Vec::new(),
    };
    let mut has_body = false;
    for section in items.items {
        let (head, mut items) = Items::list_with_head(section)?;
        match head {
            _ if has_body => return Err(Refusal::new(section.place, "something after the body")),
            "trusted" => {
                kernel.trusted = true;
                items.end()?;
            }
            "group" => {
                let mut sizes = Vec::new();
                while items.peek().is_some() {
                    sizes.push(items.number()?);
                }
                kernel.group = Some(sizes);
            }
            "files" => {
                while items.peek().is_some() {
                    kernel.files.push(items.text()?);
                }
            }
            "array" => {
                let (name, element, space) = (items.text()?, items.scalar()?, space(items.next()?)?);
                kernel.arrays.push(Array { name, element, space, place: items.place()? });
                items.end()?;
            }
            "structure" => {
                let (parameter, name) = (items.parameter()?, items.text()?);
                let mut fields = Vec::new();
                while items.peek().is_some() {
                    let ty = items.scalar()?;
                    fields.push((items.text()?, ty));
                }
                kernel.structures.push((parameter, Structure { name, fields }));
            }
            "print" => {
                let mut parts = Vec::new();
                while let Some(next) = items.peek() {
                    parts.push(match next.kind {
                        TreeKind::Text(_) => Part::Text(items.text()?),
                        _ => printed_value(items.next()?)?,
                    });
                }
                kernel.prints.push(Print { parts });
            }
            "value" => {
                let (name, is_size) = (items.text()?, items.takes("usize"));
                let ty = if is_size { Scalar::U64 } else { items.scalar()? };
                kernel.values.push(Value { name, ty, is_size, place: items.place()? });
                items.end()?;
            }
            "variable" => {
                kernel.variables.push(Variable {
                    name: items.text()?,
                    ty: items.scalar()?,
                    place: items.place()?,
                });
                items.end()?;
            }
            "parameters" => {
                while items.peek().is_some() {
                    kernel.parameters.push(items.parameter()?);
                }
            }
            "do" => {
                kernel.body = block(items, &mut kernel)?;
                has_body = true;
            }
            other => return Err(Refusal::new(section.place, format!("`{other}` is no part of a kernel"))),
        }
    }
    if has_body { Ok(kernel) } else { Err(Refusal::new(tree.place, "a kernel without a body `(do ..)`")) }
}

fn printed_value(tree: &Tree) -> Result<Part, Refusal> {
    let mut items = Items::of(tree)?;
    let (ty, column, format) = (items.scalar()?, items.number()?, items.text()?);
    let column = u32::try_from(column).map_err(|_| Refusal::new(tree.place, "no number of a column"))?;
    let format = Format::parse(&format, ty).map_err(|message| Refusal::new(tree.place, message))?;
    items.end()?;
    Ok(Part::Value { ty, column, format })
}

fn space(tree: &Tree) -> Result<Space, Refusal> {
    if let TreeKind::Word(word) = &tree.kind {
        return match word.as_str() {
            "read" => Ok(Space::Read),
            "write" => Ok(Space::Write),
            "atomic" => Ok(Space::Atomic),
            other => Err(Refusal::new(tree.place, format!("`{other}` is no memory"))),
        };
    }
    let (head, mut items) = Items::list_with_head(tree)?;
    let space = match head {
        "constant" => Space::Constant(items.number()?),
        "private" => Space::Private(items.number()?),
        "local" => Space::Local(items.expr()?),
        "extent" => Space::Extent(items.expr()?),
        other => return Err(Refusal::new(tree.place, format!("`{other}` is no memory"))),
    };
    items.end()?;
    Ok(space)
}

fn block(items: Items<'_>, kernel: &mut Kernel) -> Result<Vec<Stmt>, Refusal> {
    let mut out = Vec::new();
    for tree in items.items {
        stmt(tree, kernel, &mut out)?;
    }
    Ok(out)
}

/// An operation of a sub-group, which becomes statements of other kinds:
/// `(sub-group WIDTH size|id|local-id|count $to place)`,
/// `(sub-group WIDTH reduce|inclusive|exclusive OPERATOR $to value place)` or
/// `(sub-group WIDTH shuffle|xor|up|down $to value lane place)`.
fn sub_group(
    tree: &Tree,
    mut items: Items<'_>,
    kernel: &mut Kernel,
    out: &mut Vec<Stmt>,
) -> Result<(), Refusal> {
    let groups = SubGroups::of_any_group(kernel.dimensions.clamp(1, 3), items.number()?);
    let groups = groups.map_err(|message| Refusal::new(tree.place, message))?;
    let word = items.word()?;
    let wrong = |word| Refusal::new(tree.place, format!("`{word}` is nothing that a sub-group does"));
    let (to, value);
    if let Some(collection) = Collection::from_name(word) {
        let by = items.word()?;
        let operator = Binary::from_name(by).ok_or_else(|| wrong(by))?;
        (to, value) = (items.variable()?, items.expr()?);
        if !operator.collects(value.ty) {
            return Err(Refusal::new(value.place, format!("{} is not collected by {by}", value.ty)));
        }
        let value_read = groups.collect(kernel, collection, operator, value, out);
        out.push(Stmt::new(StmtKind::Set(to, value_read), items.place()?));
        return items.end();
    }
    to = items.variable()?;
    let (place, found);
    if matches!(word, "size" | "id" | "local-id" | "count") {
        place = items.place()?;
        found = match word {
            "size" => groups.size(place),
            "id" => groups.id(place),
            "count" => groups.count(place),
            _ => groups.lane(place),
        };
    } else {
        let lane;
        (value, lane) = (items.expr()?, items.expr()?);
        let lane = match word {
            "shuffle" => Lane::At(lane),
            "xor" => Lane::Xor(lane),
            "up" => Lane::Up(lane),
            "down" => Lane::Down(lane),
            other => return Err(wrong(other)),
        };
        place = items.place()?;
        found = groups.shuffle(kernel, value, lane, out);
    }
    out.push(Stmt::new(StmtKind::Set(to, found), place));
    items.end()
}

fn stmt(tree: &Tree, kernel: &mut Kernel, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
    let (head, mut items) = Items::list_with_head(tree)?;
    let kind = match head {
        "sub-group" => return sub_group(tree, items, kernel, out),
        "set" => StmtKind::Set(items.variable()?, items.expr()?),
        "store" => StmtKind::Store { array: items.array()?, index: items.expr()?, value: items.expr()? },
        "atomic" => {
            let word = items.word()?;
            let operation = Atomic::from_name(word);
            let operation = operation
                .ok_or_else(|| Refusal::new(tree.place, format!("`{word}` is no atomic operation")))?;
            let (array, index, value) = (items.array()?, items.expr()?, items.expr()?);
            StmtKind::Atomic { operation, array, index, value, old: items.old_value()? }
        }
        "compare-exchange" => {
            let (array, index) = (items.array()?, items.expr()?);
            let (expected, new) = (Box::new(items.expr()?), Box::new(items.expr()?));
            StmtKind::CompareExchange { array, index, expected, new, old: items.old_value()? }
        }
        "collect" => {
            let (word, by) = (items.word()?, items.word()?);
            let wrong = |word| Refusal::new(tree.place, format!("`{word}` is no way to collect"));
            let collection = Collection::from_name(word).ok_or_else(|| wrong(word))?;
            let operator = Binary::from_name(by).ok_or_else(|| wrong(by))?;
            StmtKind::Collect { collection, operator, variable: items.variable()?, value: items.expr()? }
        }
        "broadcast" => {
            StmtKind::Broadcast { variable: items.variable()?, value: items.expr()?, from: items.expr()? }
        }
        "fence" => StmtKind::Fence { local: items.takes("local"), global: items.takes("global") },
        "if" => {
            StmtKind::If { condition: items.expr()?, then: items.block(kernel)?, other: items.block(kernel)? }
        }
        "while" => StmtKind::While(items.expr()?, items.block(kernel)?),
        "for" => StmtKind::For {
            variable: items.variable()?,
            start: items.expr()?,
            end: items.expr()?,
            step: items.expr()?,
            body: items.block(kernel)?,
        },
        "break" => StmtKind::Break,
        "continue" => StmtKind::Continue,
        "return" => StmtKind::Return,
        "barrier" => StmtKind::Barrier { local: items.takes("local"), global: items.takes("global") },
        other => return Err(Refusal::new(tree.place, format!("`{other}` is no statement"))),
    };
    let place = items.place()?;
    items.end()?;
    out.push(Stmt { kind, place });
    Ok(())
}

fn expr(tree: &Tree) -> Result<Expr, Refusal> {
    let (head, mut items) = Items::list_with_head(tree)?;
    let ty = items.scalar()?;
    let next_box = |items: &mut Items<'_>| items.expr().map(Box::new);
    let kind = match head {
        "lit" => {
            let bits = items.number()?;
            let literal = if ty == Scalar::Bool && bits > 1 {
                Literal { ty, bits }
            } else {
                Literal::integer(ty, bits)
            };
            if literal.bits != bits || (ty == Scalar::Bool && bits > 1) {
                return Err(Refusal::new(tree.place, format!("0x{bits:x} is no {ty}")));
            }
            ExprKind::Literal(literal)
        }
        "var" => ExprKind::Variable(items.variable()?),
        "val" => ExprKind::Value(ValueId(items.position('%', "parameter")?)),
        "len" => ExprKind::Len(items.array()?),
        "load" => ExprKind::Load(items.array()?, next_box(&mut items)?),
        "cast" => ExprKind::Cast(next_box(&mut items)?),
        "bits" => ExprKind::Bits(next_box(&mut items)?),
        "select" => ExprKind::Select {
            condition: next_box(&mut items)?,
            then: next_box(&mut items)?,
            other: next_box(&mut items)?,
        },
        head => {
            if let Some(query) = Query::from_name(head) {
                ExprKind::Query(query, u8::try_from(items.number()?).unwrap_or(u8::MAX))
            } else if let Some(operator) = Unary::from_name(head) {
                ExprKind::Unary(operator, next_box(&mut items)?)
            } else if let Some(operator) = Binary::from_name(head) {
                ExprKind::Binary { operator, left: next_box(&mut items)?, right: next_box(&mut items)? }
            } else if let Some(function) = Math::from_name(head) {
                let arguments = (0..function.arguments()).map(|_| items.expr());
                ExprKind::Math(function, arguments.collect::<Result<_, _>>()?)
            } else {
                return Err(Refusal::new(tree.place, format!("`{head}` is no expression")));
            }
        }
    };
    let place = items.place()?;
    items.end()?;
    Ok(Expr { kind, ty, place })
}
