//! Synthetic instances: a seed gives the same integers on every machine.

use usm_pool::Buffer;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..high`.
    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + ((u128::from(self.next()) * u128::from(high - low)) >> 64) as u64
    }

    /// Powers of two equally likely, uniform between two: 256 B to `256 << octaves`, in steps of 64
    /// B.
    fn size(&mut self, octaves: u64) -> u64 {
        let base = 256 << self.within(0, octaves);
        (base + self.within(0, base)) / 64 * 64
    }
}

fn buffer(id: usize, lower: u64, upper: u64, size: u64) -> Buffer {
    Buffer::new(id as u64, lower, upper, size)
}

/// Where a piece is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// In its middle half, across its longer side: pieces are nearly square.
    Squares,
    /// In its middle half, across time or memory with equal chance. Greedy by size is 1.48 times
    /// above the bound at 10,000 pieces.
    Middle,
    /// Anywhere, across time or memory with equal chance: slivers. Greedy by size is 1.58 times
    /// above the bound.
    Slivers,
}

/// A full rectangle of time and memory, divided into `n` pieces: by construction the optimum is the
/// bound. The largest piece is divided next.
pub(super) fn packed(n: usize, seed: u64, rule: Cut) -> Vec<Buffer> {
    let mut random = Random(seed);
    let (time, memory) = (16 * n as u64, 1024 * n as u64);
    let area = |b: u64, e: u64, l: u64, h: u64| (u128::from(e - b) * u128::from(h - l), b, e, l, h);
    let mut pieces = std::collections::BinaryHeap::from([area(0, time, 0, memory)]);
    while pieces.len() < n {
        let Some((_, begin, end, low, high)) = pieces.pop() else { break };
        let tall = u128::from(high - low) * u128::from(time) > u128::from(end - begin) * u128::from(memory);
        let across_memory = if rule == Cut::Squares { tall } else { random.within(0, 2) == 0 };
        let mut cut = |from: u64, to: u64| {
            let margin = if rule == Cut::Slivers { 0 } else { (to - from) / 4 }.max(1);
            random.within(from + margin, (to - margin).max(from + margin) + 1)
        };
        if (across_memory || end - begin < 2) && high - low >= 2 {
            let cut = cut(low, high);
            pieces.extend([area(begin, end, low, cut), area(begin, end, cut, high)]);
        } else {
            let cut = cut(begin, end.max(begin + 2));
            pieces.extend([area(begin, cut, low, high), area(cut, end, low, high)]);
        }
    }
    let mut buffers: Vec<(u64, u64, u64)> = pieces.into_iter().map(|(_, b, e, l, h)| (b, e, h - l)).collect();
    shuffle(&mut buffers, &mut random);
    buffers.into_iter().enumerate().map(|(id, (b, e, size))| buffer(id, b, e, size)).collect()
}

/// Sizes of 256 B to 64 MiB with equally likely powers of two, uniform begins, and lives of length
/// at least `x` with probability `x^(-8/9)`: this distribution has no mean, and the load grows with
/// the number of buffers.
pub(super) fn powerlaw(n: usize, seed: u64) -> Vec<Buffer> {
    let mut random = Random(seed);
    let span = n as u64;
    (0..n)
        .map(|id| {
            let (begin, size) = (random.within(0, span), random.size(18));
            let base = span as f64 / (1 + random.within(0, span)) as f64;
            // Square roots round equally on every machine.
            let life = (base * base.sqrt().sqrt().sqrt()) as u64;
            buffer(id, begin, begin + life.clamp(1, span), size)
        })
        .collect()
}

/// The shape of training: buffer `i` of `n` lives until `2n - i` in three cases of ten, otherwise
/// for a few steps.
pub(super) fn unet(n: usize, seed: u64) -> Vec<Buffer> {
    let mut random = Random(seed);
    (0..n)
        .map(|id| {
            let at = id as u64;
            let upper = if random.within(0, 10) < 3 { 2 * n as u64 - at } else { at + random.within(1, 5) };
            buffer(id, at, upper, random.size(16))
        })
        .collect()
}

/// A training step of `layers` equal blocks: activations live from forward to backward pass, both
/// passes have temporaries, and gradients live until the optimiser reads them in turn at the end.
pub(super) fn training(layers: usize, seed: u64) -> Vec<Buffer> {
    const FORWARD: u64 = 24;
    const BACKWARD: u64 = 40;
    const WEIGHTS: u64 = 8;
    let mut random = Random(seed);
    // The shape of a block, equal in every layer, as in a transformer or a residual stage.
    let mut shape =
        |count: u64, octaves: u64| (0..count).map(|_| random.size(octaves) << 6).collect::<Vec<_>>();
    let (activations, temporaries) = (shape(FORWARD, 14), shape(BACKWARD, 14));
    let weights = shape(WEIGHTS, 15);
    let layers = layers as u64;
    let turn = layers * FORWARD;
    let end = turn + layers * BACKWARD;
    let mut buffers = Vec::new();
    let mut push = |lower, upper, size| buffers.push(buffer(buffers.len(), lower, upper, size));
    for layer in 0..layers {
        let back = turn + (layers - 1 - layer) * BACKWARD;
        for step in 0..FORWARD {
            let (at, size) = (layer * FORWARD + step, activations[step as usize]);
            let is_kept = step % 3 == 0;
            push(at, if is_kept { back + BACKWARD - step } else { at + 1 + step % 4 }, size);
        }
        for step in 0..BACKWARD {
            let (at, size) = (back + step, temporaries[step as usize]);
            push(at, at + 1 + step % 5, size);
        }
        for step in 0..WEIGHTS {
            let update = end + layer * WEIGHTS + step;
            push(back + step * BACKWARD / WEIGHTS, update + 1, weights[step as usize]);
        }
    }
    buffers
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.within(0, i as u64 + 1) as usize);
    }
}
