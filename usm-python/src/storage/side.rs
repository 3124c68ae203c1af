//! One side of a copy.

use std::sync::Arc;

use crate::array::view::View;
use crate::device::runtime::Stream;
use crate::storage::Storage;

/// Memory with a view of it, and the queue for work on it, as a side of a copy.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) storage: Storage,
    pub(crate) stream: Arc<Stream>,
    pub(crate) view: View,
}
