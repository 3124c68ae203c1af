//! Code without a source: one small kernel as a SPIR-V module and as PTX text, both written by
//! hand.

mod spir_v;

use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::{Argument, BuildError, Code, Formats, Function, Launch, Module, Programmable};

use super::{queue, range, refused, runs_kernels};
use crate::{Fixture, skip};

/// `void put(unsigned *a, unsigned add, local unsigned *lm) { a[i] = lm[l] = i + add; }` for item
/// `i` with local id `l`.
const PUT_PTX: &str = "
.version 6.5
.target sm_75
.address_size 64

.extern .shared .align 16 .b8 memory[];

.visible .entry put(.param .u64 a, .param .u32 add, .param .u32 lm)
{
    .reg .b32 %group, %size, %l, %i, %add, %lm, %place, %value;
    .reg .b64 %a, %offset;
    ld.param.u64 %a, [a];
    ld.param.u32 %add, [add];
    ld.param.u32 %lm, [lm];
    cvta.to.global.u64 %a, %a;
    mov.u32 %group, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %l, %tid.x;
    mad.lo.s32 %i, %group, %size, %l;
    mov.u32 %place, memory;
    add.s32 %place, %place, %lm;
    mad.lo.s32 %place, %l, 4, %place;
    add.s32 %value, %i, %add;
    st.shared.u32 [%place], %value;
    ld.shared.u32 %value, [%place];
    mul.wide.u32 %offset, %i, 4;
    add.s64 %a, %a, %offset;
    st.global.u32 [%a], %value;
    ret;
}
";

/// The code receives a pointer, a value and local memory, in groups and at an interior pointer.
fn put_runs<B: Programmable>(fixture: &Fixture<'_, B>, put: &Function<B>) {
    if let Some(parameters) = &put.info().parameters {
        assert_eq!(parameters.len(), 3, "{parameters:?}");
    }
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let mut a = UsmVec::<u32, Device, B>::from_slice(&queue, &[7; 100]).expect("an array");
    let arguments =
        [Argument::write(&mut a).from_element(4), Argument::value(&1_000_u32), Argument::local::<u32>(16)];
    // SAFETY: 64 items from element 4 on lie inside; each has its own element there and in local
    // memory.
    let event = unsafe { Launch::new(&queue, range([64], [16])).call(put, &arguments) };
    drop(event.expect("a launch"));
    let expected: Vec<u32> = (0..100)
        .map(|place: u32| place.checked_sub(4).filter(|i| *i < 64).map_or(7, |i| 1_000 + i))
        .collect();
    assert_eq!(a.to_vec(&queue).expect("the result"), expected);
}

/// The function of `code`, or `None` after a report if the device does not take the format.
fn put<B: Programmable>(fixture: &Fixture<'_, B>, code: Code<'_>) -> Option<Function<B>> {
    let taken = Module::formats(fixture.context);
    if !runs_kernels(fixture.context) {
        return None;
    }
    if !taken.contains(code.format()) {
        let reason = format_args!("kernels from a binary: {} is not taken", code.format());
        skip::limit(fixture.context.info().backend, reason);
        return None;
    }
    let module = Module::build(fixture.context, code).expect("code that is right");
    Some(module.function("put").expect("a function"))
}

/// Global ids, an interior pointer, a value, local memory.
pub fn a_spir_v_module_runs<B: Programmable>(fixture: &Fixture<'_, B>) {
    let words = spir_v::put();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let Some(function) = put(fixture, Code::SpirV(&bytes)) else { return };
    put_runs(fixture, &function);
}

/// A module cut at any word is refused, and the process continues.
pub fn a_spir_v_module_cut_short_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    if !Module::formats(fixture.context).contains(Formats::SPIR_V) {
        return skip::limit(fixture.context.info().backend, "kernels from a binary: SPIR-V is not taken");
    }
    let words = spir_v::put();
    for len in [1, 4, 5, 8] {
        let bytes: Vec<u8> = words[..len].iter().flat_map(|word| word.to_le_bytes()).collect();
        match Module::build(fixture.context, Code::SpirV(&bytes)) {
            // A header without functions is an empty module.
            Ok(module) => {
                assert!(matches!(refused(module.function("put")), BuildError::NoFunction { .. }), "{len}");
            }
            Err(error) => {
                assert!(
                    matches!(error, BuildError::Compile { .. } | BuildError::Runtime(_)),
                    "{len}: {error}"
                );
            }
        }
    }
}

/// The driver's own assembler compiles it; NVRTC is not needed.
pub fn ptx_text_runs<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(function) = put(fixture, Code::Ptx(PUT_PTX)) else { return };
    put_runs(fixture, &function);
}
