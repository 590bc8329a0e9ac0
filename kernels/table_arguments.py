"""A stairs table as the release kernels take it. One place decides which tables fit them.

The index and the place on a stair come from one 32-bit word, so a table whose bits would overlap in it must be refused:
its draws would not be independent, and its certificate would not hold.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sensorsim.kernels.formats import DROP, FRAC, LIMIT, STAIR_BITS

from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable


@lru_cache(maxsize=32)
def table_arguments(table: "NoiseTable") -> tuple[npt.NDArray[np.int8], int, int, int]:
    """Entries, limit, drop and stair_bits as the kernels take them, or one sentence on why they cannot."""
    if table.kind != "stairs" or table.limit is None:
        raise InputError(f"a release needs a stairs table, not a {table.kind} one; make it with --kind stairs.")
    if table.frac_bits != FRAC:
        raise InputError(
            f"this table has {table.frac_bits} fraction bits and the kernels' x has {FRAC}; make it with "
            f"--frac-bits {FRAC} (the stairs stay the same)."
        )
    values, drop = table.values, 32 - table.index_bits
    fits = STAIR_BITS.lo <= table.stair_bits <= STAIR_BITS.hi and table.limit <= LIMIT.hi
    if values.dtype != np.int8 or not DROP.lo <= drop <= DROP.hi or not fits:
        raise InputError(
            f"this table has {len(values)} entries of {values.dtype.itemsize} B; the kernels take up to "
            f"2^{32 - DROP.lo} of one byte, so make it with fewer --entries or a larger --epsilon."
        )
    return values, table.limit, drop, table.stair_bits
