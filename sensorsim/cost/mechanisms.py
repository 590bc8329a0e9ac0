"""The mechanisms whose cost is known: which kernel each one is, and how it is run to be counted."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from sensorsim.cost.symbolic import SymbolicCounts, symbolic
from sensorsim.cost.trace import Counts, trace
from sensorsim.kernels.arguments import arguments, array_length, lengths_of
from sensorsim.kernels.formats import CLIP, HALF
from sensorsim.kernels.language import Kernel


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

    def traced(self, n: int, l: int) -> Counts:
        """Operations counted by running the kernel on one record."""
        lengths = {"n": n, "l": l, **self.lengths}
        chosen = arguments(self.kernel, lengths, lambda name, lo, hi: self.values.get(name, lo))
        return trace(self.kernel, chosen)

    def symbolic(self) -> SymbolicCounts:
        """Operations counted by reading the kernel's source."""
        return symbolic(self.kernel, self.otherwise, self.lengths)

    def random_bits(self, n: int, l: int) -> int:
        """Secret random bits that one record takes: a whole word for each draw, as firmware fetches them."""
        if not self.random:
            return 0
        lengths = lengths_of(self.kernel, {"n": n, "l": l, **self.lengths})
        words: int = array_length(self.kernel.parameters[self.random], lengths)
        return WORD_BITS * words


PAPER_C = 4 << CLIP.frac_bits  # the clipping threshold of the paper's experiment
NEVER_CLIPS = {"clip": CLIP.hi, "sigma": HALF}
ALWAYS_CLIPS = {"clip": CLIP.lo, "sigma": HALF}

SMALL_TABLE = {"drop": 24}  # 2^8 entries; the counts do not depend on it
WORD_BITS = 32

MECHANISMS = (
    Mechanism("spof", "SPOF (Algorithm 1)", "paper", "spof", "spof", random="stride"),
    Mechanism("dpsgd", "DP-SGD (Algorithm 2)", "paper", "dpsgd", "dpsgd", {"clip": PAPER_C}, random="stride"),
    Mechanism("spof_lean", "SPOF, one draw per feature", "lean", "spof_lean", "spof_lean", random="word"),
    Mechanism("dpsgd_lean", "DP-SGD, not clipped", "lean", "dpsgd_lean", "dpsgd_lean", NEVER_CLIPS, random="word"),
    Mechanism(
        "dpsgd_lean_clipped", "DP-SGD, clipped", "lean", "dpsgd_lean", "dpsgd_lean", ALWAYS_CLIPS, True, random="word"
    ),
    Mechanism("release", "release, all features", "lean", "release", "release", random="word", lengths=SMALL_TABLE),
    Mechanism(
        "release_sampled",
        "release, 1 feature per record",
        "lean",
        "release",
        "release_sampled",
        random="word",
        lengths={"k": 1, **SMALL_TABLE},
    ),
    Mechanism("chacha20", "ChaCha20, 512 random bits", "lean", "chacha20", "chacha20"),
)
