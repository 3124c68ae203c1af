//! A set of 128-bit keys.

use alloc::vec::Vec;

/// Open addressing; a key of zero is the empty place.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    places: Vec<u128>,
    count: usize,
}

impl KeySet {
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

/// 128 bits for each operator; a set of operators is their sum.
pub(super) fn hash(op: u32) -> u128 {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let op = u64::from(op) + 1;
    let high = mix(op.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    u128::from(high) << 64 | u128::from(mix(high ^ op.wrapping_mul(0xd1b5_4a32_d192_ed03)))
}
