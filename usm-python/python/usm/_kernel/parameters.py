"""Parameters of kernels: their meaning, by the kinds and types in the key."""

from . import nodes
from .keys import ARRAY, FROM_EXTENT, FROM_OFFSET, FROM_SCALAR, FROM_STRIDE, MOST, RECORD, SCALAR
from .signature import Layout, Signature, count_of
from .source import Source
from .state import Checks, Draft, Scope
from .types import ARITHMETIC_TYPE, SCALARS
from .values import Arr, Cpx, Static, Tup, Val


class Parameters:
    """Methods of the compiler for parameters."""

    __slots__ = ()
    source: Source
    signature: Signature
    draft: Draft
    checks: Checks
    scope: Scope


    def bind_parameters(self, tree):
        """Gives the parameters their meaning."""
        parameters = tree.args.posonlyargs + tree.args.args
        names = self.scope.frame.names
        if self.source.item is not None:
            names[parameters[0].arg] = Static(self.source.item)
            parameters = parameters[1:]
        argument = 0
        for parameter, sort in zip(parameters, self.signature.sorts):
            self.scope.at = self.scope.place_of(parameter)
            meaning = self.parameter(parameter.arg, argument, sort)
            if meaning.__class__ in (Val, Cpx) and parameter.arg in self.source.assigned_names():
                # The kernel sets it, so it is a variable.
                self.bind_number(parameter.arg, meaning, parameter)
            else:
                names[parameter.arg] = meaning
            argument += count_of(sort)

    def parameter(self, name, argument, sort):
        """The meaning of a parameter whose first argument in a launch has this number."""
        if sort.__class__ is list:
            items = []
            for place, item in enumerate(sort):
                items.append(self.parameter(f"{name}[{place}]", argument, item))
                argument += count_of(item)
            return Tup(items)
        if sort.__class__ is Layout:
            by_value = sort.head >> 24 == RECORD
            return self.parameter_record(name, argument, sort.fields) if by_value else self.parameter_structures(name, argument, sort)
        ty = SCALARS[sort & 0xFF]
        dimensions, is_complex = sort >> 16 & 0xFF, bool(sort >> 10 & 1)
        if sort >> 24 == SCALAR and is_complex:
            weak = {"f64": "wf"}.get(ty, ty)
            parts = [self.parameter_value(f"{name}.{part}", ty, (FROM_SCALAR, argument, place)) for place, part in enumerate(("real", "imag"))]
            return Cpx(*(Val(part, weak) for part in parts))
        if sort >> 24 == SCALAR:
            weak = {"i64": "wi", "f64": "wf"}.get(ty, ty)
            text = self.parameter_value(name, ty, (FROM_SCALAR, argument, 0))
            value = Val(self.to_computed(text, ty), ARITHMETIC_TYPE.get(weak, weak))
            if weak == "wi":
                self.checks.integers[value.text] = argument
            return value
        if sort >> 24 == ARRAY:
            return self.parameter_array(name, argument, ty, dimensions, bool(sort >> 8 & 1), is_complex)
        return self.parameter_local(name, argument, ty, dimensions, is_complex)

    def parameter_value(self, name, ty, source):
        """The text of a number that a launch takes from this source."""
        return self.draft.value_of_source(name, ty, source, self.scope.at)

    def parameter_extents(self, name, argument, dimensions):
        """The extents of an argument, in elements."""
        at = self.scope.at
        texts = [self.parameter_value(f"{name}.shape[{d}]", "u64", (FROM_EXTENT, argument, d)) for d in range(dimensions)]
        return [Val(nodes.cast("i64", text, at), "i64", None, MOST) for text in texts]

    def parameter_strides(self, name, argument, dimensions):
        """The strides of an argument and its offset, in elements, parts or structures."""
        texts = [self.parameter_value(f"{name}.strides[{d}]", "i64", (FROM_STRIDE, argument, d)) for d in range(dimensions)]
        strides = [nodes.cast("u64", text, self.scope.at) for text in texts]
        return strides, self.parameter_value(f"{name}.offset", "u64", (FROM_OFFSET, argument, 0))

    def parameter_array(self, name, argument, ty, dimensions, is_strided, is_complex):
        """An argument that is an array of numbers."""
        at = self.scope.at
        array = self.draft.array_of_argument(name, ty, argument, at, is_complex)
        if dimensions == 1 and not is_strided and not is_complex:
            extents = [Val(nodes.cast("i64", nodes.length("u64", array, at), at), "i64", None, MOST)]
            return Arr(name, array, ty, extents, "param", argument)
        extents = self.parameter_extents(name, argument, dimensions)
        strides, offset = self.parameter_strides(name, argument, dimensions) if is_strided else (None, None)
        return Arr(name, array, ty, extents, "param", argument, strides, offset, is_complex)

    def parameter_local(self, name, argument, ty, dimensions, is_complex):
        """An argument that is local memory of a size that the launch gives."""
        at = self.scope.at
        extents = []
        length = None
        for dimension in range(dimensions):
            text = self.parameter_value(f"{name}.shape[{dimension}]", "u64", (FROM_EXTENT, argument, dimension))
            extents.append(Val(nodes.cast("i64", text, at), "i64", None, MOST))
            length = text if length is None else nodes.binary("mul", "u64", length, text, at)
        length = length or nodes.literal("u64", 1, at)
        if is_complex:
            length = nodes.binary("mul", "u64", length, nodes.literal("u64", 2, at), at)
        array = self.draft.new_array(name, ty, nodes.local_space(length), at, is_complex=is_complex)
        return Arr(name, array, ty, extents, "local", argument, is_complex=is_complex)
