//! Planned failures.

use alloc::collections::BTreeMap;

use crate::code::Code;

/// The planned failures.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// For each function: the code to return, and the number of calls that succeed before.
    functions: BTreeMap<String, (Code, u32)>,
    /// If set, the answer to every query of a memory type.
    pub(crate) memory_type: Option<u32>,
    /// The code of the next failing operation, and the number of operations that succeed before.
    operation: Option<(Code, u32)>,
}

impl Faults {
    /// Parses `function=code[@call]`, `operation=code[@number]`, `memory-type=N`. The error is the
    /// first part of another form.
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

    /// The planned result of this call, if it must fail.
    pub(crate) fn of(&mut self, function: &str) -> Option<Code> {
        count(self.functions.get_mut(function)?)
    }

    /// The planned result of the operation that runs now. Only one operation fails.
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
