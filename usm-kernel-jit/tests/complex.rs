//! Random programs of complex numbers, beside the operators of Rust. The interpreter runs them:
//! machine code may fuse a product and a sum.

#![cfg(feature = "rust")]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::{Complex32, Complex64};
use usm_kernel_jit::{Argument, Function};
use usm_random_kernels::random::Random;

/// Numbers that a program has: complex and real ones.
const GIVEN: usize = 4;

/// A number of a program.
enum Number<C, R> {
    Complex(C),
    Real(R),
}

macro_rules! programs {
    ($name:ident $complex:ident $real:ident) => {
        mod $name {
            use super::*;

            pub(super) struct Program {
                pub(super) random: Random,
                pub(super) z: Vec<$complex>,
                pub(super) x: Vec<$real>,
            }

            impl Program {
                /// A text of at most `depth` levels, and its value.
                pub(super) fn complex(&mut self, depth: u32) -> (String, $complex) {
                    if depth == 0 {
                        let k = self.random.below(GIVEN as u64) as usize;
                        return (format!("z[{k}]"), self.z[k]);
                    }
                    let (text, one) = self.complex(depth - 1);
                    match self.random.below(10) {
                        0 => (format!("(-{text})"), -one),
                        1 => (format!("{text}.conj()"), one.conj()),
                        2 => {
                            let (other, two) = self.complex(depth - 1);
                            let text = format!("$complex::new({text}.norm_sqr(), ({other} * z[0]).re)");
                            let text = text.replace("$complex", stringify!($complex));
                            (text, $complex::new(one.norm_sqr(), (two * self.z[0]).re))
                        }
                        3 => {
                            let (other, two) = self.complex(depth - 1);
                            let value = if one == two { one } else { two };
                            (format!("(if {text} == {other} {{ {text} }} else {{ {other} }})"), value)
                        }
                        _ => {
                            let operator = ["+", "-", "*", "/"][self.random.below(4) as usize];
                            let (other, two) = match self.random.below(3) {
                                0 => {
                                    let k = self.random.below(GIVEN as u64) as usize;
                                    (format!("x[{k}]"), Number::Real(self.x[k]))
                                }
                                _ => {
                                    let (text, value) = self.complex(depth - 1);
                                    (text, Number::Complex(value))
                                }
                            };
                            if self.random.percent(50) {
                                if let Number::Real(two) = two {
                                    let value = match operator {
                                        "+" => two + one,
                                        "-" => two - one,
                                        "*" => two * one,
                                        _ => two / one,
                                    };
                                    return (format!("({other} {operator} {text})"), value);
                                }
                            }
                            let value = match (operator, two) {
                                ("+", Number::Complex(two)) => one + two,
                                ("-", Number::Complex(two)) => one - two,
                                ("*", Number::Complex(two)) => one * two,
                                (_, Number::Complex(two)) => one / two,
                                ("+", Number::Real(two)) => one + two,
                                ("-", Number::Real(two)) => one - two,
                                ("*", Number::Real(two)) => one * two,
                                (_, Number::Real(two)) => one / two,
                            };
                            (format!("({text} {operator} {other})"), value)
                        }
                    }
                }
            }

            pub(super) fn run(seed: u64) {
                let mut random = Random::new(seed);
                let mut number = || (random.below(2049) as f64 / 256.0 - 4.0) as $real / 3.0;
                let x: Vec<$real> = (0..GIVEN).map(|_| number()).collect();
                let z: Vec<$complex> = (0..GIVEN).map(|_| $complex::new(number(), number())).collect();
                let mut program = Program { random, x, z };
                let (operator, depth) =
                    (["=", "+=", "-=", "*=", "/="][program.random.below(5) as usize], 1 + seed as u32 % 5);
                let (text, value) = program.complex(depth);
                let mut wanted = program.z[1];
                match operator {
                    "=" => wanted = value,
                    "+=" => wanted += value,
                    "-=" => wanted -= value,
                    "*=" => wanted *= value,
                    _ => wanted /= value,
                }
                let source = format!(
                    "#[kernel] fn k(z: &[{0}], x: &[{1}], out: &mut [{0}]) {{
                        let i = global_id(0);
                        out[i] = z[1];
                        out[i] {operator} {text};
                    }}",
                    stringify!($complex),
                    stringify!($real),
                );
                let function = Function::<HostHeap>::from_rust(&source, "random.rs", None)
                    .unwrap_or_else(|error| panic!("{source}: {error}"));
                let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
                let on_z = UsmVec::<$complex, Host, _>::from_slice(&queue, &program.z).unwrap();
                let on_x = UsmVec::<$real, Host, _>::from_slice(&queue, &program.x).unwrap();
                let mut out = UsmVec::<$complex, Host, _>::zeroed(&queue, 1).unwrap();
                let launch = function.launch(&queue, &[1]);
                let arguments = [
                    Argument::read_structures(&on_z),
                    Argument::read(&on_x),
                    Argument::write_structures(&mut out),
                ];
                let interpreted = launch.interpret(&arguments, &mut || true).unwrap().expect("an end");
                let found = bytemuck::pod_read_unaligned::<$complex>(&interpreted[2]);
                let same =
                    |one: $real, two: $real| one.to_bits() == two.to_bits() || one.is_nan() && two.is_nan();
                assert!(
                    same(found.re, wanted.re) && same(found.im, wanted.im),
                    "{seed}: {found:?}, wanted {wanted:?}: {source}"
                );
            }
        }
    };
}

programs!(narrow Complex32 f32);
programs!(wide Complex64 f64);

#[test]
fn random_programs_give_the_bits_of_rusts_operators() {
    for seed in 0..150 {
        narrow::run(seed);
        wide::run(seed);
    }
}
