"""Numbers that the compiler and a launch (`usm-python/src/kernel`) agree on."""

#: Where a parameter of the nodes comes from: the first number of a source.
FROM_ARRAY, FROM_SCALAR, FROM_EXTENT, FROM_STRIDE, FROM_OFFSET, FROM_TABLE = range(6)

#: Kinds of arguments, in bits 24 to 31 of their key. Structures and tuples have further words.
SCALAR, ARRAY, LOCAL, RECORDS, RECORD, TUPLE = range(6)

#: An upper bound of ids, sizes and extents: no machine has more items or elements.
MOST = (1 << 40) - 1
