//! Moves of elements of any type to the places of a sort.

use usm_core::{Context, Device, Element, Event, Kind, Queue, UsmVec};

use super::order_kernels::of;
use crate::argument::{Words, WordsMut};
use crate::{BuildError, Executable, Launch, LaunchError, Programmable, Range};

/// Moves elements of any type, by words of four bytes or by bytes.
pub(super) struct Gather<B: Programmable> {
    words: Executable<of::gather_u32, B, 1>,
    bytes: Executable<of::gather_u8, B, 1>,
}

impl<B: Programmable> Gather<B> {
    pub(super) fn build(context: &Context<B>) -> Result<Self, BuildError> {
        Ok(Self { words: Executable::build(context)?, bytes: Executable::build(context)? })
    }

    /// `to[i] = from[places[i]]`; without places a copy. The arrays have one length.
    pub(super) fn run<V: Element, K1: Kind, K2: Kind>(
        &self,
        queue: &Queue<B>,
        from: &UsmVec<V, K1, B>,
        places: &UsmVec<u64, Device, B>,
        to: &mut UsmVec<V, K2, B>,
    ) -> Result<Event<B>, LaunchError> {
        let bytes = size_of::<V>() as u64;
        if let (Some(from), Some(to)) = (Words::<u32, B>::parts_of(from), WordsMut::<u32, B>::parts_of(to)) {
            let launch = Launch::with_range(queue, Range::new([from.len() as u64])?);
            return launch.run_on(&self.words, of::gather_u32, (bytes / 4, from, places, to));
        }
        let (from, to) = (Words::<u8, B>::bytes_of(from), WordsMut::<u8, B>::bytes_of(to));
        let launch = Launch::with_range(queue, Range::new([from.len() as u64])?);
        launch.run_on(&self.bytes, of::gather_u8, (bytes, from, places, to))
    }
}
