"""The kinds of noise table, one file each. A kind answers for itself what every table is asked (`NoiseTable`).

No module outside this package asks which kind a table is.

rows       one symbol per feature, the least noise for a bounded range; the default
stairs     noise that is added and clamped
naive      Laplace samples rounded to the lattice: the obvious table, which protects nothing
quantile   quantiles of the discrete Laplace distribution: the next obvious one
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

KINDS = {"rows": "rows_table", "stairs": "stairs_table", "naive": "sample_table", "quantile": "sample_table"}
DEFAULT = "rows"


def kind_of(name: str) -> "type[NoiseTable]":
    """Return the class of a kind."""
    if name not in KINDS:
        raise InputError(f"kind is {name}{did_you_mean(name, KINDS)}; the kinds of table are {', '.join(KINDS)}.")
    found: type[NoiseTable] = import_module(f"sensorsim.noise.kinds.{KINDS[name]}").KINDS[name]
    return found
