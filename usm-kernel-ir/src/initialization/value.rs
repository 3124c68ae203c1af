//! Values that follow from local ids and constants.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::Walker;
use super::state::State;
use crate::interpret::{cast, compute, unary};
use crate::kernel::{Expr, ExprKind, Query, Space};
use crate::operator::Binary;

/// The bits of a value, for each item that is walked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Unknown,
    Same(u64),
    Each(Rc<[Option<u64>]>),
}

impl Word {
    pub(super) fn at(&self, item: usize) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Same(value) => Some(*value),
            Self::Each(values) => values.get(item).copied().flatten(),
        }
    }

    /// The value if all items have the same.
    pub(super) fn same(&self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Same(value) => Some(*value),
            Self::Each(values) => {
                let first = values.first().copied().flatten();
                first.filter(|_| values.iter().all(|value| *value == first))
            }
        }
    }

    pub(super) fn each(mask: &[bool], value: impl Fn(usize, bool) -> Option<u64>) -> Self {
        Self::Each(mask.iter().enumerate().map(|(item, is_active)| value(item, *is_active)).collect())
    }
}

/// The items of a mask for which the condition may have this value.
pub(super) fn narrow(mask: &[bool], condition: &Word, value: u64) -> Rc<[bool]> {
    let may = |item: usize| condition.at(item).is_none_or(|word| u64::from(word != 0) == value);
    mask.iter().enumerate().map(|(item, is_active)| *is_active && may(item)).collect()
}

impl Walker<'_> {
    /// Computes an expression, and records its reads by the items of a mask.
    pub(super) fn value(&mut self, expr: &Expr, state: &State, mask: &[bool]) -> Word {
        self.spend(self.items() as u64);
        if self.left == 0 {
            return Word::Unknown;
        }
        let is_float = |expr: &Expr| expr.ty.is_float();
        match &expr.kind {
            ExprKind::Literal(literal) => Word::Same(literal.bits),
            ExprKind::Variable(variable) => state.variable(*variable).0.clone(),
            ExprKind::Len(array) => self.lens[array.0 as usize].map_or(Word::Unknown, Word::Same),
            ExprKind::Query(Query::LocalId, dimension) => match &self.ids {
                Some(ids) => Word::Each(ids.iter().map(|id| Some(id[usize::from(*dimension)])).collect()),
                None => Word::Unknown,
            },
            ExprKind::Query(query, dimension) => {
                self.size(*query, *dimension).map_or(Word::Unknown, Word::Same)
            }
            ExprKind::Value(_) => Word::Unknown,
            ExprKind::Load(array, index) => {
                let index = self.value(index, state, mask);
                self.read(*array, &index, state, mask);
                let len = self.lens[array.0 as usize];
                match self.kernel.array(*array).space {
                    Space::Extent(_) => Word::each(mask, |item, _| {
                        index.at(item).filter(|index| len.is_some_and(|len| *index < len))
                    }),
                    _ => Word::Unknown,
                }
            }
            ExprKind::Unary(operator, operand) => {
                let word = self.value(operand, state, mask);
                if is_float(operand) {
                    Word::Unknown
                } else {
                    self.map([&word], |[one]| unary(*operator, expr.ty, one))
                }
            }
            ExprKind::Binary { operator: operator @ (Binary::AndThen | Binary::OrElse), left, right } => {
                let decides = u64::from(*operator == Binary::OrElse);
                let one = self.value(left, state, mask);
                let two = self.value(right, state, &narrow(mask, &one, 1 - decides));
                Word::each(mask, |item, _| match (one.at(item), two.at(item)) {
                    (Some(value), _) if value == decides => Some(decides),
                    (_, Some(value)) if value == decides => Some(decides),
                    (Some(_), value) => value,
                    (None, _) => None,
                })
            }
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.value(left, state, mask), self.value(right, state, mask));
                if is_float(left) {
                    return Word::Unknown;
                }
                self.map([&one, &two], |[one, two]| compute(*operator, left.ty, one, two))
            }
            ExprKind::Cast(operand) => {
                let word = self.value(operand, state, mask);
                if is_float(operand) || is_float(expr) {
                    return Word::Unknown;
                }
                self.map([&word], |[word]| cast(operand.ty, expr.ty, word))
            }
            ExprKind::Bits(operand) => {
                let _ = self.value(operand, state, mask);
                Word::Unknown
            }
            ExprKind::Select { condition, then, other } => {
                let condition = self.value(condition, state, mask);
                let then = self.value(then, state, &narrow(mask, &condition, 1));
                let other = self.value(other, state, &narrow(mask, &condition, 0));
                Word::each(mask, |item, _| match condition.at(item) {
                    Some(0) => other.at(item),
                    Some(_) => then.at(item),
                    None => then.at(item).filter(|value| other.at(item) == Some(*value)),
                })
            }
            ExprKind::Math(_, arguments) => {
                for argument in arguments {
                    let _ = self.value(argument, state, mask);
                }
                Word::Unknown
            }
        }
    }

    fn map<const N: usize>(&self, words: [&Word; N], compute: impl Fn([u64; N]) -> u64) -> Word {
        let has_value = |item: usize| {
            let mut values = [0; N];
            for (value, word) in values.iter_mut().zip(words) {
                *value = word.at(item)?;
            }
            Some(compute(values))
        };
        if words.iter().any(|word| **word == Word::Unknown) {
            return Word::Unknown;
        }
        if words.iter().all(|word| matches!(word, Word::Same(_))) {
            return has_value(0).map_or(Word::Unknown, Word::Same);
        }
        Word::Each((0..self.items()).map(has_value).collect::<Vec<_>>().into())
    }
}
