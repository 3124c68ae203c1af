"""The expected state of an object: the bytes of the source that it shows, and its access."""

from dataclasses import dataclass, replace
from typing import Any

# Every source has these bytes.
CONTENT = bytes(range(1, 25))


@dataclass
class Source:
    """Memory with CONTENT, and a way to read it without the object that is converted."""

    object: Any
    writable: bool
    # The bytes as they are now.
    look: Any
    # An object that must live as long.
    keep: Any = None


@dataclass
class State:
    """An object that was made of a source."""

    object: Any
    # Element i shows byte index[i] of the content, the source's or the copy's.
    index: list
    content: bytes
    # Whether a write reaches the source; a copy has separate bytes.
    shared: bool
    # Whether a write is allowed; None where both are right.
    writable: bool | None

    def converted(self, object, index=None, **more):
        return replace(self, object=object, index=self.index if index is None else index, **more)

    def copied(self, object, content):
        return State(object, list(range(len(content))), content, shared=False, writable=True)

    def bytes(self):
        return bytes(self.content[at] for at in self.index)

    def after(self, value):
        """The source's bytes after a write of `value` to every element."""
        content = bytearray(CONTENT)
        if self.shared:
            for at in self.index:
                content[at] = value
        return bytes(content)
