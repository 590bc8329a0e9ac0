"""Every feature through the compiled release, among others that change: word by word as by the plain rule."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim.errors import FailedProofError
from sensorsim.verify.plain import output_of
from sensorsim.verify.releasing import Release, whole_words

if TYPE_CHECKING:
    import numpy as np

MOST = 1 << 29  # draws of all features at all x together; beyond, fewer x for each feature, then fewer words
FLIPPED, MOST_UNUSED = 64, 10  # words whose unused bits are flipped, and how many of these in all combinations


def every_feature(release: Release, places: Sequence[int]) -> str:
    """Each feature at each x, through all values of the top part and as many random ones of the low part."""
    parts, n, k = release.parts, release.n, release.k
    each = 1 << max(parts.high, parts.low)
    at_once = (k + 1) // 2  # every second turn of a record is looked at, the others hold other values
    a_record = k + 2 + (n // 16 if "order" in release.kernel.parameters else 0)
    room = MOST * at_once // (a_record * each)  # pairs of a feature and an x
    per_feature = min(len(places), max(1, room // n))
    words = each if room >= n else max(1 << 8, each * room // n)
    for looked_at in _together(release, places, per_feature):
        _one(release, looked_at, words)
    which = f"at {'all of them' if per_feature == len(places) else f'{per_feature} of them'}"
    how = "all values of each part" if words == each else f"{words} random words"
    return f"each of {n} features {which}, {how} among other features that change"


def without_unused_bits(release: Release, places: Sequence[int]) -> str:
    """Whether the bits of a word that no part uses change nothing: all values of up to ten of them, on a sample."""
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
    """Pairs of a feature and its x that one record can look at: every feature at so many x, spread over all."""
    at_once = (release.k + 1) // 2
    for turn in range(per_feature):
        features = [int(f) for f in release.rng.permutation(release.n)]
        for start in range(0, release.n, at_once):
            some = features[start : start + at_once]
            yield [(f, places[(f * per_feature + turn) % len(places)]) for f in some]


def _one(release: Release, looked_at: list[tuple[int, int]], count: int) -> None:
    """One x of each of some features, through so many words."""
    import numpy as np

    features = release.some_features([feature for feature, _ in looked_at])
    at = {features.index(feature): x for feature, x in looked_at}
    drawn = {turn: _some_words(release, count) for turn in at}
    words = release.rng.integers(0, 1 << 32, (count, release.k), np.uint32)
    for turn, (top, low) in drawn.items():
        words[:, turn] = whole_words(top, low, release.parts, release.rng)
    got = release.released(features, at, words)
    for turn, (top, low) in drawn.items():
        wrong = got[:, turn] != output_of(release.known.table, at[turn], top, low, release.parts.low)
        if wrong.any():
            raise FailedProofError(
                f"{release.function} as compiled gives {got[:, turn][wrong][0]} for feature {features[turn]} at x = "
                f"{at[turn]} and word 0x{int(words[:, turn][wrong][0]):08x}, which the table does not"
            )


def _some_words(release: Release, count: int) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """Both parts of words: every value of each part as often as there is room, in any pairs."""
    import numpy as np

    def values(bits: int) -> Any:
        return release.rng.permutation(np.resize(np.arange(1 << bits, dtype=np.uint32), max(count, 1 << bits)))[:count]

    return values(release.parts.high), values(release.parts.low)
