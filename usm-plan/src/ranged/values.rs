//! The values that a caller gives a dimension.

use usm_pool::range::Dimension;

use crate::number::number;

/// The values that a caller gives a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Values {
    /// This value.
    One(u64),
    /// Every one of these.
    Every(Dimension),
}

impl core::str::FromStr for Values {
    type Err = String;

    /// `VALUE` or `LOW..HIGH[:STEP]`, both ends included; the default step is 1.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((low, rest)) = text.split_once("..") else { return number(text).map(Self::One) };
        let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
        let (low, high, step) = (number(low)?, number(high)?, number(step)?);
        if low > high {
            return Err(format!("{low}..{high} has no value: {high} is below {low}"));
        }
        if step == 0 {
            return Err("a step of 0 leads to no other value".to_owned());
        }
        Ok(Self::Every(Dimension { low, high, step }))
    }
}
