//! A bound on the peak of every order of a graph's operators, and why it holds.

use alloc::vec::Vec;

/// A bound on the peak that holds for every order that the data allow, and for every placement.
/// [`verify::order_bound`](crate::verify::order_bound) replays its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderBound {
    /// No order and no placement needs fewer bytes.
    pub bytes: u64,
    /// Why.
    pub certificate: OrderCertificate,
}

/// Why no order of the operators needs fewer bytes. Operators are named by index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderCertificate {
    /// Tensors of so many bytes are live at this operator in every order.
    Operator {
        /// The operator.
        op: usize,
    },
    /// The graph is series-parallel, so the least peak of all orders is computed directly.
    SeriesParallel,
    /// A search through the sets of finished operators found no order below the bound.
    Sets {
        /// Lists of operators that may come first, one after the other: each leaves the fewest
        /// bytes live of all its predecessor-closed parts.
        first: Vec<Vec<usize>>,
        /// Lists of operators that may come last, from the end backwards.
        last: Vec<Vec<usize>>,
    },
}

impl OrderBound {
    /// The bound with this certificate.
    #[must_use]
    pub const fn new(bytes: u64, certificate: OrderCertificate) -> Self {
        Self { bytes, certificate }
    }

    /// The same bound with other numbers for the operators: `number[op]` for `op`.
    pub(crate) fn renumbered(mut self, number: &[usize]) -> Self {
        match &mut self.certificate {
            OrderCertificate::Operator { op } => {
                *op = number.get(*op).copied().unwrap_or(*op);
            }
            OrderCertificate::SeriesParallel => {}
            OrderCertificate::Sets { first, last } => {
                for op in first.iter_mut().chain(last).flatten() {
                    *op = number.get(*op).copied().unwrap_or(*op);
                }
            }
        }
        self
    }
}
