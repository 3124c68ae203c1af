//! Reads the kernels of a Rust file.

use alloc::rc::Rc;
use core::fmt;

use proc_macro2::TokenStream;
use syn::{Error, Item};
use usm_kernel_ir::Kernel;

use crate::arguments::attribute_of;
use crate::attribute::nodes;
use crate::derive;
use crate::module::Module;
use crate::nesting::{self, STACK};

/// The reason for refusing a file: the first fault and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The file's name, as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The fault, and its correction.
    pub message: String,
    /// Whether the machine had no memory for the reader; the text may be right.
    pub out_of_memory: bool,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

impl core::error::Error for ReadError {}

/// The kernels of a file, verified and without races that every launch would have: functions with
/// `#[kernel]`, also in modules with or without `#[kernels]`. The rest of the file may be any Rust.
/// `name` is the file's name in places and errors.
///
/// # Errors
/// The first refusal. A text that is nested more than 512 levels deep is one: a level is an open
/// group, or an operator, a call or a keyword before the place in the same statement.
pub fn read(source: &str, name: &str) -> Result<Vec<Kernel>, ReadError> {
    // The caller's stack may have any size.
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name("usm-kernel-rust".into()).stack_size(STACK);
        match reader.spawn_scoped(scope, || read_parsed(source, name)) {
            Ok(reader) => reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                let message = format!("no thread with a stack of {STACK} bytes to read it: {error}");
                Err(ReadError { file: name.into(), line: 1, column: 1, message, out_of_memory: true })
            }
        }
    })
}

fn read_parsed(source: &str, name: &str) -> Result<Vec<Kernel>, ReadError> {
    let outcome = parse(source).and_then(|file| {
        let mut kernels = Vec::new();
        let module = Module { structures: derive::all(&file.items)?, ..Module::default() };
        items(&file.items, &Rc::new(module), &mut kernels)?;
        Ok(kernels)
    });
    let mut kernels = outcome.map_err(|error| {
        let start = error.span().start();
        // Messages with a second place were made before the file's name was known.
        let message = error.to_string().replace(&error.span().file(), name);
        ReadError {
            file: name.into(),
            line: start.line,
            column: start.column + 1,
            message,
            out_of_memory: false,
        }
    })?;
    kernels.iter_mut().for_each(|kernel| kernel.files = vec![name.into()]);
    Ok(kernels)
}

/// Like `syn::parse_file`, but limits the nesting to the reader's stack.
fn parse(source: &str) -> Result<syn::File, Error> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    // Empties a `#!` line but keeps its end, so that line numbers stay.
    let is_for_loader = source.strip_prefix("#!").is_some_and(|rest| !rest.trim_start().starts_with('['));
    let start = if is_for_loader { source.find('\n').unwrap_or(source.len()) } else { 0 };
    let tokens: TokenStream = source[start..].parse()?;
    nesting::check(&tokens)?;
    syn::parse2(tokens)
}

fn items(items_of: &[Item], module: &Rc<Module>, kernels: &mut Vec<Kernel>) -> Result<(), Error> {
    for item in items_of {
        match item {
            Item::Fn(function) => {
                if let Some(arguments) = attribute_of(function)? {
                    kernels.extend(nodes(function, &arguments, module)?);
                }
            }
            Item::Mod(inner) => {
                let Some((_, content)) = &inner.content else { continue };
                let shares = inner.attrs.iter().any(|attribute| {
                    attribute.path().segments.last().is_some_and(|last| last.ident == "kernels")
                });
                let module = match shares {
                    true => Module::of(content)?,
                    false => Module { structures: derive::all(content)?, ..Module::default() },
                };
                items(content, &Rc::new(module), kernels)?;
            }
            _ => {}
        }
    }
    Ok(())
}
