//! A parsed module: steps over numbered slots, and the start of each kernel.

use alloc::collections::BTreeMap;
use alloc::ffi::CString;

use super::arithmetic::{Binary, Unary};
use super::lower;
use super::op;
use super::types::{Scalar, Type, Types, storage};
use super::words::{self, Instruction};

/// A slot of 64 bits. A value of several lanes uses consecutive slots.
pub(super) type Slot = u32;

/// Simultaneous moves from slot to slot: on a jump between two blocks, or into a function's
/// parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves(pub(super) Vec<(Slot, Slot)>);

/// One step of a work-item.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Move {
        to: Slot,
        from: Slot,
        lanes: u32,
    },
    Binary {
        operation: Binary,
        of: Scalar,
        to: Slot,
        a: Slot,
        b: Slot,
        lanes: u32,
    },
    Unary {
        operation: Unary,
        from: Scalar,
        of: Scalar,
        to: Slot,
        a: Slot,
        lanes: u32,
    },
    /// The condition has one lane.
    Select {
        to: Slot,
        condition: Slot,
        yes: Slot,
        no: Slot,
        lanes: u32,
    },
    Load {
        to: Slot,
        address: Slot,
        bytes: u8,
        alignment: u32,
        lanes: u32,
    },
    Store {
        address: Slot,
        from: Slot,
        bytes: u8,
        alignment: u32,
        lanes: u32,
    },
    BuiltIn {
        to: Slot,
        number: u32,
        lanes: u32,
    },
    /// The address of a variable: an offset into local or private memory.
    Local {
        to: Slot,
        offset: u64,
    },
    Private {
        to: Slot,
        offset: u64,
    },
    /// A base, a constant, and scaled signed indices.
    Address {
        to: Slot,
        base: Slot,
        constant: u64,
        indices: Vec<(Slot, Scalar, u64)>,
    },
    /// The result is the previous value.
    Atomic {
        operation: Atomic,
        of: Scalar,
        to: Slot,
        address: Slot,
        value: Slot,
        expected: Slot,
    },
    Jump {
        target: u32,
        moves: Moves,
    },
    Branch {
        condition: Slot,
        yes: u32,
        yes_moves: Moves,
        no: u32,
        no_moves: Moves,
    },
    Call {
        target: u32,
        moves: Moves,
        to: Slot,
    },
    Return,
    ReturnValue {
        from: Slot,
        lanes: u32,
    },
    Barrier,
    Unreachable,
}

/// The value that an atomic operation writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Atomic {
    Load,
    Store,
    Exchange,
    CompareExchange,
    Of(Binary),
}

/// The argument that a kernel's parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// A pointer to memory of the caller.
    Pointer,
    /// Local memory, whose size the launch gives.
    Local,
    /// A value of that many bytes.
    Value(usize),
    /// A structure of that many bytes, passed by a pointer.
    Structure(usize),
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: CString,
    pub(crate) parameters: Vec<Parameter>,
    /// The first slot of each parameter, and the bytes of one lane.
    pub(super) slots: Vec<(Slot, usize)>,
    /// The first step.
    pub(super) start: u32,
    /// The only size of its groups, X first.
    pub(crate) required_group: Option<[u32; 3]>,
}

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) entries: Vec<Entry>,
    /// Bytes of local memory of the module's own variables.
    pub(crate) local_bytes: u64,
    /// Bytes of private memory of all functions' variables.
    pub(crate) private_bytes: u64,
    pub(super) steps: Vec<Step>,
    /// The initial slots: constants and zeros.
    pub(super) slots: Vec<u64>,
}

/// A value's first slot and its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) slot: Slot,
    pub(super) of: u32,
}

/// The state while a module is read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) module: Module,
    pub(super) types: Types,
    pub(super) values: BTreeMap<u32, Value>,
    /// Built-in variables with their numbers.
    pub(super) built_in: BTreeMap<u32, u32>,
    /// Instruction sets that are OpenCL's.
    pub(super) extended: Vec<u32>,
    /// The first steps of the functions and blocks read so far.
    pub(super) starts: BTreeMap<u32, u32>,
    /// The parameters of the functions read so far.
    pub(super) parameters: BTreeMap<u32, Vec<Value>>,
    /// Variables outside functions: the step that computes each address runs at the start of each
    /// kernel.
    pub(super) globals: Vec<Step>,
    /// Parameters that are structures passed by value.
    by_value: Vec<u32>,
}

impl Module {
    /// Reads a module. The error names an unknown part, as a compiler's log would.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (words, _) = words::read(bytes)?;
        let instructions = words::instructions(&words)?;
        let mut reader = Reader::default();
        let code =
            instructions.iter().position(|one| one.opcode == op::FUNCTION).unwrap_or(instructions.len());
        let (head, code) = instructions.split_at(code);
        for instruction in head {
            reader.declare(instruction)?;
        }
        lower::functions(&mut reader, code)?;
        for instruction in head {
            reader.entry(instruction)?;
        }
        Ok(reader.module)
    }
}

impl Reader {
    /// Makes a slot for each lane.
    pub(super) fn slot(&mut self, lanes: u32) -> Slot {
        let slot = self.module.slots.len() as Slot;
        self.module.slots.resize(slot as usize + lanes as usize, 0);
        slot
    }

    /// A new value.
    pub(super) fn define(&mut self, id: u32, of: u32) -> Result<Value, String> {
        let (_, lanes) = self.types.value(of)?;
        let value = Value { slot: self.slot(lanes), of };
        match self.values.insert(id, value) {
            None => Ok(value),
            Some(_) => Err(format!("id {id} is made twice")),
        }
    }

    pub(super) fn value(&self, id: u32) -> Result<Value, String> {
        self.values.get(&id).copied().ok_or_else(|| format!("id {id} is no value that is known"))
    }

    /// An instruction before the functions.
    fn declare(&mut self, instruction: &Instruction<'_>) -> Result<(), String> {
        let constant = |id: u32| Some(self.module.slots[self.values.get(&id)?.slot as usize]);
        if self.types.declare(instruction, constant)? {
            return Ok(());
        }
        match instruction.opcode {
            // Debugging names, sources, extensions without instructions, the memory model,
            // execution modes: read elsewhere or not needed.
            op::NOP
            | op::SOURCE..=op::LINE
            | op::EXTENSION
            | op::MEMORY_MODEL..=op::CAPABILITY
            | op::MEMBER_DECORATE
            | op::MODULE_PROCESSED => {}
            op::EXT_INST_IMPORT => {
                let (name, _) = instruction.name(1)?;
                if name != "OpenCL.std" {
                    return Err(format!("the set of instructions {name} is not known"));
                }
                self.extended.push(instruction.at(0)?);
            }
            op::CONSTANT_TRUE | op::CONSTANT_FALSE | op::CONSTANT | op::CONSTANT_NULL | op::UNDEF => {
                let value = self.define(instruction.at(1)?, instruction.at(0)?)?;
                let (of, lanes) = self.types.value(value.of)?;
                let bits = match instruction.opcode {
                    op::CONSTANT_TRUE => 1,
                    op::CONSTANT => {
                        let low = u64::from(instruction.at(2)?);
                        let high = if of.bits() == 64 { u64::from(instruction.at(3)?) << 32 } else { 0 };
                        // Narrow signed constants come sign-extended.
                        if of.bits() < 32 { low & ((1 << of.bits()) - 1) } else { low | high }
                    }
                    _ => 0,
                };
                for lane in 0..lanes {
                    self.module.slots[(value.slot + lane) as usize] = bits;
                }
            }
            op::CONSTANT_COMPOSITE => {
                let value = self.define(instruction.at(1)?, instruction.at(0)?)?;
                for (lane, part) in instruction.from(2).iter().enumerate() {
                    let part = self.value(*part)?;
                    self.module.slots[value.slot as usize + lane] = self.module.slots[part.slot as usize];
                }
            }
            op::VARIABLE => self.global(instruction)?,
            // Built-in variables, and structures by value.
            op::DECORATE => match (instruction.at(1)?, instruction.from(2)) {
                (11, [number, ..]) => drop(self.built_in.insert(instruction.at(0)?, *number)),
                (38, [2, ..]) => self.by_value.push(instruction.at(0)?),
                _ => {}
            },
            other => return Err(format!("instruction {other} in front of the functions is not known")),
        }
        Ok(())
    }

    /// A variable outside functions: built in, or local memory.
    fn global(&mut self, instruction: &Instruction<'_>) -> Result<(), String> {
        let (of, id) = (instruction.at(0)?, instruction.at(1)?);
        let &Type::Pointer { storage, to } = self.types.get(of)? else {
            return Err(format!("variable {id} is no pointer"));
        };
        match storage {
            storage::INPUT if self.built_in.contains_key(&id) => Ok(()),
            storage::WORKGROUP => {
                let (bytes, alignment) = self.types.layout(to)?;
                let offset = self.module.local_bytes.next_multiple_of(alignment);
                self.module.local_bytes =
                    offset.checked_add(bytes).ok_or_else(|| format!("variable {id} is too large"))?;
                let slot = self.define(id, of)?.slot;
                self.globals.push(Step::Local { to: slot, offset });
                Ok(())
            }
            other => Err(format!("variable {id} in storage class {other} outside of functions is not known")),
        }
    }

    /// An entry point or its required group size, once the functions are read.
    fn entry(&mut self, instruction: &Instruction<'_>) -> Result<(), String> {
        const KERNEL: u32 = 6;
        const LOCAL_SIZE: u32 = 17;
        match instruction.opcode {
            op::ENTRY_POINT => {
                let (model, function) = (instruction.at(0)?, instruction.at(1)?);
                if model != KERNEL {
                    return Err(format!("execution model {model} is not that of kernels"));
                }
                let (name, _) = instruction.name(2)?;
                let missing = || format!("kernel {name} is no function of the module");
                let body = *self.starts.get(&function).ok_or_else(missing)?;
                let values = self.parameters.get(&function).cloned().ok_or_else(missing)?;
                let parameters =
                    values.iter().map(|value| self.parameter(*value)).collect::<Result<_, _>>()?;
                let lane = |value: &Value| Ok((value.slot, self.types.value(value.of)?.0.bytes()));
                let slots = values.iter().map(lane).collect::<Result<_, String>>()?;
                let name = CString::new(name).map_err(|_| "a name with a NUL")?;
                // A kernel starts with the addresses of the module's variables.
                let start = self.module.steps.len() as u32;
                self.module.steps.extend(self.globals.iter().cloned());
                self.module.steps.push(Step::Jump { target: body, moves: Moves::default() });
                self.module.entries.push(Entry { name, parameters, slots, start, required_group: None });
                // Execution modes name the function.
                self.starts.insert(function, start);
            }
            op::EXECUTION_MODE if instruction.at(1)? == LOCAL_SIZE => {
                let start = self.starts.get(&instruction.at(0)?).copied();
                let size = [instruction.at(2)?, instruction.at(3)?, instruction.at(4)?];
                for entry in self.module.entries.iter_mut().filter(|entry| Some(entry.start) == start) {
                    entry.required_group = Some(size);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The argument that a parameter takes.
    fn parameter(&self, value: Value) -> Result<Parameter, String> {
        match *self.types.get(value.of)? {
            Type::Pointer { storage: storage::GLOBAL | storage::CONSTANT, .. } => Ok(Parameter::Pointer),
            Type::Pointer { storage: storage::WORKGROUP, .. } => Ok(Parameter::Local),
            Type::Pointer { storage: storage::FUNCTION, to } if self.is_by_value(value) => {
                Ok(Parameter::Structure(self.types.layout(to)?.0 as usize))
            }
            Type::Scalar(scalar) => Ok(Parameter::Value(scalar.bytes())),
            Type::Vector { .. } => Ok(Parameter::Value(self.types.layout(value.of)?.0 as usize)),
            ref other => Err(format!("a kernel's parameter of the type {other:?} is not known")),
        }
    }

    fn is_by_value(&self, value: Value) -> bool {
        self.by_value.iter().any(|id| self.values.get(id).is_some_and(|known| known.slot == value.slot))
    }
}
