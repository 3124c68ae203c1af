//! A launch whose arguments are read and whose code is compiled.

use std::sync::Arc;

use pyo3::prelude::*;
use usm_kernel_ir::proof::Shape;
use usm_kernel_ir::{Literal, Parameter};
use usm_kernel_jit::program::{Answer, Open, Words};

use super::argument::{Argument, Memory};
use super::code::{Code, Source};
use super::structure::Origins;
use crate::device::runtime::Stream;
use crate::storage::transfer;

/// The arguments, the code and the queue of a launch.
pub(crate) struct PreparedLaunch {
    pub(crate) code: Arc<Code>,
    /// The caller's, then those of the log.
    pub(crate) arguments: Vec<Argument>,
    /// The number of the caller's.
    pub(crate) caller_arguments: usize,
    /// The origin of these.
    pub(super) origins: Origins,
    pub(crate) stream: Arc<Stream>,
    pub(crate) global: Vec<u64>,
    /// `None` if the kernel needs no groups and none were requested.
    pub(crate) local: Option<Vec<u64>>,
    /// The scalars, in the order of the nodes' values.
    pub(crate) values: Vec<Literal>,
    /// The length of each array of the nodes.
    pub(crate) lengths: Vec<u64>,
    /// Whether the kernel refuses launches without a proof.
    pub(super) strict: bool,
}

impl PreparedLaunch {
    /// The indices that may be outside, for some contents of the arrays.
    pub(super) fn open(&self) -> Open {
        self.with_shape(|shape| self.code.program.open(shape, self.strict))
    }

    pub(crate) fn with_shape<R>(&self, ask: impl FnOnce(&Shape<'_>) -> R) -> R {
        let Self { global, lengths, values, .. } = self;
        let local = self.local.as_deref().unwrap_or(&[1; 3][..global.len()]);
        ask(&Shape { global, local, lengths, values })
    }

    /// Two arguments that share memory which the kernel writes, as a message.
    fn overlap(&self) -> Option<String> {
        self.overlap_where(|one, other| !one.alternates_with(other))
            .map(|shared| format!("{shared}: two work-items may touch one element of them"))
    }

    /// Two arguments that share elements which the kernel writes, as a message. A checked launch
    /// interprets copies, so it would see no race between them.
    pub(super) fn unchecked(&self) -> Option<String> {
        let shares = |one: &Memory, other: &Memory| !one.alternates_with(other) && one.shares_bytes(other);
        self.overlap_where(shares).map(|shared| {
            format!("{shared}: a checked launch sees no race through both; pass copies, or one of them")
        })
    }

    /// The first two arguments whose memory overlaps, of which the kernel writes one.
    fn overlap_where(&self, shares: impl Fn(&Memory, &Memory) -> bool) -> Option<String> {
        let code = &self.code;
        let parameters = code.sources.iter().zip(&code.ir().parameters).enumerate();
        let arrays: Vec<_> = parameters
            .filter_map(|(place, (source, parameter))| {
                let (Source::Array(argument), Parameter::Array(id)) = (source, parameter) else {
                    return None;
                };
                let Argument::Array(memory) = self.arguments.get(*argument)? else { return None };
                let (start, len) = memory.span();
                let start = memory.side.storage.address().wrapping_add(start);
                Some((&code.ir().array(*id).name, start, len, code.writes(place), memory))
            })
            .collect();
        for (place, (name, start, len, writes, memory)) in arrays.iter().enumerate() {
            for (other, other_start, other_len, other_writes, other_memory) in arrays.iter().skip(place + 1) {
                let first = (*start).max(*other_start);
                let end = start.wrapping_add(*len).min(other_start.wrapping_add(*other_len));
                if first < end && (*writes || *other_writes) && shares(memory, other_memory) {
                    let place = code.ir().locate(code.ir().place);
                    let bytes = end - first;
                    return Some(format!("{place}: `{name}` and `{other}` share {bytes} bytes"));
                }
            }
        }
        None
    }

    /// Whether threads may run groups at once: no two items race, and no two arrays overlap.
    pub(crate) fn may_be_divided(&self) -> bool {
        self.with_shape(|shape| self.code.program.may_be_divided(shape)) && self.overlap().is_none()
    }

    /// `proven`, `inspected`, or the place and the condition that is not proven. `consequence` says
    /// what becomes of a launch with an index that is not proven.
    pub(super) fn proof(&self, consequence: &str) -> String {
        let words = Words {
            otherwise: consequence,
            remedy: &|has_barriers| remedy(has_barriers, self.strict),
            at_least: &|least| format!("if i >= {least}:"),
            below: &|end| format!("if i < {end}:"),
            spelled: &|condition| condition.replace(".len()", ".size"),
            element: &|array, index| self.code.element(array, index, &self.arguments),
            overlap: self.overlap(),
        };
        match self.with_shape(|shape| self.code.program.answer(shape, &words)) {
            Answer::Proven => "proven".to_owned(),
            Answer::Inspected => "inspected".to_owned(),
            Answer::Open(reason) | Answer::Unordered(reason) => reason,
        }
    }

    /// Copies written arrays back to the process's arrays.
    pub(super) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        for (place, source) in self.code.sources.iter().enumerate() {
            if !matches!(source, Source::Array(_)) || !self.code.writes(place) {
                continue;
            }
            let memory = self.code.memory(*source, &self.arguments)?;
            if let Some(origin) = &memory.origin {
                transfer::copy(py, origin, &memory.side)?;
            }
        }
        Ok(())
    }
}

/// What to do about two items that touch one element; a barrier orders local memory.
pub(super) fn remedy(has_barriers: bool, is_strict: bool) -> String {
    let barrier = has_barriers.then_some("put `usm.barrier(usm.CLK_LOCAL_MEM_FENCE)` between");
    let unproven = is_strict.then_some("launch it without `strict=True`");
    let ways =
        ["use `usm.atomic`, for `+=` `usm.atomic.add`", "write elements that follow from the item's ids"];
    let ways: Vec<&str> = ways.into_iter().chain(barrier).chain(unproven).collect();
    match ways.split_last() {
        Some((last, others)) => format!("{}, or {last}", others.join(", ")),
        None => String::new(),
    }
}
