//! Instructions that become several steps.

use super::instruction::{Modifiers, several};
use super::lower::{Lowering, Operand};
use super::program::{Action, Operation, Register};
use super::types::Type;

impl Lowering<'_> {
    fn step(&mut self, operation: Operation, of: Type, to: Register, a: Register, b: Register) {
        self.push(Action::Calculate(operation), of, to, [a, b, 0]);
    }

    /// `mov.b64 {%r1, %r2}, %rd1` and the reverse: the parts of a value, the lowest first.
    pub(super) fn parts(&mut self, modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let whole = Type::Unsigned(modifiers.only()?.bits());
        let [to, from] = operands else { return Err("two operands expected".into()) };
        let (targets, sources) = (several(to)?, several(from)?);
        let count = targets.len().max(sources.len()) as u32;
        let part = Type::Unsigned(whole.bits() / count);
        if targets.len().min(sources.len()) != 1 || part.bits() * count != whole.bits() || part.bits() < 8 {
            return Err("not in such parts".into());
        }
        if let [target] = targets {
            // Assembles in a temporary register, because the target may also be a source.
            let (target, sum, next) = (self.register(target)?, self.temporary(0), self.temporary(1));
            let (zero, low) = (self.constant(0), self.constant(part.unsigned(u64::MAX)));
            self.step(Operation::Move, whole, sum, zero, 0);
            for (place, source) in sources.iter().enumerate() {
                let source = self.value(source)?;
                let distance = self.constant(place as u64 * u64::from(part.bits()));
                self.step(Operation::And, whole, next, source, low);
                self.step(Operation::ShiftLeft, whole, next, next, distance);
                self.step(Operation::Or, whole, sum, sum, next);
            }
            self.step(Operation::Move, whole, target, sum, 0);
            return Ok(());
        }
        let whole_value = self.value(&sources[0])?;
        let source = self.temporary(0);
        self.step(Operation::Move, whole, source, whole_value, 0);
        for (place, target) in targets.iter().enumerate() {
            let target = self.register(target)?;
            let distance = self.constant(place as u64 * u64::from(part.bits()));
            self.step(Operation::ShiftRight, whole, target, source, distance);
        }
        Ok(())
    }

    /// `bfi.b32 d, a, b, place, count`: copies the `count` lowest bits of `a` to bit `place` of
    /// `b`.
    pub(super) fn insert(&mut self, modifiers: Modifiers<'_>, operands: &[Operand]) -> Result<(), String> {
        let of = Type::Unsigned(modifiers.only()?.bits());
        let ([to], [a, b, place, count]) = self.operands(operands)?;
        let [mask, bits, distance] = [0, 1, 2].map(|number| self.temporary(number));
        let [one, byte] = [1, 0xFF].map(|value| self.constant(value));
        self.step(Operation::And, Type::Unsigned(32), distance, count, byte);
        self.step(Operation::ShiftLeft, of, mask, one, distance);
        self.step(Operation::Subtract, of, mask, mask, one);
        self.step(Operation::And, Type::Unsigned(32), distance, place, byte);
        self.step(Operation::ShiftLeft, of, mask, mask, distance);
        self.step(Operation::ShiftLeft, of, bits, a, distance);
        self.step(Operation::And, of, bits, bits, mask);
        self.step(Operation::Not, of, mask, mask, 0);
        self.step(Operation::And, of, mask, mask, b);
        self.step(Operation::Or, of, to, mask, bits);
        Ok(())
    }
}
