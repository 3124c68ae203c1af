//! The kernels of sorts, places of the least and greatest elements, and counts, for the bits of
//! elements as unsigned numbers.

use crate::kernels;

#[kernels]
pub(super) mod of {
    /// A number that is less where the element with these bits comes first: NaNs are last and
    /// equal, as are both zeros. `sign` is the bit of the sign, 0 for unsigned numbers; `infinity`
    /// the bits of that number, 0 for integers.
    #[kernel_fn]
    fn order<T>(x: T, sign: T, infinity: T) -> T {
        if sign == 0 as T {
            return x;
        }
        if infinity == 0 as T {
            return x ^ sign;
        }
        let size = x & (sign - 1 as T);
        if size > infinity {
            return !(0 as T);
        }
        if size == 0 as T {
            return sign;
        }
        if x == size { x | sign } else { !x }
    }

    /// The digit of an element: the bits of its order in `mask` after `shift`, at most 255.
    #[kernel_fn]
    fn digit<T>(x: T, sign: T, infinity: T, shift: u32, mask: u32) -> u64 {
        ((order::<T>(x, sign, infinity) >> (shift as T)) as u32 & mask & 255) as u64
    }

    /// Moves element `i`, and its place: without `places` that is its index. What has no room in
    /// the results is not moved.
    #[kernel_fn]
    fn moved<T>(x: T, i: u64, target: u64, places: &[u64], sorted: &mut [T], sorted_places: &mut [u64]) {
        if target < sorted.len() {
            sorted[target] = x;
        }
        if target < sorted_places.len() {
            sorted_places[target] = if i < places.len() { places[i] } else { i };
        }
    }

    /// `keys[group]`, `places[group]`: the least key among the elements that the group took, and
    /// the first place that has it. A key is an element's order, the other way round if `greatest`
    /// is 1; that of a NaN is 0.
    #[kernel(instances(u8, u16, u32, u64))]
    pub fn best<T>(greatest: u32, sign: T, infinity: T, a: &[T], keys: &mut [u64], places: &mut [u64]) {
        let mut key = 0xFFFF_FFFF_FFFF_FFFF_u64;
        let mut place = 0xFFFF_FFFF_FFFF_FFFF_u64;
        for i in (global_id(0)..a.len()).step_by(global_size(0)) {
            let order = order::<T>(a[i], sign, infinity);
            let is_nan = infinity != 0 as T && order == !(0 as T);
            let is_one = if greatest == 1 { !order } else { order };
            let other = if is_nan { 0 } else { is_one as u64 };
            if other < key || place == 0xFFFF_FFFF_FFFF_FFFF {
                key = other;
                place = i;
            }
        }
        let least = group_reduce(key, MIN);
        let first = group_reduce(if key == least { place } else { 0xFFFF_FFFF_FFFF_FFFF_u64 }, MIN);
        if local_id(0) == 0 {
            keys[group_id(0)] = least;
            places[group_id(0)] = first;
        }
    }

    /// `counts[digit * parts + part]`: the elements of a part of `span` with that digit. An item
    /// takes a part.
    #[kernel(instances(u8, u16, u32, u64))]
    pub fn digits_of_items<T>(
        sign: T,
        infinity: T,
        span: u64,
        shift: u32,
        mask: u32,
        a: &[T],
        counts: &mut [u64],
    ) {
        let (part, parts) = (global_id(0), global_size(0));
        let mut own: [u32; 256] = [0; 256];
        for i in part * span..min(part * span + span, a.len()) {
            own[digit::<T>(a[i], sign, infinity, shift, mask)] += 1;
        }
        for digit in 0_u64..256 {
            counts[digit * parts + part] = own[digit] as u64;
        }
    }

    /// As `digits_of_items`, where a group takes a part.
    #[kernel(group = 256, instances(u8, u16, u32, u64))]
    pub fn digits_of_groups<T>(
        sign: T,
        infinity: T,
        span: u64,
        shift: u32,
        mask: u32,
        a: &[T],
        counts: &mut [u64],
    ) {
        #[local]
        let mut counts_before: [u32; 256];
        let (item, part, parts) = (local_id(0), group_id(0), groups(0));
        counts_before[item] = 0;
        barrier(LOCAL);
        for i in (part * span + item..min(part * span + span, a.len())).step_by(256) {
            counts_before[digit::<T>(a[i], sign, infinity, shift, mask)].fetch_add(1);
        }
        barrier(LOCAL);
        counts[item * parts + part] = counts_before[item] as u64;
    }

    /// Moves the elements of each part, and their places, to where their digits belong: `before`
    /// has the number of elements before those of a digit and a part.
    ///
    /// No two elements have one target, because `before` are sums of counts of the same elements.
    #[kernel(instances(u8, u16, u32, u64))]
    pub unsafe fn moves_of_items<T>(
        sign: T,
        infinity: T,
        span: u64,
        shift: u32,
        mask: u32,
        a: &[T],
        places: &[u64],
        before: &[u64],
        sorted: &mut [T],
        sorted_places: &mut [u64],
    ) {
        let (part, parts) = (global_id(0), global_size(0));
        let mut own: [u64; 256] = [0; 256];
        for digit in 0_u64..256 {
            own[digit] = before[digit * parts + part];
        }
        for i in part * span..min(part * span + span, a.len()) {
            let digit = digit::<T>(a[i], sign, infinity, shift, mask);
            let target = own[digit];
            own[digit] = target + 1;
            moved::<T>(a[i], i, target, places, sorted, sorted_places);
        }
    }

    /// As `moves_of_items`, where a group takes a part: 256 elements at a time, each of which votes
    /// for its digit, so that an item can count those before its own.
    #[kernel(group = 256, instances(u8, u16, u32, u64))]
    pub unsafe fn moves_of_groups<T>(
        sign: T,
        infinity: T,
        span: u64,
        shift: u32,
        mask: u32,
        a: &[T],
        places: &[u64],
        before: &[u64],
        sorted: &mut [T],
        sorted_places: &mut [u64],
    ) {
        #[local]
        let mut next: [u64; 256];
        #[local]
        let mut votes: [u32; 2048];
        let (item, part, parts) = (local_id(0), group_id(0), groups(0));
        next[item] = before[item * parts + part];
        for word in 0_u64..8 {
            votes[word * 256 + item] = 0;
        }
        barrier(LOCAL);
        let stop = min(part * span + span, a.len());
        for base in (part * span..stop).step_by(256) {
            let i = base + item;
            let bits = if i < stop { a[i] } else { 0 as T };
            let digit = digit::<T>(bits, sign, infinity, shift, mask);
            let (word, bit) = (item / 32, (item % 32) as u32);
            if i < stop {
                votes[digit * 8 + word].fetch_or(1_u32 << bit);
            }
            barrier(LOCAL);
            let mut rank = 0_u64;
            let mut all = 0_u64;
            for k in 0_u64..8 {
                let vote = votes[digit * 8 + k];
                all += vote.count_ones() as u64;
                let earlier = if k < word {
                    vote
                } else if k == word {
                    vote & ((1_u32 << bit) - 1)
                } else {
                    0
                };
                rank += earlier.count_ones() as u64;
            }
            let target = next[digit] + rank;
            barrier(LOCAL);
            if i < stop {
                // The last one of the digit.
                if rank + 1 == all {
                    next[digit] = target + 1;
                }
                votes[digit * 8 + word].fetch_and(0);
                moved::<T>(bits, i, target, places, sorted, sorted_places);
            }
            barrier(LOCAL);
        }
    }

    /// `out[i] = a[places[i]]` for elements of as many words; without `places` a copy.
    #[kernel(instances(u8, u32))]
    pub fn gather<T>(words: u64, a: &[T], places: &[u64], out: &mut [T]) {
        let at = global_id(0);
        if at < out.len() {
            let i = if words == 1 { at } else { at / words };
            let place = if i < places.len() { places[i] } else { i };
            let from = place * words + (at - i * words);
            if from < a.len() {
                out[at] = a[from];
            }
        }
    }

    /// The counter of an element: that of the bin between two of the ascending `edges`, which are
    /// orders, the last one inside; without edges that of the number itself, which is not negative.
    /// `!0` for other elements.
    #[kernel_fn]
    fn counter<T>(x: T, sign: T, infinity: T, edges: &[T]) -> u64 {
        if edges.len() == 0 {
            return if (x & sign) == 0 as T { x as u64 } else { 0xFFFF_FFFF_FFFF_FFFF_u64 };
        }
        let order = order::<T>(x, sign, infinity);
        let (mut low, mut high) = (0_u64, edges.len());
        // Edges before `low` are not above the element, those from `high` on are.
        while low < high {
            let middle = low + (high - low) / 2;
            let edge = if middle < edges.len() { edges[middle] } else { 0 as T };
            if edge <= order {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            return 0xFFFF_FFFF_FFFF_FFFF_u64;
        }
        if low < edges.len() {
            return low - 1;
        }
        let last = edges[edges.len() - 1];
        if order == last { edges.len() - 2 } else { 0xFFFF_FFFF_FFFF_FFFF_u64 }
    }

    /// Adds the elements of each part of `span` to the part's row of `bins` counters. An item takes
    /// a part.
    #[kernel(instances(u8, u16, u32, u64))]
    pub unsafe fn counts_of_items<T>(
        sign: T,
        infinity: T,
        span: u64,
        bins: u64,
        edges: &[T],
        a: &[T],
        rows: &mut [u32],
    ) {
        let part = global_id(0);
        for i in part * span..min(part * span + span, a.len()) {
            let bin = counter::<T>(a[i], sign, infinity, edges);
            if bin < bins && part * bins + bin < rows.len() {
                rows[part * bins + bin] += 1;
            }
        }
    }

    /// As `counts_of_items`, where a group takes a part, and up to 2^31 elements share a row. A
    /// group counts up to 2048 bins in its own memory first.
    #[kernel(group = 256, instances(u8, u16, u32, u64))]
    pub fn counts_of_groups<T>(
        sign: T,
        infinity: T,
        span: u64,
        bins: u64,
        edges: &[T],
        a: &[T],
        rows: &[Atomic<u32>],
    ) {
        #[local]
        let mut own: [u32; 2048];
        let (item, part) = (local_id(0), group_id(0));
        for k in (item..2048).step_by(256) {
            own[k] = 0;
        }
        barrier(LOCAL);
        let row = part * span / 0x8000_0000 * bins;
        for i in (part * span + item..min(part * span + span, a.len())).step_by(256) {
            let bin = counter::<T>(a[i], sign, infinity, edges);
            if bin < bins {
                if bins <= 2048 {
                    if bin < 2048 {
                        own[bin].fetch_add(1);
                    }
                } else if row + bin < rows.len() {
                    rows[row + bin].fetch_add(1);
                }
            }
        }
        barrier(LOCAL);
        for k in (item..min(bins, 2048)).step_by(256) {
            if own[k] != 0 && row + k < rows.len() {
                rows[row + k].fetch_add(own[k]);
            }
        }
    }

    /// `counts[i]` = the sum of a column of `rows`.
    #[kernel]
    pub fn add_rows(rows: &[u32], counts: &mut [u64]) {
        let bin = global_id(0);
        if bin < counts.len() {
            let mut total = 0_u64;
            for at in (bin..rows.len()).step_by(counts.len()) {
                total += rows[at] as u64;
            }
            counts[bin] = total;
        }
    }
}
