//! Launches of kernels that were compiled at run time.

mod log_arrays;
mod prepare;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use usm_core::backend::HostTasks;
use usm_core::{Access, BackendKind, ErrorKind, Event, Queue, Usage, UsmVec};
use usm_kernel::Module;
use usm_kernel::backend::{Programmable, Slot};
use usm_kernel_ir as ir;
use usm_kernel_ir::emit::checked;

use crate::argument::Argument;
use crate::device::{self, DeviceArgument, Space, Variant};
use crate::error::LaunchError;
use crate::function::Function;
use crate::program::{ALL, Answer, Open, Program, Words};

use self::prepare::LaunchPlan;
use self::work::{HostWork, check_record, fault, interpreter_arguments};

/// A launch, before it runs.
#[derive(Debug)]
#[must_use = "nothing runs before `run`"]
pub struct Launch<'l, B: Programmable> {
    function: &'l Function<B>,
    queue: &'l Queue<B>,
    global: Vec<u64>,
    local: Option<Vec<u64>>,
    after: &'l [Event<B>],
    needs_proof: bool,
}

impl<'l, B: Programmable> Launch<'l, B> {
    pub(crate) fn new(function: &'l Function<B>, queue: &'l Queue<B>, global: &[u64]) -> Self {
        Self { function, queue, global: global.to_vec(), local: None, after: &[], needs_proof: false }
    }

    /// Sets the size of a group in each dimension. Without it a kernel that needs groups gets its
    /// declared group, or one group of all items; for other kernels the device chooses.
    pub fn groups(self, local: &[u64]) -> Self {
        Self { local: Some(local.to_vec()), ..self }
    }

    /// Starts after these events too. The launch always waits for earlier uses of its arguments.
    pub fn after(self, events: &'l [Event<B>]) -> Self {
        Self { after: events, ..self }
    }

    /// Refuses the launch unless all indices are proven to be inside. By default it then runs with
    /// checks, and returns when it is complete.
    pub fn require_proof(self) -> Self {
        Self { needs_proof: true, ..self }
    }

    fn program(&self) -> &'l Program {
        self.function.program()
    }

    fn refuse(&self, message: &str) -> LaunchError {
        LaunchError::Refused(self.program().located(message))
    }

    /// What is proven about the launch: nothing runs.
    ///
    /// # Errors
    /// [`LaunchError::Refused`]: range or arguments do not fit.
    pub fn proof(&self, arguments: &[Argument<'_, B>]) -> Result<Answer, LaunchError> {
        self.with_logs(arguments, |arguments| self.proof_of(&self.prepare(arguments)?))
    }

    fn proof_of(&self, plan: &LaunchPlan<'_, B>) -> Result<Answer, LaunchError> {
        if self.program().kernel().trusted {
            let reason = "it is an `unsafe fn`, for which its caller answers: nothing is proven";
            return Ok(Answer::Open(self.program().located(reason)));
        }
        Ok(self.answer(plan, "so it is checked as it runs"))
    }

    fn answer(&self, plan: &LaunchPlan<'_, B>, alternative: &str) -> Answer {
        self.program().answer(&plan.shape(), &words(alternative))
    }

    /// Interprets the launch on copies of its arguments, in three orders of items and groups, and
    /// looks for an index outside, a race, uninitialised local memory and a divergent barrier. No
    /// argument changes. What the kernel prints is printed once, if there is no fault. Takes some
    /// 50 ns for each executed node.
    ///
    /// # Errors
    /// [`LaunchError::Fault`] or [`LaunchError::Outside`]: the first fault, with both places.
    pub fn check(&self, arguments: &[Argument<'_, B>]) -> Result<(), LaunchError> {
        self.with_logs(arguments, |arguments| self.check_prepared(&self.prepare(arguments)?))
    }

    fn check_prepared(&self, plan: &LaunchPlan<'_, B>) -> Result<(), LaunchError> {
        let (program, bytes) = (self.program(), self.contents(plan)?);
        let arguments = interpreter_arguments(program, &plan.values, &bytes);
        let sizes = (&*plan.global, &*plan.interpreted_groups());
        let failure = |error| fault(program, error);
        program.check(sizes, &arguments, false, &mut || true).map_err(failure)?;
        if !program.kernel().prints.is_empty() {
            let contents = program.interpret(sizes, &arguments, &mut || true).map_err(failure)?;
            self.show_interpreted(&contents.unwrap_or_default());
        }
        Ok(())
    }

    /// Interprets the launch once, on copies of its arguments, and returns what the arrays among
    /// the parameters contain then, in their order: what every correct run gives, but an
    /// [unordered](Answer::Unordered) launch may give something else. `None` if `go_on`, called
    /// every few milliseconds, returned false. Nothing is printed.
    ///
    /// # Errors
    /// [`LaunchError::Outside`] and [`LaunchError::Refused`].
    pub fn interpret(
        &self,
        arguments: &[Argument<'_, B>],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, LaunchError> {
        let contents = self.with_logs(arguments, |arguments| {
            let plan = self.prepare(arguments)?;
            let bytes = self.contents(&plan)?;
            let arguments = interpreter_arguments(self.program(), &plan.values, &bytes);
            let sizes = (&*plan.global, &*plan.interpreted_groups());
            let contents = self.program().interpret(sizes, &arguments, go_on);
            contents.map_err(|error| fault(self.program(), error))
        })?;
        let kernel = self.program().kernel();
        let arguments = kernel.arguments();
        let arrays = kernel.parameters.iter().filter(|one| matches!(one, ir::Parameter::Array(_)));
        let is_stated: Vec<bool> = arrays.map(|array| arguments.contains(array)).collect();
        let visible = |contents: Vec<_>| {
            let all = contents.into_iter().zip(is_stated);
            all.filter_map(|(bytes, is_stated)| is_stated.then_some(bytes)).collect()
        };
        Ok(contents.map(visible))
    }

    /// Runs the launch. It must be shown that no two items race, or the launch is
    /// [unordered](Answer::Unordered). Indices that are not proven are checked, and the launch then
    /// is complete on return, as one that prints is.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn run(&self, arguments: &[Argument<'_, B>]) -> Result<Event<B>, LaunchError> {
        if self.program().kernel().trusted {
            return Err(self.refuse("it is an `unsafe fn`: launch it by `run_vouched`"));
        }
        self.with_logs(arguments, |arguments| self.run_ordered(&self.prepare(arguments)?))
    }

    fn run_ordered(&self, plan: &LaunchPlan<'_, B>) -> Result<Event<B>, LaunchError> {
        let is_unordered = match self.program().order(&plan.shape(), &words(""), Answer::Proven) {
            Answer::Open(reason) => return Err(LaunchError::Refused(reason)),
            Answer::Unordered(reason) if self.needs_proof => return Err(LaunchError::Refused(reason)),
            Answer::Unordered(_) => true,
            Answer::Proven | Answer::Inspected => false,
        };
        // SAFETY: no two items race, which was proven or inspected for this launch, or which the
        // code of an unordered one ensures.
        unsafe { self.run_prepared(plan, is_unordered) }
    }

    /// As [`run`](Self::run), for kernels that are an `unsafe fn` and for launches of which it is
    /// not proven that no two items race. The caller answers for that.
    ///
    /// # Safety
    /// No two work-items of this launch touch one element without an order, unless both read it or
    /// both accesses are atomic.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub unsafe fn run_vouched(&self, arguments: &[Argument<'_, B>]) -> Result<Event<B>, LaunchError> {
        self.with_logs(arguments, |arguments| {
            let plan = self.prepare(arguments)?;
            // SAFETY: the caller's promise.
            unsafe { self.run_prepared(&plan, false) }
        })
    }

    /// # Safety
    /// No two items race, or the launch is unordered.
    unsafe fn run_prepared(
        &self,
        plan: &LaunchPlan<'_, B>,
        is_unordered: bool,
    ) -> Result<Event<B>, LaunchError> {
        let open = self.program().open(&plan.shape(), self.needs_proof);
        if open != 0 && self.needs_proof {
            return Err(match self.answer(plan, "and the launch needs a proof") {
                Answer::Open(reason) | Answer::Unordered(reason) => LaunchError::Refused(reason),
                _ => self.refuse("an index is not proven to be inside"),
            });
        }
        if Module::formats(self.queue.context()).is_empty() {
            // SAFETY: the caller's promise.
            return unsafe { self.run_on_host(plan, open, is_unordered) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.run_on_device(plan, open) }
    }

    /// # Safety
    /// No two items race, or the launch is unordered.
    unsafe fn run_on_device(&self, plan: &LaunchPlan<'_, B>, open: Open) -> Result<Event<B>, LaunchError> {
        let (program, context) = (self.program(), self.queue.context());
        let (is_guarded, is_rounded) = program.guard(context, &plan.global, plan.local.is_some());
        let scalar = program.needs_scalar_loops(context.info(), &plan.values, |_| true);
        let variant = Variant { checks: open != 0, scalar, guarded: is_guarded };
        let function = self.function.device_code(context, variant)?;
        // No `RunRecord`: its text would have to live as long as the program.
        let mut record = match open {
            0 => None,
            _ => Some(UsmVec::<u32, usm_core::Device, B>::zeroed(self.queue, checked::WORDS)?),
        };
        let mut memory = plan.memory.iter();
        let address = record.as_ref().map(|words| words.allocation().as_ptr() as usize);
        let pieces = program
            .pass(&plan.shape(), is_guarded, address, |_| memory.next().map_or(0, |memory| memory.address()));
        let words: Vec<[u8; 8]> = pieces.iter().map(DeviceArgument::word).collect();
        let slots: Vec<Slot<'_>> = pieces.iter().zip(&words).map(|(one, word)| one.slot(word)).collect();
        let mut usages = plan.usages();
        usages.extend(record.as_ref().map(|words| Usage::of(words.allocation(), Access::Write)));
        let space = Space { global: &plan.global, local: plan.local.as_deref(), rounded: is_rounded };
        // SAFETY: the code comes from verified nodes. Its indices are inside, which was proven for
        // this launch or is checked by the code; no two items race, by the caller's promise. Arrays
        // that it writes are borrowed alone, by `Argument::write`.
        let event = unsafe { device::submit(self.queue, &function, space, &slots, &usages, self.after)? };
        drop(usages);
        if let Some(words) = &mut record {
            event.wait()?;
            let words = words.to_vec(self.queue)?;
            let words = core::array::from_fn(|place| words.get(place).copied().unwrap_or(0));
            check_record(program, ALL, &words)?;
        }
        Ok(event)
    }

    /// # Safety
    /// No two items race, or the launch is unordered.
    unsafe fn run_on_host(
        &self,
        plan: &LaunchPlan<'_, B>,
        open: Open,
        is_unordered: bool,
    ) -> Result<Event<B>, LaunchError> {
        let program = self.program();
        let info = self.queue.context().info();
        let local = plan.local.as_deref();
        program
            .check_limits(info, &plan.global, local.unwrap_or(&[]), &plan.values)
            .map_err(|message| self.refuse(&message))?;
        if !matches!(info.backend, BackendKind::Host | BackendKind::Mock) {
            let operation = "code of kernels";
            return Err(usm_core::Error::from(ErrorKind::Unsupported { operation }).into());
        }
        let (code, open) = self.function.host_code(open)?;
        let work = HostWork {
            program: Arc::clone(self.function.program()),
            code,
            open,
            is_unordered,
            addresses: plan.memory.iter().map(|memory| memory.address()).collect(),
            bytes: plan.memory.iter().map(|memory| memory.bytes()).collect(),
            values: plan.values.clone(),
            lengths: plan.lengths.clone(),
            global: plan.global.clone(),
            local: plan.local.clone(),
        };
        let outcome = Arc::new(Mutex::new(Ok(())));
        let result = Arc::clone(&outcome);
        let task = move || {
            // SAFETY: the arrays are live and not used in conflict until the event of this task is
            // complete; the rest is the caller's promise.
            let ran = unsafe { work.run() };
            *result.lock().unwrap_or_else(PoisonError::into_inner) = ran;
        };
        let run = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: `submit` keeps the memory of the usages alive and ordered until the task is
            // complete; the task owns everything else.
            unsafe { B::HostTasks::run(queue, after, task) }
        };
        // SAFETY: the task accesses the memory of the usages as they declare; arrays that it writes
        // are borrowed alone; after an error the task was not submitted.
        let event = unsafe { self.queue.submit(&plan.usages(), self.after, run)? };
        event.wait()?;
        let ran = core::mem::replace(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner), Ok(()));
        ran.map(|()| event)
    }
}

/// How the launches of Rust programs say what is proven.
fn words(alternative: &str) -> Words<'_> {
    Words {
        otherwise: alternative,
        remedy: &|_| String::new(),
        at_least: &|least| format!("if i >= {least}"),
        below: &|end| format!("if i < {end}"),
        spelled: &|condition| condition,
        element: &|_, number| number.to_string(),
        overlap: None,
    }
}
