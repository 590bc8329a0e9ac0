"""The release of a package as compiled C on this machine, value by value, with the package's own constants."""

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import FailedProofError
from sensorsim.export.manifest import Package
from sensorsim.kernels.choice import CHOICE_BITS, CHOICE_DROP
from sensorsim.kernels.formats import FRAC
from sensorsim.language.c.text import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import compile_host
from sensorsim.verify.table import Stated, macros

if TYPE_CHECKING:
    import numpy as np

ROUNDS = 3  # picks of a record whose evenness is counted: the first, the last and one between
DRIVER = "every_draw"


@dataclass(frozen=True)
class Parts:
    """The bits of a word that a draw uses: `high` from the top, `low` above `drop` unused ones."""

    high: int
    low: int
    drop: int = 0

    @property
    def bits(self) -> int:
        return self.high + self.low


class Release:
    """The package's release as compiled for this machine, one value after the other."""

    def __init__(self, package: Package, known: Stated, kernel: Kernel, build: Path) -> None:
        self.kernel, self.known = kernel, known
        self.function = package.names.functions[kernel]
        self.constants = macros(package)
        self.n, self.k = self.constants.get("n", 1), self.constants.get("k", 1)
        self.sampled = "chosen" in kernel.parameters
        driver = build / f"{self.function}_{DRIVER}.c"
        driver.write_text(_driver(package, known, kernel), "utf-8")
        sources = [path for path in package.kernel_sources(build) if path.parent != build]
        library = load_host(compile_host([*sources, driver], package.include, driver.with_suffix(".so")))
        self.run = getattr(library, DRIVER)

    @property
    def parts(self) -> Parts:
        known = self.constants
        if "base" in known:
            return Parts(16, 15, 1)  # one comparison of 31 bits, as two parts
        if "drop" in known:
            return Parts(32 - known["drop"], known["stair_bits"])
        return Parts(16 if "cuts" in known else 8, FRAC - known["knot_bits"])

    def knots(self) -> list[int]:
        """Where the certificate of rows is attained."""
        step = FRAC - self.constants.get("knot_bits", 0)
        return [k << step for k in range((1 << FRAC - step) + 1)] if self.known.table.kind == "rows" else []

    def draw(self, words: "np.ndarray[Any, Any]", x: int) -> "np.ndarray[Any, Any]":
        """What is released of x for each word."""
        import numpy as np

        y, chosen = np.zeros(len(words), np.int32), np.zeros(len(words), np.uint32)
        self._call(words, x, 0, y, chosen)
        return y

    def picked(self, words: "np.ndarray[Any, Any]", x: int, turn: int) -> "np.ndarray[Any, Any]":
        """Which feature is picked by each word, in that turn of a record; the other turns' words are all zero."""
        import numpy as np

        y, chosen = np.zeros(len(words), np.int32), np.zeros(len(words), np.uint32)
        self._call(words, x, turn + 1, y, chosen)
        return chosen

    def picks(self, rng: "np.random.Generator") -> str:
        """Whether every feature that is left is picked as often, whatever x is."""
        import numpy as np

        if not self.sampled:
            return ""
        words = np.arange(1 << CHOICE_BITS, dtype=np.uint32) << CHOICE_DROP
        words |= rng.integers(0, 1 << CHOICE_DROP, len(words), np.uint32)
        turns = sorted({0, self.k // 2, self.k - 1})[:ROUNDS]
        for turn in turns:
            first = self.picked(words, 0, turn)
            counts = np.bincount(first, minlength=self.n)
            left, even = self.n - turn, (1 << CHOICE_BITS) / (self.n - turn)
            fair = len(counts) == self.n and (counts > 0).sum() == left and np.abs(counts[counts > 0] - even).max() < 1
            if not fair or not np.array_equal(first, self.picked(words, 1 << FRAC, turn)):
                raise FailedProofError(
                    f"{self.function} as compiled does not pick each of {left} features as often, whatever x is"
                )
        return f"; each of {self.n} features is picked as often, to 2^-{CHOICE_BITS}"

    def _call(self, words: Any, x: int, turn: int, y: Any, chosen: Any) -> None:
        import numpy as np

        words = np.ascontiguousarray(words, np.uint32)
        given = (ctypes.c_void_p(array.ctypes.data) for array in (words, y, chosen))
        self.run(ctypes.c_uint32(len(words)), ctypes.c_uint32(x), ctypes.c_uint32(turn), *given)


def _driver(package: Package, known: Stated, kernel: Kernel) -> str:
    """C that calls the release for words one after the other, with the package's own table and constants.

    Every feature is x. Turn 0: the words draw, as many in a call as a record releases. Turn t + 1: the words pick in
    turn t, and draw with zeros.
    """
    lead, given = f"{package.prefix}NOISE_".upper(), macros(package)
    n, k = given.get("n", 1), given.get("k", 1)
    sampled = "chosen" in kernel.parameters
    passed = []
    for name, kind in kernel.parameters.items():
        if name in ("x", "word", "order", "chosen", "y"):
            passed.append(f"own_{name}")
        elif isinstance(kind, Array):
            passed.append(known.noise.table.name)
        else:
            passed.append(f"{lead}{name.upper()}" if name in given else str(kernel.lengths_at()[name]))
    y_type = C_TYPES[kernel.arrays["y"].storage]
    return _DRIVER.format(
        includes=package.kernel_header + (f'#include "{package.prefix}tables.h"\n' if package.private else ""),
        name=DRIVER,
        n=n,
        k=k,
        words=2 * k if sampled else k,
        at="(2U * i) + 1U" if sampled else "i",
        pick="own_word[2U * (turn - 1U)] = word[done];" if sampled else "",
        y_type=y_type,
        call=f"{package.names.functions[kernel]}({', '.join(passed)})",
        chosen="own_chosen[turn - 1U]" if sampled else "0U",
        order="" if "order" in kernel.parameters else "    (void)own_order;\n",
        unused="" if sampled else "    (void)own_chosen;\n",
        x_type=C_TYPES[kernel.arrays["x"].storage],
    )


_DRIVER = """{includes}
void {name}(uint32_t count, uint32_t x, uint32_t turn, const uint32_t *word, int32_t *y, uint32_t *chosen);
void {name}(uint32_t count, uint32_t x, uint32_t turn, const uint32_t *word, int32_t *y, uint32_t *chosen)
{{
    static {x_type} own_x[{n}];
    static uint32_t own_word[{words}];
    static uint32_t own_order[{n}];
    static uint32_t own_chosen[{k}];
    static {y_type} own_y[{k}];
    uint32_t done = 0U;
{order}{unused}    for (uint32_t i = 0U; i < {n}U; i++) {{
        own_x[i] = ({x_type})x;
        own_order[i] = i;
    }}
    for (uint32_t i = 0U; i < {words}U; i++) {{
        own_word[i] = 0U;
    }}
    while (done < count) {{
        if (turn == 0U) {{
            for (uint32_t i = 0U; i < {k}U; i++) {{
                own_word[{at}] = word[((done + i) < count) ? (done + i) : (count - 1U)];
            }}
            {call};
            for (uint32_t i = 0U; (i < {k}U) && (done < count); i++) {{
                y[done] = (int32_t)own_y[i];
                done++;
            }}
        }} else {{
            for (uint32_t i = 0U; i < {n}U; i++) {{
                own_order[i] = i;
            }}
            {pick}
            {call};
            chosen[done] = {chosen};
            done++;
        }}
    }}
}}
"""
