"""Kernels on the host by several libraries, each in a process of its own."""
