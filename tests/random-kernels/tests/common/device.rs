//! Random programs on a device, from code that a writer made.

use usm_core::{Context, Host, QueueOrder, UsmVec};
use usm_kernel::backend::Programmable;
use usm_kernel::{Argument, Launch, Module, NdRange, Range};
use usm_kernel_ir::{Parameter, emit};
use usm_random_kernels::plants::Planted;
use usm_random_kernels::{Given, Program};

use super::common::{bytes_of, differ, expected};

/// The number of programs whose results differ from those without the fault.
#[allow(dead_code, reason = "not every program of tests runs it")]
pub(crate) fn seen<B: Programmable>(context: &Context<B>, module: &Module<B>, programs: &[Planted]) -> usize {
    let differs = |planted: &&Planted| {
        let mut found = run(context, module, &planted.wrong);
        planted.cut(&mut found);
        differ(&planted.right, &expected(&planted.right), &found).is_some()
    };
    programs.iter().filter(differs).count()
}

/// Runs a program.
pub(crate) fn run<B: Programmable>(
    context: &Context<B>,
    module: &Module<B>,
    program: &Program,
) -> Vec<Vec<u8>> {
    let Program { kernel, global, local, arguments } = program;
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let function = module.function(&emit::function(kernel)).unwrap();
    let mut memory = Vec::new();
    for (given, parameter) in arguments.iter().zip(&kernel.parameters) {
        if let (Given::Array(bytes), Parameter::Array(_)) = (given, parameter) {
            memory.push(UsmVec::<u8, Host, B>::from_slice(&queue, bytes).unwrap());
        }
    }
    let words: Vec<([u8; 8], usize)> = arguments
        .iter()
        .map(|given| match given {
            Given::Value(value) => value.to_ne_bytes(),
            Given::Array(_) => ([0; 8], 0),
        })
        .collect();
    let elements = |place: usize| {
        let Parameter::Array(id) = kernel.parameters[place] else { return 0 };
        bytes_of(&arguments[place]).len() as u64 / kernel.array(id).element.bytes()
    };
    let lengths: Vec<u64> = kernel
        .lengths()
        .into_iter()
        .map(|id| {
            let place = kernel.parameters.iter().position(|other| *other == Parameter::Array(id));
            elements(place.expect("it is one"))
        })
        .collect();
    {
        let mut given = Vec::new();
        let mut rest = memory.iter_mut();
        for (place, parameter) in kernel.parameters.iter().enumerate() {
            given.push(match parameter {
                Parameter::Array(_) => Argument::write(rest.next().expect("one for each")),
                Parameter::Value(_) => match &words[place] {
                    (word, 1) => Argument::value(word.first_chunk::<1>().expect("8 bytes")),
                    (word, 2) => Argument::value(word.first_chunk::<2>().expect("8 bytes")),
                    (word, 4) => Argument::value(word.first_chunk::<4>().expect("8 bytes")),
                    (word, _) => Argument::value(word),
                },
            });
        }
        given.extend(lengths.iter().map(Argument::value));
        let sizes: Vec<u64> = global.iter().rev().copied().collect();
        if kernel.is_guarded() {
            given.extend(sizes.iter().map(Argument::value));
        }
        let group: u64 = local.iter().product();
        // Every local array has an element for each item of the group.
        for (element, _) in emit::locals(kernel) {
            given.push(Argument::local::<u64>((group * element.bytes()).div_ceil(8) as usize));
        }
        // SAFETY: the interpreter ran the same kernel with the same arguments in three orders and
        // found every index inside and no race.
        let event = unsafe {
            match (kernel.dimensions, kernel.is_guarded()) {
                // More items than the range has, which do nothing.
                (1, true) => {
                    Launch::with_range(&queue, whole::<1>(global)).round_up().call(&function, &given)
                }
                (2, true) => {
                    Launch::with_range(&queue, whole::<2>(global)).round_up().call(&function, &given)
                }
                (_, true) => {
                    Launch::with_range(&queue, whole::<3>(global)).round_up().call(&function, &given)
                }
                (1, _) => Launch::new(&queue, range::<1>(global, local)).call(&function, &given),
                (2, _) => Launch::new(&queue, range::<2>(global, local)).call(&function, &given),
                _ => Launch::new(&queue, range::<3>(global, local)).call(&function, &given),
            }
        };
        event.unwrap_or_else(|error| panic!("{}: {error}", kernel.name)).wait().unwrap();
    }
    memory.iter().map(|array| array.read().unwrap().to_vec()).collect()
}

fn range<const D: usize>(global: &[u64], local: &[u64]) -> NdRange<D> {
    NdRange::new(global.try_into().unwrap(), local.try_into().unwrap()).unwrap()
}

fn whole<const D: usize>(global: &[u64]) -> Range<D> {
    Range::new(global.try_into().unwrap()).unwrap()
}
