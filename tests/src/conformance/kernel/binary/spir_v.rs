//! A SPIR-V module, word by word. Numbers are those of the SPIR-V specification, version 1.0,
//! section 3.

/// Instructions.
mod op {
    pub(super) const MEMORY_MODEL: u32 = 14;
    pub(super) const ENTRY_POINT: u32 = 15;
    pub(super) const CAPABILITY: u32 = 17;
    pub(super) const TYPE_VOID: u32 = 19;
    pub(super) const TYPE_INT: u32 = 21;
    pub(super) const TYPE_VECTOR: u32 = 23;
    pub(super) const TYPE_POINTER: u32 = 32;
    pub(super) const TYPE_FUNCTION: u32 = 33;
    pub(super) const FUNCTION: u32 = 54;
    pub(super) const FUNCTION_PARAMETER: u32 = 55;
    pub(super) const FUNCTION_END: u32 = 56;
    pub(super) const VARIABLE: u32 = 59;
    pub(super) const LOAD: u32 = 61;
    pub(super) const STORE: u32 = 62;
    pub(super) const IN_BOUNDS_PTR_ACCESS_CHAIN: u32 = 70;
    pub(super) const DECORATE: u32 = 71;
    pub(super) const COMPOSITE_EXTRACT: u32 = 81;
    pub(super) const U_CONVERT: u32 = 113;
    pub(super) const I_ADD: u32 = 128;
    pub(super) const LABEL: u32 = 248;
    pub(super) const RETURN: u32 = 253;
}

const MAGIC: u32 = 0x0723_0203;
const VERSION_1_0: u32 = 0x0001_0000;

const CAPABILITY_ADDRESSES: u32 = 4;
const CAPABILITY_KERNEL: u32 = 6;
const CAPABILITY_INT64: u32 = 11;
const PHYSICAL_64: u32 = 2;
const OPENCL: u32 = 2;
const EXECUTION_KERNEL: u32 = 6;
const DECORATION_BUILT_IN: u32 = 11;
const LOCAL_INVOCATION_ID: u32 = 27;
const GLOBAL_INVOCATION_ID: u32 = 28;
/// Storage classes.
const INPUT: u32 = 1;
const WORKGROUP: u32 = 4;
const CROSS_WORKGROUP: u32 = 5;
/// Memory operand, followed by the alignment.
const ALIGNED: u32 = 2;
const NO_CONTROL: u32 = 0;

/// Instructions one after the other, and the highest id so far.
struct Assembler {
    words: Vec<u32>,
    bound: u32,
}

impl Assembler {
    fn id(&mut self) -> u32 {
        self.bound += 1;
        self.bound
    }

    fn put(&mut self, opcode: u32, operands: &[u32]) {
        self.words.push((operands.len() as u32 + 1) << 16 | opcode);
        self.words.extend(operands);
    }

    /// An instruction whose result has no type of its own: the id comes first.
    fn define(&mut self, opcode: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        self.put(opcode, &[&[id], operands].concat());
        id
    }

    /// An instruction with a result of the type `of`.
    fn value(&mut self, opcode: u32, of: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        self.put(opcode, &[&[of, id], operands].concat());
        id
    }

    fn module(self) -> Vec<u32> {
        [vec![MAGIC, VERSION_1_0, 0, self.bound + 1, 0], self.words].concat()
    }
}

/// A name: UTF-8, a NUL, and zeros up to a whole word.
fn literal(name: &str) -> Vec<u32> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 4 + 1) * 4, 0);
    bytes.chunks(4).map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))).collect()
}

/// `kernel void put(global uint *a, uint add, local uint *lm) { a[i] = lm[l] = i + add; }` for item
/// `i`, which is `l` in its group.
pub(super) fn put() -> Vec<u32> {
    let mut code = Assembler { words: Vec::new(), bound: 0 };
    let (function, global_ids, local_ids) = (code.id(), code.id(), code.id());
    for capability in [CAPABILITY_ADDRESSES, CAPABILITY_KERNEL, CAPABILITY_INT64] {
        code.put(op::CAPABILITY, &[capability]);
    }
    code.put(op::MEMORY_MODEL, &[PHYSICAL_64, OPENCL]);
    let interface = [global_ids, local_ids];
    code.put(op::ENTRY_POINT, &[&[EXECUTION_KERNEL, function][..], &literal("put"), &interface].concat());
    code.put(op::DECORATE, &[global_ids, DECORATION_BUILT_IN, GLOBAL_INVOCATION_ID]);
    code.put(op::DECORATE, &[local_ids, DECORATION_BUILT_IN, LOCAL_INVOCATION_ID]);

    let void = code.define(op::TYPE_VOID, &[]);
    let uint = code.define(op::TYPE_INT, &[32, 0]);
    let ulong = code.define(op::TYPE_INT, &[64, 0]);
    let ids = code.define(op::TYPE_VECTOR, &[ulong, 3]);
    let input = code.define(op::TYPE_POINTER, &[INPUT, ids]);
    let global = code.define(op::TYPE_POINTER, &[CROSS_WORKGROUP, uint]);
    let local = code.define(op::TYPE_POINTER, &[WORKGROUP, uint]);
    let signature = code.define(op::TYPE_FUNCTION, &[void, global, uint, local]);
    code.put(op::VARIABLE, &[input, global_ids, INPUT]);
    code.put(op::VARIABLE, &[input, local_ids, INPUT]);

    code.put(op::FUNCTION, &[void, function, NO_CONTROL, signature]);
    let a = code.value(op::FUNCTION_PARAMETER, global, &[]);
    let add = code.value(op::FUNCTION_PARAMETER, uint, &[]);
    let lm = code.value(op::FUNCTION_PARAMETER, local, &[]);
    code.define(op::LABEL, &[]);
    let globals = code.value(op::LOAD, ids, &[global_ids]);
    let i = code.value(op::COMPOSITE_EXTRACT, ulong, &[globals, 0]);
    let locals = code.value(op::LOAD, ids, &[local_ids]);
    let l = code.value(op::COMPOSITE_EXTRACT, ulong, &[locals, 0]);
    let narrow = code.value(op::U_CONVERT, uint, &[i]);
    let sum = code.value(op::I_ADD, uint, &[narrow, add]);
    let place = code.value(op::IN_BOUNDS_PTR_ACCESS_CHAIN, local, &[lm, l]);
    code.put(op::STORE, &[place, sum, ALIGNED, 4]);
    let sum = code.value(op::LOAD, uint, &[place, ALIGNED, 4]);
    let place = code.value(op::IN_BOUNDS_PTR_ACCESS_CHAIN, global, &[a, i]);
    code.put(op::STORE, &[place, sum, ALIGNED, 4]);
    code.put(op::RETURN, &[]);
    code.put(op::FUNCTION_END, &[]);
    code.module()
}
