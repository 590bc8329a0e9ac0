"""Chi-square: do values follow a distribution that is known, and are two columns independent?"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

EXPECTED = 50.0  # draws that a group of cells should have


def chi_square(found: "Array", expected: "Array", least: float = EXPECTED) -> tuple[float, int]:
    """The statistic over groups of neighbouring cells, each with enough expected, and how many groups there are."""
    import numpy as np

    found, expected = found[expected > 0], expected[expected > 0]
    level = ((np.cumsum(expected) - expected) * (1 / least)).astype(np.int64)
    first = np.flatnonzero(np.diff(level, prepend=-1) > 0)
    wanted, had = np.add.reduceat(expected, first), np.add.reduceat(found, first)
    small = wanted < least / 5  # a rest that a large cell cut off
    if small.any():
        wanted = np.append(wanted[~small], wanted[small].sum())
        had = np.append(had[~small], had[small].sum())
    return float((np.square(had - wanted) / wanted).sum()), len(wanted)


def p_value(statistic: float, degrees: int, shift: float = 0.0) -> float:
    """Of a statistic at least this large. `shift`: what cells that are off by a known share may add to it (the
    parameter of a noncentral chi-square distribution)."""
    from scipy.special import chdtrc, chndtr

    if degrees < 1:
        return 1.0
    central = float(chdtrc(degrees, statistic))
    if shift <= 0 or central > 0.01:
        return central
    return max(central, float(1 - chndtr(statistic, degrees, shift)))


def independence(joint: "Array") -> tuple["Array", "Array", "Array"]:
    """Statistic, degrees of freedom and p-value for each table of counts, an array of tables × rows × columns.

    Where a table has too few counts for its cells, rows and columns are taken together two by two.
    """
    import numpy as np

    statistic, degrees, p, enough = _independence(joint)
    if joint.shape[1] > 2 and not enough.all():
        thin = ~enough
        tables, rows, columns = joint[thin].shape
        coarse = joint[thin].reshape(tables, rows // 2, 2, columns // 2, 2).sum(axis=(2, 4))
        for fine, merged in zip((statistic, degrees, p), independence(coarse), strict=True):
            np.place(fine, thin, merged)
    return statistic, degrees, p


def _independence(joint: "Array") -> tuple["Array", "Array", "Array", "Array"]:
    """The same without taking cells together, and whether there are enough counts for that.

    Rows and columns so rare that their cells would expect less than EXPECTED are left out.
    """
    import numpy as np
    from scipy.special import chdtrc

    total = joint.sum(axis=(1, 2))
    occupied = [(joint.sum(axis=axis) > 0).sum(axis=1) for axis in (1, 2)]
    needed = np.maximum(np.sqrt(EXPECTED * total), 1)[:, None]
    rows, columns = joint.sum(axis=2) >= needed, joint.sum(axis=1) >= needed
    kept = joint * rows[:, :, None] * columns[:, None, :]
    by_row, by_column, sums = kept.sum(axis=2), kept.sum(axis=1), kept.sum(axis=(1, 2))
    wanted = by_row[:, :, None] * (by_column / np.maximum(sums, 1)[:, None])[:, None, :]
    statistic = (np.square(kept - wanted) / np.where(wanted > 0, wanted, 1)).sum(axis=(1, 2))
    degrees = np.maximum(rows.sum(axis=1) - 1, 0) * np.maximum(columns.sum(axis=1) - 1, 0)
    p = np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), statistic), 1.0)
    return statistic, degrees, p, total >= 2 * EXPECTED * occupied[0] * occupied[1]
