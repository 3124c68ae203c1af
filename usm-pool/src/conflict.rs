//! Which buffers may never share bytes: one bit for each ordered pair.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

#[cfg(feature = "alloc")]
use usm_core::bytemuck::allocation::try_zeroed_vec;

#[cfg(feature = "alloc")]
use crate::{Buffer, Error, sort};

/// Number of 64-bit words in one row for `n` buffers.
#[must_use]
pub const fn words_per_row(n: usize) -> usize {
    n.div_ceil(64)
}

/// Borrowed conflict relation: `n` rows of [`words_per_row`]`(n)` words; bit `j % 64` of word
/// `j / 64` of row `i` says that `i` and `j` may be live together. Fits constant tables of programs
/// without a heap.
#[derive(Clone, Copy, Debug)]
pub struct ConflictView<'a> {
    n: usize,
    words: &'a [u64],
}

impl<'a> ConflictView<'a> {
    /// A view of `n` rows, or `None` when `words` is not exactly `n * words_per_row(n)` long.
    #[must_use]
    pub const fn new(n: usize, words: &'a [u64]) -> Option<Self> {
        match n.checked_mul(words_per_row(n)) {
            Some(len) if len == words.len() => Some(Self { n, words }),
            _ => None,
        }
    }

    /// Number of buffers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no buffers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Whether `i` and `j` may be live together; false when either is out of range.
    #[must_use]
    pub const fn contains(&self, i: usize, j: usize) -> bool {
        // The length was checked when the view was made.
        i < self.n && j < self.n && self.words[i * words_per_row(self.n) + j / 64] >> (j % 64) & 1 == 1
    }

    /// The bits of row `i`; empty when out of range.
    #[must_use]
    pub fn row(&self, i: usize) -> &'a [u64] {
        let width = words_per_row(self.n);
        if i >= self.n {
            return &[];
        }
        self.words.get(i * width..(i + 1) * width).unwrap_or(&[])
    }
}

/// Owned symmetric conflict relation without self pairs.
#[cfg(feature = "alloc")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictGraph {
    n: usize,
    words: Vec<u64>,
}

#[cfg(feature = "alloc")]
impl ConflictGraph {
    /// Largest number of buffers: at 65,536 the bits take 512 MiB.
    pub const LIMIT: usize = 1 << 16;

    /// A graph of `n` buffers without conflicts.
    ///
    /// # Errors
    /// [`Error::TooManyBuffers`] above [`Self::LIMIT`], [`Error::OutOfMemory`] when the bits cannot
    /// be allocated.
    pub fn new(n: usize) -> Result<Self, Error> {
        if n > Self::LIMIT {
            return Err(Error::TooManyBuffers { buffers: n, limit: Self::LIMIT });
        }
        Ok(Self { n, words: zeroed_words(n * words_per_row(n))? })
    }

    /// The conflicts of an in-order queue: lives that overlap.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_lifetimes(buffers: &[Buffer]) -> Result<Self, Error> {
        let mut graph = Self::new(buffers.len())?;
        let mut order: Vec<usize> =
            (0..buffers.len()).filter(|&i| !buffers[i].lifetime().is_empty()).collect();
        sort::by_key(&mut order, |i| buffers[i].lower);
        for (rank, &i) in order.iter().enumerate() {
            for &j in &order[rank + 1..] {
                if buffers[j].lower >= buffers[i].upper {
                    break;
                }
                graph.insert(i, j);
            }
        }
        Ok(graph)
    }

    /// Number of buffers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no buffers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Records that `i` and `j` may be live together. A self pair is ignored.
    ///
    /// # Panics
    /// When `i` or `j` is out of range.
    pub fn insert(&mut self, i: usize, j: usize) {
        assert!(i < self.n && j < self.n, "pair ({i}, {j}) of {} buffers", self.n);
        if i == j {
            return;
        }
        let width = words_per_row(self.n);
        self.words[i * width + j / 64] |= 1 << (j % 64);
        self.words[j * width + i / 64] |= 1 << (i % 64);
    }

    /// Removes a conflict.
    ///
    /// # Panics
    /// When `i` or `j` is out of range.
    pub fn remove(&mut self, i: usize, j: usize) {
        assert!(i < self.n && j < self.n, "pair ({i}, {j}) of {} buffers", self.n);
        let width = words_per_row(self.n);
        self.words[i * width + j / 64] &= !(1 << (j % 64));
        self.words[j * width + i / 64] &= !(1 << (i % 64));
    }

    /// Adds every conflict of `other`.
    ///
    /// # Panics
    /// When the numbers of buffers differ.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.n, other.n, "conflict graphs of different sizes");
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Whether `i` and `j` may be live together; false when either is out of range.
    #[must_use]
    pub fn contains(&self, i: usize, j: usize) -> bool {
        self.view().contains(i, j)
    }

    /// The bits of row `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> &[u64] {
        self.view().row(i)
    }

    /// The buffers in conflict with `i`, ascending.
    pub fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        set_bits(self.row(i))
    }

    /// Number of conflicting pairs, each counted once.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() / 2
    }

    /// The borrowed form.
    #[must_use]
    pub fn view(&self) -> ConflictView<'_> {
        ConflictView { n: self.n, words: &self.words }
    }

    /// The relation among some of the buffers, renumbered in the order given.
    #[must_use]
    pub(crate) fn induced(&self, keep: &[usize]) -> Self {
        let width = words_per_row(keep.len());
        let mut words = alloc::vec![0; keep.len() * width];
        for (i, &from) in keep.iter().enumerate() {
            for (j, &to) in keep.iter().enumerate() {
                words[i * width + j / 64] |= u64::from(self.contains(from, to)) << (j % 64);
            }
        }
        Self { n: keep.len(), words }
    }

    /// Row `i` for writing; the caller keeps the relation symmetric (see [`Self::or_transpose`]).
    pub(crate) fn row_mut(&mut self, i: usize) -> &mut [u64] {
        let width = words_per_row(self.n);
        &mut self.words[i * width..(i + 1) * width]
    }

    /// Adds `(j, i)` for every `(i, j)`, in squares of 64 x 64 bits so that columns cost no cache
    /// misses.
    pub(crate) fn or_transpose(&mut self) {
        let width = words_per_row(self.n);
        let square = |words: &[u64], row: usize, column: usize| {
            let mut bits = [0; 64];
            for (k, word) in bits.iter_mut().enumerate() {
                *word = words.get((row * 64 + k) * width + column).copied().unwrap_or(0);
            }
            bits
        };
        // Eight rows of squares at a time: a cache line of the columns' side holds eight words.
        let pairs = (0..width).step_by(8).flat_map(|rows| {
            let end = (rows + 8).min(width);
            (0..end).flat_map(move |column| (rows.max(column)..end).map(move |row| (row, column)))
        });
        for (row, column) in pairs {
            let mut lower = square(&self.words, row, column);
            let mut upper = square(&self.words, column, row);
            transpose(&mut lower);
            transpose(&mut upper);
            for k in 0..64 {
                if let Some(word) = self.words.get_mut((column * 64 + k) * width + row) {
                    *word |= lower[k];
                }
                if let Some(word) = self.words.get_mut((row * 64 + k) * width + column) {
                    *word |= upper[k];
                }
            }
        }
    }

    /// All pairs.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn complete(n: usize) -> Result<Self, Error> {
        let mut graph = Self::new(n)?;
        graph.words.fill(u64::MAX);
        graph.clear_outside();
        Ok(graph)
    }

    /// Turns every pair into its opposite; self pairs stay out.
    pub(crate) fn complement(&mut self) {
        for word in &mut self.words {
            *word = !*word;
        }
        self.clear_outside();
    }

    /// Clears the bits that are no pairs: a buffer with itself, and the end of the last words.
    fn clear_outside(&mut self) {
        let width = words_per_row(self.n);
        let tail = if self.n % 64 == 0 { u64::MAX } else { (1 << (self.n % 64)) - 1 };
        for i in 0..self.n {
            let row = self.row_mut(i);
            row[width - 1] &= tail;
            row[i / 64] &= !(1 << (i % 64));
        }
    }
}

/// Transposes a 64 x 64 bit square: bit `j` of word `i` becomes bit `i` of word `j`.
#[cfg(feature = "alloc")]
fn transpose(square: &mut [u64; 64]) {
    let mut half = 32;
    let mut mask = 0x0000_0000_FFFF_FFFF_u64;
    while half != 0 {
        let mut k = 0;
        while k < 64 {
            let swap = (square[k] >> half ^ square[k + half]) & mask;
            square[k] ^= swap << half;
            square[k + half] ^= swap;
            k = (k + half + 1) & !half;
        }
        half /= 2;
        mask ^= mask << half;
    }
}

/// `len` zero words, with allocation failure as an error. They come from the allocator as zero, so
/// large ones cost nothing until they are written.
#[cfg(feature = "alloc")]
pub(crate) fn zeroed_words(len: usize) -> Result<Vec<u64>, Error> {
    try_zeroed_vec(len).map_err(|()| Error::OutOfMemory { bytes: (len as u64).saturating_mul(8) })
}

/// Positions of the set bits, ascending.
#[cfg(feature = "alloc")]
pub(crate) fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(w, &word)| {
        let mut bits = word;
        core::iter::from_fn(move || {
            if bits == 0 {
                return None;
            }
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            Some(w * 64 + bit)
        })
    })
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_view_must_fit_its_words_and_answers_no_out_of_range() {
        assert!(ConflictView::new(2, &[2]).is_none());
        let view = ConflictView::new(2, &[2, 1]).unwrap();
        assert!(view.contains(0, 1) && view.contains(1, 0));
        assert!(!view.contains(0, 0) && !view.contains(2, 0) && !view.contains(0, 64));
    }

    #[test]
    fn overlapping_lives_conflict_and_empty_ones_do_not() {
        let buffers = vec![
            Buffer::new(0, 0, 10, 1),
            Buffer::new(1, 5, 5, 1),
            Buffer::new(2, 9, 12, 1),
            Buffer::new(3, 10, 11, 1),
        ];
        let graph = ConflictGraph::from_lifetimes(&buffers).unwrap();
        assert_eq!(graph.pairs(), 2);
        assert!(graph.contains(0, 2) && graph.contains(3, 2) && !graph.contains(0, 3));
        assert_eq!(graph.neighbours(2).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn all_pairs_are_the_opposite_of_none() {
        for n in 1..200 {
            let mut none = ConflictGraph::new(n).unwrap();
            none.complement();
            let all = ConflictGraph::complete(n).unwrap();
            assert_eq!(all.words, none.words);
            let pairs: u32 = all.words.iter().map(|word| word.count_ones()).sum();
            assert_eq!(pairs as usize, n * (n - 1));
        }
    }

    #[test]
    fn the_transpose_and_the_complement_are_what_the_pairs_say() {
        let n = 150;
        let mut graph = ConflictGraph::new(n).unwrap();
        let before = |i: usize, j: usize| i < j && (i * 7 + j * 13) % 5 < 2;
        for i in 0..n {
            for j in 0..n {
                graph.row_mut(i)[j / 64] |= u64::from(before(i, j)) << (j % 64);
            }
        }
        graph.or_transpose();
        for i in 0..n {
            for j in 0..n {
                assert_eq!(graph.contains(i, j), before(i, j) || before(j, i), "({i}, {j})");
            }
        }
        graph.complement();
        for i in 0..n {
            for j in 0..n {
                assert_eq!(graph.contains(i, j), i != j && !before(i, j) && !before(j, i), "({i}, {j})");
            }
        }
    }
}
