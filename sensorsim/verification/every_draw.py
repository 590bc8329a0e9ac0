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

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError
from sensorsim.codegen.manifest import Package
from sensorsim.kernels.formats import FRAC
from sensorsim.language.kernel import Kernel
from sensorsim.noise.certificate import log_above
from sensorsim.verification.audited_package import Parts, Release
from sensorsim.verification.kernel_timing import Proof
from sensorsim.verification.package_checks import PackageTables, noise_macros, read_tables

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.noise.noise_table import NoiseTable

ONE = 1 << FRAC  # x = 1; what is larger counts as 1


def counts_at(table: "NoiseTable", x: int, bits: int) -> dict[int, int]:
    """Return how many of 2^bits words give each output at x, from the counts in the table's file."""
    outputs, counts = table.distribution(min(x, ONE))
    words = int(counts.sum())
    if (1 << bits) % words:
        raise ValueError(f"{words} words of the table are no part of 2^{bits}")
    each = (1 << bits) // words
    return {int(y): int(count) * each for y, count in zip(outputs, counts, strict=True) if count}


def output_of(table: "NoiseTable", x: int, top: Any, low: Any, low_bits: int) -> Any:
    """Return the output at x for the top and the low part of each word, two arrays."""
    return table.draw(min(x, ONE), top.astype("int64"), low.astype("int64"), low_bits)


MOST_DRAWS = 1 << 29  # draws of all features at all x together; beyond, fewer x for each feature, then fewer words
FLIPPED, MOST_UNUSED = 64, 10  # words whose unused bits are flipped, and how many of these in all combinations


def every_feature(release: Release, table: "NoiseTable", places: Sequence[int]) -> str:
    """Check each feature at each x, with all values of the top part and as many random ones of the low part."""
    parts, n, k = release.parts, release.n, release.k
    each = 1 << max(parts.high, parts.low)
    at_once = (k + 1) // 2  # every second turn of a record is looked at, the others hold other values
    a_record = k + 2 + (n // 16 if "order" in release.kernel.parameters else 0)
    room = MOST_DRAWS * at_once // (a_record * each)  # pairs of a feature and an x
    per_feature = min(len(places), max(1, room // n))
    words = each if room >= n else max(1 << 8, each * room // n)
    for looked_at in _together(release, places, per_feature):
        _one(release, table, looked_at, words)
    which = f"at {'all of them' if per_feature == len(places) else f'{per_feature} of them'}"
    how = "all values of each part" if words == each else f"{words} random words"
    return f"each of {n} features {which}, {how} among other features that change"


def without_unused_bits(release: Release, places: Sequence[int]) -> str:
    """Check that the unused bits of a word change nothing: all values of up to ten of them, on a sample."""
    import numpy as np

    bits = [1 << b for b in range(32) if release.parts.unused >> b & 1]
    if not bits:
        return ""
    tried = [sum(bit for place, bit in enumerate(bits) if value >> place & 1) for value in range(1 << MOST_UNUSED)]
    masks = np.unique(np.array([*tried, *bits, sum(bits)], np.uint32))
    for x in places:
        words = release.rng.integers(0, 1 << 32, FLIPPED, np.uint32)
        drawn = release.draw((words[:, None] ^ masks).ravel(), x).reshape(FLIPPED, -1)
        if not (drawn == drawn[:, :1]).all():
            raise FailedProofError(f"{release.function} as compiled depends on bits of a word that no part uses")
    return f"; {len(bits)} unused bits of a word change nothing, on a sample"


def _together(release: Release, places: Sequence[int], per_feature: int) -> Iterator[list[tuple[int, int]]]:
    """Yield pairs of a feature and its x that one record can look at: each feature at `per_feature` x."""
    at_once = (release.k + 1) // 2
    for turn in range(per_feature):
        features = [int(f) for f in release.rng.permutation(release.n)]
        for start in range(0, release.n, at_once):
            some = features[start : start + at_once]
            yield [(f, places[(f * per_feature + turn) % len(places)]) for f in some]


def _one(release: Release, table: "NoiseTable", looked_at: list[tuple[int, int]], count: int) -> None:
    """Check one x of each of some features with `count` words."""
    import numpy as np

    features = release.some_features([feature for feature, _ in looked_at])
    at = {features.index(feature): x for feature, x in looked_at}
    drawn = {turn: _some_words(release, count) for turn in at}
    words = release.rng.integers(0, 1 << 32, (count, release.k), np.uint32)
    for turn, (top, low) in drawn.items():
        words[:, turn] = release.parts.words(top, low, release.rng)
    got = release.released(features, at, words)
    for turn, (top, low) in drawn.items():
        wrong = got[:, turn] != output_of(table, at[turn], top, low, release.parts.low)
        if wrong.any():
            raise FailedProofError(
                f"{release.function} as compiled gives {got[:, turn][wrong][0]} for feature {features[turn]} at x = "
                f"{at[turn]} and word 0x{int(words[:, turn][wrong][0]):08x}, which the table does not"
            )


def _some_words(release: Release, count: int) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """Return both parts of `count` words: every value of each part equally often, in any pairs."""
    import numpy as np

    def values(bits: int) -> Any:
        return release.rng.permutation(np.resize(np.arange(1 << bits, dtype=np.uint32), max(count, 1 << bits)))[:count]

    return values(release.parts.high), values(release.parts.low)


MOST_BITS = 24  # of a draw that is run through all of its words
CHUNK = 1 << 20
PLACES, RANDOM = 256, 16  # places where something changes, and others, that each low part is tried at
RANDOM_X = 6
MOST_CLASSES, MOST_CHANGES = 64, 1024
Draw = Callable[["np.ndarray[Any, Any]", int], "np.ndarray[Any, Any]"]  # words and x to outputs


def draw_proof(package: Package, build: Path, seed: int = 0) -> list[Proof]:
    """Prove that the compiled release has the certified likelihoods; nothing where it releases none."""
    if package.table_file is None:
        return []
    try:
        known = read_tables(package)
        kernels = releases(package, known)
        if not kernels:
            return []
        if noise_macros(package) != known.macros:
            raise FailedProofError(f"the constants beside the table are {noise_macros(package)}, not {known.macros}")
        told = [_release(package, known, kernel, build, seed) for kernel in kernels]
    except FailedProofError as error:
        return [Proof("every draw", False, str(error))]
    return [Proof("every draw", True, "; ".join(told))]


def releases(package: Package, known: PackageTables) -> list[Kernel]:
    """Return the kernels of the package that release records through its table."""
    return [one for one in known.noise.users if {"x", "word", "y"} <= set(one.parameters) and one in package.kernels]


def _release(package: Package, known: PackageTables, kernel: Kernel, build: Path, seed: int) -> str:
    release = Release(package, kernel, build, seed)
    parts, places, rng = release.parts, places_of(release, known.table), release.rng
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
    features = every_feature(release, known.table, places)
    unused = without_unused_bits(release, places)
    return (
        f"{release.function}: {how} at {len(places)} x, each output as often as by the table, {told}; "
        f"{features}{unused}{release.picks()}"
    )


def places_of(release: Release, table: "NoiseTable") -> list[int]:
    """Return the x that are tried."""
    marks = {k * ONE // 8 for k in range(9)} | set(table.worst_inputs())
    beside = {mark + off for mark in marks for off in (-1, 0, 1)} | {release.most}
    some = release.rng.integers(0, ONE, RANDOM_X).tolist()
    return sorted(x for x in beside | set(some) if release.least <= x <= release.most)


def _counted(
    known: PackageTables, parts: Parts, places: Sequence[int], found: Sequence[dict[int, int]], name: str
) -> None:
    """Check that every output is as frequent as the table's counts say, at every x."""
    for x, counts in zip(places, found, strict=True):
        want = counts_at(known.table, x, parts.bits)
        for y in sorted(want.keys() | counts.keys()):
            if counts.get(y, 0) != want.get(y, 0):
                raise FailedProofError(
                    f"{name} as compiled gives {y} at x = {x} for {counts.get(y, 0)} of 2^{parts.bits} words, and "
                    f"{want.get(y, 0)} by the table"
                )


def _compared(known: PackageTables, found: Sequence[dict[int, int]], function: str) -> str:
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
    """Count the outputs over all words."""
    import numpy as np

    counts: dict[int, int] = {}
    for start in range(0, 1 << parts.bits, CHUNK):
        at = np.arange(start, min(start + CHUNK, 1 << parts.bits), dtype=np.uint32)
        words = parts.words(at >> parts.low, at & ((1 << parts.low) - 1), rng)
        for y, count in _tally(draw(words, x)):
            counts[y] = counts.get(y, 0) + count
    return counts


def _by_classes(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """Count the outputs over all words where low parts fall into few classes that draw alike."""
    import numpy as np

    tops, lows = np.arange(1 << parts.high, dtype=np.uint32), np.arange(1 << parts.low, dtype=np.uint32)
    some = np.unique(np.concatenate([lows[[0, 1, -2, -1]], rng.choice(lows, 4)]))
    seen = np.array([draw(parts.words(tops, low, rng), x) for low in some])
    changes = np.flatnonzero((seen[:, 1:] != seen[:, :-1]).any(axis=0)) + 1
    if len(changes) > MOST_CHANGES:  # two rows of thresholds make a few dozen; chance makes thousands
        raise FailedProofError(f"the compiled draw at x = {x} depends on more than its word and x")
    unlike = np.flatnonzero((seen != seen[0]).any(axis=0))
    unlike = np.concatenate([unlike[[0, -1]], rng.choice(unlike, PLACES)]) if len(unlike) else unlike
    places = np.unique(np.concatenate([changes - 1, changes, unlike, tops[[0, -1]], rng.choice(tops, RANDOM)]))
    behaviour = np.array([draw(parts.words(np.uint32(top), lows, rng), x) for top in places]).T.astype(np.uint8)
    classes: dict[bytes, list[int]] = {}
    for low, row in enumerate(np.ascontiguousarray(behaviour)):
        classes.setdefault(row.tobytes(), []).append(low)
    counts: dict[int, int] = {}
    if len(classes) > MOST_CLASSES:  # rounding to one of two rows makes two
        raise FailedProofError(f"the compiled draw at x = {x} depends on more than its word and x")
    for members in classes.values():
        tried = {int(members[0]), int(members[-1]), int(rng.choice(members))}
        drawn = [draw(parts.words(tops, np.uint32(low), rng), x) for low in sorted(tried)]
        if any(not np.array_equal(other, drawn[0]) for other in drawn):
            raise FailedProofError(f"the compiled draw at x = {x} depends on the low bits of its word in no way known")
        for y, count in _tally(drawn[0]):
            counts[y] = counts.get(y, 0) + count * len(members)
    return counts


def _by_places(draw: Draw, parts: Parts, x: int, rng: "np.random.Generator") -> dict[int, int]:
    """Count the outputs over all words where an output is clamp(a + low), with an `a` of each top part."""
    import numpy as np

    tops, lows = np.arange(1 << parts.high, dtype=np.uint32), np.arange(1 << parts.low, dtype=np.uint32)
    last = len(lows) - 1
    first, end = draw(parts.words(tops, lows[0], rng), x), draw(parts.words(tops, lows[-1], rng), x)
    least, most = int(first.min()), int(end.max())
    a = np.where(first > least, first, end - last).astype(np.int64)  # clamped below: seen from its other end

    def expected(top: Any, low: Any) -> Any:
        return np.clip(a[top] + low, least, most)

    places = np.unique(np.concatenate([[0, len(tops) - 1], np.flatnonzero(np.diff(a)), np.flatnonzero(np.diff(a)) + 1]))
    for low in rng.integers(0, last + 1, RANDOM):
        _same(draw(parts.words(tops, np.uint32(low), rng), x), expected(tops, low), x)
    for top in np.unique(np.concatenate([places[:: max(1, len(places) // PLACES)], rng.choice(tops, RANDOM)])):
        _same(draw(parts.words(np.uint32(top), lows, rng), x), expected(int(top), lows.astype(np.int64)), x)
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
    """Return each output and its count."""
    import numpy as np

    least = int(outputs.min())
    counts = np.bincount(outputs - least)
    found = np.flatnonzero(counts)
    return list(zip((found + least).tolist(), counts[found].tolist(), strict=True))


def _same(got: Any, want: Any, x: int) -> None:
    if not (got == want).all():
        raise FailedProofError(f"the compiled draw at x = {x} is not x with the noise of its stair, clamped")
