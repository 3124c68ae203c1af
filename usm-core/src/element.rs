//! Element type of an array.

use bytemuck::Pod;

/// An element of a typed array: every type that is [`Pod`], plain old data. Nothing implements it
/// by hand.
///
/// A structure of one's own derives `Pod`, with bytemuck's feature `derive`:
///
/// ```text
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Particle { position: [f32; 3], mass: f32 }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of an array",
    label = "not plain old data",
    note = "elements have no pointers, no padding and no forbidden bit patterns: numbers and arrays of them, and structures that are \
            `#[repr(C)]` and derive `bytemuck::Pod` and `bytemuck::Zeroable`"
)]
pub trait Element: Pod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> Element for T {}
