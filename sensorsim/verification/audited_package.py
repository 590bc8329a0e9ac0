"""The release of a package as compiled C on this machine, for an audit and for counting every draw.

A driver calls the package's function record by record with the package's own table and constants, as firmware does, so
that a mistake in any of them is seen too.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import temporary_folder
from sensorsim.auditing.packet_source import Source, repeat
from sensorsim.auditing.table_sources import NUMPY, Certified, certified, interleaved, release_source
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.kernels.choice import CHOICE_BITS, CHOICE_DROP
from sensorsim.kernels.formats import FRAC
from sensorsim.language.arguments import bounds
from sensorsim.language.c.comments import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Length, numpy_name
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import compile_host
from sensorsim.verification.package_checks import noise_macros

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.noise.noise_table import NoiseTable

ROUNDS = 3  # picks of a record whose evenness is counted: the first, the last and one between
SAMPLE = 64  # words that pick whose unused bits are all tried
MOST_WORDS = 1 << 21  # in memory at a time
SLIDE = 1 << 12  # records before the features that are not looked at come again
DRIVER = "every_draw"
# A row of `looked`: whether the turn is looked at, its feature, its x. Record `done` is the window of `pool` that
# begins at step * (done % slide).
DRIVER_SOURCE = """{includes}
void {name}(uint32_t count, uint32_t step, uint32_t slide, uint32_t renew, const uint32_t *pick,
    const uint32_t *word, const uint32_t *looked, {x_type} *pool, int32_t *y, uint32_t *chosen);
void {name}(uint32_t count, uint32_t step, uint32_t slide, uint32_t renew, const uint32_t *pick,
    const uint32_t *word, const uint32_t *looked, {x_type} *pool, int32_t *y, uint32_t *chosen)
{{
    static uint32_t own_word[{words}];
    static uint32_t own_order[{n}];
    static uint32_t own_chosen[{k}];
    static {y_type} own_y[{k}];
    static {x_type} kept[{k}];
    (void)own_chosen;
    for (uint32_t done = 0U; done < count; done++) {{
        {x_type} *own_x = &pool[(uint64_t)step * (done % slide)];
        for (uint32_t i = 0U; (i < {n}U) && ((renew != 0U) || (done == 0U)); i++) {{
            own_order[i] = i;
        }}
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

    def words(self, top: Any, low: Any, rng: "np.random.Generator") -> Any:
        """Return whole words of both parts; the bits that no part uses are random."""
        import numpy as np

        above = np.uint32(32 - self.high)
        word = (np.asarray(top, np.uint32) << above) | (np.asarray(low, np.uint32) << np.uint32(self.drop))
        return np.asarray(word | (rng.integers(0, 1 << 32, word.shape, np.uint32) & np.uint32(self.unused)), np.uint32)


class Release:
    """The package's release as compiled for this machine.

    In `draw`, `released` and `picked` every record has other values than the last in the features that are not looked
    at, so that a release that looks at them is found.
    """

    def __init__(self, package: Package, kernel: Kernel, build: Path, seed: int = 0) -> None:
        import numpy as np

        self.kernel, self.rng = kernel, np.random.default_rng(seed)
        self.function = package.names.functions[kernel]
        self.constants = noise_macros(package)
        self.n, self.k = self.constants.get("n", 1), self.constants.get("k", 1)
        self.sampled = "chosen" in kernel.parameters
        self.least, self.most = bounds(kernel.arrays["x"].element, {})
        driver = build / f"{self.function}_{DRIVER}.c"
        driver.write_text(self._driver(package), "utf-8")
        sources = [path for path in package.kernel_sources(build) if path.parent != build]
        library = load_host(compile_host([*sources, driver], package.include, driver.with_suffix(".so")))
        self.driver = getattr(library, DRIVER)

    def _driver(self, package: Package) -> str:
        kernel, n, k = self.kernel, self.n, self.k
        passed = []
        for name, kind in kernel.parameters.items():
            if name in ("x", "word", "order", "chosen", "y"):
                passed.append(f"own_{name}")
            elif isinstance(kind, Array):
                passed.append(f"{package.prefix}noise_table")
            elif name in self.constants:
                passed.append(f"{package.prefix}NOISE_{name}".upper())
            elif isinstance(kind, Length):
                passed.append(str(kernel.lengths_at()[name]))
            else:
                raise InputError(
                    f"the package has no constant for {name} of {self.function}; export it again with --noise."
                )
        return DRIVER_SOURCE.format(
            includes=package.kernel_header + (f'#include "{package.prefix}tables.h"\n' if package.private else ""),
            name=DRIVER,
            n=n,
            k=k,
            words=2 * k if self.sampled else k,
            at="(2U * i) + 1U" if self.sampled else "i",
            pick=f"own_word[2U * i] = pick[({k}U * done) + i];" if self.sampled else "(void)pick;",
            y_type=C_TYPES[kernel.arrays["y"].storage],
            call=f"{self.function}({', '.join(passed)})",
            chosen="own_chosen[i]" if self.sampled else "i",
            x_type=C_TYPES[kernel.arrays["x"].storage],
        )

    @property
    def parts(self) -> Parts:
        known = self.constants
        if "base" in known:
            return Parts(16, 15, 1)  # one comparison of 31 bits, as two parts
        if "drop" in known:
            return Parts(32 - known["drop"], known["stair_bits"])
        return Parts(16 if "cuts" in known else 8, FRAC - known["knot_bits"])

    def packets(self, x: Any, count: int, seed: Any) -> Any:
        """Return packets of `count` records, drawn with words of NumPy's generator; for an audit."""
        import numpy as np

        width = 2 * self.k if self.sampled else self.n
        words = np.random.default_rng(tuple(seed)).integers(0, 2**32, (count, width), np.uint32)
        picks, drawing = (words[:, ::2], words[:, 1::2]) if self.sampled else (np.zeros_like(words), words)
        records = np.ascontiguousarray(repeat(x, count, seed), np.uint16)
        looked = np.zeros((self.k, 3), np.uint32)
        y, chosen = self._call(picks, drawing, looked, records, self.n, count, renew=False)
        y = y.astype(numpy_name(self.kernel.arrays["y"].storage))
        return interleaved(chosen, y) if self.sampled else y

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

        picking = [0] * self.k  # words that pick these features in turn, from a sorted order
        if self.sampled:
            order = list(range(self.n))
            for turn, feature in enumerate(features):
                left, place = self.n - turn, order.index(feature)
                first, end = (-(-(p << CHOICE_BITS) // left) for p in (place, place + 1))
                picking[turn] = int(self.rng.integers(first, end)) << CHOICE_DROP
                order[place], order[left - 1] = order[left - 1], feature
        unused = self.rng.integers(0, 1 << CHOICE_DROP, words.shape, np.uint32)
        y, chosen = self._among_others(np.array(picking, np.uint32) | unused, words, features, looked_at)
        if self.sampled and not (chosen == np.array(features)).all():
            raise FailedProofError(f"{self.function} as compiled picks other features than its words say")
        return np.asarray(y)

    def picked(self, words: "np.ndarray[Any, Any]", turn: int) -> "np.ndarray[Any, Any]":
        """Return the feature that each word picks in that turn of a record; the words of other turns are zero."""
        import numpy as np

        found, some = [], max(1, MOST_WORDS // self.k)
        for start in range(0, len(words), some):
            picks = np.zeros((len(words[start : start + some]), self.k), np.uint32)
            picks[:, turn] = words[start : start + some]
            drawing = self.rng.integers(0, 1 << 32, picks.shape, np.uint32)
            found.append(self._among_others(picks, drawing, [0] * self.k, {})[1][:, turn])
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

    def _among_others(
        self, picks: Any, words: Any, features: Sequence[int], looked_at: dict[int, int]
    ) -> tuple[Any, Any]:
        """Return outputs and picked features of each record, with random values in the features not looked at."""
        import numpy as np

        pool = self.rng.integers(self.least, self.most, SLIDE + self.n, endpoint=True)
        ends = self.rng.integers(0, 8, len(pool))  # a quarter of the values at both ends
        pool = np.where(ends == 0, self.least, np.where(ends == 1, self.most, pool))
        pool = pool.astype(numpy_name(self.kernel.arrays["x"].storage))
        looked = np.array([(turn in looked_at, features[turn], looked_at.get(turn, 0)) for turn in range(self.k)])
        return self._call(picks, words, looked, pool, 1, SLIDE, renew=True)

    def _call(
        self, picks: Any, words: Any, looked: Any, pool: Any, step: int, slide: int, renew: bool
    ) -> tuple[Any, Any]:
        import numpy as np

        y, chosen = np.zeros(words.shape, np.int32), np.zeros(words.shape, np.uint32)
        arrays: list[Any] = [np.ascontiguousarray(a, np.uint32) for a in (picks, words, looked)]
        given = [ctypes.c_void_p(array.ctypes.data) for array in [*arrays, pool, y, chosen]]
        self.driver(*map(ctypes.c_uint32, (len(words), step, slide, renew)), *given)
        return y, chosen


def package_source(folder: Path, table: "NoiseTable | None" = None, trust: bool = False) -> Source:
    """Return the release of a package as a source for an audit. With its table the distribution is checked too."""
    package = open_package(folder, trust)
    record: dict[str, Any] = package.manifest.get("noise_table") or {}
    n, k = int(record.get("features", 0)), int(record.get("release", 0))
    kernel = next(
        (
            one
            for one in package.kernels
            if record and {"x", "word", "y"} <= set(one.parameters) and ("chosen" in one.parameters) == (k < n)
        ),
        None,
    )
    if kernel is None:
        raise InputError(
            f"{folder} releases nothing that a certificate covers; export release or sampled with --noise."
        )
    sampled = k < n
    if table is None:
        proved, share = record["certificate"]["epsilon_release"], float(record["epsilon"]) / k
        about = Certified(n, k, sampled, share if proved == "None" else min(share, float(proved)), None)
    else:
        about = certified(table, sampled)
        if (table.features, table.release) != (n, k):
            raise InputError(f"{folder} was made with another table; give the one that its manifest names.")
    with temporary_folder() as build:
        release = Release(package, kernel, Path(build))
    source = release_source(about, release.packets, NUMPY)
    return source._replace(mechanism=f"{release.function} in C")
