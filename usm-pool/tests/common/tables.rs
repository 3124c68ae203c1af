//! Tables whose optimum is above every simple bound, for the tests and the mutants of bound proofs.

/// A bound in bytes, and the buffers as `(lower, upper, size)`.
pub(crate) type Table = (u64, &'static [(u64, u64, u64)]);

/// Two tables whose optimum is one above what is live at any instant.
pub(crate) const ABOVE: [Table; 2] = [
    (
        11,
        &[
            (0, 1, 3),
            (0, 1, 2),
            (1, 2, 4),
            (1, 2, 1),
            (2, 3, 1),
            (0, 3, 4),
            (3, 4, 3),
            (0, 4, 1),
            (4, 5, 2),
            (4, 5, 2),
            (2, 5, 4),
            (3, 6, 2),
            (5, 6, 2),
            (5, 7, 5),
            (5, 7, 1),
            (6, 7, 1),
            (6, 7, 3),
        ],
    ),
    (
        7,
        &[
            (0, 1, 3),
            (0, 1, 2),
            (1, 2, 3),
            (0, 2, 1),
            (2, 3, 1),
            (2, 3, 3),
            (3, 4, 2),
            (1, 4, 2),
            (4, 5, 2),
            (3, 5, 2),
            (5, 6, 1),
            (4, 6, 1),
            (5, 7, 3),
            (4, 7, 1),
            (6, 8, 2),
            (7, 8, 4),
        ],
    ),
];
