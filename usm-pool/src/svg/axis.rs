//! Units and round tick marks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A unit for byte axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

impl Unit {
    /// The largest unit of which `bytes` is at least one and a half.
    pub(crate) fn of(bytes: u64) -> Self {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let unit = units.into_iter().find(|(_, shift)| bytes / 3 >= (1_u64 << shift) / 2);
        unit.map_or(Self { name: "B", bytes: 1 }, |(name, shift)| Self { name, bytes: 1 << shift })
    }

    /// A tick label: the number alone.
    pub(crate) fn short(&self, bytes: u64) -> String {
        let value = bytes as f64 / self.bytes as f64;
        if bytes % self.bytes == 0 { format!("{}", bytes / self.bytes) } else { format!("{value:.2}") }
    }

    /// Number and unit.
    pub(crate) fn exact(&self, bytes: u64) -> String {
        if self.bytes == 1 {
            format!("{bytes} B")
        } else {
            format!("{:.3} {}", bytes as f64 / self.bytes as f64, self.name)
        }
    }
}

/// Round positions 0, step, 2 step ... up to `end`, at most about `count` of them; steps are 1, 2
/// or 5 times a power of ten of `unit`, or halves of the unit downwards.
pub(crate) fn ticks(end: u64, unit: u64, count: u64) -> Vec<u64> {
    let mut step = unit;
    // Down to a fraction of the unit for small ranges.
    while step > 1 && end / step < count / 2 {
        step /= 2;
    }
    let mut grow = [2, 5, 10].into_iter().cycle();
    let mut decade = step;
    while end / step > count {
        let factor = grow.next().unwrap_or(10);
        step = decade.saturating_mul(factor);
        if factor == 10 {
            decade = step;
        }
        if step == u64::MAX {
            break;
        }
    }
    (0..=end / step).map(|k| k * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few_for_any_range() {
        assert_eq!(ticks(10, 1, 12), (0..=10).collect::<Vec<_>>());
        assert_eq!(ticks(95, 1, 12), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        for end in [0, 1, 7, 1000, u64::MAX / 3, u64::MAX] {
            for unit in [1, 1 << 10, 1 << 40] {
                let found = ticks(end, unit, 8);
                assert!(
                    found.len() <= 17 && found.iter().all(|&tick| tick <= end),
                    "{end} {unit}: {found:?}"
                );
            }
        }
    }
}
