"""Every draw of the compiled release, counted: how often the C really gives each output, beside the table's counts.

The package's own function runs on this machine, with the package's own table and constants, at nine x, at every knot
of the table, one below and one above each of them, beyond 1 and at some random x. At each x the count of every output
must be exactly that of the table's file (`plain`), and so must the epsilon that follows. Where a draw takes more than
24 bits of a word it is run through every value of each of its two parts, with the other at its ends, where something
changes, and at random; not every pair of them is tried:

    rows       the top bits draw, the low ones round. Low parts that behave alike at those places are one class; the
               largest, the smallest and a random one of each class run through all top parts and must agree.
    stairs     the top bits pick a stair, the low ones a place on it: y = clamp(a + low) with an `a` of each top part.

Then every feature runs through all top parts and as many low ones, at each of those x, among other features that change
from record to record, and gives what the plain rule says word by word. Bits that no part uses are random in all of
this, and on a sample of words all of their values are tried. Which features are picked is independent of the draw and
counted by itself: all 2^20 values of the word that picks.

An x that is not among those tried is covered by the comparison of bits alone, which is by samples.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import FailedProofError
from sensorsim.export.manifest import Package
from sensorsim.language.kernel import Kernel
from sensorsim.privacy.rational import log_above
from sensorsim.verify.features import every_feature, without_unused_bits
from sensorsim.verify.held import macros
from sensorsim.verify.plain import ONE, counts_at
from sensorsim.verify.proof import Proof
from sensorsim.verify.releasing import Parts, Release, whole_words
from sensorsim.verify.table import Stated, stated

if TYPE_CHECKING:
    import numpy as np

MOST_BITS = 24  # of a draw that is run through all of its words
CHUNK = 1 << 20
PLACES, RANDOM = 256, 16  # places where something changes, and others, that each low part is tried at
RANDOM_X = 6
MOST_CLASSES, MOST_CHANGES = 64, 1024
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
        if macros(package) != known.macros:
            raise FailedProofError(f"the constants beside the table are {macros(package)}, not {known.macros}")
        told = [_release(package, known, kernel, build, seed) for kernel in kernels]
    except FailedProofError as error:
        return [Proof("every draw", False, str(error))]
    return [Proof("every draw", True, "; ".join(told))]


def releases(package: Package, known: Stated) -> list[Kernel]:
    """The kernels of the package that release records through its table."""
    return [one for one in known.noise.users if {"x", "word", "y"} <= set(one.parameters) and one in package.kernels]


def _release(package: Package, known: Stated, kernel: Kernel, build: Path, seed: int) -> str:
    release = Release(package, known, kernel, build, seed)
    parts, places, rng = release.parts, places_of(release), release.rng
    how = f"all values of both parts ({parts.high} and {parts.low} bits) of a word, pairs of them tried, not exhausted,"
    if parts.bits <= MOST_BITS:
        found = [_every_word(release.draw, parts, x, rng) for x in places]
        how = f"all 2^{parts.bits} values of the bits that a word uses"
    elif known.table.symbols:
        found = [_by_classes(release.draw, parts, x, rng) for x in places]
    else:
        found = [_by_places(release.draw, parts, x, rng) for x in places]
    told = _compared(known, found, release.function)
    _counted(known, parts, places, found, release.function)
    features = every_feature(release, places)
    unused = without_unused_bits(release, places)
    return (
        f"{release.function}: {how} at {len(places)} x, each output as often as by the table, {told}; "
        f"{features}{unused}{release.picks()}"
    )


def places_of(release: Release) -> list[int]:
    """The x that are tried."""
    marks = {k * ONE // 8 for k in range(9)} | set(release.known.table.worst_inputs())
    beside = {mark + off for mark in marks for off in (-1, 0, 1)} | {release.most}
    some = release.rng.integers(0, ONE, RANDOM_X).tolist()
    return sorted(x for x in beside | set(some) if release.least <= x <= release.most)


def _counted(known: Stated, parts: Parts, places: Sequence[int], found: Sequence[dict[int, int]], name: str) -> None:
    """Whether every output is as frequent as the table's own counts say, at every x."""
    for x, counts in zip(places, found, strict=True):
        want = counts_at(known.table, x, parts.bits)
        for y in sorted(want.keys() | counts.keys()):
            if counts.get(y, 0) != want.get(y, 0):
                raise FailedProofError(
                    f"{name} as compiled gives {y} at x = {x} for {counts.get(y, 0)} of 2^{parts.bits} words, and "
                    f"{want.get(y, 0)} by the table"
                )


def _compared(known: Stated, found: Sequence[dict[int, int]], function: str) -> str:
    """Compare the observed ratio with the certified one: equal where inputs are known to attain it, else not larger."""
    certificate = known.table.certificate
    assert certificate is not None
    outputs = {y for counts in found for y in counts}
    columns = [[counts.get(y, 0) for counts in found] for y in outputs]
    ratio = None if any(min(c) == 0 for c in columns) else max(Fraction(max(c), min(c)) for c in columns)
    if ratio == certificate.ratio:
        return f"observed epsilon {_epsilon(ratio)}, as certified"
    if known.table.worst_inputs() or ratio is None or certificate.ratio is None or ratio > certificate.ratio:
        raise FailedProofError(
            f"{function} as compiled has epsilon {_epsilon(ratio)} for one value, and {_epsilon(certificate.ratio)} is "
            "certified"
        )
    return f"observed epsilon {_epsilon(ratio)}, no more than the certified {_epsilon(certificate.ratio)}"


def _epsilon(ratio: Fraction | None) -> str:
    return "without a bound" if ratio is None else str(log_above(ratio))


def _every_word(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """How many of all words give each output."""
    import numpy as np

    counts: dict[int, int] = {}
    for start in range(0, 1 << parts.bits, CHUNK):
        at = np.arange(start, min(start + CHUNK, 1 << parts.bits), dtype=np.uint32)
        words = whole_words(at >> parts.low, at & ((1 << parts.low) - 1), parts, rng)
        for y, count in _tally(draw(words, x)):
            counts[y] = counts.get(y, 0) + count
    return counts


def _by_classes(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """The same where low parts fall into few classes that draw alike."""
    import numpy as np

    tops, lows = np.arange(1 << parts.high, dtype=np.uint32), np.arange(1 << parts.low, dtype=np.uint32)
    some = np.unique(np.concatenate([lows[[0, 1, -2, -1]], rng.choice(lows, 4)]))
    seen = np.array([draw(whole_words(tops, low, parts, rng), x) for low in some])
    changes = np.flatnonzero((seen[:, 1:] != seen[:, :-1]).any(axis=0)) + 1
    if len(changes) > MOST_CHANGES:  # two rows of thresholds make a few dozen; chance makes thousands
        raise FailedProofError(f"the compiled draw at x = {x} depends on more than its word and x")
    unlike = np.flatnonzero((seen != seen[0]).any(axis=0))
    unlike = np.concatenate([unlike[[0, -1]], rng.choice(unlike, PLACES)]) if len(unlike) else unlike
    places = np.unique(np.concatenate([changes - 1, changes, unlike, tops[[0, -1]], rng.choice(tops, RANDOM)]))
    behaviour = np.array([draw(whole_words(np.uint32(top), lows, parts, rng), x) for top in places]).T.astype(np.uint8)
    classes: dict[bytes, list[int]] = {}
    for low, row in enumerate(np.ascontiguousarray(behaviour)):
        classes.setdefault(row.tobytes(), []).append(low)
    counts: dict[int, int] = {}
    if len(classes) > MOST_CLASSES:  # rounding to one of two rows makes two
        raise FailedProofError(f"the compiled draw at x = {x} depends on more than its word and x")
    for members in classes.values():
        tried = {int(members[0]), int(members[-1]), int(rng.choice(members))}
        drawn = [draw(whole_words(tops, np.uint32(low), parts, rng), x) for low in sorted(tried)]
        if any(not np.array_equal(other, drawn[0]) for other in drawn):
            raise FailedProofError(f"the compiled draw at x = {x} depends on the low bits of its word in no way known")
        for y, count in _tally(drawn[0]):
            counts[y] = counts.get(y, 0) + count * len(members)
    return counts


def _by_places(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """The same where an output is clamp(a + low), with an `a` of each top part: every `a` is read off."""
    import numpy as np

    tops, lows = np.arange(1 << parts.high, dtype=np.uint32), np.arange(1 << parts.low, dtype=np.uint32)
    last = len(lows) - 1
    first, end = draw(whole_words(tops, lows[0], parts, rng), x), draw(whole_words(tops, lows[-1], parts, rng), x)
    least, most = int(first.min()), int(end.max())
    a = np.where(first > least, first, end - last).astype(np.int64)  # clamped below: seen from its other end

    def expected(top: Any, low: Any) -> Any:
        return np.clip(a[top] + low, least, most)

    places = np.unique(np.concatenate([[0, len(tops) - 1], np.flatnonzero(np.diff(a)), np.flatnonzero(np.diff(a)) + 1]))
    for low in rng.integers(0, last + 1, RANDOM):
        _same(draw(whole_words(tops, np.uint32(low), parts, rng), x), expected(tops, low), x)
    for top in np.unique(np.concatenate([places[:: max(1, len(places) // PLACES)], rng.choice(tops, RANDOM)])):
        _same(draw(whole_words(np.uint32(top), lows, parts, rng), x), expected(int(top), lows.astype(np.int64)), x)
    totals = np.zeros(most - least + 1, np.int64)
    for place, count in zip(*np.unique(a, return_counts=True), strict=True):
        low_end, high_end = int(place), int(place) + last
        inside = (max(low_end, least), min(high_end, most))
        if inside[0] <= inside[1]:
            totals[inside[0] - least : inside[1] - least + 1] += count
        totals[0] += count * min(max(0, least - low_end), last + 1)
        totals[-1] += count * min(max(0, high_end - most), last + 1)
    return {least + k: int(count) for k, count in enumerate(totals) if count}


def _tally(outputs: "np.ndarray[Any, Any]") -> list[tuple[int, int]]:
    """Each output and how often it is there."""
    import numpy as np

    least = int(outputs.min())
    counts = np.bincount(outputs - least)
    found = np.flatnonzero(counts)
    return list(zip((found + least).tolist(), counts[found].tolist(), strict=True))


def _same(got: Any, want: Any, x: int) -> None:
    if not (got == want).all():
        raise FailedProofError(f"the compiled draw at x = {x} is not x with the noise of its stair, clamped")
