"""Numbers that the compiler and a launch (`usm-python/src/kernel`) agree on."""

#: Modes, in bits 8 to 15 of a key's head. PLAIN: no check as the kernel runs. NOTING: an index
#: outside is noted and counts as 0. CHECKED: an index outside of its dimension is outside of the
#: whole array, for the interpreter. BOUNDS: code for proofs, which never runs.
PLAIN, NOTING, CHECKED, BOUNDS = range(4)

#: Where a parameter of the nodes comes from: the first number of a source.
(
    FROM_ARRAY,
    FROM_SCALAR,
    FROM_EXTENT,
    FROM_STRIDE,
    FROM_OFFSET,
    FROM_TABLE,
    FROM_FAULT,
    FROM_DIMENSION,
    FROM_LENGTH,
) = range(9)

#: Kinds of arguments, in bits 24 to 31 of their key.
SCALAR, ARRAY, LOCAL = range(3)

#: An upper bound of ids, sizes and extents: no machine has more items or elements.
MOST = (1 << 40) - 1
