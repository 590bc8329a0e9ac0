"""Every draw of the compiled release, counted: the likelihoods that the C really gives, beside the certificate.

The package's own function runs on this machine, with the package's own table and constants, through all secret words
of one draw at nine x and at every knot of the table. Where a draw takes more than 24 bits of a word it is run through
every value of each of its two parts, with the other at its ends, where something changes, and at random:

    rows       the top bits draw, the low ones round. Low parts that behave alike at those places are one class; the
               largest, the smallest and a random one of each class run through all top parts and must agree.
    stairs     the top bits pick a stair, the low ones a place on it: y = clamp(a + low) with an `a` of each top part.

Which features are picked is independent of the draw and counted by itself: all 2^20 values of the word that picks.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import FailedProofError
from sensorsim.export.manifest import Package
from sensorsim.kernels.formats import FRAC
from sensorsim.language.kernel import Kernel
from sensorsim.privacy.rational import log_above
from sensorsim.verify.proof import Proof
from sensorsim.verify.releasing import Parts, Release
from sensorsim.verify.table import Stated, macros, stated

if TYPE_CHECKING:
    import numpy as np

MOST_BITS = 24  # of a draw that is run through all of its words
CHUNK = 1 << 20
PLACES, RANDOM = 256, 16  # places where something changes, and others, that each low part is tried at
Draw = Callable[["np.ndarray[Any, Any]", int], "np.ndarray[Any, Any]"]  # words and x to outputs


def draw_proof(package: Package, build: Path, seed: int = 0) -> list[Proof]:
    """Whether the compiled release has the likelihoods that are certified; nothing where it releases none."""
    if package.table_file is None:
        return []
    try:
        known = stated(package)
        kernels = releases(package, known)
        if not kernels:
            return []
        if macros(package) != known.constants:
            raise FailedProofError(f"the constants beside the table are {macros(package)}, not {known.constants}")
        told = [_release(package, known, kernel, build, seed) for kernel in kernels]
    except FailedProofError as error:
        return [Proof("every draw", False, str(error))]
    return [Proof("every draw", True, "; ".join(told))]


def releases(package: Package, known: Stated) -> list[Kernel]:
    """The kernels of the package that release records through its table."""
    return [one for one in known.noise.users if {"x", "word", "y"} <= set(one.parameters) and one in package.kernels]


def _release(package: Package, known: Stated, kernel: Kernel, build: Path, seed: int) -> str:
    import numpy as np

    release = Release(package, known, kernel, build)
    parts, table = release.parts, known.table
    rng = np.random.default_rng(seed)
    places = sorted({k << (FRAC - 3) for k in range(9)} | set(release.knots()))
    if parts.bits <= MOST_BITS:
        found = [_every_word(release.draw, parts, x) for x in places]
        how = f"all 2^{parts.bits} words"
    elif table.kind == "rows":
        found = [_by_classes(release.draw, parts, x, rng) for x in places]
        how = f"all values of both parts ({parts.high} and {parts.low} bits) of a word"
    else:
        found = [_by_places(release.draw, parts, x, rng) for x in places]
        how = f"all values of both parts ({parts.high} and {parts.low} bits) of a word"
    told = _compared(known, found, release.function)
    picks = release.picks(rng)
    return f"{release.function}: {how} at {len(places)} x, {told}{picks}"


def _compared(known: Stated, found: Sequence[dict[int, int]], function: str) -> str:
    """The observed ratio beside the certified one: equal for rows, not larger for stairs."""
    certificate = known.table.certificate
    assert certificate is not None
    outputs = {y for counts in found for y in counts}
    columns = [[counts.get(y, 0) for counts in found] for y in outputs]
    ratio = None if any(min(c) == 0 for c in columns) else max(Fraction(max(c), min(c)) for c in columns)
    if ratio == certificate.ratio:
        return f"observed epsilon {_epsilon(ratio)}, as certified"
    exact = known.table.kind == "rows"
    if exact or ratio is None or certificate.ratio is None or ratio > certificate.ratio:
        raise FailedProofError(
            f"{function} as compiled has epsilon {_epsilon(ratio)} for one value, and {_epsilon(certificate.ratio)} is "
            "certified"
        )
    return f"observed epsilon {_epsilon(ratio)}, no more than the certified {_epsilon(certificate.ratio)}"


def _epsilon(ratio: Fraction | None) -> str:
    return "without a bound" if ratio is None else str(log_above(ratio))


def _every_word(draw: Draw, parts: Parts, x: int) -> dict[int, int]:
    """How many of all words give each output."""
    import numpy as np

    counts: dict[int, int] = {}
    for start in range(0, 1 << parts.bits, CHUNK):
        at = np.arange(start, min(start + CHUNK, 1 << parts.bits), dtype=np.uint32)
        found, times = np.unique(
            draw(_words(at >> parts.low, at & ((1 << parts.low) - 1), parts), x), return_counts=True
        )
        for y, count in zip(found.tolist(), times.tolist(), strict=True):
            counts[y] = counts.get(y, 0) + count
    return counts


def _by_classes(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """The same where low parts fall into few classes that draw alike."""
    import numpy as np

    tops, lows = np.arange(1 << parts.high, dtype=np.uint32), np.arange(1 << parts.low, dtype=np.uint32)
    some = np.unique(np.concatenate([lows[[0, 1, -2, -1]], rng.choice(lows, 4)]))
    seen = np.array([draw(_words(tops, low, parts), x) for low in some])
    changes = np.flatnonzero((seen[:, 1:] != seen[:, :-1]).any(axis=0)) + 1
    unlike = np.flatnonzero((seen != seen[0]).any(axis=0))
    unlike = np.concatenate([unlike[[0, -1]], rng.choice(unlike, PLACES)]) if len(unlike) else unlike
    places = np.unique(np.concatenate([changes - 1, changes, unlike, tops[[0, -1]], rng.choice(tops, RANDOM)]))
    behaviour = np.array([draw(_words(np.uint32(top), lows, parts), x) for top in places]).T.astype(np.uint8)
    classes: dict[bytes, list[int]] = {}
    for low, row in enumerate(np.ascontiguousarray(behaviour)):
        classes.setdefault(row.tobytes(), []).append(low)
    counts: dict[int, int] = {}
    for members in classes.values():
        tried = {int(members[0]), int(members[-1]), int(rng.choice(members))}
        drawn = [draw(_words(tops, np.uint32(low), parts), x) for low in sorted(tried)]
        if any(not np.array_equal(other, drawn[0]) for other in drawn):
            raise FailedProofError(f"the compiled draw at x = {x} depends on the low bits of its word in no way known")
        for y, count in zip(*(a.tolist() for a in np.unique(drawn[0], return_counts=True)), strict=True):
            counts[y] = counts.get(y, 0) + count * len(members)
    return counts


def _by_places(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """The same where an output is clamp(a + low), with an `a` of each top part: every `a` is read off."""
    import numpy as np

    tops, lows = np.arange(1 << parts.high, dtype=np.uint32), np.arange(1 << parts.low, dtype=np.uint32)
    last = len(lows) - 1
    first, end = draw(_words(tops, lows[0], parts), x), draw(_words(tops, lows[-1], parts), x)
    least, most = int(first.min()), int(end.max())
    a = np.where(first > least, first, end - last).astype(np.int64)  # clamped below: seen from its other end

    def expected(top: Any, low: Any) -> Any:
        return np.clip(a[top] + low, least, most)

    places = np.unique(np.concatenate([[0, len(tops) - 1], np.flatnonzero(np.diff(a)), np.flatnonzero(np.diff(a)) + 1]))
    for low in rng.integers(0, last + 1, RANDOM):
        _same(draw(_words(tops, np.uint32(low), parts), x), expected(tops, low), x)
    for top in np.unique(np.concatenate([places[:: max(1, len(places) // PLACES)], rng.choice(tops, RANDOM)])):
        _same(draw(_words(np.uint32(top), lows, parts), x), expected(int(top), lows.astype(np.int64)), x)
    totals = np.zeros(most - least + 1, np.int64)
    for place, count in zip(*np.unique(a, return_counts=True), strict=True):
        low_end, high_end = int(place), int(place) + last
        inside = (max(low_end, least), min(high_end, most))
        if inside[0] <= inside[1]:
            totals[inside[0] - least : inside[1] - least + 1] += count
        totals[0] += count * min(max(0, least - low_end), last + 1)
        totals[-1] += count * min(max(0, high_end - most), last + 1)
    return {least + k: int(count) for k, count in enumerate(totals) if count}


def _same(got: Any, want: Any, x: int) -> None:
    if not (got == want).all():
        raise FailedProofError(f"the compiled draw at x = {x} is not x with the noise of its stair, clamped")


def _words(top: Any, low: Any, parts: Parts) -> Any:
    """Whole words of both parts; the bits that no part uses are ones."""
    import numpy as np

    above = 32 - parts.high
    unused = ((1 << above) - 1) & ~(((1 << parts.low) - 1) << parts.drop)
    word = (np.asarray(top, np.uint32) << np.uint32(above)) | (np.asarray(low, np.uint32) << np.uint32(parts.drop))
    return np.asarray(word | np.uint32(unused), np.uint32)
