//! Lowers functions to steps, one instruction at a time.

use alloc::collections::BTreeMap;

use super::op;
use super::operations::{atomic, calculation, extended};
use super::program::{Moves, Reader, Slot, Step, Value};
use super::types::{Scalar, Type, storage};
use super::words::Instruction;

/// A call: its step, the function, and the arguments.
type Call<'m> = (usize, u32, &'m [u32]);

/// The state while a function is read. Jumps first name ids, and steps once all blocks are placed.
#[derive(Default)]
struct Function<'m> {
    returns: u32,
    /// The current block.
    block: u32,
    /// The phis of each block: the value, and its source for each predecessor.
    phis: BTreeMap<u32, Vec<(Value, &'m [u32])>>,
    /// Steps that jump to blocks, and the block of each step.
    ways: Vec<(usize, u32)>,
    calls: Vec<Call<'m>>,
}

/// Reads all functions after the declarations.
pub(super) fn functions<'m>(reader: &mut Reader, code: &[Instruction<'m>]) -> Result<(), String> {
    let mut calls = Vec::new();
    for function in code.split_inclusive(|one| one.opcode == op::FUNCTION_END) {
        let known = |error| {
            let id = function.first().and_then(|first| first.operands.get(1)).copied().unwrap_or(0);
            format!("function {id}: {error}")
        };
        calls.extend(one(reader, function).map_err(known)?);
    }
    // A function may call one that follows it.
    for (place, function, arguments) in calls {
        let (start, parameters) = reader
            .starts
            .get(&function)
            .zip(reader.parameters.get(&function))
            .ok_or_else(|| format!("function {function} is called and has no body"))?;
        let (start, parameters) = (*start, parameters.clone());
        if parameters.len() != arguments.len() {
            return Err(format!(
                "function {function} takes {}, is given {}",
                parameters.len(),
                arguments.len()
            ));
        }
        let mut moves = Moves::default();
        for (to, from) in parameters.iter().zip(arguments) {
            let from = reader.value(*from)?;
            moves.between(reader, *to, from)?;
        }
        if let Step::Call { target, moves: to, .. } = &mut reader.module.steps[place] {
            (*target, *to) = (start, moves);
        }
    }
    Ok(())
}

impl Moves {
    fn between(&mut self, reader: &Reader, to: Value, from: Value) -> Result<(), String> {
        let (lanes, given) = (reader.types.value(to.of)?.1, reader.types.value(from.of)?.1);
        if lanes != given {
            return Err(format!("a value of {given} lanes for one of {lanes}"));
        }
        self.0.extend((0..lanes).map(|lane| (to.slot + lane, from.slot + lane)));
        Ok(())
    }
}

/// Reads one function. Returns its calls, which need the places of other functions.
fn one<'m>(reader: &mut Reader, code: &[Instruction<'m>]) -> Result<Vec<Call<'m>>, String> {
    let mut function = Function::default();
    // A phi may use a value before its definition, so all slots are made first.
    for instruction in code {
        results(reader, instruction)?;
    }
    for instruction in code {
        function.step(reader, instruction).map_err(|error| match instruction.opcode {
            opcode if error.contains(&format!("instruction {opcode} ")) => error,
            opcode => format!("instruction {opcode}: {error}"),
        })?;
    }
    function.connect(reader)?;
    Ok(function.calls)
}

/// Makes the slots of an instruction's result.
fn results(reader: &mut Reader, instruction: &Instruction<'_>) -> Result<(), String> {
    let has_result = matches!(
        instruction.opcode,
        op::UNDEF
            | op::EXT_INST
            | op::FUNCTION_PARAMETER
            | op::FUNCTION_CALL
            | op::VARIABLE
            | op::LOAD
            | op::ACCESS_CHAIN..=op::PTR_ACCESS_CHAIN
            | op::IN_BOUNDS_PTR_ACCESS_CHAIN
            | op::VECTOR_SHUFFLE..=op::COPY_OBJECT
            | op::CONVERT_F_TO_U..=op::F_CONVERT
            | op::CONVERT_PTR_TO_U
            | op::CONVERT_U_TO_PTR..=op::BITCAST
            | op::S_NEGATE..=op::F_REM
            | op::UNORDERED..=op::F_UNORD_GREATER_EQUAL
            | op::SHIFT_RIGHT_LOGICAL..=op::NOT
            | op::ATOMIC_LOAD
            | op::ATOMIC_EXCHANGE..=op::ATOMIC_XOR
            | op::PHI
    );
    if !has_result {
        return Ok(());
    }
    let (of, id) = (instruction.at(0)?, instruction.at(1)?);
    if reader.types.get(of)? == &Type::Void {
        return Ok(());
    }
    reader.define(id, of).map(drop)
}

impl<'m> Function<'m> {
    #[allow(clippy::too_many_lines, reason = "one arm an instruction")]
    fn step(&mut self, reader: &mut Reader, instruction: &Instruction<'m>) -> Result<(), String> {
        let at = |place: usize| instruction.at(place);
        let step = match instruction.opcode {
            // No effect: debugging, merges of structured control flow, lifetimes of variables.
            op::NOP
            | op::UNDEF
            | op::LINE
            | op::FUNCTION_END
            | op::MEMORY_BARRIER
            | op::LOOP_MERGE
            | op::SELECTION_MERGE
            | op::LIFETIME_START
            | op::LIFETIME_STOP
            | op::NO_LINE => return Ok(()),
            op::FUNCTION => {
                self.returns = at(0)?;
                let id = at(1)?;
                reader.parameters.insert(id, Vec::new());
                // The first block is the start. A function without blocks has none.
                self.block = id;
                return Ok(());
            }
            op::FUNCTION_PARAMETER => {
                let value = reader.value(at(1)?)?;
                reader.parameters.entry(self.block).or_default().push(value);
                return Ok(());
            }
            op::LABEL => {
                let here = reader.module.steps.len() as u32;
                // Until the first block, the name is the function's.
                if reader.parameters.contains_key(&self.block) {
                    reader.starts.insert(self.block, here);
                }
                self.block = at(0)?;
                reader.starts.insert(self.block, here);
                return Ok(());
            }
            op::PHI => {
                let value = reader.value(at(1)?)?;
                let from = instruction.operands.get(2..).unwrap_or(&[]);
                self.phis.entry(self.block).or_default().push((value, from));
                return Ok(());
            }
            op::VARIABLE => variable(reader, instruction)?,
            op::FUNCTION_CALL => {
                let (place, function) = (reader.module.steps.len(), at(2)?);
                self.calls.push((place, function, instruction.operands.get(3..).unwrap_or(&[])));
                let to = reader.value(at(1)?).map_or(0, |value| value.slot);
                Step::Call { target: 0, moves: Moves::default(), to }
            }
            op::LOAD => load(reader, instruction)?,
            op::STORE => {
                let (address, from) = (reader.value(at(0)?)?, reader.value(at(1)?)?);
                let (of, lanes) = reader.types.value(from.of)?;
                let alignment = alignment(instruction.from(2));
                Step::Store {
                    address: address.slot,
                    from: from.slot,
                    bytes: of.bytes() as u8,
                    alignment,
                    lanes,
                }
            }
            op::ACCESS_CHAIN
            | op::IN_BOUNDS_ACCESS_CHAIN
            | op::PTR_ACCESS_CHAIN
            | op::IN_BOUNDS_PTR_ACCESS_CHAIN => address(reader, instruction)?,
            op::COMPOSITE_EXTRACT => {
                let (to, from, lane) = (reader.value(at(1)?)?, reader.value(at(2)?)?, at(3)?);
                if lane >= reader.types.value(from.of)?.1 {
                    return Err(format!("lane {lane} of value {}", at(2)?));
                }
                Step::Move { to: to.slot, from: from.slot + lane, lanes: 1 }
            }
            op::COMPOSITE_INSERT => {
                let (to, object, from, lane) =
                    (reader.value(at(1)?)?, reader.value(at(2)?)?, reader.value(at(3)?)?, at(4)?);
                let lanes = reader.types.value(to.of)?.1;
                if lane >= lanes {
                    return Err(format!("lane {lane} of value {}", at(3)?));
                }
                reader.module.steps.push(Step::Move { to: to.slot, from: from.slot, lanes });
                Step::Move { to: to.slot + lane, from: object.slot, lanes: 1 }
            }
            op::COPY_OBJECT
            | op::CONVERT_PTR_TO_U
            | op::CONVERT_U_TO_PTR
            | op::PTR_CAST_TO_GENERIC
            | op::GENERIC_CAST_TO_PTR
            | op::BITCAST => {
                let (to, from) = (reader.value(at(1)?)?, reader.value(at(2)?)?);
                let (a, b) = (reader.types.value(to.of)?, reader.types.value(from.of)?);
                if (a.0.bits(), a.1) != (b.0.bits(), b.1) {
                    return Err(format!("{b:?} taken for {a:?}"));
                }
                Step::Move { to: to.slot, from: from.slot, lanes: a.1 }
            }
            op::SELECT => {
                let (to, condition) = (reader.value(at(1)?)?, reader.value(at(2)?)?);
                let (yes, no) = (reader.value(at(3)?)?, reader.value(at(4)?)?);
                if reader.types.value(condition.of)? != (Scalar::Bool, 1) {
                    return Err("a condition of several lanes is not known".to_owned());
                }
                let lanes = reader.types.value(to.of)?.1;
                Step::Select { to: to.slot, condition: condition.slot, yes: yes.slot, no: no.slot, lanes }
            }
            op::EXT_INST => return extended(reader, instruction),
            op::CONTROL_BARRIER => Step::Barrier,
            op::ATOMIC_LOAD..=op::ATOMIC_XOR => atomic(reader, instruction)?,
            op::BRANCH => {
                self.ways.push((reader.module.steps.len(), self.block));
                Step::Jump { target: at(0)?, moves: Moves::default() }
            }
            op::BRANCH_CONDITIONAL => {
                self.ways.push((reader.module.steps.len(), self.block));
                Step::Branch {
                    condition: reader.value(at(0)?)?.slot,
                    yes: at(1)?,
                    yes_moves: Moves::default(),
                    no: at(2)?,
                    no_moves: Moves::default(),
                }
            }
            op::RETURN => Step::Return,
            op::RETURN_VALUE => {
                let from = reader.value(at(0)?)?;
                Step::ReturnValue { from: from.slot, lanes: reader.types.value(self.returns)?.1 }
            }
            op::UNREACHABLE => Step::Unreachable,
            opcode => calculation(reader, instruction)?
                .ok_or_else(|| format!("instruction {opcode} is not known"))?,
        };
        reader.module.steps.push(step);
        Ok(())
    }

    /// Replaces block ids by steps, and phis by moves on the jumps.
    fn connect(&self, reader: &mut Reader) -> Result<(), String> {
        for (place, from) in &self.ways {
            let mut step = reader.module.steps[*place].clone();
            match &mut step {
                Step::Jump { target, moves } => (*target, *moves) = self.way(reader, *from, *target)?,
                Step::Branch { yes, yes_moves, no, no_moves, .. } => {
                    (*yes, *yes_moves) = self.way(reader, *from, *yes)?;
                    (*no, *no_moves) = self.way(reader, *from, *no)?;
                }
                _ => {}
            }
            reader.module.steps[*place] = step;
        }
        Ok(())
    }

    fn way(&self, reader: &Reader, from: u32, to: u32) -> Result<(u32, Moves), String> {
        let place = *reader.starts.get(&to).ok_or_else(|| format!("a branch to {to}, which is no block"))?;
        let mut moves = Moves::default();
        for (value, sources) in self.phis.get(&to).into_iter().flatten() {
            let source = sources.chunks_exact(2).find(|pair| pair[1] == from);
            let source = source.ok_or_else(|| format!("block {to} says nothing of the way from {from}"))?;
            moves.between(reader, *value, reader.value(source[0])?)?;
        }
        Ok((place, moves))
    }
}

/// The alignment that an access promises, or 1.
fn alignment(operands: &[u32]) -> u32 {
    const ALIGNED: u32 = 2;
    match operands {
        [mask, alignment, ..] if mask & ALIGNED != 0 => *alignment,
        _ => 1,
    }
}

fn variable(reader: &mut Reader, instruction: &Instruction<'_>) -> Result<Step, String> {
    let value = reader.value(instruction.at(1)?)?;
    let &Type::Pointer { storage: storage::FUNCTION, to } = reader.types.get(value.of)? else {
        return Err("a variable that is not the function's".to_owned());
    };
    if instruction.operands.len() > 3 {
        return Err("a variable with a value from the start is not known".to_owned());
    }
    let (bytes, alignment) = reader.types.layout(to)?;
    let offset = reader.module.private_bytes.next_multiple_of(alignment);
    reader.module.private_bytes = offset.checked_add(bytes).ok_or("a variable that is too large")?;
    Ok(Step::Private { to: value.slot, offset })
}

fn load(reader: &Reader, instruction: &Instruction<'_>) -> Result<Step, String> {
    let (to, pointer) = (reader.value(instruction.at(1)?)?, instruction.at(2)?);
    let (of, lanes) = reader.types.value(to.of)?;
    if let Some(number) = reader.built_in.get(&pointer) {
        return Ok(Step::BuiltIn { to: to.slot, number: *number, lanes });
    }
    let address = reader.value(pointer)?.slot;
    let alignment = alignment(instruction.from(3));
    Ok(Step::Load { to: to.slot, address, bytes: of.bytes() as u8, alignment, lanes })
}

/// `OpAccessChain` and related instructions. Those for arrays (`Ptr`) start with an index of whole
/// elements.
fn address(reader: &Reader, instruction: &Instruction<'_>) -> Result<Step, String> {
    let (to, base) = (reader.value(instruction.at(1)?)?, reader.value(instruction.at(2)?)?);
    let &Type::Pointer { to: mut of, .. } = reader.types.get(base.of)? else {
        return Err(format!("value {} is no pointer", instruction.at(2)?));
    };
    let (mut constant, mut indices): (u64, Vec<(Slot, Scalar, u64)>) = (0, Vec::new());
    let mut index = |reader: &Reader, id: u32, bytes: u64| -> Result<(), String> {
        let value = reader.value(id)?;
        indices.push((value.slot, reader.types.value(value.of)?.0, bytes));
        Ok(())
    };
    let mut chain = instruction.from(3);
    if let (op::PTR_ACCESS_CHAIN | op::IN_BOUNDS_PTR_ACCESS_CHAIN, [first, rest @ ..]) =
        (instruction.opcode, chain)
    {
        index(reader, *first, reader.types.layout(of)?.0)?;
        chain = rest;
    }
    for id in chain {
        of = match reader.types.get(of)? {
            Type::Array { of, .. } | Type::Vector { of, .. } => {
                index(reader, *id, reader.types.layout(*of)?.0)?;
                *of
            }
            Type::Struct(_) => {
                // Constants name members, and their slots already hold the values.
                let number = reader.module.slots[reader.value(*id)?.slot as usize];
                let (member, start) = reader.types.member(of, number)?;
                constant += start;
                member
            }
            other => return Err(format!("a part of the type {other:?}")),
        };
    }
    Ok(Step::Address { to: to.slot, base: base.slot, constant, indices })
}
