//! The elements of small tensors that are known before anything runs.

use crate::onnx::element::{self, BOOL, DOUBLE, FLOAT, INT32, INT64};
use crate::onnx::proto::TensorProto;

/// A larger tensor is no shape: its elements are not looked at.
pub(super) const MOST_ELEMENTS: u64 = 4096;

/// Elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Integers, and truth values as 0 and 1.
    Integers(Vec<i64>),
    /// Floating-point numbers of 32 or 64 bits.
    Reals(Vec<f64>),
}

impl Value {
    /// The elements of a small tensor whose data is in the file. `None` for other types than
    /// integers, bool, float and double.
    pub(super) fn of(tensor: &TensorProto) -> Option<Self> {
        let count = element_count(&tensor.dims)?;
        if count > MOST_ELEMENTS || tensor.data_location.unwrap_or(0) != 0 {
            return None;
        }
        let (raw, data_type) = (&tensor.raw_data, tensor.data_type);
        let narrow = || tensor.int32_data.iter().map(|&number| i64::from(number)).collect();
        let value = match data_type {
            FLOAT if raw.is_empty() => {
                Self::Reals(tensor.float_data.iter().map(|&number| f64::from(number)).collect())
            }
            FLOAT => Self::Reals(of_raw(raw, |bytes| f64::from(f32::from_le_bytes(bytes)))),
            DOUBLE if raw.is_empty() => Self::Reals(tensor.double_data.clone()),
            DOUBLE => Self::Reals(of_raw(raw, f64::from_le_bytes)),
            INT64 if raw.is_empty() => Self::Integers(tensor.int64_data.clone()),
            INT64 => Self::Integers(of_raw(raw, i64::from_le_bytes)),
            INT32 if !raw.is_empty() => {
                Self::Integers(of_raw(raw, |bytes| i64::from(i32::from_le_bytes(bytes))))
            }
            // uint32 and uint64 have a list of their own.
            12 | 13 if raw.is_empty() => {
                let numbers = tensor.uint64_data.iter().map(|&number| i64::try_from(number).ok());
                Self::Integers(numbers.collect::<Option<_>>()?)
            }
            12 => Self::Integers(of_raw(raw, |bytes| i64::from(u32::from_le_bytes(bytes)))),
            13 => {
                let numbers = of_raw(raw, u64::from_le_bytes).into_iter().map(|n| i64::try_from(n).ok());
                Self::Integers(numbers.collect::<Option<_>>()?)
            }
            2..=5 | INT32 | BOOL if raw.is_empty() => Self::Integers(narrow()),
            2 => Self::Integers(of_raw(raw, |[byte]| i64::from(byte))),
            3 => Self::Integers(of_raw(raw, |bytes| i64::from(i8::from_le_bytes(bytes)))),
            4 => Self::Integers(of_raw(raw, |bytes| i64::from(u16::from_le_bytes(bytes)))),
            5 => Self::Integers(of_raw(raw, |bytes| i64::from(i16::from_le_bytes(bytes)))),
            BOOL => Self::Integers(of_raw(raw, |[byte]| i64::from(byte != 0))),
            _ => return None,
        };
        (value.len() as u64 == count).then_some(value)
    }

    /// As a constant of the file.
    pub(super) fn to_tensor(&self, name: &str, data_type: i32, dims: &[u64]) -> TensorProto {
        let mut tensor = without_data(name, data_type, dims);
        if let (Self::Integers(numbers), INT64) = (self, data_type) {
            tensor.int64_data.clone_from(numbers);
        } else if let (Self::Integers(numbers), INT32 | BOOL) = (self, data_type) {
            tensor.int32_data = numbers.iter().map(|&number| number as i32).collect();
        }
        tensor
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(numbers) => numbers.len(),
            Self::Reals(numbers) => numbers.len(),
        }
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements at these places. `None` if one is outside.
    pub(super) fn at(&self, places: &[usize]) -> Option<Self> {
        Some(match self {
            Self::Integers(all) => {
                Self::Integers(places.iter().map(|&at| all.get(at).copied()).collect::<Option<_>>()?)
            }
            Self::Reals(all) => {
                Self::Reals(places.iter().map(|&at| all.get(at).copied()).collect::<Option<_>>()?)
            }
        })
    }

    pub(super) fn integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(numbers) => Some(numbers),
            Self::Reals(_) => None,
        }
    }

    pub(super) fn real(&self, at: usize) -> f64 {
        match self {
            Self::Integers(numbers) => numbers.get(at).map_or(0.0, |&number| number as f64),
            Self::Reals(numbers) => numbers.get(at).copied().unwrap_or(0.0),
        }
    }

    /// Elements of a type: integers wrap around, floats of 32 bits are rounded. `None` for types
    /// whose elements are not computed here.
    pub(super) fn from_reals(data_type: i32, numbers: impl Iterator<Item = f64>) -> Option<Self> {
        match data_type {
            FLOAT => Some(Self::Reals(numbers.map(|number| f64::from(number as f32)).collect())),
            DOUBLE => Some(Self::Reals(numbers.collect())),
            _ => Self::from_integers(data_type, numbers.map(|number| number as i128)),
        }
    }

    /// As [`Self::from_reals`], of integers.
    pub(super) fn from_integers(data_type: i32, numbers: impl Iterator<Item = i128>) -> Option<Self> {
        let wrap = |number: i128| -> Option<i64> {
            Some(match data_type {
                2 => i64::from(number as u8),
                3 => i64::from(number as i8),
                4 => i64::from(number as u16),
                5 => i64::from(number as i16),
                INT32 => i64::from(number as i32),
                INT64 => number as i64,
                BOOL => i64::from(number != 0),
                12 => i64::from(number as u32),
                13 => i64::try_from(number as u64).ok()?,
                _ => return None,
            })
        };
        match data_type {
            FLOAT => Some(Self::Reals(numbers.map(|number| f64::from(number as f32)).collect())),
            DOUBLE => Some(Self::Reals(numbers.map(|number| number as f64).collect())),
            _ => Some(Self::Integers(numbers.map(wrap).collect::<Option<_>>()?)),
        }
    }
}

/// A constant of the file whose data is not there.
pub(super) fn without_data(name: &str, data_type: i32, dims: &[u64]) -> TensorProto {
    let dims = dims.iter().map(|&extent| i64::try_from(extent).unwrap_or(i64::MAX)).collect();
    TensorProto { name: name.to_owned(), data_type, dims, ..TensorProto::default() }
}

/// Number of elements. `None` for negative extents and beyond 64 bits.
pub(super) fn element_count(dims: &[i64]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(u64::try_from(dim).ok()?))
}

fn of_raw<const N: usize, T>(raw: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    raw.chunks_exact(N).filter_map(|bytes| bytes.try_into().ok()).map(number).collect()
}

/// Whether elements of this type are integers or truth values.
pub(super) fn is_integer(data_type: i32) -> bool {
    element::bits(data_type).is_some() && matches!(data_type, 2..=7 | BOOL | 12 | 13)
}
