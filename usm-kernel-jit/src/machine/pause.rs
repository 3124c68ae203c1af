//! Long loops: after some rounds they ask whether they may go on.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, FuncRef, Function, InstBuilder, Signature, StackSlot, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::machine::function::{MEMORY, Writer, new_slot};

/// The rounds where nobody asks.
const ROUNDS: i64 = 65_536;

/// The parts of the function for it. They are on the stack: loops need the registers.
#[derive(Clone, Copy)]
pub(crate) struct Pauses {
    /// The place of the address of the [`Pause`](crate::host::Pause), or 0.
    address: StackSlot,
    /// The place of the number of rounds before the next question.
    left: StackSlot,
    /// Where the function returns in the middle of its work.
    pub(crate) stop: Block,
    asks: FuncRef,
}

/// The signature of the function between the code and [`Pause::ask`](crate::host::Pause). It keeps
/// all registers, so that loops which may call it have the registers of those that do not.
pub(crate) fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.push(AbiParam::new(types::I64));
    signature
}

/// Writes that function. It puts the answer to the rounds of the pause.
pub(crate) fn write(
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    target: TargetFrontendConfig,
) {
    let mut builder = FunctionBuilder::new(function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let address = builder.block_params(entry)[0];
    let mut signature = Signature::new(target.default_call_conv);
    signature.params.push(AbiParam::new(types::I64));
    signature.returns.push(AbiParam::new(types::I64));
    let signature = builder.import_signature(signature);
    let ask = builder.ins().load(types::I64, MEMORY, address, 0);
    let call = builder.ins().call_indirect(signature, ask, &[address]);
    let rounds = builder.inst_results(call)[0];
    builder.ins().store(MEMORY, rounds, address, 8);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(target);
}

impl Writer<'_> {
    pub(crate) fn begin_pauses(&mut self, address: Value, asks: FuncRef) -> Pauses {
        let left = new_slot(&mut self.builder);
        let slot = new_slot(&mut self.builder);
        self.set_slot(slot, address);
        let rounds = self.number(ROUNDS);
        self.set_slot(left, rounds);
        let [answer, run] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().brif(address, answer, &[], run, &[]);
        self.builder.switch_to_block(answer);
        let rounds = self.word(address, 1);
        self.set_slot(left, rounds);
        self.builder.ins().jump(run, &[]);
        self.builder.switch_to_block(run);
        Pauses { address: slot, left, stop: self.builder.create_block(), asks }
    }

    /// Counts a round, and asks if it was the last one before a question.
    pub(crate) fn count_round(&mut self) {
        let Some(Pauses { left, .. }) = self.pauses else { return };
        let (rounds, one) = (self.in_slot(left), self.number(1));
        let rest = self.builder.ins().isub(rounds, one);
        self.set_slot(left, rest);
        let [ask, run] = [(); 2].map(|()| self.builder.create_block());
        // An outer loop may have taken all.
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, rounds, one);
        self.builder.ins().brif(goes_on, run, &[], ask, &[]);
        self.builder.set_cold_block(ask);
        self.builder.switch_to_block(ask);
        self.ask();
        self.builder.ins().jump(run, &[]);
        self.builder.switch_to_block(run);
    }

    /// Takes as many rounds as there are before the next question, or one; at most so many.
    pub(crate) fn take_rounds(&mut self, most: Value) -> Value {
        let Some(Pauses { left, .. }) = self.pauses else { return most };
        let (rounds, one) = (self.in_slot(left), self.number(1));
        let rounds = self.builder.ins().umax(rounds, one);
        let count = self.builder.ins().umin(most, rounds);
        let rest = self.builder.ins().isub(rounds, count);
        self.set_slot(left, rest);
        count
    }

    /// Asks if there are no rounds left.
    pub(crate) fn ask_if_due(&mut self) {
        let Some(Pauses { left, .. }) = self.pauses else { return };
        let [ask, run] = [(); 2].map(|()| self.builder.create_block());
        let rounds = self.in_slot(left);
        self.builder.ins().brif(rounds, run, &[], ask, &[]);
        self.builder.set_cold_block(ask);
        self.builder.set_cold_block(run);
        self.builder.switch_to_block(ask);
        self.ask();
        self.builder.ins().jump(run, &[]);
        self.builder.switch_to_block(run);
    }

    /// Calls the function, and stops if it says so. The code goes on in a new block.
    fn ask(&mut self) {
        let Some(Pauses { address, left, stop, asks }) = self.pauses else { return };
        let [call, run] = [(); 2].map(|()| self.builder.create_block());
        let rounds = self.number(ROUNDS);
        self.set_slot(left, rounds);
        let address = self.in_slot(address);
        self.builder.ins().brif(address, call, &[], run, &[]);
        self.builder.set_cold_block(call);
        self.builder.switch_to_block(call);
        self.builder.ins().call(asks, &[address]);
        let rounds = self.word(address, 1);
        self.set_slot(left, rounds);
        self.builder.ins().brif(rounds, run, &[], stop, &[]);
        self.builder.switch_to_block(run);
        self.builder.set_cold_block(run);
    }
}
