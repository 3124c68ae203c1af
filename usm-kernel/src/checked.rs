//! Interprets launches instead of running them.

use alloc::vec::Vec;
use core::fmt;

use usm_core::{Allocation, Backend, Event, Host, Queue, UsmVec};
use usm_kernel_ir::{Argument, Fault, Literal, Parameter, check, text};
#[cfg(feature = "std")]
use usm_kernel_ir::{Input, Interpreter, Kernel, Order as ItemOrder};

use crate::argument::{Arguments, RawArgument, Signature};
use crate::error::LaunchError;
use crate::executable::{DeviceCode, parts};
use crate::generated::{VouchedKernel, Written};
use crate::launch::Launch;
use crate::order::Order;

/// Maximum number of statements of all items together in one order: about a minute.
const STEPS: u64 = 1 << 30;

/// Why a launch did not pass [`Launch::check`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CheckError {
    /// The launch itself would be refused, or its arguments could not be read.
    Launch(LaunchError),
    /// The kernel was not made by the attribute [`kernel`](crate#one-source), so there is nothing
    /// to interpret.
    NoSource {
        /// Name of the kernel.
        kernel: &'static str,
    },
    /// A fault of the work-items.
    Fault {
        /// Name of the kernel.
        kernel: &'static str,
        /// The fault, its place and its work-items.
        fault: Fault,
    },
    /// The check itself refused the kernel, the range or the arguments.
    Refused(usm_kernel_ir::CheckError),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launch(error) => error.fmt(f),
            Self::NoSource { kernel } => {
                write!(
                    f,
                    "kernel {kernel} is not written with the attribute `kernel`: there is nothing to interpret"
                )
            }
            Self::Fault { kernel, fault } => write!(f, "kernel {kernel}: {fault}"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CheckError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Launch(error) => Some(error),
            Self::NoSource { .. } => None,
            Self::Fault { fault, .. } => Some(fault),
            Self::Refused(error) => Some(error),
        }
    }
}

impl From<LaunchError> for CheckError {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl<B: Backend, const D: usize, O: Order> Launch<'_, B, D, O> {
    /// Interprets the launch on copies of its arguments, in three orders of items and groups, and
    /// returns the first fault: an index outside of its array, two work-items that race, local or
    /// private memory that is read before it is written, or a barrier that not all items of a group
    /// reach. It names both places, `file:line:column`, and both work-items. Nothing runs on the
    /// device and no argument changes. What the kernel prints is printed once, if there is no
    /// fault.
    ///
    /// For tests and debugging: takes some 50 ns for each executed node and 200 bytes for each
    /// element. Also checks launches that are refused because a race cannot be excluded;
    /// [`check_vouched`](Self::check_vouched) checks kernels that are an `unsafe fn`.
    ///
    /// As [`check`](Self::check), for a kernel that is an `unsafe fn`, which a launch trusts. Safe,
    /// because nothing runs.
    ///
    /// ```
    /// use usm_kernel::prelude::*;
    /// use usm_kernel::usm_core::backend::host::HostHeap;
    /// use usm_kernel::usm_core::{Host, QueueOrder, UsmVec};
    ///
    /// /// Vouches for what is wrong: nothing lies between the write and the read of a neighbour's element.
    /// #[kernel(group = 4)]
    /// unsafe fn shift(a: &mut [u32]) {
    ///     #[local]
    ///     let mut lm: [u32; 4];
    ///     let (l, i) = (local_id(0), global_id(0));
    ///     lm[l] = a[i];
    ///     a[i] = lm[(l + 1) % 4];
    /// }
    ///
    /// let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    /// let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 8)?;
    /// let fault = Launch::new(&queue, NdRange::new([8], [4])?).check_vouched(shift, (&mut a,)).unwrap_err();
    /// assert!(fault.to_string().contains("element 1 of `lm` is read before it is written"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn check_vouched<K, A>(self, kernel: K, arguments: A) -> Result<(), CheckError>
    where
        K: Written<D, Vouching = ((),)>,
        A: Arguments<<K as Written<D>>::Arguments, B>,
    {
        self.check(VouchedKernel(kernel), arguments)
    }

    /// # Errors
    /// [`CheckError`].
    pub fn check<K: DeviceCode<D>, A: Arguments<K::Arguments, B>>(
        self,
        kernel: K,
        mut arguments: A,
    ) -> Result<(), CheckError> {
        let launch = self.with_default_groups(&kernel)?;
        let space = launch.space();
        let no_source = CheckError::NoSource { kernel: K::NAME };
        let Some(Ok(ir)) = K::IR.map(text::parse) else { return Err(no_source) };
        let raw = arguments.raw();
        let lengths = K::Arguments::raw_lengths(&raw);
        let rows = K::Arguments::TABLE.iter().zip(lengths.as_ref());
        let mut bytes = rows.map(|(row, elements)| elements.saturating_mul(row.element_bytes));
        let mut pointers = Vec::new();
        let mut inputs = Vec::new();
        let mut parameters = ir.parameters.iter();
        K::Arguments::pass(&raw, |argument| {
            let len = bytes.next().unwrap_or(0);
            inputs.push(match (argument, parameters.next()) {
                (RawArgument::Pointer(address), _) => {
                    pointers.push((address, len));
                    InterpreterArgument::Memory(pointers.len() - 1)
                }
                (RawArgument::Columns(address, count), _) => {
                    pointers.push((address, len));
                    inputs.extend((0..count).map(|_| InterpreterArgument::Memory(pointers.len() - 1)));
                    let _ = parameters.nth(count.saturating_sub(2));
                    return Ok(());
                }
                (RawArgument::Table(table), _) => InterpreterArgument::Table(table),
                (RawArgument::Fields(bytes, sizes), first) => {
                    let mut fields = first.into_iter().chain(parameters.by_ref());
                    inputs.extend(parts(bytes, sizes).map(|part| match fields.next() {
                        Some(Parameter::Value(id)) => {
                            InterpreterArgument::Value(Literal::from_ne_bytes(ir.value(*id).ty, part))
                        }
                        _ => InterpreterArgument::Table(part),
                    }));
                    return Ok(());
                }
                (RawArgument::Value(value), Some(Parameter::Value(id))) => {
                    InterpreterArgument::Value(Literal::from_ne_bytes(ir.value(*id).ty, value))
                }
                (RawArgument::Value(value), _) => InterpreterArgument::Table(value),
                #[cfg(feature = "std")]
                (RawArgument::Log(_), _) => return Ok(()),
            });
            Ok(())
        })?;
        let mut copies = Vec::new();
        let mut outcome = Ok(());
        let mut rest = pointers.into_iter();
        arguments.for_each_allocation(|allocation| {
            let Some((address, len)) = rest.next() else { return };
            if outcome.is_ok() {
                outcome =
                    copy(space.queue, space.after, allocation, address, len).map(|copy| copies.push(copy));
            }
        });
        outcome?;
        let logs = ir.logs();
        let zeros: Vec<Vec<u8>> = logs
            .iter()
            .map(|(id, length)| alloc::vec![0; (length * ir.array(*id).element.bytes()) as usize])
            .collect();
        let logs_given = zeros.iter().map(|bytes| Argument::Array(bytes));
        let all: Vec<Argument<'_>> = inputs
            .iter()
            .map(|one| match one {
                InterpreterArgument::Memory(place) => {
                    Argument::Array(copies.get(*place).map_or(&[], |copy| &copy[..]))
                }
                InterpreterArgument::Table(table) => Argument::Array(table),
                InterpreterArgument::Value(value) => Argument::Value(*value),
            })
            .chain(logs_given)
            .collect();
        let (global, ones) = (space.range.global().sizes(), [1; D]);
        // If groups have no meaning, each item is one group.
        let local = if space.has_groups && ir.needs_groups() { space.range.local().sizes() } else { ones };
        check(&ir, &global, &local, &all, STEPS).map_err(|error| match error {
            usm_kernel_ir::CheckError::Fault(fault) => CheckError::Fault { kernel: K::NAME, fault },
            other => CheckError::Refused(other),
        })?;
        #[cfg(feature = "std")]
        print(&ir, &global, &local, &all);
        Ok(())
    }
}

/// Prints what a launch without faults prints.
#[cfg(feature = "std")]
fn print(kernel: &Kernel, global: &[u64], local: &[u64], arguments: &[Argument<'_>]) {
    let logs = kernel.logs();
    if logs.is_empty() {
        return;
    }
    let Ok(input) = Input::new(kernel, global, local, arguments) else { return };
    let run = Interpreter::new(kernel, input, ItemOrder::Forwards, u64::MAX).unwatched().run();
    let contents = run.unwrap_or_default();
    // The arrays for it are the last ones.
    crate::print::show_printed(
        kernel,
        contents.get(contents.len().saturating_sub(logs.len())..).unwrap_or_default(),
    );
}

/// An argument for the interpreter.
enum InterpreterArgument<'g> {
    Memory(usize),
    Table(&'g [u8]),
    Value(Literal),
}

/// The bytes of an array, after all work that writes it.
fn copy<B: Backend>(
    queue: &Queue<B>,
    after: &[Event<B>],
    from: &Allocation<B>,
    address: usize,
    len: usize,
) -> Result<Vec<u8>, LaunchError> {
    for event in after {
        event.wait()?;
    }
    if len == 0 {
        return Ok(Vec::new());
    }
    let mut to = UsmVec::<u8, Host, B>::zeroed(queue, len)?;
    let offset = address.saturating_sub(from.as_ptr() as usize);
    // SAFETY: the copy writes only bytes, which are all valid values of `u8`, and the array keeps
    // its allocation.
    let event = queue.copy_bytes(unsafe { to.allocation_mut() }, 0, from, offset, len)?;
    event.wait()?;
    Ok(to.read()?.to_vec())
}
