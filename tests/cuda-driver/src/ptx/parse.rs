//! Functions and variables of a text.

use alloc::collections::BTreeMap;

use super::lower::{Body, Names, literal, signed};
use super::program::{Entry, Module, Parameter};
use super::text::{Reader, refuse};
use super::types::Type;

/// Maximum bytes of all constants.
const MOST_CONSTANTS: usize = 64 << 10;
/// Alignment of dynamic shared memory.
const DYNAMIC_ALIGNMENT: usize = 16;

/// Variables by name, with their offsets.
pub(super) type Places = BTreeMap<String, usize>;

/// A variable's name, alignment and bytes. `None` for dynamic shared memory, whose size the launch
/// gives.
struct Variable<'t> {
    name: &'t str,
    of: Type,
    alignment: usize,
    bytes: Option<usize>,
}

/// Parses a module. The error names line and reason.
pub(crate) fn parse(text: &str) -> Result<Module, String> {
    let mut reader = Reader::new(text)?;
    let mut module = Module::default();
    // Shared variables outside functions belong to every function.
    let mut shared = Room::default();
    let (mut constants, mut values) = (Room::default(), Vec::new());
    if !matches!(reader.peek(), Some(".version")) {
        return refuse(reader.line(), "`.version` expected");
    }
    while reader.peek().is_some() {
        let line = reader.line();
        match reader.word()? {
            ".version" | ".address_size" | ".target" => {
                let mut more = true;
                while more {
                    reader.word()?;
                    more = reader.take(",");
                }
            }
            ".visible" | ".extern" | ".weak" => {}
            ".shared" => shared.add(&variable(&mut reader)?),
            ".const" => constant(&mut reader, &mut constants, &mut values)?,
            ".entry" => {
                let entry = entry(&mut reader, &shared, &constants.places)?;
                module.entries.push(entry);
            }
            other => return refuse(line, format_args!("`{other}` outside of functions is not known")),
        }
    }
    values.resize(values.len().next_multiple_of(8), 0);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    module.constants = values.chunks(8).map(word).collect();
    Ok(module)
}

/// The layout of the variables of one space.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    pub(super) places: Places,
    pub(super) bytes: usize,
    /// Variables that start after all others.
    last: Vec<String>,
}

impl Room {
    fn add(&mut self, variable: &Variable<'_>) {
        let Some(bytes) = variable.bytes else { return self.last.push(variable.name.to_owned()) };
        let start = self.bytes.next_multiple_of(variable.alignment);
        self.places.insert(variable.name.to_owned(), start);
        self.bytes = start + bytes;
    }

    /// Adds dynamic shared memory after all other variables.
    fn closed(mut self) -> Self {
        self.bytes = self.bytes.next_multiple_of(DYNAMIC_ALIGNMENT);
        for name in &self.last {
            self.places.insert(name.clone(), self.bytes);
        }
        self
    }
}

/// Parses the rest of a declaration after its space: `.align 4 .b8 name[64]`, with or without the
/// semicolon.
fn declared<'t>(reader: &mut Reader<'t>) -> Result<Variable<'t>, String> {
    let mut alignment = None;
    let line = reader.line();
    let of = loop {
        let word = reader.word()?;
        match word.strip_prefix('.') {
            Some("align") => alignment = Some(reader.number()?),
            // Skips the target of a pointer parameter, which has no effect.
            Some("ptr" | "global" | "shared" | "const" | "local") => {}
            Some(word) => match Type::of(word) {
                Some(of) => {
                    if reader.take(".ptr") {
                        while reader.peek().is_some_and(|word| word.starts_with('.')) {
                            if reader.word()? == ".align" {
                                reader.word()?;
                            }
                        }
                    }
                    break of;
                }
                None => return refuse(line, format_args!("`.{word}` is no type")),
            },
            None => return refuse(line, format_args!("a type expected, this is `{word}`")),
        }
    };
    let name = reader.word()?;
    let mut bytes = Some(of.bytes());
    while reader.take("[") {
        bytes = if reader.peek() == Some("]") {
            None
        } else {
            let count: usize = reader.number()?;
            bytes.and_then(|bytes| bytes.checked_mul(count))
        };
        reader.expect("]")?;
    }
    let alignment: usize = alignment.unwrap_or(of.bytes());
    if !alignment.is_power_of_two() || bytes.is_some_and(|bytes| bytes > 1 << 24) {
        return refuse(line, format_args!("`{name}` has an alignment or size that no device has"));
    }
    Ok(Variable { name, of, alignment, bytes })
}

fn variable<'t>(reader: &mut Reader<'t>) -> Result<Variable<'t>, String> {
    let variable = declared(reader)?;
    reader.expect(";")?;
    Ok(variable)
}

/// A variable in constant memory, whose bytes follow those of the others: `.align 4 .b8 name[8] =
/// {1, 2};`. Unstated bytes are zero.
fn constant(reader: &mut Reader<'_>, room: &mut Room, values: &mut Vec<u8>) -> Result<(), String> {
    let line = reader.line();
    let variable = declared(reader)?;
    let Some(bytes) = variable.bytes else {
        return refuse(line, format_args!("`{}`, a constant, has no size", variable.name));
    };
    room.add(&variable);
    if room.bytes > MOST_CONSTANTS {
        return refuse(line, format_args!("{} bytes of constants exceed {MOST_CONSTANTS}", room.bytes));
    }
    values.resize(room.bytes - bytes, 0);
    if reader.take("=") {
        let several = reader.take("{");
        loop {
            let (line, word) = (reader.line(), signed(reader)?);
            let Some(value) = literal(&word) else {
                return refuse(line, format_args!("`{word}` is no number, which a constant begins with"));
            };
            values.extend_from_slice(&value.to_le_bytes()[..variable.of.bytes()]);
            if !several || !reader.take(",") {
                break;
            }
        }
        if several {
            reader.expect("}")?;
        }
        if values.len() > room.bytes {
            return refuse(line, format_args!("`{}` has more values than its {bytes} bytes", variable.name));
        }
    }
    values.resize(room.bytes, 0);
    reader.expect(";")
}

fn entry(reader: &mut Reader<'_>, shared: &Room, constants: &Places) -> Result<Entry, String> {
    let name = reader.word()?.to_owned();
    let mut parameters: Vec<Parameter> = Vec::new();
    if reader.take("(") && !reader.take(")") {
        loop {
            reader.expect(".param")?;
            let line = reader.line();
            let variable = declared(reader)?;
            let Some(bytes) = variable.bytes else { return refuse(line, "a parameter without a size") };
            let end = parameters.last().map_or(0, |last| last.offset + last.bytes);
            let (name, offset) = (variable.name.to_owned(), end.next_multiple_of(variable.alignment));
            parameters.push(Parameter { name, offset, bytes });
            if !reader.take(",") {
                break;
            }
        }
        reader.expect(")")?;
    }
    let (mut required, mut most_threads) = (None, None);
    loop {
        let line = reader.line();
        match reader.word()? {
            "{" => break,
            ".reqntid" => required = Some(sizes(reader)?),
            ".maxntid" => most_threads = Some(sizes(reader)?.iter().product()),
            ".minnctapersm" | ".maxnreg" => drop(reader.word()?),
            other => return refuse(line, format_args!("`{other}` before a function's body is not known")),
        }
    }
    // Variables first: an instruction may name a variable declared outside its block.
    let (mut shared, mut local) = (shared.clone(), Room::default());
    let mut body = Body::default();
    let mut depth = 1;
    while depth > 0 {
        match reader.peek() {
            Some("{") => depth += 1,
            Some("}") => depth -= 1,
            Some(".shared") => {
                reader.word()?;
                shared.add(&variable(reader)?);
                continue;
            }
            Some(".local") => {
                reader.word()?;
                local.add(&variable(reader)?);
                continue;
            }
            Some(".reg") => {
                reader.word()?;
                body.declare(reader)?;
                continue;
            }
            Some(".pragma") => {
                while !reader.take(";") {
                    reader.word()?;
                }
                continue;
            }
            _ => {
                body.instruction(reader)?;
                continue;
            }
        }
        reader.word()?;
    }
    let shared = shared.closed();
    let names = Names { parameters: &parameters, shared: &shared.places, local: &local.places, constants };
    let made = body.finish(names)?;
    Ok(Entry {
        name,
        parameters,
        required,
        most_threads,
        shared_bytes: shared.bytes,
        local_bytes: local.bytes,
        steps: made.steps,
        registers: made.registers,
        specials: made.specials,
    })
}

fn sizes(reader: &mut Reader<'_>) -> Result<[u32; 3], String> {
    let mut sizes = [1; 3];
    for size in &mut sizes {
        *size = reader.number()?;
        if !reader.take(",") {
            break;
        }
    }
    Ok(sizes)
}
