//! Groups for launches that state none, over ranges that may be rounded up to whole groups.

use usm_core::{BackendKind, DeviceInfo, DeviceType};

use crate::module::FunctionInfo;
use crate::range::NdRange;

/// Items of a group on a processor, and elsewhere.
const ON_A_PROCESSOR: u64 = 1024;
const ELSEWHERE: u64 = 256;
/// Items in a row of a group of several dimensions: neighbours in memory, which a device reads at
/// once.
const ROW: u64 = 32;
/// A runtime that finds a divisor of the range from this one on chooses well by itself.
const ENOUGH: u64 = 16;

/// Whether a launch over this range, the fastest dimension last, is faster with groups of ours over
/// a range rounded up than with those that its runtime chooses. CUDA, HIP and Level Zero choose
/// none, or a divisor of the range, and others take one item if the fastest size is a prime.
#[must_use]
pub fn is_better_rounded(info: &DeviceInfo, global: &[u64]) -> bool {
    if matches!(info.backend, BackendKind::Cuda | BackendKind::Hip | BackendKind::LevelZero) {
        return true;
    }
    let Some(fastest) = global.last().copied() else { return false };
    let has_divisor = || (ENOUGH..=ELSEWHERE).any(|size| fastest % size == 0);
    fastest > ON_A_PROCESSOR && fastest % ENOUGH != 0 && !has_divisor()
}

/// A range of whole groups that contains this one; `None` if the sizes would overflow.
pub(crate) fn rounded<const D: usize>(
    info: &DeviceInfo,
    function: &FunctionInfo,
    global: [u64; D],
) -> Option<NdRange<D>> {
    let limit = info.max_work_group_size.min(function.max_work_group_size).max(1);
    let most = if info.device_type == DeviceType::Cpu { ON_A_PROCESSOR } else { ELSEWHERE };
    let most = most.min(1 << limit.ilog2());
    // Powers of two, so that any of them fit together.
    let row = function.preferred_multiple.max(ROW).checked_next_power_of_two()?.min(most);
    let mut local = [1; D];
    let mut left = most;
    for dimension in (0..D).rev() {
        let size = global[dimension].checked_next_power_of_two()?;
        let wanted = if dimension + 1 == D && D > 1 { size.min(row) } else { size };
        local[dimension] = wanted.min(left);
        left /= local[dimension];
    }
    // What the slower dimensions do not need makes rows longer.
    if let Some(fastest) = local.last_mut() {
        let size = global[D - 1].checked_next_power_of_two()?;
        while left > 1 && *fastest < size {
            (*fastest, left) = (*fastest * 2, left / 2);
        }
    }
    let mut sizes = global;
    for (size, local) in sizes.iter_mut().zip(local) {
        *size = size.checked_next_multiple_of(local)?;
    }
    NdRange::new(sizes, local).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(backend: BackendKind, device_type: DeviceType) -> DeviceInfo {
        DeviceInfo::new(backend, device_type, "a device")
    }

    fn sizes<const D: usize>(global: [u64; D], limit: u64) -> ([u64; D], [u64; D]) {
        let device = info(BackendKind::Cuda, DeviceType::Gpu);
        let mut function = FunctionInfo::new(limit);
        function.preferred_multiple = 32;
        let range = rounded(&device, &function, global).unwrap();
        (range.global().sizes(), range.local().sizes())
    }

    #[test]
    fn groups_suit_the_device_at_any_size() {
        assert_eq!(sizes([16_777_259], 1024), ([16_777_472], [256]));
        assert_eq!(sizes([16_777_216], 1024), ([16_777_216], [256]));
        assert_eq!(sizes([5], 1024), ([8], [8]));
        assert_eq!(sizes([1], 1024), ([1], [1]));
        assert_eq!(sizes([1000], 100), ([1024], [64]));
        assert_eq!(sizes([4099, 4093], 1024), ([4104, 4096], [8, 32]));
        assert_eq!(sizes([1, 4093], 1024), ([1, 4096], [1, 256]));
        assert_eq!(sizes([3, 4093], 1024), ([4, 4096], [4, 64]));
        assert_eq!(sizes([4099, 3], 1024), ([4160, 4], [64, 4]));
        assert_eq!(sizes([7, 11, 13], 1024), ([7, 16, 16], [1, 16, 16]));
        assert_eq!(sizes([1009, 1, 2], 1024), ([1024, 1, 2], [128, 1, 2]));
        let device = info(BackendKind::Cuda, DeviceType::Gpu);
        assert!(rounded(&device, &FunctionInfo::new(256), [u64::MAX]).is_none());
    }

    #[test]
    fn a_runtime_that_chooses_well_chooses() {
        let processor = info(BackendKind::OpenCl, DeviceType::Cpu);
        let found = [4096, 4_000_000, 1000, 997, 4_194_301, 1009 * 1013]
            .map(|size| is_better_rounded(&processor, &[3, size]));
        assert_eq!(found, [false, false, false, false, true, true]);
        assert!(is_better_rounded(&info(BackendKind::LevelZero, DeviceType::Gpu), &[4096]));
    }
}
