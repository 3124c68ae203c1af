//! A module as words: header, instructions, names.

const MAGIC: u32 = 0x0723_0203;
const HEADER: usize = 5;

/// An instruction: its opcode and operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction<'m> {
    pub(super) opcode: u32,
    pub(super) operands: &'m [u32],
}

impl Instruction<'_> {
    /// The operand at an index. The error says that it is missing.
    pub(super) fn at(&self, place: usize) -> Result<u32, String> {
        let missing = || format!("instruction {} has no operand {place}", self.opcode);
        self.operands.get(place).copied().ok_or_else(missing)
    }

    /// The operands from an index on; none if there are fewer.
    pub(super) fn from(&self, place: usize) -> &[u32] {
        self.operands.get(place..).unwrap_or(&[])
    }

    /// A name from an index on, and the words after it.
    pub(super) fn name(&self, place: usize) -> Result<(String, &[u32]), String> {
        let words = self.from(place);
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
        let rest = words.get(bytes.len() / 4 + 1..).ok_or("a name without an end")?;
        let name = String::from_utf8(bytes).map_err(|_| "a name that is not UTF-8")?;
        Ok((name, rest))
    }
}

/// The words of a module in either byte order, and the bound of its ids.
pub(super) fn read(bytes: &[u8]) -> Result<(Vec<u32>, usize), String> {
    if bytes.len() % 4 != 0 || bytes.len() < HEADER * 4 {
        return Err(format!("{} bytes are no SPIR-V module", bytes.len()));
    }
    let mut words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    if words[0] == MAGIC.swap_bytes() {
        words.iter_mut().for_each(|word| *word = word.swap_bytes());
    }
    if words[0] != MAGIC {
        return Err(format!("a SPIR-V module begins with {MAGIC:#010x}, this with {:#010x}", words[0]));
    }
    let bound = words[3] as usize;
    // Each id is defined by at least one word.
    if bound > words.len() {
        return Err(format!("{bound} ids in {} words", words.len()));
    }
    Ok((words, bound))
}

/// The instructions after the header.
pub(super) fn instructions(words: &[u32]) -> Result<Vec<Instruction<'_>>, String> {
    let mut rest = &words[HEADER..];
    let mut found = Vec::new();
    while let Some(first) = rest.first() {
        let (length, opcode) = ((first >> 16) as usize, first & 0xffff);
        let operands = rest.get(1..length).filter(|_| length > 0);
        let operands =
            operands.ok_or_else(|| format!("instruction {opcode} of {length} words ends outside"))?;
        found.push(Instruction { opcode, operands });
        rest = &rest[length..];
    }
    Ok(found)
}
