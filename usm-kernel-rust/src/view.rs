//! Parts of arrays: elements, rows of arrays in several dimensions, and slices.

use usm_kernel_ir::{ArrayId, Binary, Expr, ExprKind, Literal, Place, Scalar};

/// A part of an array; without dimensions it is an element.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) array: ArrayId,
    /// Whether it was taken as `&[T]`.
    pub(crate) read_only: bool,
    pub(crate) start: Option<Expr>,
    pub(crate) dimensions: Vec<Dimension>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) length: Expr,
    pub(crate) guard: Guard,
    /// Elements from one index to the next.
    pub(crate) stride: u64,
}

/// What refuses an index outside of a dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guard {
    /// The access, because the dimension is the array.
    Array,
    /// The extent, whose length the launch knows.
    Extent(ArrayId),
    /// A comparison: the length is the item's own.
    Item,
}

impl View {
    /// Whether it is all of an array with one dimension.
    pub(crate) fn is_whole(&self) -> bool {
        self.start.is_none() && matches!(&self.dimensions[..], [Dimension { guard: Guard::Array, .. }])
    }

    /// The number of its dimensions.
    pub(crate) fn depth(&self) -> usize {
        self.dimensions.len()
    }

    /// The number of its elements or rows.
    pub(crate) fn length(&self) -> Option<Expr> {
        self.dimensions.first().map(|first| first.length.clone())
    }

    /// The numbers of elements of all dimensions but the first, if the text has them.
    pub(crate) fn inner_lengths(&self) -> Vec<Option<u64>> {
        self.dimensions.iter().skip(1).map(|dimension| literal(&dimension.length)).collect()
    }

    /// The position of an element in the array.
    pub(crate) fn position(&self, at: Place) -> Expr {
        self.start.clone().unwrap_or_else(|| number(0, at))
    }

    pub(crate) fn shift_start(&mut self, by: Expr) {
        let start = self.start.take();
        self.start = Some(match start {
            Some(start) => {
                let at = by.place;
                Expr::binary(Binary::Add, start, by, at)
            }
            None => by,
        });
    }
}

pub(crate) fn number(value: u64, at: Place) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), at)
}

pub(crate) fn literal(value: &Expr) -> Option<u64> {
    match value.kind {
        ExprKind::Literal(literal) => Some(literal.bits),
        _ => None,
    }
}

pub(crate) fn scale(index: Expr, stride: u64) -> Expr {
    let at = index.place;
    if stride == 1 { index } else { Expr::binary(Binary::Mul, index, number(stride, at), at) }
}
