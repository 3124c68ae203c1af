//! Instructions that the lanes of a warp execute together.

use super::instruction::Modifiers;
use super::lower::{Lowering, Operand};
use super::program::{Action, Collective, Operation, Register, Shuffle, Together, Vote};
use super::types::Type;

impl Lowering<'_> {
    /// The steps of a collective instruction.
    pub(super) fn together(
        &mut self,
        name: &str,
        mut modifiers: Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), String> {
        // The instructions of older devices name no lanes, so the set of participants is unknown.
        if name != "activemask" && !modifiers.has("sync") {
            return Err("not without `.sync`".into());
        }
        let none = self.nowhere();
        let (what, of, to, also, from, lanes) = match (name, operands) {
            ("activemask", [to]) => {
                let (to, _) = self.results(to, false)?;
                (Collective::Active, modifiers.only()?, to, none, [none; 3], none)
            }
            ("bar.warp", [lanes]) => {
                modifiers.take(|word| (word == "warp").then_some(()));
                modifiers.end()?;
                (Collective::Wait, Type::Predicate, none, none, [none; 3], self.read(lanes)?)
            }
            ("shfl", [to, value, lane, bounds, lanes]) => {
                let shuffle = modifiers.take(shuffle).ok_or("the way is not known")?;
                let of = modifiers.only()?;
                let (to, also) = self.results(to, true)?;
                let from = [self.read(value)?, self.read(lane)?, self.read(bounds)?];
                (Collective::Shuffle(shuffle), of, to, also, from, self.read(lanes)?)
            }
            ("vote", [to, value, lanes]) => {
                let vote = modifiers.take(vote).ok_or("the question is not known")?;
                let of = modifiers.only()?;
                if of.bits() != if vote == Vote::Ballot { 32 } else { 1 } {
                    return Err("not of this type".into());
                }
                let (to, _) = self.results(to, false)?;
                let from = [self.predicate(value)?, none, none];
                (Collective::Vote(vote), Type::Predicate, to, none, from, self.read(lanes)?)
            }
            ("redux", [to, value, lanes]) => {
                let operation = modifiers.take(reduction).ok_or("the operation is not known")?;
                let of = modifiers.only()?;
                if of.bits() != 32 || of.is_float() {
                    return Err("not of this type".into());
                }
                let (to, _) = self.results(to, false)?;
                let from = [self.read(value)?, none, none];
                (Collective::Reduce(operation), of, to, none, from, self.read(lanes)?)
            }
            ("match", [to, value, lanes]) => {
                let all = modifiers.has("all");
                if !all && !modifiers.has("any") {
                    return Err("the question is not known".into());
                }
                let of = modifiers.only()?;
                let (to, also) = self.results(to, all)?;
                let from = [self.read(value)?, none, none];
                let what = if all { Collective::MatchAll } else { Collective::MatchAny };
                (what, of, to, also, from, self.read(lanes)?)
            }
            _ => return Err(format!("{} operands", operands.len())),
        };
        self.push(Action::Together(Together { what, lanes, also }), of, to, from);
        Ok(())
    }

    /// The registers of the results. An optional second result is a predicate.
    fn results(&mut self, operand: &Operand, two: bool) -> Result<(Register, Register), String> {
        match operand {
            Operand::Word(word) => Ok((self.register(word)?, self.nowhere())),
            Operand::Two(word, predicate) if two => Ok((self.register(word)?, self.register(predicate)?)),
            _ => Err("a register expected".into()),
        }
    }

    fn read(&mut self, operand: &Operand) -> Result<Register, String> {
        let Operand::Word(word) = operand else { return Err("a value expected".into()) };
        self.value(word)
    }

    /// A predicate or its negation.
    fn predicate(&mut self, operand: &Operand) -> Result<Register, String> {
        let Operand::Word(word) = operand else { return Err("a predicate expected".into()) };
        let Some(word) = word.strip_prefix('!') else { return self.value(word) };
        let (from, to) = (self.register(word)?, self.temporary(0));
        self.push(Action::Calculate(Operation::Not), Type::Predicate, to, [from, 0, 0]);
        Ok(to)
    }
}

fn shuffle(word: &str) -> Option<Shuffle> {
    Some(match word {
        "up" => Shuffle::Up,
        "down" => Shuffle::Down,
        "bfly" => Shuffle::Butterfly,
        "idx" => Shuffle::Index,
        _ => return None,
    })
}

fn vote(word: &str) -> Option<Vote> {
    Some(match word {
        "all" => Vote::All,
        "any" => Vote::Any,
        "uni" => Vote::Uniform,
        "ballot" => Vote::Ballot,
        _ => return None,
    })
}

fn reduction(word: &str) -> Option<Operation> {
    Some(match word {
        "add" => Operation::Add,
        "min" => Operation::Minimum,
        "max" => Operation::Maximum,
        "and" => Operation::And,
        "or" => Operation::Or,
        "xor" => Operation::Xor,
        _ => return None,
    })
}
