//! Code that a runtime compiles or loads: modules and their functions.

use alloc::borrow::ToOwned;
use alloc::ffi::CString;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "std")]
use usm_core::ends;
use usm_core::{BackendKind, Context};

use crate::backend::{Programmable, spir_v};
use crate::shape::Shape;

bitflags::bitflags! {
    /// Formats of code that a device's runtime takes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Formats: u8 {
        /// OpenCL C source.
        const OPENCL_C = 1;
        /// A SPIR-V module for kernels.
        const SPIR_V = 2;
        /// NVIDIA's assembly text.
        const PTX = 4;
        /// NVIDIA's machine code; on HIP AMD's, a code object.
        const CUBIN = 8;
        /// CUDA C++ source, compiled by NVRTC, or on HIP by hipRTC, if that library is found.
        const CUDA_C = 16;
    }
}

impl fmt::Display for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Formats, &str); 5] = [
            (Formats::OPENCL_C, "OpenCL C"),
            (Formats::SPIR_V, "SPIR-V"),
            (Formats::PTX, "PTX"),
            (Formats::CUBIN, "cubin"),
            (Formats::CUDA_C, "CUDA C"),
        ];
        let mut names = NAMES.iter().filter(|(format, _)| self.contains(*format)).map(|(_, name)| *name);
        f.write_str(names.next().unwrap_or("no code"))?;
        names.try_for_each(|name| write!(f, ", {name}"))
    }
}

/// Code for a device. Text must not contain NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code<'c> {
    /// OpenCL C source.
    OpenClC(&'c str),
    /// The bytes of a SPIR-V module, in either byte order.
    SpirV(&'c [u8]),
    /// NVIDIA's assembly text.
    Ptx(&'c str),
    /// NVIDIA's machine code for one generation of devices; on HIP a code object, AMD's.
    Cubin(&'c [u8]),
    /// CUDA C++ source; functions are found by their unmangled names (`extern "C"`).
    CudaC(&'c str),
}

impl Code<'_> {
    /// The format, as one flag.
    #[must_use]
    pub const fn format(&self) -> Formats {
        match self {
            Self::OpenClC(_) => Formats::OPENCL_C,
            Self::SpirV(_) => Formats::SPIR_V,
            Self::Ptx(_) => Formats::PTX,
            Self::Cubin(_) => Formats::CUBIN,
            Self::CudaC(_) => Formats::CUDA_C,
        }
    }
}

/// Why code could not be built or a function not be found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Code in a format that the device's runtime does not take.
    Format {
        /// Format of the code.
        format: Formats,
        /// The formats that the runtime takes.
        formats: Formats,
        /// The runtime.
        backend: BackendKind,
    },
    /// A kernel without code in a format that the device's runtime takes.
    NoCode {
        /// Name of the kernel.
        kernel: &'static str,
        /// The formats that the runtime takes.
        formats: Formats,
        /// The runtime.
        backend: BackendKind,
    },
    /// The compiler refused the code.
    Compile {
        /// The compiler's log; empty if the runtime does not pass it on.
        log: String,
        /// Options of the build.
        options: String,
        /// The runtime.
        backend: BackendKind,
        /// The runtime's own code.
        native: Option<i64>,
    },
    /// The module has no such function.
    NoFunction {
        /// The requested name.
        name: String,
        /// The existing names, if the runtime lists them.
        names: String,
    },
    /// Text with a NUL in it: source, options or a name.
    Nul {
        /// The text.
        text: &'static str,
        /// Position of the NUL in bytes.
        position: usize,
    },
    /// A declared signature that does not match the function's.
    Signature {
        /// Name of the function.
        function: String,
        /// Parameters of the function.
        expected: usize,
        /// Declared parameters, including local arrays.
        found: usize,
    },
    /// The runtime.
    Runtime(usm_core::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format { format, formats, backend } => {
                write!(f, "{backend}: {format} given, this device takes {formats}")
            }
            Self::NoCode { kernel, formats, backend } => {
                write!(f, "kernel {kernel} has no code for {backend}: this device takes {formats}")
            }
            Self::Compile { log, options, backend, native } => {
                write!(f, "{backend}: the code does not compile")?;
                if !options.is_empty() {
                    write!(f, " with {options:?}")?;
                }
                if let Some(code) = native {
                    write!(f, " (native code {code})")?;
                }
                match log.trim_end() {
                    "" => f.write_str("; the runtime does not say why"),
                    log => write!(f, ":\n{log}"),
                }
            }
            Self::NoFunction { name, names } if names.is_empty() => {
                write!(f, "the module has no function {name:?}")
            }
            Self::NoFunction { name, names } => {
                write!(f, "the module has no function {name:?}; it has {names}")
            }
            Self::Nul { text, position } => write!(f, "the {text} has a NUL at byte {position}"),
            Self::Signature { function, expected, found } => {
                write!(f, "function {function} has {expected} parameters, {found} were declared")
            }
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => Some(error),
            _ => None,
        }
    }
}

impl From<usm_core::Error> for BuildError {
    fn from(error: usm_core::Error) -> Self {
        Self::Runtime(error)
    }
}

/// A runtime's description of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Maximum work-items in a group of this function.
    pub max_work_group_size: u64,
    /// Group sizes should be multiples of this; 1 if the runtime does not know.
    pub preferred_multiple: u64,
    /// Local memory that the function itself declares, in bytes; 0 if the runtime does not know.
    pub local_mem_size: u64,
    /// Private memory of a work-item, in bytes; 0 if the runtime does not know.
    pub private_mem_size: u64,
    /// The required local size; the last dimension is the fastest one, as in
    /// [`NdRange`](crate::NdRange). Missing leading dimensions are 1.
    pub required_group: Option<[u64; 3]>,
    /// The parameters; `None` if the runtime does not even know their number.
    pub parameters: Option<Vec<Shape>>,
}

impl FunctionInfo {
    /// A description with only this group size.
    #[must_use]
    pub const fn new(max_work_group_size: u64) -> Self {
        Self {
            max_work_group_size,
            preferred_multiple: 1,
            local_mem_size: 0,
            private_mem_size: 0,
            required_group: None,
            parameters: None,
        }
    }
}

/// Code that a context's device can run.
pub struct Module<B: Programmable> {
    raw: B::Module,
    context: Context<B>,
    /// The kernels of SPIR-V code.
    kernels: spir_v::Kernels,
}

impl<B: Programmable> fmt::Debug for Module<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("context", &self.context.id()).field("raw", &self.raw).finish()
    }
}

impl<B: Programmable> Module<B> {
    /// The formats that the context's device takes; none on the host, whose kernels are written in
    /// Rust, and none of a runtime that is closed because the process ends or was forked.
    #[must_use]
    pub fn formats(context: &Context<B>) -> Formats {
        Self::taken_formats(context).unwrap_or(Formats::empty())
    }

    /// As [`formats`](Self::formats), or the error of a closed runtime.
    pub(crate) fn taken_formats(context: &Context<B>) -> usm_core::Result<Formats> {
        #[cfg(feature = "std")]
        let _inside = enter(context, ends::ask)?;
        Ok(B::formats(context.raw()))
    }

    /// Builds `code` for the context's device. Takes as long as the runtime's compiler does.
    ///
    /// # Errors
    /// [`BuildError::Compile`] with the compiler's log, [`BuildError::Format`], or the runtime's.
    pub fn build(context: &Context<B>, code: Code<'_>) -> Result<Self, BuildError> {
        Self::build_with(context, code, "")
    }

    /// As [`build`](Self::build), with options for the compiler, separated by spaces.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_with(context: &Context<B>, code: Code<'_>, options: &str) -> Result<Self, BuildError> {
        let (format, formats) = (code.format(), Self::taken_formats(context)?);
        if !formats.contains(format) {
            return Err(BuildError::Format { format, formats, backend: context.info().backend });
        }
        let kernels = match code {
            Code::SpirV(module) => {
                let (backend, options) = (context.info().backend, options.to_owned());
                let refusal = |log| BuildError::Compile { log, options, backend, native: None };
                spir_v::check(module).map_err(refusal)?
            }
            _ => spir_v::Kernels::new(),
        };
        #[cfg(feature = "std")]
        let _inside = enter(context, || ends::Build::begin(context.info().backend))?;
        let raw = B::build(context.raw(), &code, options)?;
        Ok(Self { raw, context: context.clone(), kernels })
    }

    /// The runtime's compiled form of the code, to be stored and passed to
    /// [`build_native`](Self::build_native). `None` if the runtime does not give it, like Level Zero
    /// and, except over OpenCL, SYCL.
    #[must_use]
    pub fn native(&self) -> Option<Vec<u8>> {
        #[cfg(feature = "std")]
        let _inside = enter(&self.context, ends::work).ok()?;
        B::native(&self.raw)
    }

    /// Builds a result of [`native`](Self::native) in another context or process, without the
    /// compiler if the runtime can. It is valid for the same device and driver version; others may
    /// refuse it. The caller must keep it unchanged, because not every driver checks it.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_native(context: &Context<B>, code: &[u8]) -> Result<Self, BuildError> {
        #[cfg(feature = "std")]
        let _inside = enter(context, || ends::Build::begin(context.info().backend))?;
        let raw = B::build_native(context.raw(), code)?;
        Ok(Self { raw, context: context.clone(), kernels: spir_v::Kernels::new() })
    }

    /// The function of this name.
    ///
    /// # Errors
    /// [`BuildError::NoFunction`], or the runtime's.
    pub fn function(&self, name: &str) -> Result<Function<B>, BuildError> {
        let native = text("name of the function", name)?;
        #[cfg(feature = "std")]
        let _inside = enter(&self.context, ends::work)?;
        let (raw, mut info) = B::function(&self.raw, &native)?;
        if let Some(kernel) = self.kernels.get(name) {
            info.parameters = Some(merge_parameters(info.parameters, &kernel.parameters));
            info.required_group = info.required_group.or(kernel.required_group);
        }
        let (name, context) = (name.to_owned(), self.context.clone());
        Ok(Function(Arc::new(Inner { raw, info, name, context })))
    }
}

/// Begins calls of the context's runtime, if it has one.
#[cfg(feature = "std")]
fn enter<B: Programmable, G>(
    context: &Context<B>,
    begin: impl FnOnce() -> usm_core::Result<G>,
) -> usm_core::Result<Option<G>> {
    let on_host = context.info().backend == BackendKind::Host;
    (!on_host).then(begin).transpose()
}

/// A function of a [`Module`], which it keeps. Cloning it gives another handle to the same
/// function.
///
/// Its code is unchecked, so running it is `unsafe`: [`Launch::call`](crate::Launch::call). A
/// declared signature makes it safe: [`DeclaredFunction`](crate::DeclaredFunction).
pub struct Function<B: Programmable>(Arc<Inner<B>>);

struct Inner<B: Programmable> {
    raw: B::Function,
    info: FunctionInfo,
    name: String,
    context: Context<B>,
}

impl<B: Programmable> Clone for Function<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Programmable> fmt::Debug for Function<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.0.name).field("info", &self.0.info).finish()
    }
}

impl<B: Programmable> Function<B> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its limits and parameters, as the runtime reports them.
    #[must_use]
    pub fn info(&self) -> &FunctionInfo {
        &self.0.info
    }

    /// The context that it was built for.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        &self.0.context
    }

    pub(crate) fn raw(&self) -> &B::Function {
        &self.0.raw
    }
}

/// The parameters that the runtime reports, otherwise those that the module declares.
fn merge_parameters(own_shapes: Option<Vec<Shape>>, other_shapes: &[Shape]) -> Vec<Shape> {
    match own_shapes {
        Some(shapes) if shapes.len() == other_shapes.len() => {
            let one =
                |(shapes, other): (&Shape, &Shape)| if *shapes == Shape::Unknown { *other } else { *shapes };
            shapes.iter().zip(other_shapes).map(one).collect()
        }
        // The runtime reports another number by itself.
        Some(shapes) => shapes,
        None => other_shapes.to_vec(),
    }
}

/// `text` with a NUL at its end, for a runtime.
pub fn text(what: &'static str, text: &str) -> Result<CString, BuildError> {
    CString::new(text).map_err(|error| BuildError::Nul { text: what, position: error.nul_position() })
}
