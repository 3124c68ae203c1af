//! Built-in kernels, and the names that modules give them.

use level_zero_sys::*;

/// A kernel object: its arguments so far.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) group: [u32; 3],
    pub(crate) arguments: Vec<Option<Argument>>,
}

/// An argument: a value, or bytes of local memory.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Value(Vec<u8>),
    Local(usize),
}

/// A kernel with everything that a launch takes along.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    /// The kernel object, which must stay until this is done.
    pub(crate) number: usize,
    pub(crate) groups: [u32; 3],
}

/// Name and number of arguments of every built-in kernel.
pub(crate) const BUILT_IN: [(&str, usize); 4] = [("iota", 1), ("put", 3), ("reverse", 2), ("spin", 0)];

impl Kernel {
    /// The built-in kernel of that name.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let (name, count) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(Self { name: (*name).to_owned(), group: [1; 3], arguments: vec![None; *count] })
    }

    /// Whether every argument was set, with the size it must have.
    pub(crate) fn is_complete(&self) -> bool {
        let pointer = |index: usize| matches!(self.arguments.get(index), Some(Some(Argument::Value(bytes))) if bytes.len() == 8);
        let needed = self.group[0] as usize * 4;
        let local =
            |index: usize| matches!(self.arguments[index], Some(Argument::Local(bytes)) if bytes >= needed);
        match self.name.as_str() {
            "iota" => pointer(0),
            "put" => pointer(0) && self.number(1).is_some() && local(2),
            "reverse" => pointer(0) && local(1),
            _ => true,
        }
    }

    /// Every argument that may be a pointer.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = usize> {
        (0..self.arguments.len()).map(|index| self.pointer(index))
    }

    /// An argument of four bytes.
    fn number(&self, index: usize) -> Option<u32> {
        match self.arguments.get(index) {
            Some(Some(Argument::Value(bytes))) => bytes.as_slice().try_into().ok().map(u32::from_ne_bytes),
            _ => None,
        }
    }

    fn pointer(&self, index: usize) -> usize {
        match self.arguments.get(index) {
            Some(Some(Argument::Value(bytes))) => {
                usize::from_ne_bytes(bytes.as_slice().try_into().unwrap_or_default())
            }
            _ => 0,
        }
    }
}

impl Launch {
    /// Whether it never finishes.
    pub(crate) fn is_endless(&self) -> bool {
        self.kernel.name == "spin"
    }

    /// Runs the built-in kernel along X.
    pub(crate) fn run(&self) {
        let group = self.kernel.group[0] as usize;
        let count = self.groups[0] as usize * group;
        let base = self.kernel.pointer(0);
        match self.kernel.name.as_str() {
            "iota" => {
                for index in 0..count {
                    // SAFETY: the launch's first argument has an element for every work-item.
                    unsafe { (base as *mut u32).wrapping_add(index).write(index as u32) };
                }
            }
            "put" => {
                let add = self.kernel.number(1).unwrap_or(0);
                for index in 0..count {
                    // SAFETY: as above.
                    unsafe { (base as *mut u32).wrapping_add(index).write(add.wrapping_add(index as u32)) };
                }
            }
            "reverse" => {
                for start in (0..count).step_by(group) {
                    let first = (base as *mut f32).wrapping_add(start);
                    // SAFETY: as above: `group` elements from here, kept until the command is done.
                    let block = unsafe { core::slice::from_raw_parts_mut(first, group) };
                    let local: Vec<f32> = block.to_vec();
                    for (value, mirror) in block.iter_mut().zip(local.iter().rev()) {
                        *value += mirror;
                    }
                }
            }
            _ => {}
        }
    }
}

/// The kernels that a module names; none when one of them is not built in.
pub(crate) fn names(format: ze_module_format_t, code: &[u8]) -> Option<Vec<String>> {
    let names = match format {
        ZE_MODULE_FORMAT_NATIVE => {
            core::str::from_utf8(code).ok()?.split_whitespace().map(str::to_owned).collect()
        }
        ZE_MODULE_FORMAT_IL_SPIRV => entry_points(code)?,
        _ => return None,
    };
    let known = |name: &String| BUILT_IN.iter().any(|(known, _)| known == name);
    (!names.is_empty() && names.iter().all(known)).then_some(names)
}

/// The names of the entry points of a SPIR-V module: instruction 15, after the execution model and the id.
fn entry_points(code: &[u8]) -> Option<Vec<String>> {
    const MAGIC: u32 = 0x0723_0203;
    const HEADER: usize = 5;
    let words: Vec<u32> =
        code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    if words.first() != Some(&MAGIC) {
        return None;
    }
    let mut names = Vec::new();
    let mut rest = words.get(HEADER..)?;
    while let Some(first) = rest.first() {
        let (length, instruction) = ((first >> 16) as usize, first & 0xffff);
        let operands = rest.get(1..length)?;
        if instruction == 15 {
            let bytes = operands.get(2..)?.iter().flat_map(|word| word.to_le_bytes());
            let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
            names.push(String::from_utf8(name).ok()?);
        }
        rest = rest.get(length..)?;
    }
    Some(names)
}
