"""The type of :func:`usm.devices`'s result."""

from ._usm import Device, _devices_html

__all__ = ["DeviceList"]


class DeviceList(list[Device]):
    """A list of devices, which notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _devices_html(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
