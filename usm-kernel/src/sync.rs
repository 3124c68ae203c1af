//! The one door to the lock, so that the models and valgrind can have one of theirs. Held over calls of a driver: it sleeps.

pub(crate) use usm_core::sleeping::Mutex;
