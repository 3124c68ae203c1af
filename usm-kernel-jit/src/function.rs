//! Kernels that are compiled at run time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use usm_core::backend::Dyn;
use usm_core::{Context, Queue};
use usm_kernel::backend::Programmable;
use usm_kernel_ir::print::has_sound_lines;
use usm_kernel_ir::{Kernel, Parameter, Structure, text};

use crate::device::{DeviceCodes, Variant};
use crate::error::{CompileError, LaunchError};
use crate::host::{HostCode, HostCodes};
use crate::launch::Launch;
use crate::program::{Open, Program};

/// A kernel that was compiled at run time. A clone is another handle.
///
/// Each device's code is built at the first launch there, once for its context, also if several
/// threads launch at the same time. A child of a fork does not use a function that another thread
/// was building then.
pub struct Function<B: Programmable = Dyn>(Arc<Inner<B>>);

struct Inner<B: Programmable> {
    program: Arc<Program>,
    host: Mutex<HostCodes>,
    devices: Mutex<DeviceCodes<B>>,
}

impl<B: Programmable> Clone for Function<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Programmable> fmt::Debug for Function<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.name()).finish()
    }
}

/// Compiles the only kernel of a text in Rust: a function with `#[kernel]`.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{Host, QueueOrder, UsmVec};
/// use usm_kernel_jit::{Argument, compile};
///
/// let saxpy = compile(
///     "#[kernel]
///     fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
///         let i = global_id(0);
///         y[i] += a * x[i];
///     }",
/// )?;
/// let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
/// let x = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.0, 2.0, 3.0])?;
/// let mut y = UsmVec::<f32, Host, _>::zeroed(&queue, 3)?;
/// let arguments = [Argument::value(2.0_f32), Argument::read(&x), Argument::write(&mut y)];
/// saxpy.launch(&queue, &[3]).run(&arguments)?.wait()?;
/// assert_eq!(*y.read()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`CompileError`], with line and column.
#[cfg(feature = "rust")]
pub fn compile<B: Programmable>(source: &str) -> Result<Function<B>, CompileError> {
    Function::from_rust(source, "kernel.rs", None)
}

impl<B: Programmable> Function<B> {
    /// Compiles a kernel of a text in Rust. `file` names the text in messages. `kernel` chooses the
    /// kernel; without it the text has one.
    ///
    /// # Errors
    /// [`CompileError`], with file, line and column where it has them.
    #[cfg(feature = "rust")]
    pub fn from_rust(source: &str, file: &str, kernel: Option<&str>) -> Result<Self, CompileError> {
        let kernels = usm_kernel_rust::read(source, file).map_err(|error| CompileError(error.to_string()))?;
        let kernel =
            choose(&kernels, kernel).map_err(|message| CompileError(format!("{file}: {message}")))?;
        Self::verify_all(kernel.clone())
    }

    /// Compiles the text of a kernel's nodes. `file` names it in messages.
    ///
    /// # Errors
    /// [`CompileError`], with line and column.
    pub fn from_nodes(source: &str, file: &str) -> Result<Self, CompileError> {
        let kernel = text::parse(source).map_err(|refusal| {
            let place = refusal.place;
            CompileError(format!("{file}:{}:{}: {}", place.line, place.column, refusal.message))
        })?;
        Self::new(kernel)
    }

    /// Verifies a kernel that anybody made.
    ///
    /// # Errors
    /// [`CompileError`]: what the verifier refuses, and structures whose fields have several types:
    /// nothing shows that their fields share no bytes. They are read from Rust.
    pub fn new(kernel: Kernel) -> Result<Self, CompileError> {
        let is_mixed = |(parameter, one): &&(Parameter, Structure)| {
            matches!(parameter, Parameter::Array(_)) && one.columns().len() > 1
        };
        if let Some((_, structure)) = kernel.structures.iter().find(is_mixed) {
            let (kernel, name) = (&kernel.name, &structure.name);
            return Err(CompileError(format!(
                "kernel {kernel}: structure {name} has fields of several types, which only texts in Rust have"
            )));
        }
        Self::verify_all(kernel)
    }

    /// Verifies a kernel of the reader of Rust.
    fn verify_all(kernel: Kernel) -> Result<Self, CompileError> {
        if !has_sound_lines(&kernel) {
            return Err(CompileError(format!("kernel {}: what it prints may be stored twice", kernel.name)));
        }
        let program = Arc::new(Program::new(kernel)?);
        Ok(Self(Arc::new(Inner { program, host: Mutex::default(), devices: Mutex::default() })))
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.program.kernel().name
    }

    /// The kernel and its proofs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.0.program
    }

    /// A launch over `global` work-items, the fastest dimension last, before it runs.
    pub fn launch<'l>(&'l self, queue: &'l Queue<B>, global: &[u64]) -> Launch<'l, B> {
        Launch::new(self, queue, global)
    }

    /// The code for the host that checks at least these indices, and those that it checks; `None`
    /// where the kernel is interpreted.
    pub(crate) fn host_code(&self, open: Open) -> Result<(Option<Arc<HostCode>>, Open), LaunchError> {
        // No two arrays share memory: what is written is borrowed for the launch alone.
        let (code, open, _) = lock(&self.0.host).get(&self.0.program, open, true);
        let code = code.map_err(|reason| LaunchError::Refused(self.0.program.located(&reason)))?;
        Ok((code, open))
    }

    /// The code for a device. Other threads that launch there meanwhile wait for it.
    pub(crate) fn device_code(
        &self,
        context: &Context<B>,
        variant: Variant,
    ) -> Result<usm_kernel::Function<B>, LaunchError> {
        let mut devices = lock(&self.0.devices);
        if let Some(function) = devices.find(context, variant) {
            return Ok(function);
        }
        let function = self.0.program.build(context, variant)?;
        devices.insert(variant, &function);
        Ok(function)
    }
}

/// A lock whose value is whole after a panic: entries are added when they are complete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel of this name, or the only one.
///
/// # Errors
/// A message with the names that there are.
pub fn choose<'k>(kernels: &'k [Kernel], name: Option<&str>) -> Result<&'k Kernel, String> {
    let names = || {
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        names.join(", ")
    };
    match (kernels, name) {
        ([], _) => Err("no function with `#[kernel]`".to_owned()),
        (_, Some(name)) => {
            let mut matches = kernels.iter().filter(|kernel| kernel.name == name);
            match (matches.next(), matches.next()) {
                (Some(one), None) => Ok(one),
                (Some(one), Some(two)) => {
                    let [one, two] = [one, two].map(|kernel| kernel.locate(kernel.place));
                    Err(format!("two kernels `{name}`, at {one} and at {two}: rename one"))
                }
                (None, _) => Err(format!("no kernel `{name}`; there are: {}", names())),
            }
        }
        ([one], None) => Ok(one),
        _ => Err(format!("several kernels, choose one: {}", names())),
    }
}
