//! `usm kernel`: prints a kernel's generated code, from Rust or from the text of its nodes.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use usm_kernel_ir::{Kernel, emit, proof, text, verify};

use crate::error::{Error, Exit, Result, read_file};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Rust with `#[kernel]`s, or the text of a kernel's nodes where the name ends in `.ir`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Which kernel of the file [default: the only one].
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// The output.
    #[arg(long, value_enum, value_name = "FORM")]
    emit: Form,
    /// Make code that checks the indices that the launch does not prove to be inside.
    #[arg(long)]
    checked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The text of the nodes; `usm kernel` reads it too.
    Ir,
    /// The attribute's output for the host and usm-kernel.
    Rust,
    /// OpenCL C.
    OpenclC,
    /// CUDA C++.
    CudaC,
    /// The bytes of a SPIR-V module.
    SpirV,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    let Arguments { file, kernel: name, emit: form, checked: is_checked } = arguments;
    if *is_checked && matches!(form, Form::Ir | Form::Rust) {
        return Err(Error::bad(
            "--checked is for opencl-c, cuda-c and spir-v: the others are for all launches",
        ));
    }
    let kernels = read(file)?;
    let kernel = choose(&kernels, name.as_deref()).map_err(|error| error.in_file(file))?;
    let claims = proof::claims(kernel).map_err(|refusal| refusal_error(kernel, &refusal))?;
    let kernel = &*claims.name_unordered(kernel);
    let text = match form {
        Form::Ir => text::write(kernel),
        Form::Rust => emit::rust(kernel, &claims, &kernel.name, "::usm_kernel", None),
        Form::OpenclC if *is_checked => emit::checked::opencl_c(kernel, &claims),
        Form::OpenclC => emit::opencl_c(kernel),
        Form::CudaC if *is_checked => emit::checked::cuda_c(kernel, &claims),
        Form::CudaC => emit::cuda_c(kernel),
        Form::SpirV => {
            output::raw(&spirv(kernel, &claims, *is_checked)?)?;
            return Ok(Exit::Done);
        }
    };
    output::text(&text)?;
    Ok(Exit::Done)
}

/// Reads the kernels of a file: Rust, or the text of a kernel's nodes where its name ends in
/// `.ir`.
pub(crate) fn read(file: &Path) -> Result<Vec<Kernel>> {
    let bytes = read_file(file)?;
    let source = core::str::from_utf8(&bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        Error::bad("not UTF-8 text").at_line(line).in_file(file)
    })?;
    let file_name = file.display().to_string();
    let is_ir = file.extension().is_some_and(|extension| extension == "ir");
    if !is_ir {
        return read_rust(source, &file_name);
    }
    // Positions are in this text, until the kernel names the files of its positions.
    let kernel = text::parse(source).map_err(|refusal| {
        let place = refusal.place;
        Error::bad(format!("{file_name}:{}:{}: {}", place.line, place.column, refusal.message))
    })?;
    verify(&kernel).map_err(|refusal| refusal_error(&kernel, &refusal))?;
    Ok(vec![kernel])
}

/// The kernels of a text in Rust; `file_name` is its file in messages.
#[cfg(feature = "jit")]
fn read_rust(source: &str, file_name: &str) -> Result<Vec<Kernel>> {
    usm_kernel_rust::read(source, file_name).map_err(|refusal| match refusal.out_of_memory {
        true => Error::unable(refusal),
        false => Error::bad(refusal),
    })
}

/// The bytes of a SPIR-V module.
#[cfg(feature = "jit")]
fn spirv(kernel: &Kernel, claims: &proof::Claims, is_checked: bool) -> Result<Vec<u8>> {
    Ok(if is_checked { emit::checked::spirv(kernel, claims) } else { emit::spirv(kernel) })
}

#[cfg(not(feature = "jit"))]
fn read_rust(_: &str, file_name: &str) -> Result<Vec<Kernel>> {
    Err(without_jit(&format!("{file_name}: reading Rust")))
}

#[cfg(not(feature = "jit"))]
fn spirv(_: &Kernel, _: &proof::Claims, _: bool) -> Result<Vec<u8>> {
    Err(without_jit("SPIR-V"))
}

/// The refusal of what only the feature `jit` compiles in, and the remedy.
#[cfg(not(feature = "jit"))]
fn without_jit(what: &str) -> Error {
    let remedy = "cargo run --release --features jit --bin usm -- ..";
    Error::unable(format!("{what} is not in this build (feature `jit`); this one has it: {remedy}"))
}

fn refusal_error(kernel: &Kernel, refusal: &usm_kernel_ir::Refusal) -> Error {
    Error::bad(format!("{}: {}", kernel.locate(refusal.place), refusal.message))
}

/// The kernel of this name, or the only one.
pub(crate) fn choose<'k>(kernels: &'k [Kernel], name: Option<&str>) -> Result<&'k Kernel> {
    usm_kernel_jit::choose(kernels, name).map_err(|message| match name {
        None if kernels.len() > 1 => Error::bad(message).in_field("--kernel"),
        _ => Error::bad(message),
    })
}
