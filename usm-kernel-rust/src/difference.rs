//! Differences of lengths that a launch knows.

use usm_kernel_ir::{Binary, Expr, ExprKind, Place, Query};

use crate::view::number;

/// Products of values, each with a factor.
#[derive(Default)]
struct Terms(Vec<(Vec<Expr>, u64)>);

impl Terms {
    /// Adds a value times a product. `None` if there are too many terms.
    fn add(&mut self, value: &Expr, times: &[Expr], factor: u64) -> Option<()> {
        match &value.kind {
            ExprKind::Literal(literal) => self.add_product(times.to_vec(), factor.wrapping_mul(literal.bits)),
            ExprKind::Binary { operator: Binary::Add, left: one, right: two } => {
                self.add(one, times, factor)?;
                self.add(two, times, factor)
            }
            ExprKind::Binary { operator: Binary::Sub, left: one, right: two } => {
                self.add(one, times, factor)?;
                self.add(two, times, factor.wrapping_neg())
            }
            ExprKind::Binary { operator: Binary::Mul, left: one, right: two } => {
                let mut inner = Self::default();
                inner.add(one, &[], 1)?;
                for (atoms, by) in inner.0 {
                    let all: Vec<Expr> = times.iter().cloned().chain(atoms).collect();
                    self.add(two, &all, factor.wrapping_mul(by))?;
                }
                Some(())
            }
            _ => {
                let mut all = times.to_vec();
                all.push(without_places(value));
                self.add_product(all, factor)
            }
        }
    }

    fn add_product(&mut self, mut atoms: Vec<Expr>, factor: u64) -> Option<()> {
        atoms.sort_by_cached_key(|atom| format!("{atom:?}"));
        if let Some((_, term)) = self.0.iter_mut().find(|(term, _)| *term == atoms) {
            *term = term.wrapping_add(factor);
            return Some(());
        }
        self.0.push((atoms, factor));
        (self.0.len() <= 16).then_some(())
    }
}

pub(crate) fn without_places(value: &Expr) -> Expr {
    let mut plain = value.clone();
    plain.place = Place::default();
    match &mut plain.kind {
        ExprKind::Cast(operand) | ExprKind::Unary(_, operand) | ExprKind::Load(_, operand) => {
            **operand = without_places(operand);
        }
        ExprKind::Binary { left: one, right: two, .. } => {
            **one = without_places(one);
            **two = without_places(two);
        }
        _ => {}
    }
    plain
}

/// Whether a launch knows the value before any item runs.
pub(crate) fn is_of_launch(value: &Expr) -> bool {
    let mut is_constant = true;
    value.for_each(&mut |expr| {
        is_constant &= match expr.kind {
            ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Cast(_) | ExprKind::Binary { .. } => true,
            ExprKind::Query(query, _) => {
                matches!(query, Query::GlobalSize | Query::LocalSize | Query::Groups)
            }
            _ => false,
        };
    });
    is_constant
}

/// The difference of two numbers as a sum of products, without what both contain.
pub(crate) fn difference(end: &Expr, start: &Expr) -> Option<Expr> {
    let mut terms = Terms::default();
    terms.add(end, &[], 1)?;
    terms.add(start, &[], u64::MAX)?;
    terms.0.retain(|(_, factor)| *factor != 0);
    let at = end.place;
    let mut sum: Option<Expr> = None;
    // What is subtracted comes last.
    terms.0.sort_by_key(|(_, factor)| *factor >> 63);
    for (atoms, factor) in terms.0 {
        let is_below = factor >> 63 == 1;
        let size = if is_below { factor.wrapping_neg() } else { factor };
        let mut product = (size != 1 || atoms.is_empty()).then(|| number(size, at));
        for atom in atoms {
            product = Some(match product {
                Some(product) => Expr::binary(Binary::Mul, product, atom, at),
                None => atom,
            });
        }
        let product = product?;
        sum = Some(match sum {
            Some(sum) if is_below => Expr::binary(Binary::Sub, sum, product, at),
            Some(sum) => Expr::binary(Binary::Add, sum, product, at),
            None if is_below => return None,
            None => product,
        });
    }
    Some(sum.unwrap_or_else(|| number(0, at)))
}
