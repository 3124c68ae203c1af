//! The meaning of each instruction.

use super::lower::{Instruction, Lowering, Operand};
use super::program::{Action, Comparison, Logic, Operation, Rounding, Space, Update};
use super::types::Type;

/// Modifiers without an effect when the host runs one item after another: default rounding,
/// precision, caches, memory order.
const WITHOUT_EFFECT: [&str; 26] = [
    "rn", "ftz", "approx", "full", "uni", "volatile", "relaxed", "acquire", "release", "acq_rel", "weak",
    "gpu", "cta", "sys", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "sc", "gl", "sync", "aligned",
];

/// Start of the windows of constants, local and shared memory in the generic address space.
pub(super) const CONSTANT_WINDOW: u64 = 0x5900_0000_0000_0000;
pub(super) const SHARED_WINDOW: u64 = 0x5A00_0000_0000_0000;
pub(super) const LOCAL_WINDOW: u64 = 0x5B00_0000_0000_0000;

/// The modifiers after an instruction's name.
pub(super) struct Modifiers<'i> {
    words: Vec<&'i str>,
    pub(super) types: Vec<Type>,
}

impl<'i> Modifiers<'i> {
    fn of(instruction: &'i Instruction) -> Self {
        let words = instruction.modifiers.iter().map(String::as_str);
        let (types, words): (Vec<&str>, Vec<&str>) = words.partition(|word| Type::of(word).is_some());
        Self { words, types: types.into_iter().filter_map(Type::of).collect() }
    }

    /// Takes the first modifier that `meaning` knows.
    pub(super) fn take<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        let place = self.words.iter().position(|word| meaning(word).is_some())?;
        meaning(self.words.remove(place))
    }

    pub(super) fn has(&mut self, word: &str) -> bool {
        self.take(|found| (found == word).then_some(())).is_some()
    }

    /// The single type modifier. Other modifiers are refused.
    pub(super) fn only(&self) -> Result<Type, String> {
        self.end()?;
        match self.types[..] {
            [of] => Ok(of),
            _ => Err("it has not one type".into()),
        }
    }

    pub(super) fn end(&self) -> Result<(), String> {
        match self.words.iter().find(|word| !WITHOUT_EFFECT.contains(word)) {
            Some(word) => Err(format!("`.{word}` is not known")),
            None => Ok(()),
        }
    }
}

impl Lowering<'_> {
    /// Steps of an instruction.
    pub(super) fn lower(&mut self, instruction: &Instruction) -> Result<(), String> {
        self.steps(instruction).map_err(|reason| {
            let name = &instruction.name;
            let dots: String = instruction.modifiers.iter().map(|word| format!(".{word}")).collect();
            format!("`{name}{dots}`: {reason}")
        })
    }

    fn steps(&mut self, instruction: &Instruction) -> Result<(), String> {
        let modifiers = Modifiers::of(instruction);
        let operands = &instruction.operands;
        match instruction.name.as_str() {
            "ld" | "ldu" => self.load(modifiers, operands),
            "st" => self.store(modifiers, operands),
            "atom" | "red" => self.update(modifiers, operands, instruction.name == "atom"),
            "setp" => self.compare(modifiers, operands),
            "cvt" => self.convert(modifiers, operands),
            "cvta" => self.window(modifiers, operands),
            "bra" => match operands[..] {
                [Operand::Word(ref label)] => {
                    modifiers.end()?;
                    self.jump(label);
                    Ok(())
                }
                _ => Err("a label expected".into()),
            },
            "ret" | "exit" => self.plain(Action::End),
            "trap" => self.plain(Action::Trap),
            "membar" | "fence" => self.plain(Action::Nothing),
            "shfl" | "vote" | "redux" | "match" | "activemask" => {
                self.together(&instruction.name, modifiers, operands)
            }
            "bar" if instruction.modifiers.first().is_some_and(|word| word == "warp") => {
                self.together("bar.warp", modifiers, operands)
            }
            "mov" if operands.iter().any(|operand| matches!(operand, Operand::Several(_))) => {
                self.parts(modifiers, operands)
            }
            "bfi" => self.insert(modifiers, operands),
            // All items of a group. `0` is the only barrier.
            "bar" | "barrier" if matches!(operands[..], [Operand::Word(ref number)] if number == "0") => {
                modifiers.end()?;
                self.plain(Action::Barrier)
            }
            "selp" => {
                let of = modifiers.only()?;
                let ([to], [a, b, predicate]) = self.operands(operands)?;
                self.push(Action::Select, of, to, [a, b, predicate]);
                Ok(())
            }
            name => self.calculate(name, modifiers, operands),
        }
    }

    fn plain(&mut self, action: Action) -> Result<(), String> {
        self.push(action, Type::Predicate, 0, [0; 3]);
        Ok(())
    }

    /// The registers of operands that are words: the written ones, then the read ones.
    pub(super) fn operands<const TO: usize, const FROM: usize>(
        &mut self,
        operands: &[Operand],
    ) -> Result<([u32; TO], [u32; FROM]), String> {
        if operands.len() != TO + FROM {
            return Err(format!("{} operands, it has {}", operands.len(), TO + FROM));
        }
        let mut words = operands.iter().map(|operand| match operand {
            Operand::Word(word) => Ok(word),
            _ => Err("an operand of another form".to_owned()),
        });
        let (mut to, mut from) = ([0; TO], [0; FROM]);
        for register in &mut to {
            *register = self.register(words.next().ok_or("too few operands")??)?;
        }
        for register in &mut from {
            *register = self.value(words.next().ok_or("too few operands")??)?;
        }
        Ok((to, from))
    }

    fn calculate(
        &mut self,
        name: &str,
        mut modifiers: Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), String> {
        use Operation::*;
        // The lower half of a product, the upper half, or all of it.
        let part = modifiers.take(|word| ["lo", "hi", "wide"].into_iter().find(|part| *part == word));
        let shift = name == "bfind" && modifiers.has("shiftamt");
        let operation = match (name, part) {
            ("bfind", None) if shift => HighestBitShift,
            ("bfind", None) => HighestBit,
            ("mov", None) => Move,
            ("not", None) => Not,
            ("neg", None) => Negate,
            ("abs", None) => Absolute,
            ("add", None) if modifiers.has("rz") => AddToZero,
            ("add", None) => Add,
            ("sub", None) => Subtract,
            ("mul", None | Some("lo")) => Multiply,
            ("mul", Some("hi")) => MultiplyHigh,
            ("mul", _) => MultiplyWide,
            ("fma", None) if modifiers.has("rm") => MultiplyAddDown,
            ("fma", None) if modifiers.has("rz") => MultiplyAddToZero,
            ("fma", None) | ("mad", None | Some("lo")) => MultiplyAdd,
            ("mad", Some("hi")) => MultiplyHighAdd,
            ("mad", _) => MultiplyWideAdd,
            ("div", None) => Divide,
            ("rem", None) => Remainder,
            ("min", None) => Minimum,
            ("max", None) => Maximum,
            ("and", None) => And,
            ("or", None) => Or,
            ("xor", None) => Xor,
            ("shl", None) => ShiftLeft,
            ("shr", None) => ShiftRight,
            ("sqrt", None) => Root,
            ("rcp", None) => Reciprocal,
            ("popc", None) => CountOnes,
            ("clz", None) => CountZeros,
            ("brev", None) => Reverse,
            ("ex2", None) => Power,
            ("lg2", None) => Logarithm,
            ("bfe", None) => Field,
            ("shf", None) if modifiers.has("l") && modifiers.has("wrap") => FunnelLeft,
            ("shf", None) if modifiers.has("r") && modifiers.has("wrap") => FunnelRight,
            _ => return Err("the instruction is not known".into()),
        };
        let of = modifiers.only()?;
        let (to, from) = match operation {
            Move | Not | Negate | Absolute | Root | Reciprocal | CountOnes | CountZeros | HighestBit
            | HighestBitShift | Reverse | Power | Logarithm => {
                let ([to], [a]) = self.operands(operands)?;
                (to, [a, 0, 0])
            }
            MultiplyAdd | MultiplyAddDown | MultiplyAddToZero | MultiplyHighAdd | MultiplyWideAdd | Field
            | FunnelLeft | FunnelRight => {
                let ([to], from) = self.operands(operands)?;
                (to, from)
            }
            _ => {
                let ([to], [a, b]) = self.operands(operands)?;
                (to, [a, b, 0])
            }
        };
        self.push(Action::Calculate(operation), of, to, from);
        Ok(())
    }

    fn compare(&mut self, mut modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let comparison = modifiers.take(comparison).ok_or("the comparison is not known")?;
        let logic = modifiers.take(|word| {
            Some(match word {
                "and" => Logic::And,
                "or" => Logic::Or,
                "xor" => Logic::Xor,
                _ => return None,
            })
        });
        let of = modifiers.only()?;
        let (to, from) = if logic.is_some() {
            let ([to], from) = self.operands(operands)?;
            (to, from)
        } else {
            let ([to], [a, b]) = self.operands(operands)?;
            (to, [a, b, 0])
        };
        self.push(Action::Compare(comparison, logic), of, to, from);
        Ok(())
    }

    fn convert(&mut self, mut modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let rounds = modifiers.take(rounding).unwrap_or(Rounding::None);
        let rounds = if modifiers.has("sat") { Rounding::Unit } else { rounds };
        modifiers.end()?;
        let [to_type, from_type] = modifiers.types[..] else { return Err("it has not two types".into()) };
        if rounds == Rounding::None && from_type.is_float() && !to_type.is_float() {
            return Err("how it rounds is not said".into());
        }
        let ([to], [from]) = self.operands(operands)?;
        self.push(Action::Convert(from_type, rounds), to_type, to, [from, 0, 0]);
        Ok(())
    }

    /// Converts between addresses of a space and generic addresses.
    fn window(&mut self, mut modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let back = modifiers.has("to");
        let space = modifiers.take(space).ok_or("the space is not known")?;
        let of = modifiers.only()?;
        let ([to], [from]) = self.operands(operands)?;
        let window = match space {
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            Space::Constant => CONSTANT_WINDOW,
            _ => 0,
        };
        let window = self.constant(window);
        let operation = if back { Operation::Subtract } else { Operation::Add };
        self.push(Action::Calculate(operation), of, to, [from, window, 0]);
        Ok(())
    }

    /// The space of an access, its values' type, and its address.
    fn access(
        &mut self,
        mut modifiers: Modifiers<'_>,
        address: &Operand,
        values: usize,
    ) -> Result<(Space, Type, u32, i64), String> {
        let space = modifiers.take(space).unwrap_or(Space::Generic);
        let count = modifiers.take(|word| match word {
            "v2" => Some(2),
            "v4" => Some(4),
            _ => None,
        });
        if count.unwrap_or(1) != values {
            return Err(format!("{values} values"));
        }
        let of = modifiers.only()?;
        let Operand::Address(base, offset) = address else { return Err("an address expected".into()) };
        let (register, offset) = self.address(base, *offset, space)?;
        Ok((space, of, register, offset))
    }

    fn load(&mut self, modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let [values, address] = operands else { return Err("two operands expected".into()) };
        let words = several(values)?;
        let (space, of, register, mut offset) = self.access(modifiers, address, words.len())?;
        for word in words {
            let to = self.register(word)?;
            // A vector may be loaded over its own address, so the address is copied first.
            if words.len() > 1 && to == register {
                return Err("the address is overwritten".into());
            }
            self.push(Action::Load(space, offset), of, to, [register, 0, 0]);
            offset = offset.wrapping_add(of.bytes() as i64);
        }
        Ok(())
    }

    fn store(&mut self, modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let [address, values] = operands else { return Err("two operands expected".into()) };
        let words = several(values)?;
        let (space, of, register, mut offset) = self.access(modifiers, address, words.len())?;
        for word in words {
            let value = self.value(word)?;
            self.push(Action::Store(space, offset), of, 0, [register, value, 0]);
            offset = offset.wrapping_add(of.bytes() as i64);
        }
        Ok(())
    }

    fn update(
        &mut self,
        mut modifiers: Modifiers<'_>,
        operands: &[Operand],
        answers: bool,
    ) -> Result<(), String> {
        let update = modifiers.take(update).ok_or("the operation is not known")?;
        let (to, operands) = match operands {
            [Operand::Word(to), rest @ ..] if answers => (Some(self.register(to)?), rest),
            rest => (None, rest),
        };
        let (address, values) = operands.split_first().ok_or("an address expected")?;
        let needed = if update == Update::CompareExchange { 2 } else { 1 };
        if values.len() != needed {
            return Err(format!("{needed} values expected"));
        }
        let (space, of, register, offset) = self.access(modifiers, address, 1)?;
        if !matches!(of.bits(), 32 | 64) || (of.is_float() && update != Update::Add) {
            return Err("not of this type".into());
        }
        let mut from = [register, 0, 0];
        for (place, value) in from[1..].iter_mut().zip(values) {
            let [word] = several(value)? else { return Err("one value expected".into()) };
            *place = self.value(word)?;
        }
        // An atomic without a result writes to an unused register.
        let to = to.unwrap_or_else(|| self.nowhere());
        self.push(Action::Update(space, offset, update), of, to, from);
        Ok(())
    }
}

pub(super) fn several(operand: &Operand) -> Result<&[String], String> {
    match operand {
        Operand::Word(word) => Ok(core::slice::from_ref(word)),
        Operand::Several(words) => Ok(words),
        Operand::Two(..) | Operand::Address(..) => Err("a value expected".into()),
    }
}

fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "const" => Space::Constant,
        "param" => Space::Parameter,
        _ => return None,
    })
}

fn update(word: &str) -> Option<Update> {
    Some(match word {
        "add" => Update::Add,
        "min" => Update::Minimum,
        "max" => Update::Maximum,
        "and" => Update::And,
        "or" => Update::Or,
        "xor" => Update::Xor,
        "exch" => Update::Exchange,
        "cas" => Update::CompareExchange,
        _ => return None,
    })
}

fn comparison(word: &str) -> Option<Comparison> {
    // Comparisons of unsigned integers, and of floats that may be NaN, have words of their own.
    let (less, equal, greater, unordered) = match word {
        "eq" => (false, true, false, false),
        "ne" => (true, false, true, false),
        "lt" | "lo" => (true, false, false, false),
        "le" | "ls" => (true, true, false, false),
        "gt" | "hi" => (false, false, true, false),
        "ge" | "hs" => (false, true, true, false),
        "equ" => (false, true, false, true),
        "neu" => (true, false, true, true),
        "ltu" => (true, false, false, true),
        "leu" => (true, true, false, true),
        "gtu" => (false, false, true, true),
        "geu" => (false, true, true, true),
        "num" => (true, true, true, false),
        "nan" => (false, false, false, true),
        _ => return None,
    };
    Some(Comparison { less, equal, greater, unordered })
}

/// The rounding of a conversion to an integer.
fn rounding(word: &str) -> Option<Rounding> {
    Some(match word {
        "rni" => Rounding::Nearest,
        "rzi" => Rounding::Zero,
        "rmi" => Rounding::Down,
        "rpi" => Rounding::Up,
        _ => return None,
    })
}
