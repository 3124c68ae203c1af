//! Numbers of bytes with units: read from users, and shown to them.

use crate::number::number;

/// Each is 1024 times the one before it, from 1024 bytes.
const BINARY: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// Each is 1000 times the one before it, from 1000 bytes.
const DECIMAL: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// A number of bytes: a whole number, optionally with a binary or a decimal unit, as in `1KiB` or
/// `1kB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let binary = BINARY.into_iter().zip(1_u32..).zip([1024_u64; BINARY.len()]);
    let decimal = DECIMAL.into_iter().zip(1_u32..).zip([1000; DECIMAL.len()]);
    let units = binary.chain(decimal);
    let unit = units.filter_map(|((unit, power), base)| Some((text.strip_suffix(unit)?, base.pow(power))));
    let Some((count, factor)) = unit.into_iter().next() else {
        return number(text).map_err(|reason| match text.ends_with(|c: char| c.is_ascii_digit()) {
            true => reason,
            false => {
                let (binary, decimal) = (BINARY.join(", "), DECIMAL.join(", "));
                format!("{reason} of bytes, and not one with {binary}, or {decimal} behind it")
            }
        });
    };
    number(count)?.checked_mul(factor).ok_or_else(|| format!("{text} is above {} bytes", u64::MAX))
}

/// `bytes` in the largest binary unit with a value of at least 1, as in `95.25 MiB`; below 1 KiB
/// the whole number, as in `96 bytes`.
#[must_use]
pub fn shown(bytes: u64) -> String {
    let power = bytes.checked_ilog2().unwrap_or(0) / 10;
    let unit = (power as usize).checked_sub(1).and_then(|at| BINARY.get(at));
    // Exact enough for three digits.
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |unit| format!("{:.2} {unit}", bytes as f64 / (1_u64 << (10 * power)) as f64),
    )
}

/// An alignment in bytes that a user gave: a power of two.
pub fn alignment(bytes: u64) -> Result<u64, String> {
    if bytes.is_power_of_two() { Ok(bytes) } else { Err(format!("{bytes} is not a power of two")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_bytes_is_shown_in_the_largest_unit_below_it() {
        let cases = [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.00 KiB"), (u64::MAX, "16.00 EiB")];
        for (number, text) in cases {
            assert_eq!(shown(number), text);
        }
        assert_eq!(shown(99_876_928), "95.25 MiB");
    }

    #[test]
    fn an_alignment_is_a_power_of_two() {
        assert_eq!([alignment(1), alignment(1 << 63)], [Ok(1), Ok(1 << 63)]);
        for wrong in [0, 3, u64::MAX] {
            assert_eq!(alignment(wrong), Err(format!("{wrong} is not a power of two")));
        }
    }
}
