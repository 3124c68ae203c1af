//! A launch that the proof judges and the interpreter runs.

use core::fmt;

use usm_kernel_ir::proof::Shape;
use usm_kernel_ir::{Argument, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter};
use usm_random_kernels::random::Random;

pub(crate) struct Launch {
    pub(crate) global: Vec<u64>,
    pub(crate) local: Vec<u64>,
    /// Elements of each array of the kernel.
    pub(crate) lengths: Vec<u64>,
    pub(crate) values: Vec<Literal>,
    pub(crate) bytes: Vec<Vec<u8>>,
}

impl Launch {
    /// The kernel's own group, or a small one.
    pub(crate) fn group(kernel: &Kernel, random: &mut Random) -> Vec<u64> {
        match &kernel.group {
            Some(group) => group.clone(),
            None => (0..kernel.dimensions).map(|_| random.from(1, 4)).collect(),
        }
    }

    pub(crate) fn shape(&self) -> Shape<'_> {
        let Self { global, local, lengths, values, .. } = self;
        Shape { global, local, lengths, values }
    }

    pub(crate) fn run(&self, kernel: &Kernel, order: Order, steps: u64) -> Result<(), Fault> {
        let arguments: Vec<Argument<'_>> = kernel
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Array(id) => Argument::Array(&self.bytes[id.0 as usize]),
                Parameter::Value(id) => Argument::Value(self.values[id.0 as usize]),
            })
            .collect();
        let input = Input::new(kernel, &self.global, &self.local, &arguments).unwrap();
        Interpreter::new(kernel, input, order, steps).run().map(|_| ())
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { global, local, lengths, values, .. } = self;
        write!(f, "over {global:?} in groups of {local:?}, {lengths:?} elements, scalars {values:?}")
    }
}
