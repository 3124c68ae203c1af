//! The export of symbols from the C library.

/// Defines functions that the C library exports. Their C callers guarantee the pointers, as the
/// header demands.
///
/// Only the C library exports them: it is built with `--cfg usm_plan_export`, which cargo passes to
/// that crate alone. A feature would be wrong, because cargo unifies features: two versions of this
/// crate in one program would then define the same symbols.
macro_rules! export {
    ($($(#[$attr:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$attr])*
        #[cfg_attr(usm_plan_export, unsafe(no_mangle))]
        #[allow(clippy::missing_safety_doc, reason = "the contracts stand in usm_plan.h")]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? $body
    )*};
}
pub(super) use export;
