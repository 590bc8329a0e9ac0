"""The mechanisms whose cost is known: which kernel each one is, and how it is run to be counted."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sensorsim.kernels.formats import CLIP, HALF
from sensorsim.language.arguments import arguments, array_length
from sensorsim.language.count import Counts, count
from sensorsim.language.formula import Formula
from sensorsim.language.kernel import Kernel


class Mechanism(NamedTuple):
    """A mechanism is a kernel. Where it branches on data, `values` chooses the data and `otherwise` the branch."""

    name: str
    title: str
    variant: str  # paper: as printed; lean: what a firmware engineer would ship
    module: str
    function: str
    values: Mapping[str, int] = MappingProxyType({})
    otherwise: bool = False
    random: str = ""  # the parameter that brings the secret random words; none for the generator itself
    lengths: Mapping[str, int] = MappingProxyType({})  # lengths that do not follow n and l, such as k

    @property
    def kernel(self) -> Kernel:
        found: Kernel = getattr(importlib.import_module(f"sensorsim.kernels.{self.module}"), self.function)
        return found

    def lengths_at(self, n: int, l: int) -> dict[str, int]:
        """Every length of the kernel: n and l, and the typical value of those that do not follow them."""
        given = {"n": n, "l": l, **self.lengths}
        return self.kernel.lengths_at({name: value for name, value in given.items() if name in self.kernel.lengths})

    def record(self, n: int, l: int) -> dict[str, Any]:
        """The arguments of the one record that is counted."""
        return arguments(self.kernel, self.lengths_at(n, l), lambda name, lo, hi: self.values.get(name, lo))

    def traced(self, n: int, l: int) -> Counts:
        """Operations counted by running the kernel on one record."""
        return count(self.kernel, self.record(n, l))

    def symbolic(self) -> Formula:
        """Operations counted by reading the kernel's source."""
        return self.kernel.formula(self.otherwise, **self.lengths)

    def random_bits(self, n: int, l: int) -> int:
        """Secret random bits that one record takes: a whole word for each draw, as firmware fetches them."""
        if not self.random:
            return 0
        return WORD_BITS * array_length(self.kernel, self.random, self.lengths_at(n, l))


PAPER_C = 4 << CLIP.frac_bits  # the clipping threshold of the paper's experiment
NEVER_CLIPS = {"clip": CLIP.hi, "sigma": HALF}
ALWAYS_CLIPS = {"clip": CLIP.lo, "sigma": HALF}

WORD_BITS = 32

MECHANISMS = (
    Mechanism("spof", "SPOF (Algorithm 1)", "paper", "spof", "spof", random="stride"),
    Mechanism("dpsgd", "DP-SGD (Algorithm 2)", "paper", "dpsgd", "dpsgd", {"clip": PAPER_C}, random="stride"),
    Mechanism("spof_lean", "SPOF, one draw per feature", "lean", "spof_lean", "spof_lean", random="word"),
    Mechanism("dpsgd_lean", "DP-SGD, not clipped", "lean", "dpsgd_lean", "dpsgd_lean", NEVER_CLIPS, random="word"),
    Mechanism(
        "dpsgd_lean_clipped", "DP-SGD, clipped", "lean", "dpsgd_lean", "dpsgd_lean", ALWAYS_CLIPS, True, random="word"
    ),
    Mechanism("release", "release, all features", "lean", "release", "release", random="word"),
    Mechanism(
        "release_sampled",
        "release, 1 feature per record",
        "lean",
        "release",
        "release_sampled",
        random="word",
        lengths={"k": 1},
    ),
    Mechanism("chacha20", "ChaCha20, 512 random bits", "lean", "chacha20", "chacha20"),
)
