"""Ready algorithms over arrays of any device, made of this package's own kernels."""

from .elementwise import Elementwise, elementwise
from .histogram import bincount, histogram
from .reduce import argmax, argmin, reduce
from .scan import scan
from .sort import argsort, sort

__all__ = ["Elementwise", "argmax", "argmin", "argsort", "bincount", "elementwise", "histogram", "reduce", "scan", "sort"]
