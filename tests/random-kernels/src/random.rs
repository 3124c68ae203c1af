//! Pseudo-random numbers, equal on every machine.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Each seed gives another sequence.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.word() % end }
    }

    /// A number from `start` to `end`, inclusive.
    pub const fn from(&mut self, start: u64, end: u64) -> u64 {
        start + self.below(end - start + 1)
    }

    /// True in `of` of 100 cases.
    pub const fn percent(&mut self, of: u64) -> bool {
        self.below(100) < of
    }

    /// One element of `from`.
    pub const fn pick<'p, T>(&mut self, from: &'p [T]) -> &'p T {
        &from[self.below(from.len() as u64) as usize]
    }
}
