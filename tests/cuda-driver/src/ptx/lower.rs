//! From instructions to steps: names become register numbers, and each constant gets a register.

use alloc::collections::BTreeMap;

use super::parse::Places;
use super::program::{Action, Parameter, Register, Space, Special, Step};
use super::text::{Reader, integer, refuse};
use super::types::Type;
use super::warp::LANES;

/// The value of a register that was never written.
const PATTERN: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// The body of a function during parsing.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Names of registers. A name with a count declares that many, each with a number after it.
    declared: BTreeMap<String, Option<u64>>,
    instructions: Vec<Instruction>,
    /// The index of the instruction after each label.
    labels: BTreeMap<String, usize>,
}

/// A parsed instruction.
#[derive(Debug)]
pub(super) struct Instruction {
    line: usize,
    guard: Option<(String, bool)>,
    /// The name and its modifiers.
    pub(super) name: String,
    pub(super) modifiers: Vec<String>,
    pub(super) operands: Vec<Operand>,
}

/// An operand.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// A register, a constant, a variable or a label. With `!` before it, a negated predicate.
    Word(String),
    /// Two results.
    Two(String, String),
    Address(String, i64),
    Several(Vec<String>),
}

/// A lowered body.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) steps: Vec<Step>,
    pub(super) registers: Vec<u64>,
    pub(super) specials: Vec<(Register, Special)>,
}

/// Names other than registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'n> {
    pub(super) parameters: &'n [Parameter],
    pub(super) shared: &'n Places,
    pub(super) local: &'n Places,
    pub(super) constants: &'n Places,
}

/// A word with an optional sign.
pub(super) fn signed(reader: &mut Reader<'_>) -> Result<String, String> {
    let sign = ["-", "!"].into_iter().find(|sign| reader.take(sign)).unwrap_or_default();
    Ok(format!("{sign}{}", reader.word()?))
}

impl Body {
    /// Parses the rest of `.reg`: `.b32 %r<5>, %x;`.
    pub(super) fn declare(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        let line = reader.line();
        let of = reader.word()?;
        if of.strip_prefix('.').and_then(Type::of).is_none() {
            return refuse(line, format_args!("registers of type `{of}` are not known"));
        }
        loop {
            let name = reader.word()?.to_owned();
            let count = if reader.take("<") {
                let count = reader.number()?;
                reader.expect(">")?;
                Some(count)
            } else {
                None
            };
            self.declared.insert(name, count);
            if !reader.take(",") {
                break;
            }
        }
        reader.expect(";")
    }

    /// Parses a label or one instruction.
    pub(super) fn instruction(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        let line = reader.line();
        let mut guard = None;
        if reader.take("@") {
            let negated = reader.take("!");
            guard = Some((reader.word()?.to_owned(), !negated));
        }
        let word = reader.word()?;
        if guard.is_none() && reader.take(":") {
            self.labels.insert(word.to_owned(), self.instructions.len());
            return Ok(());
        }
        let mut parts = word.split('.').map(str::to_owned);
        let name = parts.next().unwrap_or_default();
        let mut instruction =
            Instruction { line, guard, name, modifiers: parts.collect(), operands: Vec::new() };
        while !reader.take(";") {
            instruction.operands.push(operand(reader)?);
            if !reader.take(",") {
                reader.expect(";")?;
                break;
            }
        }
        self.instructions.push(instruction);
        Ok(())
    }

    /// Lowers all instructions.
    pub(super) fn finish(&self, names: Names<'_>) -> Result<Made, String> {
        let made = Made { steps: Vec::new(), registers: Vec::new(), specials: Vec::new() };
        let numbers = BTreeMap::new();
        let mut lowering = Lowering { body: self, names, made, line: 0, numbers, jumps: Vec::new() };
        let mut starts = Vec::new();
        for instruction in &self.instructions {
            starts.push(lowering.made.steps.len());
            let before = lowering.made.steps.len();
            lowering.line = instruction.line;
            if let Err(reason) = lowering.lower(instruction) {
                return refuse(instruction.line, reason);
            }
            if let Some((predicate, value)) = &instruction.guard {
                let register = lowering.register(predicate).or_else(|why| refuse(instruction.line, why))?;
                for step in &mut lowering.made.steps[before..] {
                    step.guard = Some((register, *value));
                }
            }
        }
        // A label at the end, and fall-through to it.
        starts.push(lowering.made.steps.len());
        lowering.push(Action::End, Type::Predicate, 0, [0; 3]);
        for (step, label) in core::mem::take(&mut lowering.jumps) {
            let Some(target) = self.labels.get(&label) else {
                return Err(format!("`{label}` is no label of the function"));
            };
            lowering.made.steps[step].action = Action::Jump(starts[*target]);
        }
        Ok(lowering.made)
    }
}

fn operand(reader: &mut Reader<'_>) -> Result<Operand, String> {
    if reader.take("[") {
        let base = signed(reader)?;
        let negative = reader.take("-");
        let offset = if negative || reader.take("+") {
            let negative = negative || reader.take("-");
            let offset: i64 = reader.number()?;
            if negative { -offset } else { offset }
        } else {
            0
        };
        reader.expect("]")?;
        return Ok(Operand::Address(base, offset));
    }
    if reader.take("{") {
        let mut several = vec![signed(reader)?];
        while reader.take(",") {
            several.push(signed(reader)?);
        }
        reader.expect("}")?;
        return Ok(Operand::Several(several));
    }
    let word = signed(reader)?;
    if reader.take("|") {
        return Ok(Operand::Two(word, reader.word()?.to_owned()));
    }
    Ok(Operand::Word(word))
}

/// The state while one body is lowered.
pub(super) struct Lowering<'b> {
    body: &'b Body,
    names: Names<'b>,
    pub(super) made: Made,
    /// The line of the current instruction.
    line: usize,
    /// Registers by name, including constants and the special registers of an item.
    numbers: BTreeMap<String, Register>,
    /// Jumps to be resolved: the step and its label.
    jumps: Vec<(usize, String)>,
}

impl Lowering<'_> {
    pub(super) fn push(&mut self, action: Action, of: Type, to: Register, from: [Register; 3]) {
        self.made.steps.push(Step { action, of, to, from, guard: None, line: self.line });
    }

    /// Adds a jump to a label.
    pub(super) fn jump(&mut self, label: &str) {
        self.jumps.push((self.made.steps.len(), label.to_owned()));
        self.push(Action::Nothing, Type::Predicate, 0, [0; 3]);
    }

    fn named(&mut self, name: &str, value: u64) -> Register {
        let registers = &mut self.made.registers;
        *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            registers.push(value);
            registers.len() as Register - 1
        })
    }

    pub(super) fn constant(&mut self, value: u64) -> Register {
        self.named(&format!("{value}"), value)
    }

    /// A register whose value is never read.
    pub(super) fn nowhere(&mut self) -> Register {
        self.named("", PATTERN)
    }

    /// A register for use within one instruction.
    pub(super) fn temporary(&mut self, number: usize) -> Register {
        self.named(&format!("!{number}"), PATTERN)
    }

    /// A register that the function declares.
    pub(super) fn register(&mut self, name: &str) -> Result<Register, String> {
        let (prefix, number) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        let among = |count: &Option<u64>| {
            count.is_some_and(|count| number.parse::<u64>().is_ok_and(|number| number < count))
        };
        let known = self.body.declared.get(name).is_some_and(Option::is_none)
            || self.body.declared.get(prefix).is_some_and(among);
        if known {
            Ok(self.named(name, PATTERN))
        } else {
            Err(format!("`{name}` is no register of the function"))
        }
    }

    /// The register that holds a value: a register, a constant, a variable's address, or a special
    /// register.
    pub(super) fn value(&mut self, word: &str) -> Result<Register, String> {
        if let Some(value) = literal(word) {
            return Ok(self.constant(value));
        }
        if let Some(special) = special(word) {
            let register = self.named(word, 0);
            if self.made.specials.iter().all(|(known, _)| *known != register) {
                self.made.specials.push((register, special));
            }
            return Ok(register);
        }
        let Names { shared, local, constants, .. } = self.names;
        let place = shared.get(word).or(local.get(word)).or(constants.get(word)).copied();
        match place {
            Some(place) => Ok(self.constant(place as u64)),
            None => self.register(word),
        }
    }

    /// The base register and the offset of an address in a space.
    pub(super) fn address(
        &mut self,
        base: &str,
        offset: i64,
        space: Space,
    ) -> Result<(Register, i64), String> {
        if space != Space::Parameter {
            return self.value(base).map(|register| (register, offset));
        }
        let parameter = self.names.parameters.iter().find(|parameter| parameter.name == base);
        let place = parameter.ok_or_else(|| format!("`{base}` is no parameter of the function"))?.offset;
        Ok((self.constant(place as u64), offset))
    }
}

/// The bits of a constant.
pub(super) fn literal(word: &str) -> Option<u64> {
    let float = |prefix: [&str; 2], digits: usize| {
        let hex = prefix.iter().find_map(|prefix| word.strip_prefix(prefix))?;
        (hex.len() == digits).then(|| u64::from_str_radix(hex, 16).ok())?
    };
    if word == "WARP_SZ" {
        return Some(LANES as u64);
    }
    match word.strip_prefix('-') {
        Some(positive) => integer(positive).map(u64::wrapping_neg),
        None => float(["0f", "0F"], 8).or_else(|| float(["0d", "0D"], 16)).or_else(|| integer(word)),
    }
}

fn special(word: &str) -> Option<Special> {
    let lanes = |before, itself, behind| Some(Special::Lanes { before, itself, behind });
    match word {
        "%laneid" => return Some(Special::Lane),
        "%lanemask_lt" => return lanes(true, false, false),
        "%lanemask_le" => return lanes(true, true, false),
        "%lanemask_eq" => return lanes(false, true, false),
        "%lanemask_ge" => return lanes(false, true, true),
        "%lanemask_gt" => return lanes(false, false, true),
        _ => {}
    }
    let (name, axis) = word.rsplit_once('.')?;
    let axis = ["x", "y", "z"].iter().position(|known| *known == axis)?;
    Some(match name {
        "%tid" => Special::Item(axis),
        "%ntid" => Special::GroupSize(axis),
        "%ctaid" => Special::Group(axis),
        "%nctaid" => Special::Groups(axis),
        _ => return None,
    })
}
