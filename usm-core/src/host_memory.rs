//! How much memory of the machine is free.

/// Bytes that the system can give without swapping; `None` if the system does not report them.
pub(crate) fn free() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    available(&text)
}

/// `MemAvailable` of `/proc/meminfo`, which counts in units of 1,024 bytes.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_system() {
        let text = "MemTotal:       24 kB\nMemFree:        12 kB\nMemAvailable:   16 kB\n";
        assert_eq!(available(text), Some(16 * 1024));
        for odd in ["", "MemAvailable: kB", "MemAvailable: 5", "MemAvailable: 18446744073709551615 kB"] {
            assert_eq!(available(odd), None);
        }
    }
}
