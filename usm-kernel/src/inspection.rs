//! Inspections of launches, and the kernels that were read for them.

use alloc::vec;
use alloc::vec::Vec;

use spin::Mutex;
use usm_kernel_ir::inspect::{Clash, Inspector, Verdict};
use usm_kernel_ir::proof::{self, Shape};
use usm_kernel_ir::{Deed, Literal, Parameter, Site, text};

use crate::proof::{ItemOrder, RaceDeed, RaceSide, ShownRace};

/// Kernels, by the address of their text; the latest one is last.
static INSPECTORS: Mutex<Vec<(usize, Inspector)>> = Mutex::new(Vec::new());
/// Kernels that are kept.
const KEPT: usize = 64;

/// What an inspection says about the order of a launch's items.
pub(crate) enum InspectedOrder {
    /// It decides.
    Known(ItemOrder),
    /// The launch is unordered.
    Unordered,
    /// Nothing.
    Unknown,
}

/// The order of a launch's items, and whether all indices are inside, for a kernel in the text form
/// and the numbers of the launch: lengths by parameter, scalars in order.
pub(crate) fn answers(
    nodes: &'static str,
    (global, local): (&[u64], &[u64]),
    lengths: &[usize],
    scalars: &[u64],
) -> Option<(InspectedOrder, bool)> {
    let (mut inspector, at) = take(nodes)?;
    let kernel = inspector.kernel();
    let (mut of_arrays, mut values) = (vec![0; kernel.arrays.len()], Vec::new());
    for parameter in &kernel.parameters {
        let Parameter::Array(id) = parameter else { continue };
        let (argument, times) = kernel.argument_of(*id);
        *of_arrays.get_mut(id.0 as usize)? = lengths.get(argument).map_or(0, |len| *len as u64 * times);
    }
    for (id, length) in kernel.logs() {
        *of_arrays.get_mut(id.0 as usize)? = length;
    }
    for (value, bits) in kernel.values.iter().zip(scalars) {
        values.push(Literal::integer(value.ty, *bits));
    }
    let shape = Shape { global, local, lengths: &of_arrays, values: &values };
    let order = match inspector.verdict(&shape) {
        Verdict::Free => InspectedOrder::Known(ItemOrder::Inspected),
        Verdict::Race(clash) => InspectedOrder::Known(ItemOrder::Race(shown(nodes, &inspector, &clash))),
        Verdict::Undecided(_) if inspector.is_launch_unordered(&shape) => InspectedOrder::Unordered,
        Verdict::Undecided(_) => InspectedOrder::Unknown,
    };
    let runs = matches!(order, InspectedOrder::Known(ItemOrder::Inspected) | InspectedOrder::Unordered);
    let are_inside = runs && inspector.open_bounds(&shape, true).is_empty();
    keep(at, inspector);
    Some((order, are_inside))
}

/// The inspector of a kernel, which is read if it is not kept. A thread that finds the list in use
/// reads the kernel again, so nobody waits: not for another thread, nor in the child of a fork for
/// one that it does not have.
fn take(nodes: &'static str) -> Option<(Inspector, usize)> {
    let at = nodes.as_ptr() as usize;
    if let Some(mut inspectors) = INSPECTORS.try_lock() {
        if let Some(place) = inspectors.iter().position(|(other, _)| *other == at) {
            return Some((inspectors.remove(place).1, at));
        }
    }
    let kernel = text::parse(nodes).ok()?;
    let claims = proof::claims(&kernel).ok()?;
    Some((Inspector::new(kernel, claims), at))
}

fn keep(at: usize, inspector: Inspector) {
    let Some(mut inspectors) = INSPECTORS.try_lock() else { return };
    if inspectors.iter().any(|(other, _)| *other == at) {
        return;
    }
    if inspectors.len() >= KEPT {
        inspectors.remove(0);
    }
    inspectors.push((at, inspector));
}

fn shown(nodes: &'static str, inspector: &Inspector, clash: &Clash) -> ShownRace {
    let kernel = inspector.kernel();
    // Names live as long as the text that they are part of.
    let static_name = |name: &str| {
        let start = nodes.find(name).unwrap_or(0);
        nodes.get(start..start + name.len()).filter(|text| *text == name).unwrap_or("?")
    };
    let side = |(site, deed): &(Site, Deed)| {
        let mut item = [0; 3];
        // No inspection has items beyond 2^29.
        item.iter_mut().zip(site.item.ids()).for_each(|(to, id)| *to = *id as u32);
        let deed = match deed {
            Deed::Read => RaceDeed::Read,
            Deed::Write => RaceDeed::Write,
            Deed::Atomic => RaceDeed::Atomic,
        };
        let (line, column) = (site.place.line, site.place.column);
        RaceSide { item, dimensions: kernel.dimensions, deed, line, column }
    };
    let [one, two] = &clash.accesses;
    ShownRace {
        array: static_name(&kernel.array(clash.array).name),
        element: clash.index,
        file: kernel.files.get(one.0.place.file as usize).map_or("?", |file| static_name(file)),
        sides: [side(one), side(two)],
    }
}

#[cfg(test)]
mod tests {
    use super::{INSPECTORS, keep, take};

    const NODES: &str = include_str!("strided/gather.ir");

    #[test]
    fn nobody_waits_for_the_list() {
        let held = INSPECTORS.lock();
        let (inspector, at) = take(NODES).expect("it is read again");
        keep(at, inspector);
        assert!(held.is_empty());
    }
}
