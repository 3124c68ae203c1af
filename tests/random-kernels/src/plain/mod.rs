//! Random kernels as Rust text that the Rust compiler takes too, as functions of one item.
//!
//! Each item reads what all items share, and writes only its own elements, so barriers change
//! nothing and a function that runs items one after the other gives the results. The compiler is
//! the judge of what the text means: precedence, types of numbers, shadowing, jumps, casts.
//!
//! Floats are multiplied and divided by powers of two only, so that no compiler rounds, however it
//! contracts.

mod expression;
mod statement;

use usm_kernel_ir::{Kernel, Literal, Parameter, Scalar};

use crate::generate::{Given, Program};
use crate::random::Random;

/// All types of variables.
pub(crate) use crate::generate::TYPES;
/// Types of elements.
const ELEMENTS: [Scalar; 10] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F32,
    Scalar::F64,
];
const ATOMICS: [Scalar; 4] = [Scalar::I32, Scalar::I64, Scalar::U32, Scalar::U64];
/// Names of variables, shadowed again and again. Many are words of OpenCL C or CUDA C.
const NAMES: [&str; 12] = [
    "x",
    "y",
    "kernel",
    "private",
    "half",
    "float4",
    "threadIdx",
    "int",
    "long",
    "get_global_id",
    "_count",
    "min",
];
/// Elements of each array that items only read.
const INPUT: u64 = 16;

/// A random kernel as text.
#[derive(Clone, Debug)]
pub struct Text {
    /// For the reader of kernels.
    pub kernel: String,
    /// For the Rust compiler: the same module, with the types of `words`.
    pub plain: String,
    /// Items in each dimension.
    pub global: Vec<u64>,
    /// Items of a group in each dimension.
    pub local: Vec<u64>,
}

#[derive(Clone)]
struct Variable {
    name: String,
    ty: Scalar,
    mutable: bool,
    /// Equal for all items of a group.
    uniform: bool,
}

/// An array with a fixed number of elements, or of which an item has one.
#[derive(Clone)]
struct Array {
    name: String,
    element: Scalar,
    /// The index: any number below this one, or the expression that is the item's own.
    index: Result<u64, &'static str>,
    mutable: bool,
    atomic: bool,
}

/// A function of the module.
#[derive(Clone)]
struct Function {
    name: String,
    /// The types of its scalars.
    scalars: Vec<Scalar>,
    /// Its array of four elements, and whether it writes it.
    array: Option<(Scalar, bool)>,
    result: Scalar,
}

struct Writer {
    random: Random,
    /// Whether the text is for the Rust compiler.
    plain: bool,
    variables: Vec<Variable>,
    arrays: Vec<Array>,
    functions: Vec<Function>,
    labels: Vec<(String, bool)>,
    /// Statements left to write.
    left: u64,
    count: u32,
    /// Some items may have left the kernel.
    returned: bool,
    result: Option<Scalar>,
}

/// Where a statement stands.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    /// All items of a group come here together.
    uniform: bool,
}

/// The program of a seed.
///
/// # Panics
/// The reader refuses the text, which the Rust compiler takes.
#[must_use]
pub fn program(seed: u64) -> Program {
    let Text { kernel, global, local, .. } = text(seed);
    let read = usm_kernel_rust::read(&kernel, "plain.rs");
    let mut kernels = read.unwrap_or_else(|refused| panic!("seed {seed}: {refused}\n{kernel}"));
    let mut kernel = kernels.pop().expect("the text has a kernel");
    kernel.trusted = false;
    let items = global.iter().product();
    let arguments = arguments(&kernel, items, &mut Random::new(!seed));
    Program { kernel, global, local, arguments }
}

fn arguments(kernel: &Kernel, items: u64, random: &mut Random) -> Vec<Given> {
    let given = |parameter: &Parameter| match parameter {
        Parameter::Value(id) => Given::Value(number(kernel.value(*id).ty, random)),
        Parameter::Array(id) => {
            let array = kernel.array(*id);
            let len = if matches!(array.name.as_str(), "a" | "b" | "t") { INPUT } else { items };
            let mut bytes = Vec::new();
            for _ in 0..len {
                let (word, width) = number(array.element, random).to_ne_bytes();
                bytes.extend(&word[..width]);
            }
            Given::Array(bytes)
        }
    };
    kernel.parameters.iter().map(given).collect()
}

fn number(ty: Scalar, random: &mut Random) -> Literal {
    match ty {
        Scalar::Bool => Literal::bool(random.percent(50)),
        Scalar::F32 => {
            Literal::f32(*random.pick(&[0.0, 1.0, -2.5, 300.0, -1e10, 1e20, f32::NAN, f32::INFINITY]))
        }
        Scalar::F64 => {
            Literal::f64(*random.pick(&[0.0, 0.5, -7.0, 300.0, -1e10, 1e30, f64::NAN, f64::NEG_INFINITY]))
        }
        _ if random.percent(70) => Literal::integer(ty, random.below(12)),
        _ => Literal::integer(ty, random.word()),
    }
}

/// The text of a seed.
#[must_use]
pub fn text(seed: u64) -> Text {
    let mut random = Random::new(seed ^ 0x706c_6169_6e00);
    let dimensions = *random.pick(&[1_usize, 1, 2, 3]);
    let local: Vec<u64> = (0..dimensions).map(|_| random.from(1, [9, 4, 3][dimensions - 1])).collect();
    let global: Vec<u64> = local.iter().map(|size| size * random.from(1, 3)).collect();
    let [kernel, plain] = [false, true].map(|plain| {
        let writer = Writer {
            random: random.clone(),
            plain,
            variables: Vec::new(),
            arrays: Vec::new(),
            functions: Vec::new(),
            labels: Vec::new(),
            left: 0,
            count: 0,
            returned: false,
            result: None,
        };
        writer.module(seed, &local)
    });
    Text { kernel, plain, global, local }
}

impl Writer {
    fn module(mut self, seed: u64, local: &[u64]) -> String {
        let mut text = String::new();
        for name in ["FIRST", "SECOND"] {
            let ty = *self.random.pick(&TYPES[1..]);
            let value = self.constant(ty);
            text += &format!("const {name}: {ty} = {value};\n");
            self.variables.push(Variable { name: name.into(), ty, mutable: false, uniform: true });
        }
        for _ in 0..self.random.below(3) {
            text += &self.function();
        }
        text += &self.kernel(seed, local);
        let head = if self.plain { "" } else { "#[kernels] " };
        format!(
            "{head}mod plain_{seed} {{\n{}{text}}}\n",
            if self.plain { "use super::words::*;\n" } else { "" }
        )
    }

    fn function(&mut self) -> String {
        let outside = self.variables.clone();
        let name = format!("h{}", self.functions.len());
        let scalars: Vec<Scalar> = (0..self.random.below(3)).map(|_| *self.random.pick(TYPES)).collect();
        let array = self.random.percent(60).then(|| (*self.random.pick(&ELEMENTS), self.random.percent(60)));
        let result = *self.random.pick(TYPES);
        let mut given = Vec::new();
        for (place, ty) in scalars.iter().enumerate() {
            let mutable = self.random.percent(30);
            given.push(format!("{}p{place}: {ty}", if mutable { "mut " } else { "" }));
            self.variables.push(Variable { name: format!("p{place}"), ty: *ty, mutable, uniform: false });
        }
        if let Some((element, mutable)) = array {
            let reference = if mutable { "&mut " } else { "&" };
            given.push(format!("p: {reference}{}", self.slice(element)));
            self.arrays.push(Array { name: "p".into(), element, index: Ok(4), mutable, atomic: false });
        }
        self.left = 5;
        self.result = Some(result);
        let inside = Place { depth: 2, uniform: false };
        let mut body: String = (0..self.random.from(0, 3)).map(|_| self.statement(inside)).collect();
        let value = self.value(result);
        body += &if self.random.percent(50) { format!("{value}\n") } else { format!("return {value};\n") };
        self.result = None;
        self.returned = false;
        self.variables = outside;
        self.arrays.clear();
        let head = if self.plain { "" } else { "#[kernel_fn]\n" };
        let text = format!("{head}fn {name}({}) -> {result} {{\n{body}}}\n", given.join(", "));
        self.functions.push(Function { name, scalars, array, result });
        text
    }

    /// The type of arrays, without its reference.
    fn slice(&self, element: Scalar) -> String {
        if self.plain { format!("Elements<{element}>") } else { format!("[{element}]") }
    }

    fn kernel(&mut self, seed: u64, local: &[u64]) -> String {
        let mut given = Vec::new();
        for name in ["n", "m"] {
            let ty = *self.random.pick(TYPES);
            given.push(format!("{name}: {ty}"));
            self.variables.push(Variable { name: name.into(), ty, mutable: false, uniform: true });
        }
        for (name, index) in [
            ("a", Ok(INPUT)),
            ("b", Ok(INPUT)),
            ("t", Ok(INPUT)),
            ("o", Err("i")),
            ("q", Err("i")),
            ("c", Err("i")),
        ] {
            let atomic = name == "c";
            let element = *self.random.pick(if atomic { &ATOMICS[..] } else { &ELEMENTS[..] });
            let mutable = index.is_err() && !atomic;
            let ty = match (name, self.plain) {
                ("t", false) => format!("&[{element}; {INPUT}]"),
                ("c", false) => format!("&[Atomic<{element}>]"),
                ("c", true) => format!("&Cells<{element}>"),
                _ => format!("{}{}", if mutable { "&mut " } else { "&" }, self.slice(element)),
            };
            given.push(format!("{name}: {ty}"));
            self.arrays.push(Array { name: name.into(), element, index, mutable, atomic });
        }
        let fixed = self.random.percent(50);
        let sizes: Vec<String> = local.iter().map(u64::to_string).collect();
        let head = match fixed {
            true => format!("group = [{}]", sizes.join(", ")),
            false => format!("dimensions = {}", local.len()),
        };
        let head = if self.plain { "pub ".to_owned() } else { format!("#[kernel({head})]\nunsafe ") };
        let mut body = self.start(local, fixed);
        self.left = self.random.from(4, 24);
        let place = Place { depth: 3, uniform: true };
        for _ in 0..self.random.from(3, 10) {
            body += &self.statement(place);
        }
        let all = self.variables.clone();
        for name in ["o", "q"] {
            let array = self.arrays.iter().find(|array| array.name == name).cloned();
            let Some(Array { element, .. }) = array else { continue };
            let mut sum = self.value(element);
            for variable in all.iter().rev().take(6) {
                let Variable { name, ty, .. } = variable;
                if self
                    .variables
                    .iter()
                    .rev()
                    .find(|found| found.name == *name)
                    .is_some_and(|found| found.ty != *ty)
                {
                    continue;
                }
                let value = if *ty == Scalar::Bool && element.is_float() {
                    format!("({name} as u8)")
                } else {
                    name.clone()
                };
                sum = format!("({sum}) + ({value} as {element})");
            }
            body += &format!("{name}[i] = {sum};\n");
        }
        format!("{head}fn plain_{seed}({}) {{\n{body}}}\n", given.join(", "))
    }

    /// The item's numbers, and its local and private arrays.
    fn start(&mut self, local: &[u64], fixed: bool) -> String {
        let linear = |id: &str, size: &str| {
            (1..local.len()).fold(format!("{id}(0)"), |sum, dimension| {
                format!("({sum}) * {size}({dimension}) + {id}({dimension})")
            })
        };
        let mut text = format!(
            "let i = {};\nlet l = {};\n",
            linear("global_id", "global_size"),
            linear("local_id", "local_size")
        );
        for name in ["i", "l"] {
            self.variables.push(Variable {
                name: name.into(),
                ty: Scalar::U64,
                mutable: false,
                uniform: false,
            });
        }
        let items: u64 = local.iter().product();
        for number in 0..self.random.below(3) {
            let (name, element) = (format!("s{number}"), *self.random.pick(TYPES));
            let len = if fixed || self.random.percent(30) {
                items.to_string()
            } else {
                (0..local.len())
                    .map(|dimension| format!("local_size({dimension})"))
                    .collect::<Vec<_>>()
                    .join(" * ")
            };
            text += &if self.plain {
                format!("let mut {name} = elements::<{element}>({len});\n")
            } else {
                format!("#[local] let mut {name}: [{element}; {len}];\n")
            };
            let value = self.value(element);
            text += &format!("{name}[l] = {value};\n");
            self.arrays.push(Array { name, element, index: Err("l"), mutable: true, atomic: false });
        }
        for number in 0..self.random.below(3) {
            let (name, element) = (format!("r{number}"), *self.random.pick(TYPES));
            let values = match self.random.percent(50) {
                true => format!("[{}; 4]", self.value(element)),
                false => format!("[{}]", (0..4).map(|_| self.value(element)).collect::<Vec<_>>().join(", ")),
            };
            text += &if self.plain {
                format!("let mut {name} = Elements::<{element}>({values}.to_vec());\n")
            } else {
                format!("let mut {name}: [{element}; 4] = {values};\n")
            };
            self.arrays.push(Array { name, element, index: Ok(4), mutable: true, atomic: false });
        }
        text
    }

    /// The variables that a name means here.
    fn variable(&mut self, is: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let visible = self.variables.iter().enumerate().filter(|(place, variable)| {
            self.variables[place + 1..].iter().all(|later| later.name != variable.name)
        });
        let found: Vec<Variable> =
            visible.map(|(_, variable)| variable).filter(|one| is(one)).cloned().collect();
        if found.is_empty() { None } else { Some(self.random.pick(&found).clone()) }
    }

    fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.random.pick::<&'static str>(words)
    }

    fn label(&mut self) -> String {
        self.count += 1;
        format!("'loop_{}", self.count)
    }
}
