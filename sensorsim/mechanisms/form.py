"""A kernel of a mechanism as it is counted: which function, at which lengths, on which branch."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sensorsim.language.count import Counts
    from sensorsim.language.formula import Formula
    from sensorsim.language.kernel import Kernel

PAPER, LEAN = "paper", "lean"
WORD_BITS = 32


class Form(NamedTuple):
    """A way to run a mechanism on the body. Where it branches on data, `values` chooses data, `otherwise` the branch.

    `source` is `module.function` below sensorsim.kernels, or the full path of a kernel from elsewhere.
    """

    name: str  # of the mechanism, with what tells this form from the others
    title: str
    variant: str  # paper: as printed; lean: what a firmware engineer would ship
    source: str
    values: Mapping[str, int] = MappingProxyType({})
    otherwise: bool = False
    random: str = ""  # the parameters that bring the secret random words; by default `word`, where there is one
    lengths: Mapping[str, int] = MappingProxyType({})  # lengths that do not follow n and l, such as k
    sends: Callable[[int], int] | None = None  # bits on the air for a record of n features; None: nothing leaves

    @property
    def kernel(self) -> "Kernel":
        return _kernel(self.source)

    def lengths_at(self, n: int, l: int) -> dict[str, int]:
        """Return every length of the kernel: n and l, and the typical value of those that do not follow them."""
        given = {"n": n, "l": l, **self.lengths}
        return self.kernel.lengths_at({name: value for name, value in given.items() if name in self.kernel.lengths})

    def record(self, n: int, l: int) -> dict[str, Any]:
        """Return the arguments of the one record that is counted."""
        from sensorsim.language.arguments import arguments

        return arguments(self.kernel, self.lengths_at(n, l), lambda name, lo, hi: self.values.get(name, lo))

    def traced(self, n: int, l: int) -> "Counts":
        """Count operations by running the kernel on one record."""
        from sensorsim.language.count import count

        return count(self.kernel, self.record(n, l))

    def symbolic(self) -> "Formula":
        """Count operations by reading the kernel's source."""
        return self.kernel.formula(self.otherwise, **self.lengths)

    def random_bits(self, n: int, l: int) -> int:
        """Return the secret random bits of one record: a whole word for each draw, as firmware fetches them."""
        from sensorsim.language.arguments import array_length

        lengths, drawn = self.lengths_at(n, l), self.random.split() or {"word"} & self.kernel.parameters.keys()
        return WORD_BITS * sum(array_length(self.kernel, name, lengths) for name in drawn)

    def bits_sent(self, n: int) -> int:
        """Return the bits that one record takes on the air."""
        return self.sends(n) if self.sends else 0


def which(n: int) -> int:
    """Return the bits that name one of n features."""
    return (n - 1).bit_length()


@cache
def _kernel(source: str) -> "Kernel":
    from importlib.util import find_spec

    module, _, function = source.rpartition(".")
    ours = f"sensorsim.kernels.{module}"
    place = ours if "." not in module and find_spec(ours) else module
    found: Kernel = getattr(importlib.import_module(place), function)
    return found
