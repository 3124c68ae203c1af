//! Random kernels as Rust text, right or wrong.
//!
//! The kernels of [`crate::generate`] are right by construction: their indices have few forms, and
//! their loops end. These may have any index, loop, jump and cast that the language has, so that
//! the proof must find out which launches are right. They have many numbers of 8 and 16 bits, which
//! wrap in small launches.

mod counters;
mod expression;
mod index;
mod local;
mod repeat;
mod statement;

use usm_kernel_ir::Scalar;

use crate::random::Random;
pub use counters::counters;
use statement::Place;

/// The parameters of every kernel.
const PARAMETERS: &str = "n: u32, m: u64, k: i32, p: u8, a: &[u32], b: &[u8], o: &mut [u32], r: &mut [u32]";
/// The scalars among them.
const SCALARS: [(&str, Scalar); 4] =
    [("n", Scalar::U32), ("m", Scalar::U64), ("k", Scalar::I32), ("p", Scalar::U8)];
/// Types of variables and expressions, the more frequent ones twice.
const TYPES: [Scalar; 8] =
    [Scalar::U64, Scalar::U64, Scalar::U8, Scalar::U8, Scalar::I8, Scalar::U32, Scalar::I32, Scalar::U16];
/// Statements of a kernel, at most.
const STATEMENTS: u64 = 14;

/// A variable or parameter in scope.
#[derive(Clone)]
struct Variable {
    name: String,
    ty: Scalar,
    /// Statements may assign to it.
    mutable: bool,
    /// A loop's counter that all items of a group have in common.
    uniform: bool,
}

struct Writer {
    random: Random,
    variables: Vec<Variable>,
    /// Number of names made.
    names: u32,
    /// Statements left to write.
    left: u64,
    /// Whether the kernel has groups, with the local array `l` of 8 elements.
    grouped: bool,
    dimensions: u64,
}

/// The text of a file with one kernel. It is an `unsafe fn`, so that it is read before the proof
/// judges it.
#[must_use]
pub fn text(seed: u64) -> String {
    let mut random = Random::new(seed);
    let grouped = random.percent(60);
    let dimensions = if random.percent(25) { 2 } else { 1 };
    let variables = SCALARS
        .map(|(name, ty)| Variable { name: name.to_owned(), ty, mutable: false, uniform: false })
        .to_vec();
    // In long kernels one index that nobody can prove hides the faults of all others.
    let most = *random.pick(&[2, 4, STATEMENTS]);
    Writer { random, variables, names: 0, left: most, grouped, dimensions }.kernel()
}

impl Writer {
    fn kernel(mut self) -> String {
        let attribute = self.attribute();
        let mut body = if self.grouped { self.local_memory() } else { String::new() };
        let place = Place { depth: 3, in_loop: false, uniform: true };
        for _ in 0..self.random.from(1, 5) {
            body += &self.statement(place);
        }
        if self.random.percent(70) {
            body += &self.store();
        }
        // Uses the last dimension, so that the kernel has it.
        let last = self.dimensions - 1;
        format!("{attribute}\nunsafe fn f({PARAMETERS}) {{\nlet _last = global_id({last});\n{body}}}\n")
    }

    fn attribute(&mut self) -> String {
        let fixed = self.grouped && self.random.percent(50);
        let (first, second) = (self.random.from(1, 6), self.random.from(1, 3));
        match (fixed, self.dimensions) {
            (true, 1) => format!("#[kernel(group = {first})]"),
            (true, _) => format!("#[kernel(group = [{first}, {second}])]"),
            (false, 1) => "#[kernel]".to_owned(),
            (false, _) => "#[kernel(dimensions = 2)]".to_owned(),
        }
    }

    /// A name that no other variable has.
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn scalar(&mut self) -> Scalar {
        *self.random.pick(&TYPES)
    }

    /// One of these words.
    fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.random.pick::<&'static str>(words)
    }

    /// One of the variables for which `is` holds.
    fn variable(&mut self, is: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let found: Vec<&Variable> = self.variables.iter().filter(|variable| is(variable)).collect();
        if found.is_empty() { None } else { Some((*self.random.pick(&found)).clone()) }
    }
}
