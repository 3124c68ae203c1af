"""The exceptions of usm: each is an :class:`Error` and the matching built-in exception."""

__all__ = [
    "AccessError",
    "AllocationError",
    "DeviceError",
    "Error",
    "InterfaceError",
    "KernelError",
    "RequestError",
    "WaitTimeout",
]


class Error(Exception):
    """Base of usm's own exceptions.

    Where Python has the exception already, usm raises Python's: ``TypeError`` for an argument of
    the wrong type, ``IndexError``, ``KeyError``, ``OverflowError``, ``OSError`` and so on.
    """


class AllocationError(Error, MemoryError):
    """Memory could not be allocated; the message has the limit and the requested bytes."""


class RequestError(Error, ValueError):
    """An argument is not valid: a size, a range, a kind, or memory of another context."""


class InterfaceError(Error, ValueError):
    """A dictionary, buffer or capsule is malformed or false; the message names the key."""


class AccessError(Error, BufferError):
    """The memory does not allow the access.

    Examples are a host view of device memory, and a write to a read-only array.
    """


class _MemoryAccessError(AccessError, TypeError):
    """An :class:`AccessError` of an object of ``usm.memory``: dpctl raises a TypeError there."""


class DeviceError(Error, RuntimeError):
    """A device or a runtime library is missing, or the runtime refused a call."""


class WaitTimeout(Error, TimeoutError):
    """A wait reached its time limit; the work may still run."""


class KernelError(Error, RuntimeError):
    """A kernel or its launch is refused.

    For code that cannot be a kernel the message begins with ``file:line:column:`` and names a
    remedy.
    """
