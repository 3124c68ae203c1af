//! The bounds of a SPIR-V module. Compilers of drivers walk it by the lengths inside it, and some end the process when these are wrong.

use alloc::format;
use alloc::string::String;

const MAGIC: u32 = 0x0723_0203;
/// Words of the header.
const HEADER: usize = 5;
/// Every module has this instruction.
const MEMORY_MODEL: u32 = 14;

/// Checks header, size and the length of every instruction.
pub(crate) fn check(module: &[u8]) -> Result<(), String> {
    if module.len() % 4 != 0 || module.len() < HEADER * 4 {
        return Err(format!("{} bytes are no SPIR-V module: whole words, at least {HEADER}", module.len()));
    }
    let little = |word: &[u8]| word.iter().rev().fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
    let swapped = match little(&module[..4]) {
        MAGIC => false,
        found if found == MAGIC.swap_bytes() => true,
        found => return Err(format!("a SPIR-V module begins with {MAGIC:#010x}, this with {found:#010x}")),
    };
    let word = |index: usize| {
        let word = little(&module[index * 4..index * 4 + 4]);
        if swapped { word.swap_bytes() } else { word }
    };
    let (words, mut place, mut has_model) = (module.len() / 4, HEADER, false);
    while place < words {
        let (len, instruction) = ((word(place) >> 16) as usize, word(place) & 0xFFFF);
        if len == 0 || len > words - place {
            return Err(format!(
                "instruction {instruction} at word {place} has {len} words, {} are there",
                words - place
            ));
        }
        has_model |= instruction == MEMORY_MODEL;
        place += len;
    }
    if has_model { Ok(()) } else { Err("the SPIR-V module has no memory model".into()) }
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
        assert_eq!(check(&bytes(&SMALLEST, u32::to_le_bytes)), Ok(()));
        assert_eq!(check(&bytes(&SMALLEST, u32::to_be_bytes)), Ok(()));
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
