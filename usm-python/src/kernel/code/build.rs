//! Builds of a kernel for the host and for devices, at first need.

use std::sync::Arc;
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use usm_core::backend::Dyn;
use usm_core::{Context, Selector};
use usm_kernel::backend::driver::is_better_rounded;
use usm_kernel::{BuildError, Code as Text, Formats, Function, Module};
use usm_kernel_ir::emit;
use usm_kernel_ir::emit::checked;

use super::super::compiled::{self, Compiled};
use super::super::disk_cache;
use super::{ALL, Code, Host, Open, SETS, Variant};
use crate::device::runtime::Stream;
use crate::text::log;

impl Code {
    /// Whether a launch over items takes the code that gets the sizes of the range, and rounds the
    /// range up: the first, the second.
    pub(crate) fn guard(&self, context: &Context<Dyn>, global: &[u64], grouped: bool) -> (bool, bool) {
        if !self.answers.guarded {
            return (false, false);
        }
        let rounds = !grouped && is_better_rounded(context.info(), global);
        (rounds || !Module::formats(context).contains(Formats::OPENCL_C), rounds)
    }

    /// Machine code of the host that checks at least these indices, compiled once, and the indices
    /// that it checks; `None` where the kernel is interpreted.
    pub(crate) fn compiled(&self, py: Python<'_>, open: Open) -> PyResult<Option<(Arc<Compiled>, Open)>> {
        compiled::prepare(py)?;
        let host = self.host.lock_of(py);
        let mut host = host.lock_py_attached(py).map_err(|_| self.error("a compilation that failed"))?;
        let has = |host: &[(Open, Host)], open| host.iter().any(|(known, _)| *known == open);
        let open = if open == 0 || has(&host, open) || host.len() < SETS { open } else { ALL };
        let mut first_use = None;
        if !has(&host, open) {
            let start = Instant::now();
            let claims = (open != 0).then(|| self.claims_of(open));
            let made = py.detach(|| Compiled::of(&self.ir, claims.as_ref(), self.apart));
            host.push((open, made.map(|compiled| compiled.map(Arc::new))));
            first_use = Some(start.elapsed());
        }
        let found = host.iter().find(|(known, _)| *known == open).map(|(_, host)| host.clone());
        drop(host);
        if let Some(time) = first_use {
            log::debug(py, "usm.kernel", || {
                let how = match &found {
                    Some(Ok(Some(compiled))) => compiled.to_string(),
                    Some(Ok(None)) => "the interpreter".to_owned(),
                    Some(Err(reason)) => format!("nothing: {reason}"),
                    None => "nothing".to_owned(),
                };
                format!("{} on the host by {how}, ready in {:.1} ms", self.ir.name, time.as_secs_f64() * 1e3)
            });
        }
        let found = found.unwrap_or(Ok(None)).map_err(|reason| self.error(&reason))?;
        Ok(found.map(|compiled| (compiled, open)))
    }

    /// Builds the function for a device, from the cache if possible, and caches the runtime's code.
    fn build(&self, context: &Context<Dyn>, variant: Variant) -> Result<Function<Dyn>, BuildError> {
        let Variant { checks, scalar, guarded } = variant;
        let (ir, bounds, formats) = (&self.ir, &self.bounds, Module::formats(context));
        let name = if checks { checked::function(ir) } else { emit::function(ir) };
        let (text, bytes);
        let source = if formats.contains(Formats::OPENCL_C) {
            text = if checks { checked::opencl_c(ir, bounds) } else { emit::opencl_c(ir) };
            Text::OpenClC(&text)
        } else if formats.contains(Formats::SPIR_V) {
            bytes = if checks { checked::spirv(ir, bounds) } else { emit::spirv(ir) };
            Text::SpirV(&bytes)
        } else {
            text = if checks { checked::cuda_c(ir, bounds) } else { emit::cuda_c(ir) };
            Text::CudaC(&text)
        };
        let mut options = String::new();
        for (_, option) in [(scalar, emit::SCALAR_LOOPS), (guarded, emit::GUARD)].iter().filter(|one| one.0) {
            if matches!(source, Text::OpenClC(_)) {
                options = options + option + " ";
            }
        }
        let info = context.info();
        let device =
            [&info.name, &info.vendor, &info.platform, &info.driver_version].map(ToString::to_string);
        let file = disk_cache::name_of((source, &options, info.backend.to_string(), device));
        let known = disk_cache::read(&file).and_then(|code| Module::build_native(context, &code).ok());
        // Cached code that the driver refuses is built again.
        if let Some(function) = known.and_then(|module| module.function(&name).ok()) {
            return Ok(function);
        }
        let module = Module::build_with(context, source, &options)?;
        if let Some(code) = module.native() {
            disk_cache::write(&file, &code);
        }
        module.function(&name)
    }

    /// The code for the device of a queue, built once for its context.
    pub(crate) fn function(
        &self,
        py: Python<'_>,
        stream: &Arc<Stream>,
        variant: Variant,
    ) -> PyResult<Function<Dyn>> {
        let (context, key) = (stream.context(), (stream.context().id(), variant));
        compiled::prepare(py)?;
        let functions = self.functions.lock_of(py);
        let mut functions = functions.lock_py_attached(py).map_err(|_| self.error("a build that failed"))?;
        if let Some((_, function)) = functions.iter().find(|(known, _)| *known == key) {
            return Ok(function.clone());
        }
        let start = Instant::now();
        let built = py.detach(|| self.build(context, variant));
        let function = built.map_err(|error| self.error(&error.to_string()))?;
        functions.push((key, function.clone()));
        drop(functions);
        log::debug(py, "usm.kernel", || {
            let (device, time) = (Selector::of(context.info()), start.elapsed());
            format!("{} on {device}, ready in {:.1} ms", self.ir.name, time.as_secs_f64() * 1e3)
        });
        Ok(function)
    }
}
