//! Assertions.

use quote::ToTokens as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{ASSERTION, Array, ArrayId, Expr, ExprKind, Literal, Scalar, Space, Stmt, StmtKind};

use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    /// Reads `assert!(c, "text")`: an index, 1 where `c` is false, of an extent of one element.
    pub(crate) fn read_assertion(&mut self, call: &syn::Macro, out: &mut Vec<Stmt>) -> Result<()> {
        let arguments = call.parse_body_with(Punctuated::<Rust, syn::Token![,]>::parse_terminated)?;
        let mut arguments = arguments.iter();
        let Some(condition) = arguments.next() else {
            return refuse(call.path.span(), "`assert!` has a condition, and perhaps a text");
        };
        let mut text = condition.to_token_stream().to_string();
        for (tokens, plain) in [(" [", "["), (" . ", "."), (" ()", "()"), (" ,", ",")] {
            text = text.replace(tokens, plain);
        }
        if let Some(message) = arguments.next() {
            let Rust::Lit(syn::ExprLit { lit: syn::Lit::Str(message), .. }) = message else {
                return refuse(message.span(), "the text of `assert!` is a literal");
            };
            if arguments.next().is_some() || message.value().contains(['{', '}']) {
                return refuse(
                    message.span(),
                    "the text of `assert!` has no values: it is made before a launch",
                );
            }
            text = format!("{text}: {}", message.value());
        }
        let at = place_of(call.path.span());
        let condition = self.read_typed(condition, Scalar::Bool)?;
        let number = |value| Box::new(Expr::literal(Literal::integer(Scalar::U64, value), at));
        let space = Space::Extent(*number(1));
        let array = ArrayId(self.kernel.arrays.len() as u32);
        let (name, element) = (format!("{ASSERTION}{text}"), Scalar::U64);
        self.kernel.arrays.push(Array { name, element, space, place: at });
        let kind = ExprKind::Select { condition: Box::new(condition), then: number(0), other: number(1) };
        let index = Expr { kind, ty: Scalar::U64, place: at };
        let variable = self.add_hidden("assert", Scalar::U64, at);
        out.append(&mut self.before);
        out.push(Stmt::new(StmtKind::Set(variable, Expr::load(array, Scalar::U64, index, at)), at));
        Ok(())
    }
}
