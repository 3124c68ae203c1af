//! Long loops: after some rounds they ask whether they may go on.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, InstBuilder, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::Variable;

use crate::function::{MEMORY, Writer};

/// The rounds before the first question.
const ROUNDS: i64 = 65_536;

/// The parts of the function for it.
#[derive(Clone, Copy)]
pub(crate) struct Pauses {
    /// The address of the [`Pause`](crate::Pause), or 0.
    address: Value,
    /// The rounds before the next question.
    left: Variable,
    /// Where the function returns in the middle of its work.
    pub(crate) stop: Block,
    convention: CallConv,
}

impl Writer<'_> {
    pub(crate) fn begin_pauses(&mut self, address: Value, convention: CallConv) -> Pauses {
        let left = self.builder.declare_var(types::I64);
        let rounds = self.number(ROUNDS);
        self.builder.def_var(left, rounds);
        Pauses { address, left, stop: self.builder.create_block(), convention }
    }

    /// Counts a round, and asks if it was the last one before a question.
    pub(crate) fn count_round(&mut self) {
        let Some(Pauses { left, .. }) = self.pauses else { return };
        let (rounds, one) = (self.builder.use_var(left), self.number(1));
        let rest = self.builder.ins().isub(rounds, one);
        self.builder.def_var(left, rest);
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

    /// Takes as many rounds as there are before the next question, at most so many.
    pub(crate) fn take_rounds(&mut self, most: Value) -> Value {
        let Some(Pauses { left, .. }) = self.pauses else { return most };
        let rounds = self.builder.use_var(left);
        let taken = self.builder.ins().umin(most, rounds);
        let rest = self.builder.ins().isub(rounds, taken);
        self.builder.def_var(left, rest);
        taken
    }

    /// Asks if there are no rounds left.
    pub(crate) fn ask_if_due(&mut self) {
        let Some(Pauses { left, .. }) = self.pauses else { return };
        let [ask, run] = [(); 2].map(|()| self.builder.create_block());
        let rounds = self.builder.use_var(left);
        self.builder.ins().brif(rounds, run, &[], ask, &[]);
        self.builder.set_cold_block(ask);
        self.builder.switch_to_block(ask);
        self.ask();
        self.builder.ins().jump(run, &[]);
        self.builder.switch_to_block(run);
    }

    /// Calls the function, and stops if it says so. The code goes on in a new block.
    fn ask(&mut self) {
        let Some(Pauses { address, left, stop, convention }) = self.pauses else { return };
        let [call, run] = [(); 2].map(|()| self.builder.create_block());
        let rounds = self.number(ROUNDS);
        self.builder.def_var(left, rounds);
        self.builder.ins().brif(address, call, &[], run, &[]);
        self.builder.set_cold_block(call);
        self.builder.switch_to_block(call);
        let mut signature = Signature::new(convention);
        signature.params.push(AbiParam::new(types::I64));
        signature.returns.push(AbiParam::new(types::I64));
        let signature = self.builder.import_signature(signature);
        let function = self.builder.ins().load(types::I64, MEMORY, address, 0);
        let call = self.builder.ins().call_indirect(signature, function, &[address]);
        let rounds = self.builder.inst_results(call)[0];
        self.builder.def_var(left, rounds);
        self.builder.ins().brif(rounds, run, &[], stop, &[]);
        self.builder.switch_to_block(run);
        self.builder.set_cold_block(run);
    }
}
