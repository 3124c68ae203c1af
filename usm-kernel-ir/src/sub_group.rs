//! Sub-groups, for front ends: lowers their operations to stores to local memory, barriers and
//! loads, which every target has.
//!
//! A sub-group is a number of neighbours in the linear order of a group. The kernel states the
//! number, so the sub-groups are the same on every target, whatever the device's width. In a group
//! whose size the launch chooses, the last sub-group may be shorter. Floating
//! point numbers are collected in the order of the lanes, so that all targets round alike. The
//! operations contain barriers of the group, so all items of the group must reach them; a device's
//! own sub-groups would not need that.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::interpret::neutral;
use crate::kernel::{
    Array, ArrayId, Collection, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind, VarId, Variable,
};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};

/// Maximum number of items in a sub-group.
const WIDEST: u64 = 64;
/// Name of the local arrays for sub-groups. No source can contain it.
const SCRATCH: &str = "sub-group";

/// The sub-groups of a kernel.
#[derive(Clone, Debug)]
pub struct SubGroups {
    /// Sizes of the group; 0 where the launch chooses.
    group: Vec<u64>,
    /// Items of a sub-group.
    width: u64,
}

/// The lane whose value an item receives.
#[derive(Clone, Debug, PartialEq)]
pub enum Lane {
    /// The lane of this number, modulo the width.
    At(Expr),
    /// The lane whose number differs in these bits, modulo the width.
    Xor(Expr),
    /// The lane this far before the item's own; the item's own value if there is none.
    Up(Expr),
    /// The lane this far behind the item's own; the item's own value if there is none.
    Down(Expr),
}

impl SubGroups {
    /// Makes sub-groups of `width` items.
    ///
    /// # Errors
    /// A width that is no power of two up to 64, or does not divide the group; both numbers.
    pub fn new(group: &[u64], width: u64) -> Result<Self, String> {
        if !width.is_power_of_two() || width > WIDEST {
            return Err(format!("sub-groups of {width} items; a power of two up to {WIDEST} is needed"));
        }
        let items = group.iter().try_fold(1_u64, |all, size| all.checked_mul(*size)).unwrap_or(0);
        if items == 0 || items % width != 0 {
            return Err(format!("sub-groups of {width} items do not divide a group of {items}"));
        }
        Ok(Self { group: group.to_vec(), width })
    }

    /// Makes sub-groups of `width` items, and a shorter last one, of groups whose size the launch
    /// chooses.
    ///
    /// # Errors
    /// A width that is no power of two up to 64.
    pub fn of_any_group(dimensions: u8, width: u64) -> Result<Self, String> {
        let shape = Self::new(&[width.max(1)], width)?;
        Ok(Self { group: vec![0; usize::from(dimensions)], ..shape })
    }

    /// Whether all sub-groups have the whole width.
    fn is_whole(&self) -> bool {
        !self.group.contains(&0)
    }

    /// Number of dimensions of the group.
    #[must_use]
    pub fn dimensions(&self) -> u8 {
        self.group.len() as u8
    }

    /// Number of items in the item's sub-group.
    #[must_use]
    pub fn size(&self, place: Place) -> Expr {
        let width = number(self.width, place);
        if self.is_whole() {
            return width;
        }
        let first = Expr::binary(Binary::Mul, self.id(place), width.clone(), place);
        let rest = Expr::binary(Binary::Sub, self.items(place), first, place);
        Expr::binary(Binary::Min, width, rest, place)
    }

    /// Number of sub-groups in a group.
    #[must_use]
    pub fn count(&self, place: Place) -> Expr {
        if self.is_whole() {
            return number(self.group.iter().product::<u64>() / self.width, place);
        }
        let last = number(self.width - 1, place);
        let items = Expr::binary(Binary::Add, self.items(place), last, place);
        Expr::binary(Binary::Div, items, number(self.width, place), place)
    }

    /// The number of the item's sub-group.
    #[must_use]
    pub fn id(&self, place: Place) -> Expr {
        Expr::binary(Binary::Div, self.item(place), number(self.width, place), place)
    }

    /// The item's lane: its position in its sub-group.
    #[must_use]
    pub fn lane(&self, place: Place) -> Expr {
        Expr::binary(Binary::Rem, self.item(place), number(self.width, place), place)
    }

    /// Items of the group in a dimension.
    fn along(&self, dimension: usize, place: Place) -> Expr {
        match self.group[dimension] {
            0 => Expr::query(Query::LocalSize, dimension as u8, place),
            size => number(size, place),
        }
    }

    /// Items of the group.
    fn items(&self, place: Place) -> Expr {
        if self.is_whole() {
            return number(self.group.iter().product(), place);
        }
        let sizes = (0..self.group.len()).map(|dimension| self.along(dimension, place));
        let product = sizes.reduce(|all, size| Expr::binary(Binary::Mul, all, size, place));
        product.unwrap_or_else(|| number(1, place))
    }

    /// Linear local id.
    fn item(&self, place: Place) -> Expr {
        let mut linear = Expr::query(Query::LocalId, 0, place);
        for dimension in 1..self.group.len() {
            linear = Expr::binary(Binary::Mul, linear, self.along(dimension, place), place);
            let id = Expr::query(Query::LocalId, dimension as u8, place);
            linear = Expr::binary(Binary::Add, linear, id, place);
        }
        linear
    }

    /// The value of a lane of the sub-group whose first item is at `first`; of its last one, if it
    /// is shorter.
    fn load_lane(&self, scratch: ArrayId, ty: Scalar, first: VarId, lane: Expr, place: Place) -> Expr {
        let first = Expr::variable(first, Scalar::U64, place);
        let mut index = Expr::binary(Binary::Add, first, lane, place);
        if !self.is_whole() {
            let last = Expr::binary(Binary::Sub, self.items(place), number(1, place), place);
            index = Expr::binary(Binary::Min, index, last, place);
        }
        Expr::load(scratch, ty, index, place)
    }

    /// Appends statements to `out` that collect `value` over a sub-group's items. Returns the
    /// result. [`Binary::collects`] lists the operators.
    pub fn collect(
        &self,
        kernel: &mut Kernel,
        collection: Collection,
        operator: Binary,
        value: Expr,
        out: &mut Vec<Stmt>,
    ) -> Expr {
        let (place, ty) = (value.place, value.ty);
        let (scratch, first) = self.put(kernel, value, out);
        let (sum, lane) = (fresh(kernel, ty, place), fresh(kernel, Scalar::U64, place));
        let so_far = || Expr::variable(sum, ty, place);
        let at = || Expr::variable(lane, Scalar::U64, place);
        let other = self.load_lane(scratch, ty, first, at(), place);
        let next = Expr::binary(operator, so_far(), other, place);
        let mut body = vec![Stmt::new(StmtKind::Set(sum, next), place)];
        let compare = match collection {
            Collection::Reduce => None,
            Collection::Inclusive => Some(Binary::Le),
            Collection::Exclusive => Some(Binary::Lt),
        };
        if let Some(compare) = compare {
            let counts = Expr::binary(compare, at(), self.lane(place), place);
            body = vec![Stmt::new(StmtKind::If { condition: counts, then: body, other: Vec::new() }, place)];
        }
        // Minus zero: a zero before it would change the sum's sign.
        let start = if collection == Collection::Exclusive {
            Expr::literal(neutral(operator, ty), place)
        } else {
            self.load_lane(scratch, ty, first, number(0, place), place)
        };
        out.push(Stmt::new(StmtKind::Set(sum, start), place));
        let from = number(u64::from(collection != Collection::Exclusive), place);
        out.push(Stmt::new(
            StmtKind::For {
                variable: lane,
                start: from,
                end: self.size(place),
                step: number(1, place),
                body,
            },
            place,
        ));
        so_far()
    }

    /// Appends statements to `out` that receive `value` from another lane. Returns the result.
    pub fn shuffle(&self, kernel: &mut Kernel, value: Expr, lane: Lane, out: &mut Vec<Stmt>) -> Expr {
        let (place, ty) = (value.place, value.ty);
        let (own, last) = (self.lane(place), self.width - 1);
        let binary = |operator, one, two| Expr::binary(operator, one, two, place);
        let inside = |lane: Expr| binary(Binary::And, lane, number(last, place));
        let select = |condition: Expr, lane: Expr, own: Expr| Expr {
            kind: ExprKind::Select {
                condition: Box::new(condition),
                then: Box::new(lane),
                other: Box::new(own),
            },
            ty: Scalar::U64,
            place,
        };
        let from = match lane {
            Lane::At(lane) => inside(lane),
            Lane::Xor(bits) => inside(binary(Binary::Xor, own, bits)),
            Lane::Up(by) => {
                let (has, before) =
                    (binary(Binary::Ge, own.clone(), by.clone()), binary(Binary::Sub, own.clone(), by));
                inside(select(has, before, own))
            }
            Lane::Down(by) => {
                let left = binary(Binary::Sub, self.size(place), number(1, place));
                let left = binary(Binary::Sub, left, own.clone());
                let (has, behind) =
                    (binary(Binary::Ge, left, by.clone()), binary(Binary::Add, own.clone(), by));
                inside(select(has, behind, own))
            }
        };
        // Evaluated before the barrier, as the value is.
        let variable = fresh(kernel, Scalar::U64, place);
        out.push(Stmt::new(StmtKind::Set(variable, from), place));
        let (scratch, first) = self.put(kernel, value, out);
        let other =
            self.load_lane(scratch, ty, first, inside(Expr::variable(variable, Scalar::U64, place)), place);
        let partner = fresh(kernel, ty, place);
        out.push(Stmt::new(StmtKind::Set(partner, other), place));
        Expr::variable(partner, ty, place)
    }

    /// Stores each item's value, after all items have read the previous one. Returns the array, and
    /// the position of the sub-group's first item.
    fn put(&self, kernel: &mut Kernel, value: Expr, out: &mut Vec<Stmt>) -> (ArrayId, VarId) {
        let (place, ty) = (value.place, value.ty);
        let items = self.items(place);
        let position = kernel.arrays.iter().position(|array| {
            array.name == SCRATCH && array.element == ty && {
                matches!(&array.space, Space::Local(len) if len.kind == items.kind)
            }
        });
        let scratch = ArrayId(position.unwrap_or(kernel.arrays.len()) as u32);
        if position.is_none() {
            kernel.arrays.push(Array {
                name: SCRATCH.into(),
                element: ty,
                space: Space::Local(items),
                place,
            });
        }
        let (own, first) = (fresh(kernel, ty, place), fresh(kernel, Scalar::U64, place));
        let barrier = || Stmt::new(StmtKind::Barrier { local: true, global: false }, place);
        out.push(Stmt::new(StmtKind::Set(own, value), place));
        out.push(barrier());
        let own = Expr::variable(own, ty, place);
        out.push(Stmt::new(StmtKind::Store { array: scratch, index: self.item(place), value: own }, place));
        out.push(barrier());
        let start = Expr::binary(Binary::Mul, self.id(place), number(self.width, place), place);
        out.push(Stmt::new(StmtKind::Set(first, start), place));
        (scratch, first)
    }
}

fn fresh(kernel: &mut Kernel, ty: Scalar, place: Place) -> VarId {
    kernel.variables.push(Variable { name: SCRATCH.into(), ty, place });
    VarId(kernel.variables.len() as u32 - 1)
}

const fn number(value: u64, place: Place) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), place)
}
