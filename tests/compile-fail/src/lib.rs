//! The package of the programs in `ui`, which must not compile. They are tests alone.
