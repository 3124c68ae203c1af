//! Writes the Rust host code of the random programs, which the tests compile.
//!
//! `USM_RANDOM_KERNELS` sets the number of programs, `USM_RANDOM_JUMPS` that of programs with many
//! loops and jumps, `USM_RANDOM_PLAIN` that of the texts which the
//! tests compile as Rust too, `USM_RANDOM_SEED` the first seed. `USM_EFFORT` is a factor for the
//! usual numbers, ten at most.

use core::fmt::Write as _;
use core::ops::Range;
use std::path::PathBuf;

use usm_kernel_ir::{Kernel, Parameter, Scalar, Space, emit, proof};

#[path = "src/generate/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod generate;
#[path = "src/plain/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod plain;
#[path = "src/plants.rs"]
#[allow(dead_code, unreachable_pub)]
mod plants;
#[path = "src/random.rs"]
#[allow(dead_code, unreachable_pub)]
mod random;

/// Programs with each planted fault, at most.
const PLANTED: usize = 4;
/// Programs that read memory which nobody wrote, at most.
const FORGETFUL: usize = 12;

fn main() {
    println!("cargo:rerun-if-env-changed=USM_RANDOM_KERNELS");
    println!("cargo:rerun-if-env-changed=USM_RANDOM_JUMPS");
    println!("cargo:rerun-if-env-changed=USM_RANDOM_PLAIN");
    println!("cargo:rerun-if-env-changed=USM_RANDOM_SEED");
    println!("cargo:rerun-if-env-changed=USM_EFFORT");
    println!("cargo:rerun-if-changed=src");
    let number = |name: &str, instead: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(instead)
    };
    // As `build_cases` of the library.
    let effort = number("USM_EFFORT", 1).min(10);
    let (first, count) = (number("USM_RANDOM_SEED", 1), number("USM_RANDOM_KERNELS", 32 * effort));
    let mut text = String::new();
    let mut table = String::new();
    let jumps = number("USM_RANDOM_JUMPS", 16 * effort);
    let numbers = (first..first + count).chain(first..first + jumps);
    for (place, seed) in numbers.enumerate() {
        let is_jumping = place as u64 >= count;
        let make = if is_jumping { generate::jumping_program } else { generate::program };
        let mut kernel = make(seed).kernel;
        // A kernel that cannot be proven runs without checks: the interpreter found no fault in it.
        let claims = proof::claims(&kernel).unwrap_or_else(|_| {
            kernel.trusted = true;
            proof::Claims::default()
        });
        // Half of the proven ones, on several threads.
        let how = if seed % 2 == 0 && !kernel.trusted { "threads(3)" } else { SHUFFLED };
        let name = kernel.name.clone();
        text += &module(&name, &kernel, &claims, how);
        let _ = write!(table, "({seed}, {is_jumping}, {name}::run as Run), ");
    }
    let _ = writeln!(text, "pub static KERNELS: &[(u64, bool, Run)] = &[{table}];");
    let mut table = String::new();
    for (fault, named) in plants::FAULTS.into_iter().enumerate() {
        for (place, planted) in plants::planted(named, first, PLANTED, &[]).into_iter().enumerate() {
            let mut kernel = planted.wrong.kernel;
            // Without the proof, which refuses some faults before they can show.
            kernel.trusted = true;
            let name = format!("planted_{fault}_{place}");
            text += &module(&name, &kernel, &proof::Claims::default(), SHUFFLED);
            let _ = write!(table, "({fault}, {place}, {name}::run as Run), ");
        }
    }
    let mut forgetful = String::new();
    for (place, program) in plants::forgetful(first, FORGETFUL).into_iter().enumerate() {
        let mut kernel = program.kernel;
        kernel.trusted = true;
        let name = format!("forgetful_{place}");
        text += &module(&name, &kernel, &proof::Claims::default(), SHUFFLED);
        let _ = write!(forgetful, "{name}::run as Run, ");
    }
    let _ = writeln!(text, "pub const FORGETFUL: usize = {FORGETFUL};");
    let _ = writeln!(text, "pub static FORGOT: &[Run] = &[{forgetful}];");
    let _ = writeln!(text, "pub const PLANTED: usize = {PLANTED};");
    let _ = writeln!(text, "pub static WRONG: &[(usize, usize, Run)] = &[{table}];");
    let to = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says it"));
    std::fs::write(to.join("kernels.rs"), text).expect("the folder is ours");
    let texts = first..first + number("USM_RANDOM_PLAIN", 40 * effort);
    std::fs::write(to.join("plain.rs"), plain_functions(texts)).expect("the folder is ours");
}

/// For each seed the function as Rust has it, and the body that the writer makes of the kernel.
fn plain_functions(seeds: Range<u64>) -> String {
    let (mut text, mut table) = (String::new(), String::new());
    for seed in seeds {
        let mut kernel = plain::program(seed).kernel;
        let claims = proof::claims(&kernel).unwrap_or_else(|_| {
            kernel.trusted = true;
            proof::Claims::default()
        });
        let how = if seed % 2 == 0 && !kernel.trusted { "threads(3)" } else { SHUFFLED };
        text += &module(&format!("host_{seed}"), &kernel, &claims, how);
        text += &plain::text(seed).plain;
        text += &item_by_item(seed, &kernel);
        let _ = write!(table, "({seed}, items_{seed} as Items, host_{seed}::run as Run), ");
    }
    text + &format!("pub static TEXTS: &[(u64, Items, Run)] = &[{table}];\n")
}

/// A function that calls the plain function for each item.
fn item_by_item(seed: u64, kernel: &Kernel) -> String {
    let (mut start, mut given, mut end) = (String::new(), String::new(), String::new());
    for (place, parameter) in kernel.parameters.iter().enumerate() {
        match parameter {
            Parameter::Array(id) => {
                let array = kernel.array(*id);
                let kind = if array.space == Space::Atomic { "Cells" } else { "Elements" };
                let _ = writeln!(
                    start,
                    "let mut a{place} = words::{kind}::<{}>::of(&arguments[{place}]);",
                    array.element
                );
                let _ =
                    write!(given, "{}a{place}, ", if array.space == Space::Write { "&mut " } else { "&" });
                let _ = write!(end, "a{place}.bytes(), ");
            }
            Parameter::Value(id) => {
                let ty = kernel.value(*id).ty;
                let _ = match ty {
                    Scalar::Bool => write!(given, "value::<u8>(&arguments[{place}]) != 0, "),
                    _ => write!(given, "value::<{ty}>(&arguments[{place}]), "),
                };
            }
        }
    }
    format!(
        "pub fn items_{seed}(global: &[u64], local: &[u64], arguments: &[Given]) -> Vec<Vec<u8>> {{\n{start}\
         words::each(global, local, || plain_{seed}::plain_{seed}({given}));\nvec![{end}]\n}}\n"
    )
}

/// How most launches run.
const SHUFFLED: &str = "order(ShuffledOrder(5))";

/// A module with the kernel, and a function that runs it so.
fn module(name: &str, kernel: &Kernel, claims: &proof::Claims, how: &str) -> String {
    let body = emit::rust(kernel, claims, "Random", "::usm_kernel", None);
    format!(
        "mod {name} {{\nuse super::*;\n#[derive(Clone, Copy, Debug, Default)]\npub struct Random;\n{body}\n{}}}\n",
        caller(kernel, how)
    )
}

/// The type of an element in the surroundings of a kernel.
const fn type_of(element: Scalar) -> &'static str {
    match element {
        Scalar::F16 => "usm_kernel::F16",
        Scalar::Bf16 => "usm_kernel::Bf16",
        other => other.name(),
    }
}

/// A function that runs the kernel on arrays of bytes.
fn caller(kernel: &Kernel, how: &str) -> String {
    let d = kernel.dimensions;
    let (mut start, mut given, mut end) = (String::new(), String::new(), String::new());
    for (place, parameter) in kernel.parameters.iter().enumerate() {
        match parameter {
            Parameter::Array(id) => {
                let array = kernel.array(*id);
                let ty = type_of(array.element);
                if let Space::Constant(len) = array.space {
                    let _ = write!(
                        given,
                        "<[{ty}; {len}]>::try_from(elements::<{ty}>(&arguments[{place}])).unwrap(), "
                    );
                    let _ = write!(end, "bytes_of(&arguments[{place}]).to_vec(), ");
                    continue;
                }
                let mutable = if array.space == Space::Read { "" } else { "mut " };
                let _ = writeln!(start, "let {mutable}a{place} = array::<{ty}>(queue, &arguments[{place}]);");
                let borrow = if array.space == Space::Write { "&mut " } else { "&" };
                let borrow = if array.space == Space::Atomic { "&mut " } else { borrow };
                let _ = write!(given, "{borrow}a{place}, ");
                let _ = write!(end, "bytes(&a{place}), ");
            }
            Parameter::Value(id) => {
                let ty = kernel.value(*id).ty;
                let ty = if ty == Scalar::Bool { Scalar::U8 } else { ty };
                let _ = write!(given, "value::<{ty}>(&arguments[{place}]), ");
            }
        }
    }
    let launched = match kernel.trusted {
        true => {
            "// SAFETY: the interpreter found no race in these launches.\nlet kernel = unsafe { usm_kernel::VouchedKernel::new(Random) };\n"
        }
        false => "let kernel = Random;\n",
    };
    format!(
        "pub fn run(queue: &Queue<HostHeap>, global: &[u64], local: &[u64], arguments: &[Given]) -> Vec<Vec<u8>> {{\n\
         {start}let range = NdRange::<{d}>::new(global.try_into().unwrap(), local.try_into().unwrap()).unwrap();\n\
         {launched}let _ = Launch::new(queue, range).{how}.run(kernel, ({given})).unwrap();\nvec![{end}]\n}}\n"
    )
}
