//! What checked code of a kernel leaves behind: the first index that was outside of its array.

use core::fmt;

use crate::backend::{Backend, QueueOrder};
use crate::context::Context;
use crate::error::{ErrorKind, IndexPlace, Result};
use crate::kind::Device;
use crate::queue::{Queue, Usage};
use crate::typed::UsmVec;

/// Memory of the device with five words: the number of a place, from 1, which is 0 as long as all
/// indices were inside; then the index and the elements of the array, 64 bits each, the low word
/// first. Whoever finds the first word 0 and changes it, atomically, writes the others.
pub struct IndexRecord<B: Backend> {
    words: UsmVec<u32, Device, B>,
    context: Context<B>,
    places: &'static [IndexPlace],
}

/// Words of a record.
const WORDS: usize = 5;

impl<B: Backend> fmt::Debug for IndexRecord<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexRecord").field("words", &self.words).finish_non_exhaustive()
    }
}

impl<B: Backend> IndexRecord<B> {
    /// A record for code that numbers `places` from 1.
    ///
    /// # Errors
    /// Those of an allocation.
    pub fn new(queue: &Queue<B>, places: &'static [IndexPlace]) -> Result<Self> {
        let words = UsmVec::zeroed(queue, WORDS)?;
        Ok(Self { words, context: queue.context().clone(), places })
    }

    /// Its address, for the code.
    #[must_use]
    pub fn address(&self) -> usize {
        self.words.as_ptr() as usize
    }

    /// The use that the code makes of it.
    #[must_use]
    pub fn usage(&self) -> Usage<'_, B> {
        Usage::write(self.words.allocation())
    }

    /// Waits for the code and reads what it left.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutside`], or what kept the record from being read.
    pub(crate) fn check(&self) -> Result<()> {
        // A queue of its own: in the launch's the copy would wait for whatever came later.
        let queue = self.context.queue(QueueOrder::OutOfOrder)?;
        let mut words = [0; WORDS];
        queue.read_to_slice(&mut words, &self.words)?;
        let [place, words @ ..] = words;
        let Some(place) = (place as usize).checked_sub(1) else { return Ok(()) };
        let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let (index, len) = (wide(words[0], words[1]), wide(words[2], words[3]));
        const UNKNOWN: &IndexPlace = &IndexPlace { kernel: "?", place: "?", array: "?" };
        let at = self.places.get(place).unwrap_or(UNKNOWN);
        Err(ErrorKind::IndexOutside { at, index, len }.into())
    }
}
