"""Every source of memory, converted twice, in every write, read and export."""
