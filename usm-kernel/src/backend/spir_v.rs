//! Checks of a SPIR-V module before a driver gets it: its bounds, and the parameters of its
//! kernels.
//!
//! Drivers' compilers walk a module by the lengths inside it, and some end the process if these are
//! wrong.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::shape::Shape;

const MAGIC: u32 = 0x0723_0203;
/// Words of the header.
const HEADER: usize = 5;
/// Instructions, as the specification numbers them. Every module has a memory model.
const MEMORY_MODEL: u32 = 14;
const ENTRY_POINT: u32 = 15;
const EXECUTION_MODE: u32 = 16;
const TYPE_INT: u32 = 21;
const TYPE_FLOAT: u32 = 22;
const TYPE_POINTER: u32 = 32;
const TYPE_FUNCTION: u32 = 33;
const FUNCTION: u32 = 54;
/// Storage classes of a kernel's pointers; those of a function are structures passed by value.
const WORKGROUP: u32 = 4;
const PRIVATE_TO_FUNCTION: u32 = 7;

/// The execution mode of a kernel with a required group size.
const LOCAL_SIZE: u32 = 17;

/// Kernels by name.
pub(crate) type Kernels = BTreeMap<String, Kernel>;

/// A module's description of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) parameters: Vec<Shape>,
    /// The required group size, the fastest dimension last.
    pub(crate) required_group: Option<[u64; 3]>,
}

/// Checks header, size and the length of every instruction, and reads the kernels.
pub(crate) fn check(module: &[u8]) -> Result<Kernels, String> {
    let mut types = KernelTypes::default();
    walk(module, &mut |instruction, operands| types.record_instruction(instruction, operands))?;
    Ok(types.kernels())
}

/// Calls `each` with the number and the operands of every instruction.
fn walk(module: &[u8], each: &mut dyn FnMut(u32, &[u32])) -> Result<(), String> {
    if module.len() % 4 != 0 || module.len() < HEADER * 4 {
        return Err(format!("{} bytes are no SPIR-V module: whole words, at least {HEADER}", module.len()));
    }
    let little = |word: &[u8]| word.iter().rev().fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
    let is_swapped = match little(&module[..4]) {
        MAGIC => false,
        magic if magic == MAGIC.swap_bytes() => true,
        magic => return Err(format!("a SPIR-V module begins with {MAGIC:#010x}, this with {magic:#010x}")),
    };
    let word = |index: usize| {
        let word = little(&module[index * 4..index * 4 + 4]);
        if is_swapped { word.swap_bytes() } else { word }
    };
    let (words, mut place, mut has_model, mut operands) = (module.len() / 4, HEADER, false, Vec::new());
    while place < words {
        let (len, instruction) = ((word(place) >> 16) as usize, word(place) & 0xFFFF);
        if len == 0 || len > words - place {
            return Err(format!(
                "instruction {instruction} at word {place} has {len} words, {} are there",
                words - place
            ));
        }
        has_model |= instruction == MEMORY_MODEL;
        operands.clear();
        operands.extend((place + 1..place + len).map(word));
        each(instruction, &operands);
        place += len;
    }
    if has_model { Ok(()) } else { Err("the SPIR-V module has no memory model".into()) }
}

/// Types of the kernels' parameters, by id.
#[derive(Default)]
struct KernelTypes {
    entries: Vec<(u32, String)>,
    shapes: BTreeMap<u32, Shape>,
    signatures: BTreeMap<u32, Vec<u32>>,
    functions: BTreeMap<u32, u32>,
    required_groups: BTreeMap<u32, [u64; 3]>,
}

impl KernelTypes {
    fn record_instruction(&mut self, instruction: u32, operands: &[u32]) {
        match (instruction, operands) {
            (ENTRY_POINT, [_, function, name @ ..]) => {
                let bytes = name.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0);
                self.entries
                    .push((*function, String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()));
            }
            (EXECUTION_MODE, [function, LOCAL_SIZE, x, y, z]) => {
                self.required_groups.insert(*function, [*z, *y, *x].map(u64::from));
            }
            (TYPE_INT | TYPE_FLOAT, [id, bits, ..]) => {
                self.shapes.insert(*id, Shape::Value(*bits as usize / 8));
            }
            (TYPE_POINTER, [id, storage, _]) => {
                let shape = match *storage {
                    WORKGROUP => Shape::Local,
                    PRIVATE_TO_FUNCTION => Shape::Unknown,
                    _ => Shape::Pointer,
                };
                self.shapes.insert(*id, shape);
            }
            (TYPE_FUNCTION, [id, _, parameters @ ..]) => {
                self.signatures.insert(*id, parameters.to_vec());
            }
            (FUNCTION, [_, id, _, signature]) => {
                self.functions.insert(*id, *signature);
            }
            _ => {}
        }
    }

    fn kernels(self) -> Kernels {
        let shape = |id: &u32| self.shapes.get(id).copied().unwrap_or(Shape::Unknown);
        let kernel = |function: &u32| {
            let signature = self.signatures.get(self.functions.get(function)?)?;
            let required_group = self.required_groups.get(function).copied();
            Some(Kernel { parameters: signature.iter().map(shape).collect(), required_group })
        };
        self.entries.iter().filter_map(|(function, name)| Some((name.clone(), kernel(function)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const SMALLEST: [u32; 8] = [MAGIC, 0x0001_0000, 0, 1, 0, 3 << 16 | MEMORY_MODEL, 2, 2];

    fn bytes(words: &[u32], order: fn(u32) -> [u8; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| order(*word)).collect()
    }

    #[test]
    fn both_byte_orders_are_read() {
        assert_eq!(check(&bytes(&SMALLEST, u32::to_le_bytes)), Ok(Kernels::new()));
        assert_eq!(check(&bytes(&SMALLEST, u32::to_be_bytes)), Ok(Kernels::new()));
    }

    #[test]
    #[cfg(feature = "macros")]
    fn kernels_are_known_by_their_parameters() {
        use crate::DeviceCode;
        use crate::sample::{matmul, reverse};

        let code = <reverse as DeviceCode<1>>::SPIR_V.expect("a module");
        let module = check(code).expect("a module");
        let found = &module[<reverse as DeviceCode<1>>::FUNCTION];
        assert_eq!(
            (&found.parameters[..], found.required_group),
            (&[Shape::Pointer, Shape::Local][..], None)
        );
        let words = code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        assert_eq!(Ok(module), check(&bytes(&words.collect::<Vec<_>>(), u32::to_be_bytes)));
        let module = check(<matmul as DeviceCode<2>>::SPIR_V.expect("a module")).expect("a module");
        assert_eq!(module[<matmul as DeviceCode<2>>::FUNCTION].required_group, Some([1, 16, 16]));
    }

    #[test]
    fn a_module_cut_short_is_refused_at_every_length() {
        let whole = bytes(&SMALLEST, u32::to_le_bytes);
        for len in 0..whole.len() {
            assert!(check(&whole[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn wrong_lengths_are_named() {
        for len in [0, 4, 0xFFFF] {
            let mut words = SMALLEST;
            words[5] = len << 16 | MEMORY_MODEL;
            let reason = check(&bytes(&words, u32::to_le_bytes)).expect_err("refused");
            assert!(reason.contains(&format!("at word 5 has {len} words, 3 are there")), "{reason}");
        }
        let reason = check(&[0; 32]).expect_err("refused");
        assert!(reason.contains("this with 0x00000000"), "{reason}");
    }
}
