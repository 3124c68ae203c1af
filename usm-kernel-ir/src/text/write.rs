//! Writes a kernel as text.

use alloc::string::{String, ToString as _};
use core::fmt::{self, Write as _};

use crate::kernel::{Expr, ExprKind, Kernel, Parameter, Place, Space, Stmt, StmtKind};
use crate::print::Part;
use crate::structure::Structure;

/// The text form of a kernel.
#[must_use]
pub fn write(kernel: &Kernel) -> String {
    let mut text = String::new();
    // A `String` accepts all writes.
    let _ = kernel_text(&mut text, kernel);
    text
}

fn at(to: &mut String, Place { file, line, column }: Place) -> fmt::Result {
    write!(to, " @{file}:{line}:{column}")
}

fn quote(to: &mut String, text: &str) -> fmt::Result {
    to.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(to, "\\{character}")?,
            '\n' => to.write_str("\\n")?,
            // A terminal executes some of these characters, and others hide their neighbours.
            other if other != '\'' && other.escape_debug().len() > 1 => {
                write!(to, "{}", other.escape_unicode())?;
            }
            other => to.write_char(other)?,
        }
    }
    to.write_char('"')
}

fn kernel_text(to: &mut String, kernel: &Kernel) -> fmt::Result {
    to.write_str("(kernel ")?;
    quote(to, &kernel.name)?;
    write!(to, " {}", kernel.dimensions)?;
    at(to, kernel.place)?;
    if kernel.trusted {
        to.write_str("\n  (trusted)")?;
    }
    if let Some(group) = &kernel.group {
        to.write_str("\n  (group")?;
        group.iter().try_for_each(|size| write!(to, " {size}"))?;
        to.write_str(")")?;
    }
    to.write_str("\n  (files")?;
    for file in &kernel.files {
        to.write_char(' ')?;
        quote(to, file)?;
    }
    to.write_str(")")?;
    for array in &kernel.arrays {
        to.write_str("\n  (array ")?;
        quote(to, &array.name)?;
        write!(to, " {} ", array.element)?;
        match &array.space {
            Space::Read => to.write_str("read")?,
            Space::Write => to.write_str("write")?,
            Space::Atomic => to.write_str("atomic")?,
            Space::Constant(len) => write!(to, "(constant {len})")?,
            Space::Private(len) => write!(to, "(private {len})")?,
            Space::Local(len) | Space::Extent(len) => {
                let is_local = matches!(array.space, Space::Local(_));
                to.write_str(if is_local { "(local " } else { "(extent " })?;
                expr(to, len)?;
                to.write_str(")")?;
            }
        }
        at(to, array.place)?;
        to.write_str(")")?;
    }
    for (parameter, Structure { name, fields }) in &kernel.structures {
        to.write_str("\n  (structure")?;
        self::parameter(to, parameter)?;
        to.write_char(' ')?;
        quote(to, name)?;
        for (field, ty) in fields {
            write!(to, " {ty} ")?;
            quote(to, field)?;
        }
        to.write_str(")")?;
    }
    for print in &kernel.prints {
        to.write_str("\n  (print")?;
        for part in &print.parts {
            to.write_char(' ')?;
            match part {
                Part::Text(text) => quote(to, text)?,
                Part::Value { ty, column, format } => {
                    write!(to, "({ty} {column} ")?;
                    quote(to, &format.to_string())?;
                    to.write_char(')')?;
                }
            }
        }
        to.write_char(')')?;
    }
    for (head, name, ty, place) in (kernel.values.iter().map(|value| {
        let ty = if value.is_size { "usize" } else { value.ty.name() };
        ("value", &value.name, ty, value.place)
    }))
    .chain(
        kernel
            .variables
            .iter()
            .map(|variable| ("variable", &variable.name, variable.ty.name(), variable.place)),
    ) {
        write!(to, "\n  ({head} ")?;
        quote(to, name)?;
        write!(to, " {ty}")?;
        at(to, place)?;
        to.write_str(")")?;
    }
    to.write_str("\n  (parameters")?;
    for parameter in &kernel.parameters {
        self::parameter(to, parameter)?;
    }
    to.write_str(")\n  ")?;
    block(to, &kernel.body, 1)?;
    to.write_str(")\n")
}

fn block(to: &mut String, body: &[Stmt], depth: usize) -> fmt::Result {
    to.write_str("(do")?;
    for one in body {
        write!(to, "\n{:1$}", "", 2 * depth + 2)?;
        stmt(to, one, depth + 1)?;
    }
    to.write_str(")")
}

fn stmt(to: &mut String, stmt: &Stmt, depth: usize) -> fmt::Result {
    let write_after_space = |to: &mut String, one: &Expr| {
        to.write_char(' ')?;
        expr(to, one)
    };
    match &stmt.kind {
        StmtKind::Set(variable, value) => {
            write!(to, "(set ${}", variable.0)?;
            write_after_space(to, value)?;
        }
        StmtKind::Store { array, index, value } => {
            write!(to, "(store #{}", array.0)?;
            write_after_space(to, index)?;
            write_after_space(to, value)?;
        }
        StmtKind::Atomic { operation, array, index, value, old } => {
            write!(to, "(atomic {} #{}", operation.name(), array.0)?;
            write_after_space(to, index)?;
            write_after_space(to, value)?;
            if let Some(old) = old {
                write!(to, " ${}", old.0)?;
            }
        }
        StmtKind::CompareExchange { array, index, expected, new, old } => {
            write!(to, "(compare-exchange #{}", array.0)?;
            for one in [index, expected, new] {
                write_after_space(to, one)?;
            }
            if let Some(old) = old {
                write!(to, " ${}", old.0)?;
            }
        }
        StmtKind::Collect { collection, operator, variable, value } => {
            write!(to, "(collect {} {} ${}", collection.name(), operator.name(), variable.0)?;
            write_after_space(to, value)?;
        }
        StmtKind::Broadcast { variable, value, from } => {
            write!(to, "(broadcast ${}", variable.0)?;
            write_after_space(to, value)?;
            write_after_space(to, from)?;
        }
        StmtKind::If { condition, then, other } => {
            to.write_str("(if")?;
            write_after_space(to, condition)?;
            for one in [then, other] {
                to.write_char(' ')?;
                block(to, one, depth)?;
            }
        }
        StmtKind::While(condition, body) => {
            to.write_str("(while")?;
            write_after_space(to, condition)?;
            to.write_char(' ')?;
            block(to, body, depth)?;
        }
        StmtKind::For { variable, start, end, step, body } => {
            write!(to, "(for ${}", variable.0)?;
            for one in [start, end, step] {
                write_after_space(to, one)?;
            }
            to.write_char(' ')?;
            block(to, body, depth)?;
        }
        StmtKind::Break => to.write_str("(break")?,
        StmtKind::Continue => to.write_str("(continue")?,
        StmtKind::Return => to.write_str("(return")?,
        StmtKind::Barrier { local, global } | StmtKind::Fence { local, global } => {
            let is_fence = matches!(stmt.kind, StmtKind::Fence { .. });
            to.write_str(if is_fence { "(fence" } else { "(barrier" })?;
            to.write_str(if *local { " local" } else { "" })?;
            to.write_str(if *global { " global" } else { "" })?;
        }
    }
    at(to, stmt.place)?;
    to.write_char(')')
}

fn parameter(to: &mut String, parameter: &Parameter) -> fmt::Result {
    match parameter {
        Parameter::Array(array) => write!(to, " #{}", array.0),
        Parameter::Value(value) => write!(to, " %{}", value.0),
    }
}

fn expr(to: &mut String, one: &Expr) -> fmt::Result {
    let ty = one.ty;
    match &one.kind {
        ExprKind::Literal(literal) => write!(to, "(lit {ty} 0x{:x}", literal.bits)?,
        ExprKind::Variable(variable) => write!(to, "(var {ty} ${}", variable.0)?,
        ExprKind::Value(value) => write!(to, "(val {ty} %{}", value.0)?,
        ExprKind::Len(array) => write!(to, "(len {ty} #{}", array.0)?,
        ExprKind::Query(query, dimension) => write!(to, "({} {ty} {dimension}", query.name())?,
        ExprKind::Load(array, _) => write!(to, "(load {ty} #{}", array.0)?,
        ExprKind::Unary(operator, _) => write!(to, "({} {ty}", operator.name())?,
        ExprKind::Binary { operator, .. } => write!(to, "({} {ty}", operator.name())?,
        ExprKind::Cast(_) => write!(to, "(cast {ty}")?,
        ExprKind::Bits(_) => write!(to, "(bits {ty}")?,
        ExprKind::Select { .. } => write!(to, "(select {ty}")?,
        ExprKind::Math(function, _) => write!(to, "({} {ty}", function.name())?,
    }
    for operand in one.operands() {
        to.write_char(' ')?;
        expr(to, operand)?;
    }
    at(to, one.place)?;
    to.write_char(')')
}
