//! A hasher for addresses, usable in hash tables that are made at compile time.

use core::hash::{BuildHasher, Hasher};

/// Makes [`Mixed`] hashers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread(());

impl Spread {
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

impl BuildHasher for Spread {
    type Hasher = HashState;

    fn build_hasher(&self) -> HashState {
        HashState(0)
    }
}

/// Mixes an address. Its low bits are zero and its high bits alike, while hash tables use both ends
/// of the hash.
pub(crate) struct HashState(u64);

impl Hasher for HashState {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(usize::from(byte)));
    }

    fn write_usize(&mut self, value: usize) {
        // The final mix of MurmurHash3 (public domain).
        let mut hash = self.0 ^ value as u64;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        self.0 = hash ^ (hash >> 33);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
