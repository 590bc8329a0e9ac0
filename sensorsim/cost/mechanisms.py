"""The mechanisms whose cost is known: which kernel each one is, and how it is run to be counted."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from sensorsim.cost.symbolic import SymbolicCounts, symbolic
from sensorsim.cost.trace import Counts, trace
from sensorsim.kernels.arguments import arguments
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

    @property
    def kernel(self) -> Kernel:
        found: Kernel = getattr(importlib.import_module(f"sensorsim.kernels.{self.module}"), self.function)
        return found

    def traced(self, n: int, l: int) -> Counts:
        """Operations counted by running the kernel on one record."""
        chosen = arguments(self.kernel, {"n": n, "l": l}, lambda name, lo, hi: self.values.get(name, lo))
        return trace(self.kernel, chosen)

    def symbolic(self) -> SymbolicCounts:
        """Operations counted by reading the kernel's source."""
        return symbolic(self.kernel, self.otherwise)


PAPER_C = 4 << CLIP.frac_bits  # the clipping threshold of the paper's experiment
NEVER_CLIPS = {"clip": CLIP.hi, "sigma": HALF}
ALWAYS_CLIPS = {"clip": CLIP.lo, "sigma": HALF}

MECHANISMS = (
    Mechanism("spof", "SPOF (Algorithm 1)", "paper", "spof", "spof"),
    Mechanism("dpsgd", "DP-SGD (Algorithm 2)", "paper", "dpsgd", "dpsgd", {"clip": PAPER_C}),
    Mechanism("spof_lean", "SPOF, one draw per feature", "lean", "spof_lean", "spof_lean"),
    Mechanism("dpsgd_lean", "DP-SGD, not clipped", "lean", "dpsgd_lean", "dpsgd_lean", NEVER_CLIPS),
    Mechanism("dpsgd_lean_clipped", "DP-SGD, clipped", "lean", "dpsgd_lean", "dpsgd_lean", ALWAYS_CLIPS, True),
)
