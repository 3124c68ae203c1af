"""Functions that exist in kernels only; the compiler knows them by name."""

from ..errors import KernelError

CLK_LOCAL_MEM_FENCE = 1
CLK_GLOBAL_MEM_FENCE = 2


class Word:
    """A function that exists in kernels only, unless plain Python has one for it too."""

    def __init__(self, name, doc, outside=None):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self._outside = outside

    def __call__(self, *arguments, **keywords):
        if self._outside is not None:
            return self._outside(*arguments, **keywords)
        raise KernelError(f"usm.{self.__name__} means something in kernels only")

    def __repr__(self):
        return f"<usm.{self.__name__}, a function of kernels>"


class Words:
    """A set of functions that exist in kernels only."""

    def __init__(self, name, doc, words):
        self.__name__ = name
        self.__doc__ = "\n".join([doc, "", *(f"- {text}" for text in words.values())])
        for word, text in words.items():
            setattr(self, word, Word(f"{name}.{word}", text))

    def __dir__(self):
        return [name for name in vars(self) if not name.startswith("__")]

    def __getattr__(self, name):
        names = "" if name.startswith("_") else f": there are {', '.join(dir(self))}"
        raise AttributeError(f"'usm.{self.__name__}' has no attribute '{name}'{names}")

    def __repr__(self):
        return f"<usm.{self.__name__}, functions of kernels>"


class DefaultLocalSize:
    """Stands for a local size that the launch chooses."""

    _usm_default_local_size = True

    def __repr__(self):
        return "usm.DEFAULT_LOCAL_SIZE"


DEFAULT_LOCAL_SIZE = DefaultLocalSize()

get_global_id = Word("get_global_id", "``get_global_id(d)``: the item's index in the range, int64; dimension 0 is the slowest.")
get_local_id = Word("get_local_id", "``get_local_id(d)``: the item's index in its group, int64.")
get_group_id = Word("get_group_id", "``get_group_id(d)``: the group's index, int64.")
get_global_size = Word("get_global_size", "``get_global_size(d)``: items of the range, int64.")
get_local_size = Word("get_local_size", "``get_local_size(d)``: items of a group, int64.")
get_num_groups = Word("get_num_groups", "``get_num_groups(d)``: groups of the range, int64.")
barrier = Word("barrier", "``barrier(flags)``: waits for all items of the group; both flags by default.")
mem_fence = Word("mem_fence", "``mem_fence(flags)``: orders the item's own accesses, without a wait.")

local = Words("local", "Memory of a group.", {"array": "``array(shape, dtype)``: zeros when a group starts."})
private = Words("private", "Memory of an item.", {"array": "``array(shape, dtype)``: zeros when an item starts."})
constant = Words("constant", "Constant memory.", {"array_like": "``array_like(array)``: a table of values that are known when the kernel is made."})
ATOMICS = {"add": "add", "sub": "sub", "min": "min", "max": "max", "and_": "and", "or_": "or", "xor": "xor", "exch": "exchange"}
_CHANGES = {
    "add": "adds the value",
    "sub": "subtracts the value",
    "min": "sets the smaller one",
    "max": "sets the greater one",
    "and_": "sets the bits that both have",
    "or_": "sets the bits that one has",
    "xor": "sets the bits that only one has",
    "exch": "sets the value",
}
atomic = Words(
    "atomic",
    "Atomic operations on elements of 32 or 64 bits, which give the old value.",
    {name: f"``{name}(array, index, value)``: {what}; the old value." for name, what in _CHANGES.items()}
    | {
        "cas": "``cas(array, index, expected, value)`` or ``cas(array, index, (expected, value))``: sets the value if the element is "
        "as expected; the old value."
    },
)
COLLECTIONS = {"add": "sum", "min": "least", "max": "greatest"}


def _collections(of):
    """The operations that items of a set do together."""
    ways = {"reduce": f"all items of the {of}", "inclusive": "the items up to this one", "exclusive": "the items before this one"}
    return {f"{how}_{by}": f"``{how}_{by}(value)``: the {what} of the values of {which}." for how, which in ways.items() for by, what in COLLECTIONS.items()}


group = Words(
    "group",
    "Operations of all items of a group.",
    _collections("group")
    | {
        "broadcast": "``broadcast(value, item)``: the value of the item of that linear local id.",
        "any": "``any(condition)``: whether it is true for an item of the group.",
        "all": "``all(condition)``: whether it is true for all items of the group.",
    },
)

SHUFFLES = {"shuffle": "shuffle", "broadcast": "shuffle", "shuffle_xor": "xor", "shuffle_up": "up", "shuffle_down": "down"}
sub_group = Words(
    "sub_group",
    "Operations of 32 neighbours in a group, or of the number that ``@usm.kernel(sub_group=..)`` sets.",
    _collections("sub-group")
    | {
        "broadcast": "``broadcast(value, lane)``: the value of that lane.",
        "any": "``any(condition)``: whether it is true for an item of the sub-group.",
        "all": "``all(condition)``: whether it is true for all items of the sub-group.",
        "shuffle": "``shuffle(value, lane)``: the value of that lane.",
        "shuffle_xor": "``shuffle_xor(value, bits)``: the value of the lane whose number differs in these bits.",
        "shuffle_up": "``shuffle_up(value, lanes)``: the value of the lane this far before; the own value if there is none.",
        "shuffle_down": "``shuffle_down(value, lanes)``: the value of the lane this far after; the own value if there is none.",
        "size": "``size()``: items of the sub-group; the last one of a group may be shorter.",
        "id": "``id()``: the sub-group's number in its group.",
        "local_id": "``local_id()``: the item's lane.",
        "count": "``count()``: sub-groups of the group.",
    },
)

#: Operations of `usm.atomic` behind the methods of `AtomicRef`.
FETCH_METHODS = {f"fetch_{name}": name for name in ("add", "sub", "min", "max")} | {"fetch_and": "and_", "fetch_or": "or_", "fetch_xor": "xor"}
