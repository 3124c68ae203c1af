//! Sub-groups, for front ends: what they do together as stores to local memory, barriers and loads,
//! which every target has.
//!
//! A sub-group is as many neighbours in the linear order of a group as the kernel says, the same
//! ones on every target, whatever the width of the device is. Floating point numbers are collected
//! in the order of the lanes, so that all targets round alike. As all of it has barriers of the
//! group, all items of the group reach it, which a device's own sub-groups would not ask.

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

/// Most items of a sub-group.
const WIDEST: u64 = 64;
/// Name of the local arrays through which sub-groups collect: none that a source can have.
const SCRATCH: &str = "sub-group";

/// The sub-groups of a kernel whose group is of a fixed size.
#[derive(Clone, Debug)]
pub struct SubGroups {
    /// Sizes of the group.
    group: Vec<u64>,
    /// Items of a sub-group.
    width: u64,
}

/// Which lane's value an item gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Lane {
    /// That of this number, modulo the width.
    At(Expr),
    /// That whose number has other bits where these are set, modulo the width.
    Xor(Expr),
    /// As many before the item's own; its own value where there is none.
    Up(Expr),
    /// As many behind the item's own; its own value where there is none.
    Down(Expr),
}

impl SubGroups {
    /// Sub-groups of `width` items.
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

    /// Dimensions of the group.
    #[must_use]
    pub fn dimensions(&self) -> u8 {
        self.group.len() as u8
    }

    /// Items of a sub-group.
    #[must_use]
    pub const fn size(&self, place: Place) -> Expr {
        number(self.width, place)
    }

    /// Sub-groups of a group.
    #[must_use]
    pub fn count(&self, place: Place) -> Expr {
        number(self.group.iter().product::<u64>() / self.width, place)
    }

    /// The number of the item's sub-group.
    #[must_use]
    pub fn id(&self, place: Place) -> Expr {
        Expr::binary(Binary::Div, self.item(place), self.size(place), place)
    }

    /// The item's place in its sub-group.
    #[must_use]
    pub fn lane(&self, place: Place) -> Expr {
        Expr::binary(Binary::Rem, self.item(place), self.size(place), place)
    }

    /// Linear local id.
    fn item(&self, place: Place) -> Expr {
        let mut linear = Expr::query(Query::LocalId, 0, place);
        for (dimension, size) in self.group.iter().enumerate().skip(1) {
            linear = Expr::binary(Binary::Mul, linear, number(*size, place), place);
            let id = Expr::query(Query::LocalId, dimension as u8, place);
            linear = Expr::binary(Binary::Add, linear, id, place);
        }
        linear
    }

    /// Puts behind `out` what collects `value` of the items of a sub-group; gives the result.
    /// [`Binary::collects`] says which operators do.
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
        let index = Expr::binary(Binary::Add, Expr::variable(first, Scalar::U64, place), at(), place);
        let next = Expr::binary(operator, so_far(), Expr::load(scratch, ty, index, place), place);
        let mut body = vec![Stmt::new(StmtKind::Set(sum, next), place)];
        let compare = match collection {
            Collection::Reduce => None,
            Collection::Inclusive => Some(Binary::Le),
            Collection::Exclusive => Some(Binary::Lt),
        };
        if let Some(compare) = compare {
            let counts = Expr::binary(compare, at(), self.lane(place), place);
            body = vec![Stmt::new(StmtKind::If(counts, body, Vec::new()), place)];
        }
        // A minus zero is no sum with a zero before it.
        let start = if collection == Collection::Exclusive {
            Expr::literal(neutral(operator, ty), place)
        } else {
            Expr::load(scratch, ty, Expr::variable(first, Scalar::U64, place), place)
        };
        out.push(Stmt::new(StmtKind::Set(sum, start), place));
        let from = number(u64::from(collection != Collection::Exclusive), place);
        out.push(Stmt::new(StmtKind::For(lane, from, self.size(place), number(1, place), body), place));
        so_far()
    }

    /// Puts behind `out` what gets `value` from another lane; gives the result.
    pub fn shuffle(&self, kernel: &mut Kernel, value: Expr, lane: Lane, out: &mut Vec<Stmt>) -> Expr {
        let (place, ty) = (value.place, value.ty);
        let (own, last) = (self.lane(place), self.width - 1);
        let binary = |operator, one, two| Expr::binary(operator, one, two, place);
        let inside = |lane: Expr| binary(Binary::And, lane, number(last, place));
        let chosen = |condition: Expr, lane: Expr, own: Expr| Expr {
            kind: ExprKind::Select(Box::new(condition), Box::new(lane), Box::new(own)),
            ty: Scalar::U64,
            place,
        };
        let from = match lane {
            Lane::At(lane) => inside(lane),
            Lane::Xor(bits) => inside(binary(Binary::Xor, own, bits)),
            Lane::Up(by) => {
                let (has, before) =
                    (binary(Binary::Ge, own.clone(), by.clone()), binary(Binary::Sub, own.clone(), by));
                inside(chosen(has, before, own))
            }
            Lane::Down(by) => {
                let left = binary(Binary::Sub, number(last, place), own.clone());
                let (has, behind) =
                    (binary(Binary::Ge, left, by.clone()), binary(Binary::Add, own.clone(), by));
                inside(chosen(has, behind, own))
            }
        };
        // Evaluated before the barrier, as the value is.
        let known = fresh(kernel, Scalar::U64, place);
        out.push(Stmt::new(StmtKind::Set(known, from), place));
        let (scratch, first) = self.put(kernel, value, out);
        let index = binary(
            Binary::Add,
            Expr::variable(first, Scalar::U64, place),
            inside(Expr::variable(known, Scalar::U64, place)),
        );
        let found = fresh(kernel, ty, place);
        out.push(Stmt::new(StmtKind::Set(found, Expr::load(scratch, ty, index, place)), place));
        Expr::variable(found, ty, place)
    }

    /// Each item's value to its place, once nobody reads what was there before; the array, and the
    /// place of the sub-group's first item.
    fn put(&self, kernel: &mut Kernel, value: Expr, out: &mut Vec<Stmt>) -> (ArrayId, VarId) {
        let (place, ty) = (value.place, value.ty);
        let items = number(self.group.iter().product(), place);
        let known = kernel.arrays.iter().position(|array| {
            array.name == SCRATCH && array.element == ty && {
                matches!(&array.space, Space::Local(len) if len.kind == items.kind)
            }
        });
        let scratch = ArrayId(known.unwrap_or(kernel.arrays.len()) as u32);
        if known.is_none() {
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
        out.push(Stmt::new(StmtKind::Store(scratch, self.item(place), own), place));
        out.push(barrier());
        let start = Expr::binary(Binary::Mul, self.id(place), self.size(place), place);
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
