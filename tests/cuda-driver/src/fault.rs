//! Failures on demand.

use alloc::collections::BTreeMap;

use crate::code::Code;

/// What is to go wrong.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Per function: the answer, and the calls that still go well.
    functions: BTreeMap<String, (Code, u32)>,
    /// The memory type that every pointer has when asked.
    pub(crate) memory_type: Option<u32>,
    /// What the next operation that runs ends with, and how many still go well.
    operation: Option<(Code, u32)>,
}

impl Faults {
    /// Reads `function=code[@call]`, `operation=code[@number]`, `memory-type=N`; the first part
    /// that is none of these is the error.
    pub(crate) fn parse(text: &str) -> Result<Self, &str> {
        let mut faults = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(part)?;
            let (code, first) = value.split_once('@').unwrap_or((value, "1"));
            let code: Code = code.parse().map_err(|_| part)?;
            let first: u32 = first.parse().map_err(|_| part)?;
            let failure = (code, first.saturating_sub(1));
            match name {
                "memory-type" => faults.memory_type = Some(code as u32),
                "operation" => faults.operation = Some(failure),
                _ if name.starts_with("cu") || name.starts_with("hip") => {
                    faults.functions.insert(name.to_owned(), failure);
                }
                _ => return Err(part),
            }
        }
        Ok(faults)
    }

    /// The answer of a function that is to fail now.
    pub(crate) fn of(&mut self, function: &str) -> Option<Code> {
        count(self.functions.get_mut(function)?)
    }

    /// What an operation that runs now ends with. Only one fails.
    pub(crate) fn of_operation(&mut self) -> Option<Code> {
        let code = count(self.operation.as_mut()?)?;
        self.operation = None;
        Some(code)
    }
}

fn count((code, good): &mut (Code, u32)) -> Option<Code> {
    if *good == 0 {
        return Some(*code);
    }
    *good -= 1;
    None
}
