//! The export of symbols from the C library.

/// Defines functions that the C library exports. Their C callers guarantee each pointer: null where
/// the function allows it, or live and owned by the caller.
///
/// Only the C library exports them: it is built with `--cfg usm_nrt_export`, which cargo passes to
/// that crate alone. A feature would be wrong, because cargo unifies features: two versions of this
/// crate in one program would then define the same symbols.
macro_rules! export {
    ($($(#[$attr:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$attr])*
        #[cfg_attr(usm_nrt_export, unsafe(no_mangle))]
        #[allow(non_snake_case, clippy::missing_safety_doc, reason = "names and contracts of Numba's C functions")]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? $body
    )*};
}
pub(crate) use export;
