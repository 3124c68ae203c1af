//! A set of 128-bit keys.

use alloc::vec::Vec;

/// Open addressing; a key of zero is the empty place.
#[derive(Debug, Default)]
pub(super) struct Seen {
    places: Vec<u128>,
    count: usize,
}

impl Seen {
    /// Adds a key; false if it was there.
    pub(super) fn insert(&mut self, key: u128) -> bool {
        if self.count * 4 >= self.places.len() * 3 {
            let larger = alloc::vec![0; (self.places.len() * 2).max(64)];
            for key in core::mem::replace(&mut self.places, larger) {
                if key != 0 {
                    let at = self.find(key);
                    self.places[at] = key;
                }
            }
        }
        let key = key.max(1);
        let at = self.find(key);
        let new = self.places[at] == 0;
        self.places[at] = key;
        self.count += usize::from(new);
        new
    }

    /// The place of a key, or the empty one where it belongs.
    fn find(&self, key: u128) -> usize {
        let mask = self.places.len() - 1;
        let mut at = key as usize & mask;
        while self.places[at] != 0 && self.places[at] != key {
            at = (at + 1) & mask;
        }
        at
    }
}
