"""The release of a package as compiled C on this machine, record by record, with the package's own constants.

Every record has other values than the last in the features that are not looked at, so that a release that looks at them
is found.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError
from sensorsim.codegen.manifest import Package
from sensorsim.kernels.choice import CHOICE_BITS, CHOICE_DROP
from sensorsim.kernels.formats import FRAC
from sensorsim.language.arguments import bounds
from sensorsim.language.c.comments import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, numpy_name
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import compile_host
from sensorsim.verification.table_in_code import PackageTables, noise_macros

if TYPE_CHECKING:
    import numpy as np

ROUNDS = 3  # picks of a record whose evenness is counted: the first, the last and one between
SAMPLE = 64  # words that pick whose unused bits are all tried
MOST_WORDS = 1 << 21  # in memory at a time
SLIDE = 1 << 12  # records before the features that are not looked at come again
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

    @property
    def unused(self) -> int:
        """Return a mask of the bits that neither part uses."""
        return ((1 << (32 - self.high)) - 1) & ~(((1 << self.low) - 1) << self.drop)


class Release:
    """The package's release as compiled for this machine."""

    def __init__(self, package: Package, known: PackageTables, kernel: Kernel, build: Path, seed: int = 0) -> None:
        import numpy as np

        self.kernel, self.known, self.rng = kernel, known, np.random.default_rng(seed)
        self.function = package.names.functions[kernel]
        self.constants = noise_macros(package)
        self.n, self.k = self.constants.get("n", 1), self.constants.get("k", 1)
        self.sampled = "chosen" in kernel.parameters
        self.least, self.most = bounds(kernel.arrays["x"].element, {})
        driver = build / f"{self.function}_{DRIVER}.c"
        driver.write_text(_driver(package, known, kernel), "utf-8")
        sources = [path for path in package.kernel_sources(build) if path.parent != build]
        library = load_host(compile_host([*sources, driver], package.include, driver.with_suffix(".so")))
        self.driver = getattr(library, DRIVER)

    @property
    def parts(self) -> Parts:
        known = self.constants
        if "base" in known:
            return Parts(16, 15, 1)  # one comparison of 31 bits, as two parts
        if "drop" in known:
            return Parts(32 - known["drop"], known["stair_bits"])
        return Parts(16 if "cuts" in known else 8, FRAC - known["knot_bits"])

    def draw(self, words: "np.ndarray[Any, Any]", x: int) -> "np.ndarray[Any, Any]":
        """Release x with each word, through every second of the features that a record releases."""
        import numpy as np

        turns = range(int(self.rng.integers(min(2, self.k))), self.k, 2)
        records = -(-len(words) // len(turns))
        given = np.resize(self.rng.integers(0, 1 << 32, SLIDE + 1, np.uint32), (records, self.k))
        given[:, turns] = np.resize(words, (records, len(turns)))
        y = self.released(self.some_features(), dict.fromkeys(turns, x), given)
        return y[:, turns].ravel()[: len(words)]

    def some_features(self, wanted: Sequence[int] = ()) -> list[int]:
        """Choose the features of a record's turns: those wanted first, then any others; in order where all are."""
        if not self.sampled:
            return list(range(self.k))
        others = [int(f) for f in self.rng.permutation(self.n) if f not in wanted]
        return [*wanted, *others][: self.k]

    def released(
        self, features: Sequence[int], looked_at: dict[int, int], words: "np.ndarray[Any, Any]"
    ) -> "np.ndarray[Any, Any]":
        """Release the features with the words of each record; `looked_at` gives x of the turns that are looked at."""
        import numpy as np

        unused = self.rng.integers(0, 1 << CHOICE_DROP, words.shape, np.uint32)
        picks = np.array(self._picking(features), np.uint32) | unused
        y: np.ndarray[Any, Any]
        y, chosen = self._run(picks, words, features, looked_at)
        if self.sampled and not (chosen == np.array(features)).all():
            raise FailedProofError(f"{self.function} as compiled picks other features than its words say")
        return y

    def picked(self, words: "np.ndarray[Any, Any]", turn: int) -> "np.ndarray[Any, Any]":
        """Return the feature that each word picks in that turn of a record; the words of other turns are zero."""
        import numpy as np

        found, some = [], max(1, MOST_WORDS // self.k)
        for start in range(0, len(words), some):
            picks = np.zeros((len(words[start : start + some]), self.k), np.uint32)
            picks[:, turn] = words[start : start + some]
            drawing = self.rng.integers(0, 1 << 32, picks.shape, np.uint32)
            found.append(self._run(picks, drawing, [0] * self.k, {})[1][:, turn])
        return np.concatenate(found)

    def picks(self) -> str:
        """Check that each feature that is left is picked as often, for any record and any unused bits."""
        import numpy as np

        if not self.sampled:
            return ""
        used = np.arange(1 << CHOICE_BITS, dtype=np.uint32) << CHOICE_DROP
        unused = np.arange(1 << CHOICE_DROP, dtype=np.uint32)
        for turn in sorted({0, self.k // 2, self.k - 1})[:ROUNDS]:
            first, again = (self.picked(used | self.rng.choice(unused, len(used)), turn) for _ in range(2))
            counts = np.bincount(first, minlength=self.n)
            left, even = self.n - turn, (1 << CHOICE_BITS) / (self.n - turn)
            fair = len(counts) == self.n and (counts > 0).sum() == left and np.abs(counts[counts > 0] - even).max() < 1
            some = self.rng.choice(len(used), SAMPLE)
            flipped = self.picked((used[some][:, None] | unused).ravel(), turn).reshape(SAMPLE, -1)
            if not fair or not np.array_equal(first, again) or not (flipped == first[some][:, None]).all():
                raise FailedProofError(
                    f"{self.function} as compiled does not pick each of {left} features as often, whatever x is"
                )
        return f"; each of {self.n} features is picked as often, to 2^-{CHOICE_BITS}"

    def _picking(self, features: Sequence[int]) -> list[int]:
        """Return words that pick these features in turn, from a sorted order; their unused bits are zero."""
        if not self.sampled:
            return [0] * self.k
        order, words = list(range(self.n)), []
        for turn, feature in enumerate(features):
            left, place = self.n - turn, order.index(feature)
            first, end = (-(-(p << CHOICE_BITS) // left) for p in (place, place + 1))
            words.append(int(self.rng.integers(first, end)) << CHOICE_DROP)
            order[place], order[left - 1] = order[left - 1], feature
        return words

    def _run(self, picks: Any, words: Any, features: Sequence[int], looked_at: dict[int, int]) -> tuple[Any, Any]:
        """Return the outputs and the picked features of each record."""
        import numpy as np

        kind = self.kernel.arrays["x"].storage
        pool = self.rng.integers(self.least, self.most, SLIDE + self.n, endpoint=True)
        ends = self.rng.integers(0, 8, len(pool))  # a quarter of the values at both ends
        pool = np.where(ends == 0, self.least, np.where(ends == 1, self.most, pool))
        pool = pool.astype(numpy_name(kind))
        y, chosen = np.zeros(words.shape, np.int32), np.zeros(words.shape, np.uint32)
        looked = np.array([(turn in looked_at, features[turn], looked_at.get(turn, 0)) for turn in range(self.k)])
        arrays: list[Any] = [np.ascontiguousarray(a, np.uint32) for a in (picks, words, looked)]
        given = [ctypes.c_void_p(array.ctypes.data) for array in [*arrays, pool, y, chosen]]
        self.driver(ctypes.c_uint32(len(words)), *given)
        return y, chosen


def whole_words(top: Any, low: Any, parts: Parts, rng: "np.random.Generator") -> Any:
    """Return whole words of both parts; the bits that no part uses are random."""
    import numpy as np

    above = 32 - parts.high
    word = (np.asarray(top, np.uint32) << np.uint32(above)) | (np.asarray(low, np.uint32) << np.uint32(parts.drop))
    return np.asarray(word | (rng.integers(0, 1 << 32, word.shape, np.uint32) & np.uint32(parts.unused)), np.uint32)


def _driver(package: Package, known: PackageTables, kernel: Kernel) -> str:
    """Return C that calls the release for one record after the other, with the package's own constants."""
    lead, given = f"{package.prefix}NOISE_".upper(), noise_macros(package)
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
    ordered = "order" in kernel.parameters
    return _DRIVER.format(
        includes=package.kernel_header + (f'#include "{package.prefix}tables.h"\n' if package.private else ""),
        name=DRIVER,
        n=n,
        k=k,
        slide=SLIDE,
        words=2 * k if sampled else k,
        at="(2U * i) + 1U" if sampled else "i",
        pick=f"own_word[2U * i] = pick[({k}U * done) + i];" if sampled else "(void)pick;",
        y_type=C_TYPES[kernel.arrays["y"].storage],
        call=f"{package.names.functions[kernel]}({', '.join(passed)})",
        chosen="own_chosen[i]" if sampled else "i",
        order=f"for (uint32_t i = 0U; i < {n}U; i++) {{ own_order[i] = i; }}" if ordered else "",
        unused="" if ordered else "    (void)own_order;\n",
        unused_too="" if sampled else "    (void)own_chosen;\n",
        x_type=C_TYPES[kernel.arrays["x"].storage],
    )


# A row of `looked`: whether the turn is looked at, its feature, its x. A record is a window of `pool`, which slides.
_DRIVER = """{includes}
void {name}(uint32_t count, const uint32_t *pick, const uint32_t *word, const uint32_t *looked,
    {x_type} *pool, int32_t *y, uint32_t *chosen);
void {name}(uint32_t count, const uint32_t *pick, const uint32_t *word, const uint32_t *looked,
    {x_type} *pool, int32_t *y, uint32_t *chosen)
{{
    static uint32_t own_word[{words}];
    static uint32_t own_order[{n}];
    static uint32_t own_chosen[{k}];
    static {y_type} own_y[{k}];
    static {x_type} kept[{k}];
{unused}{unused_too}    for (uint32_t done = 0U; done < count; done++) {{
        {x_type} *own_x = &pool[done % {slide}U];
        {order}
        for (uint32_t i = 0U; i < {k}U; i++) {{
            {pick}
            own_word[{at}] = word[({k}U * done) + i];
            kept[i] = own_x[looked[(3U * i) + 1U]];
            if (looked[3U * i] != 0U) {{
                own_x[looked[(3U * i) + 1U]] = ({x_type})looked[(3U * i) + 2U];
            }}
        }}
        {call};
        for (uint32_t i = 0U; i < {k}U; i++) {{
            y[({k}U * done) + i] = (int32_t)own_y[i];
            chosen[({k}U * done) + i] = {chosen};
            if (looked[3U * i] != 0U) {{
                own_x[looked[(3U * i) + 1U]] = kept[i];
            }}
        }}
    }}
}}
"""
