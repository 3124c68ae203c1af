//! The Arrow C data interface, host and device form: the C structures, their validation, formats.
//!
//! A column of numbers, points in time or raw bytes without missing values is an array in C order.
//! Fixed-size lists add a dimension each. [`abi`] has the structures and all unsafe code.
//! [`RawLevel`] is the safe, borrowed copy of one structure, and [`Column`] a checked column.
//!
//! ```
//! use usm_interface::arrow::{Column, RawLevel, validate};
//! use usm_interface::dlpack::Device;
//!
//! // Two rows of three numbers, from the second row on.
//! let rows = RawLevel { length: 2, offset: 1, buffers: 1, children: 1, ..RawLevel::new("+w:3") };
//! let values = RawLevel { length: 9, buffers: 2, data: 4096, ..RawLevel::new("f") };
//! let column: Column<4> = validate(&[rows, values], Device::CPU).unwrap();
//! assert_eq!((column.shape(), column.address(), column.nbytes()), (&[2, 3][..], 4096 + 12, 24));
//!
//! let texts = RawLevel { length: 3, buffers: 3, ..RawLevel::new("u") };
//! let error = validate::<4>(&[texts], Device::CPU).unwrap_err();
//! assert_eq!(error.to_string(), "format: columns of texts are no arrays of numbers");
//! ```

#[allow(unsafe_code)] // C structures behind pointers.
pub mod abi;
mod format;
mod validate;

pub use format::{Format, format_of};
pub use validate::{Column, RawLevel, validate};
