//! `match` on integers and bools, as branches.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprMatch, Pat, RangeLimits, Result};

use crate::refusal::refuse;

/// Maximum number of arms, which become branches in each other.
const ARMS: usize = 64;

/// The same choice as a block with branches. The value is computed once.
pub(crate) fn as_branches(choice: &ExprMatch) -> Result<Rust> {
    let span = choice.match_token.span;
    let values: Vec<&Rust> = match &*choice.expr {
        Rust::Tuple(tuple) if !tuple.elems.is_empty() => tuple.elems.iter().collect(),
        one => vec![one],
    };
    let names: Vec<syn::Ident> =
        (0..values.len()).map(|place| syn::Ident::new(&format!("matched_{place}"), span)).collect();
    if choice.arms.len() > ARMS {
        let count = choice.arms.len();
        return refuse(span, format!("{count} arms, {ARMS} are allowed: look the result up in an array"));
    }
    let mut tests = Vec::new();
    for arm in &choice.arms {
        let mut bound = TokenStream::new();
        let mut test = match (&arm.pat, &names[..]) {
            (Pat::Tuple(patterns), names) if names.len() > 1 => {
                if patterns.elems.len() != names.len() {
                    return refuse(patterns.span(), format!("a pattern for {} values", names.len()));
                }
                let mut all = Vec::new();
                for (pattern, name) in patterns.elems.iter().zip(names) {
                    all.extend(condition(pattern, name, &mut bound)?);
                }
                all.into_iter().reduce(|one, two| quote_spanned!(span=> #one && #two))
            }
            (Pat::Wild(_), _) => None,
            (pattern, [name]) => condition(pattern, name, &mut bound)?,
            (pattern, _) => return refuse(pattern.span(), "a tuple of patterns is needed here"),
        };
        if let Some((_, guard)) = &arm.guard {
            let guard = if bound.is_empty() { quote!((#guard)) } else { quote!({ #bound #guard }) };
            test = Some(match test {
                Some(test) => quote_spanned!(span=> #test && #guard),
                None => guard,
            });
        }
        tests.push((test, bound, &arm.body));
    }
    // Of a bool both values are all there are.
    let is_both = matches!(&choice.arms[..], [one, two] if one.guard.is_none() && two.guard.is_none()
        && matches!((truth(&one.pat), truth(&two.pat)), (Some(one), Some(two)) if one != two));
    if is_both {
        if let Some((test, ..)) = tests.last_mut() {
            *test = None;
        }
    }
    let mut branches: Option<TokenStream> = None;
    for (test, bound, body) in tests.into_iter().rev() {
        branches = Some(match (test, branches) {
            (None, _) => quote_spanned!(span=> { #bound #body }),
            (Some(test), Some(other)) => quote_spanned!(span=> { if #test { #bound #body } else #other }),
            (Some(_), None) => {
                return refuse(
                    span,
                    "the last arm of a `match` in a kernel takes all values: write `_ => ..`",
                );
            }
        });
    }
    let Some(branches) = branches else {
        return refuse(span, "a `match` without arms");
    };
    syn::parse2(quote_spanned!(span=> { #(let #names = #values;)* #branches }))
}

/// The condition of a pattern; `None` if it takes all values.
fn condition(pattern: &Pat, name: &syn::Ident, bound: &mut TokenStream) -> Result<Option<TokenStream>> {
    let span = pattern.span();
    Ok(match pattern {
        Pat::Wild(_) => None,
        Pat::Paren(inner) => condition(&inner.pat, name, bound)?,
        Pat::Lit(literal) => match truth(pattern) {
            Some(true) => Some(quote_spanned!(span=> #name)),
            Some(false) => Some(quote_spanned!(span=> !#name)),
            None => Some(quote_spanned!(span=> (#name == #literal))),
        },
        Pat::Path(path) => Some(quote_spanned!(span=> (#name == #path))),
        // A name of capitals is a constant.
        Pat::Ident(pattern) if pattern.subpat.is_none() && pattern.by_ref.is_none() => {
            let text = pattern.ident.to_string();
            if text.chars().all(|letter| !letter.is_lowercase()) {
                Some(quote_spanned!(span=> (#name == #pattern)))
            } else {
                bound.extend(quote_spanned!(span=> let #pattern = #name;));
                None
            }
        }
        Pat::Range(range) => {
            let start = range.start.as_ref().map(|start| quote_spanned!(span=> #name >= #start));
            let end = range.end.as_ref().map(|end| match range.limits {
                RangeLimits::Closed(_) => quote_spanned!(span=> #name <= #end),
                RangeLimits::HalfOpen(_) => quote_spanned!(span=> #name < #end),
            });
            let both = start.into_iter().chain(end).reduce(|one, two| quote_spanned!(span=> #one && #two));
            both.map(|both| quote_spanned!(span=> (#both)))
        }
        Pat::Or(cases) => {
            let mut all = Vec::new();
            for case in &cases.cases {
                match condition(case, name, bound)? {
                    Some(one) => all.push(one),
                    None => return Ok(None),
                }
            }
            let any = all.into_iter().reduce(|one, two| quote_spanned!(span=> #one || #two));
            any.map(|any| quote_spanned!(span=> (#any)))
        }
        other => return refuse(other.span(), "a kernel matches numbers, ranges, `|`, names and `_`"),
    })
}

fn truth(pattern: &Pat) -> Option<bool> {
    match pattern {
        Pat::Lit(syn::ExprLit { lit: syn::Lit::Bool(value), .. }) => Some(value.value),
        _ => None,
    }
}
