//! Conversions of numbers: the kernel of gathers, with other types at its two ends and another last
//! statement.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use usm_core::Number;
use usm_core::backend::{Conversion, StridedAxis};

use super::{GATHER, Launch, gather};

/// The numbers of a launch: everything in parts of a number.
pub(super) struct Work {
    pub(super) launch: Launch,
    /// The lowest number of the source: indices are not negative.
    pub(super) src: usize,
}

impl Work {
    /// `None` if the kernel does not take these numbers.
    pub(super) fn of(conversion: &Conversion<'_>) -> Option<Self> {
        let (to, from) = (conversion.dst_number.part().1, conversion.src_number.part().1);
        let is_aligned = |axis: &StridedAxis| axis.to % to == 0 && axis.from.unsigned_abs() % from == 0;
        let starts = (conversion.dst as usize % to, conversion.src as usize % from);
        if starts != (0, 0) || !conversion.axes.iter().all(is_aligned) {
            return None;
        }
        let in_parts =
            |axis: &StridedAxis| StridedAxis { to: axis.to / to, from: axis.from / from as isize, ..*axis };
        let axes: Vec<StridedAxis> = conversion.axes.iter().map(in_parts).collect();
        let below = axes.iter().filter(|axis| axis.from < 0);
        let first: usize = below.map(|axis| axis.from.unsigned_abs() * (axis.extent - 1)).sum();
        let src = (conversion.src as usize).checked_sub(first * from)?;
        let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.extent))?;
        Some(Self { launch: gather(&axes, count, first)?, src })
    }
}

/// The place of all that is added to the kernel's text.
const PLACE: &str = "@0:60:13";

/// The kernel's text for two types.
pub(super) fn text(to: Number, from: Number) -> String {
    let (to_part, from_part) = (to.part().0, from.part().0);
    let (head, _) = GATHER.rsplit_once("(store #0").unwrap_or((GATHER, ""));
    let head = head
        .replace("\"dst\" i16", &format!("\"dst\" {to_part}"))
        .replace("\"src\" i16", &format!("\"src\" {from_part}"));
    let at = |variable: u8, part: u8| {
        let first = format!("(var u64 ${variable} {PLACE})");
        match part {
            0 => first,
            _ => format!("(add u64 {first} (lit u64 0x1 {PLACE}) {PLACE})"),
        }
    };
    let load = |part| format!("(load {from_part} #1 {} {PLACE})", at(3, part));
    let is_true = |part| format!("(ne bool {} (lit {from_part} 0x0 {PLACE}) {PLACE})", load(part));
    let truth = || match from.is_complex() {
        true => format!("(or-else bool {} {} {PLACE})", is_true(0), is_true(1)),
        false => is_true(0),
    };
    let as_byte = || format!("(cast u8 {} {PLACE})", truth());
    let cast = |ty: &str, value: String| match ty == to_part {
        true => value,
        false => format!("(cast {to_part} {value} {PLACE})"),
    };
    let real = match (to, from) {
        (Number::Bool, _) => as_byte(),
        (_, Number::Bool) => cast("u8", as_byte()),
        _ => cast(from_part, load(0)),
    };
    let store = |part, value: &str| format!("(store #0 {} {value} {PLACE})", at(2, part));
    let mut stores = store(0, &real);
    if to.is_complex() {
        let imaginary = match from.is_complex() {
            true => cast(from_part, load(1)),
            false => format!("(lit {to_part} 0x0 {PLACE})"),
        };
        stores.push_str(&store(1, &imaginary));
    }
    head + &stores + ") (do) @0:12:5)))"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kernel is one that its verifier accepts and its writers write.
    #[test]
    fn kernels_for_every_pair_of_types() {
        for to in Number::ALL {
            for from in Number::ALL {
                let source = text(to, from);
                let kernel = usm_kernel_ir::text::parse(&source)
                    .unwrap_or_else(|error| panic!("{to:?} of {from:?}: {error}"));
                let verified = usm_kernel_ir::verify(&kernel);
                assert!(verified.is_ok(), "{to:?} of {from:?}: {verified:?}\n{source}");
                assert!(usm_kernel_ir::emit::cuda_c(&kernel).contains("copy_gather"));
            }
        }
    }
}
