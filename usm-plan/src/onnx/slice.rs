//! The bounds of a Slice, when they do not depend on the data.

use super::proto::NodeProto;

/// The bounds of a Slice, an entry for each axis that it names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) starts: Vec<i64>,
    pub(super) ends: Vec<i64>,
    pub(super) axes: Vec<i64>,
    pub(super) steps: Vec<i64>,
}

/// What a Slice selects of its input.
pub(super) struct Selection {
    /// Bounds of the same elements, inside of the input. A step is not 1 only where more than one
    /// element is selected.
    pub(super) inside: Bounds,
    /// The extents of the result.
    pub(super) dims: Vec<u64>,
}

impl Selection {
    /// Of an input of these extents. `None` if the bounds are unknown, by `numbers`, or no bounds.
    pub(super) fn of(
        node: &NodeProto,
        dims: &[u64],
        numbers: impl Fn(&str) -> Option<Vec<i64>>,
    ) -> Option<Self> {
        // An input, or in older operator sets an attribute. `default` if there is neither.
        let list = |at: usize, attribute: &str, default: Option<Vec<i64>>| match node
            .input
            .get(at)
            .filter(|name| !name.is_empty())
        {
            Some(name) => numbers(name),
            None => {
                let attribute_value = node.attribute.iter().find(|a| a.name == attribute);
                attribute_value.map(|a| a.ints.clone()).or(default)
            }
        };
        let (starts, ends) = (list(1, "starts", None)?, list(2, "ends", None)?);
        let count = starts.len();
        let axes = list(3, "axes", Some((0..count as i64).collect()))?;
        let steps = list(4, "steps", Some(vec![1; count]))?;
        if [&ends, &axes, &steps].iter().any(|list| list.len() != count) {
            return None;
        }
        let bounds = Bounds { starts, ends, axes, steps };
        let (mut inside, mut left) = (Bounds::default(), dims.to_vec());
        for at in 0..count {
            let axis_number = bounds.axes[at];
            let axis =
                if axis_number < 0 { axis_number.checked_add(dims.len() as i64)? } else { axis_number };
            let place = usize::try_from(axis).ok()?;
            let extent = i64::try_from(*dims.get(place)?).ok()?;
            let (start, end, step, count) =
                inside_of(extent, bounds.starts[at], bounds.ends[at], bounds.steps[at])?;
            left[place] = count;
            inside.starts.push(start);
            inside.ends.push(end);
            inside.axes.push(axis);
            inside.steps.push(step);
        }
        Some(Self { inside, dims: left })
    }
}

/// Start, end and step that select the same elements of an extent and lie inside of it, and the
/// number of these elements. `None` for a step of 0.
fn inside_of(extent: i64, start: i64, end: i64, step: i64) -> Option<(i64, i64, i64, u64)> {
    if step == 0 {
        return None;
    }
    let from_zero = |at: i64| if at < 0 { at.saturating_add(extent) } else { at };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let (start, end) = (from_zero(start).clamp(low, high), from_zero(end).clamp(low, high));
    let length = if step > 0 { end - start } else { start - end };
    let count = if length > 0 { length.unsigned_abs().div_ceil(step.unsigned_abs()) } else { 0 };
    Some(match count {
        0 => (0, 0, 1, 0),
        1 => (start, start + 1, 1, 1),
        // An end before the first element cannot be written as a number of 0 and above.
        _ if end < 0 => (start, i64::MIN, step, count),
        _ => (start, end, step, count),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination beside a plain walk, as the standard describes it.
    #[test]
    fn bounds_inside_select_the_same_elements() {
        let walk = |extent: i64, start: i64, end: i64, step: i64| -> Vec<i64> {
            let from_zero = |at: i64| if at < 0 { i128::from(at) + i128::from(extent) } else { at.into() };
            let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
            let bound = |at: i64| from_zero(at).clamp(low.into(), high.into()) as i64;
            let (mut at, end) = (bound(start), bound(end));
            let mut found = Vec::new();
            while if step > 0 { at < end } else { at > end } {
                found.push(at);
                at = at.saturating_add(step);
            }
            found
        };
        let far = [i64::MIN, i64::MIN + 1, i64::from(i32::MAX), i64::MAX - 1, i64::MAX];
        let ends: Vec<i64> = (-7..=7).chain(far).collect();
        for extent in 0..=5 {
            for &start in &ends {
                for &end in &ends {
                    for step in (-6..=6).chain(far).filter(|&step| step != 0) {
                        let expected = walk(extent, start, end, step);
                        let place = format!("{extent}: {start}..{end} by {step}");
                        let (from, to, by, count) = inside_of(extent, start, end, step).unwrap();
                        assert_eq!(count, expected.len() as u64, "{place}");
                        assert_eq!(walk(extent, from, to, by), expected, "{place}");
                        assert_eq!(inside_of(extent, from, to, by), Some((from, to, by, count)), "{place}");
                    }
                }
            }
        }
        for (start, end) in [(0, 4), (3, 0), (i64::MAX, i64::MIN), (2, 2)] {
            assert_eq!(inside_of(4, start, end, 0), None, "{start}..{end}");
        }
    }
}
