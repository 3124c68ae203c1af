//! Errors of compilation and of launches.

use core::fmt;

use usm_kernel::BuildError;

/// Why a text is no kernel: a message with `file:line:column` in front, as far as it has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError(pub(crate) String);

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for CompileError {}

/// Why a launch did not run to its end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LaunchError {
    /// Range or arguments do not fit the kernel, or a condition is not proven; nothing ran.
    Refused(String),
    /// The structures of an argument are not those of its parameter; nothing ran.
    OtherStructure(Box<OtherStructure>),
    /// An index was outside of its array. Items may have stored their results before.
    Outside {
        /// `file:line:column` of the access.
        place: String,
        /// The array's name.
        array: String,
        /// The index, in elements.
        index: i64,
        /// Elements of the array.
        len: u64,
    },
    /// A fault that [`check`](crate::Launch::check) found; nothing changed.
    Fault(String),
    /// The device takes no code of the kernel; nothing ran.
    Build(BuildError),
    /// The device refused the launch; nothing ran.
    Launch(usm_kernel::LaunchError),
    /// The launch was submitted and failed, or an argument could not be read.
    Device(usm_core::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(message) | Self::Fault(message) => f.write_str(message),
            Self::OtherStructure(difference) => difference.fmt(f),
            Self::Outside { place, array, index, len } => {
                write!(f, "{place}: index {index} of `{array}` is outside; it has {len} elements there")
            }
            Self::Build(error) => error.fmt(f),
            Self::Launch(error) => error.fmt(f),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(_) | Self::OtherStructure(_) | Self::Fault(_) | Self::Outside { .. } => None,
            Self::Build(error) => Some(error),
            Self::Launch(error) => Some(error),
            Self::Device(error) => Some(error),
        }
    }
}

/// How the structures of an argument differ from those of its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherStructure {
    /// `file:line:column` of the kernel, and its name.
    pub kernel: String,
    /// The parameter's position, from 0.
    pub position: usize,
    /// The parameter's name.
    pub parameter: String,
    /// The structure in the kernel's text, such as `Point { x: f32, y: f32 }`; a type of numbers
    /// where the parameter takes no structures.
    pub needed: String,
    /// The structure that was passed.
    pub given: String,
    /// The position of the first field that differs, from 0; `None` if the names alone differ, or
    /// no structures are taken.
    pub field: Option<usize>,
    /// That field in the text and in the passed structure, such as `x: f32`; `None` for the one
    /// that has fewer fields.
    pub fields: [Option<String>; 2],
}

impl fmt::Display for OtherStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, position, parameter, needed, given, field, fields } = self;
        write!(
            f,
            "{kernel}: argument {position}, `{parameter}`: elements of type `{needed}` are needed, not"
        )?;
        write!(f, " `{given}`")?;
        match (field, fields) {
            (Some(field), [Some(needed), Some(given)]) => {
                write!(f, ": field {field} is `{given}` and must be `{needed}`")
            }
            (Some(field), [Some(needed), None]) => write!(f, ": field {field}, `{needed}`, is missing"),
            (Some(field), [_, Some(given)]) => write!(f, ": field {field}, `{given}`, is too much"),
            _ => Ok(()),
        }
    }
}

impl From<BuildError> for LaunchError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<usm_kernel::LaunchError> for LaunchError {
    fn from(error: usm_kernel::LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<usm_core::Error> for LaunchError {
    fn from(error: usm_core::Error) -> Self {
        Self::Device(error)
    }
}
