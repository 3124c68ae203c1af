//! Planned failures.

use alloc::collections::BTreeMap;

use level_zero_sys::{ZE_RESULT_ERROR_DEVICE_LOST, ze_memory_type_t, ze_result_t};

/// The planned failures.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// For each function: the result, and the number of calls that succeed before.
    functions: BTreeMap<String, (ze_result_t, u32)>,
    /// If set, the answer to every query of a memory type.
    pub(crate) memory_type: Option<ze_memory_type_t>,
    /// Whether address queries return no device.
    pub(crate) null_device: bool,
    /// Alignments above this many bytes are silently ignored.
    pub(crate) ignored_alignment: Option<u32>,
    /// Alignments above this many bytes are refused.
    pub(crate) refused_alignment: Option<u32>,
    device_lost: bool,
}

impl Faults {
    /// Parses `name=code[@call]`, `memory-type=N`, `null-device`, `ignore-alignment=N`,
    /// `refuse-alignment=N`, `device-lost`. The error is the first part of another form.
    pub(crate) fn parse(text: &str) -> Result<Self, &str> {
        let mut faults = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if part == "null-device" => faults.null_device = true,
                None if part == "device-lost" => faults.device_lost = true,
                Some(("memory-type", value)) => {
                    faults.memory_type = Some(ze_memory_type_t(number(value).ok_or(part)?));
                }
                Some(("ignore-alignment", value)) => {
                    faults.ignored_alignment = Some(number(value).ok_or(part)?);
                }
                Some(("refuse-alignment", value)) => {
                    faults.refused_alignment = Some(number(value).ok_or(part)?);
                }
                Some((function, value)) if function.starts_with("ze") => {
                    let (code, first) = value.split_once('@').unwrap_or((value, "1"));
                    let (code, first) = (number(code).ok_or(part)?, number(first).ok_or(part)?);
                    faults
                        .functions
                        .insert(function.to_owned(), (ze_result_t(code), first.saturating_sub(1)));
                }
                _ => return Err(part),
            }
        }
        Ok(faults)
    }

    /// Loses the device.
    pub(crate) fn lose_device(&mut self) {
        self.device_lost = true;
    }

    /// Whether the device is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.device_lost
    }

    /// The planned result of this call, if it must fail.
    pub(crate) fn of(&mut self, function: &str) -> Option<ze_result_t> {
        const OF_A_DEVICE: [&str; 6] =
            ["Execute", "Synchronize", "Append", "Query", "CreateImmediate", "MemAlloc"];
        if self.device_lost && OF_A_DEVICE.iter().any(|part| function.contains(part)) {
            return Some(ZE_RESULT_ERROR_DEVICE_LOST);
        }
        let (code, good) = self.functions.get_mut(function)?;
        if *good == 0 {
            return Some(*code);
        }
        *good -= 1;
        None
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
