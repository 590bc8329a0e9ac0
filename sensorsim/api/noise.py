"""`noise_table`, `read_table`, `write_table`, `certify`: tables of noise, and the proof of what they protect."""

import os
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.results import Result
from sensorsim.calls import checked
from sensorsim.kernels.formats import FRAC
from sensorsim.noise.kinds import DEFAULT
from sensorsim.noise.noise_table import NoiseTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.noise.certificate import Certificate

Table = NoiseTable | str | os.PathLike[str]


@checked
def noise_table(
    epsilon: float | str | Decimal,
    features: int = 14,
    release: int | str = "all",
    kind: str = DEFAULT,
    frac_bits: int = FRAC,
    symbols: int | None = None,
    knots: int | None = None,
    count_bits: int | None = None,
    entries: int | None = None,
    clamped: float | None = None,
    limit: float | None = None,
    seed: int | None = None,
) -> NoiseTable:
    """A table of noise for records of so many features, with the certificate that was proved of its counts just now.

    `epsilon` is the budget of a whole record and `release` how many of its features are released: all of them, or a
    number, picked at random. The other parameters shape one kind or another: see `sensorsim noise make --help`.

        >>> import sensorsim as ss
        >>> ss.noise_table(epsilon=1.6, release=1)
        rows table: 1 of 14 features of a record
          protects           epsilon 1.599958023791 per record, proved now; local, per record
        ...
    """
    from sensorsim.noise.noise_table import certified, make_table, ready_table

    options: dict[str, Any] = {"symbols": symbols, "knots": knots, "count_bits": count_bits, "entries": entries}
    options |= {"most_clamped": clamped, "limit_scales": limit, "seed": seed}
    if (features, frac_bits) == (14, FRAC) and all(value is None for value in options.values()):
        try:  # the same table as is made below, to the bit
            return certified(ready_table(epsilon, release, kind))
        except InputError:
            pass  # none that is ready
    with progress.step("making the table"):
        return make_table(kind, epsilon, features, release, frac_bits, **options)


@checked
def read_table(table: Table) -> NoiseTable:
    """The table of a file, with what its counts prove now in place of what the file says.

    >>> import sensorsim as ss
    >>> ss.read_table("rows-eps1.6-1.txt")  # doctest: +SKIP
    """
    from sensorsim.noise.noise_table import certified
    from sensorsim.noise.table_file import read_table as read

    if isinstance(table, NoiseTable):
        return table
    return certified(read(table))


@checked
def write_table(path: str | os.PathLike[str], table: NoiseTable) -> None:
    """Write a table with its certificate, as `sensorsim noise make` does; the same table gives the same bytes.

    >>> import sensorsim as ss
    >>> ss.write_table("noise.txt", ss.noise_table(epsilon=1.6, release=1))  # doctest: +SKIP
    """
    from sensorsim.noise.noise_table import certified
    from sensorsim.noise.table_file import write_table as write

    write(path, certified(table))


@dataclass(frozen=True, repr=False)
class TableCheck(Result):
    """What the counts of a table prove, and whether that is what it claims."""

    table: NoiseTable  # with the certificate that was proved
    claimed: "Certificate | None"  # what the table or its file said
    delta: str
    name: str = ""

    @property
    def same(self) -> bool:
        """Whether what it claimed is what its counts prove."""
        return self.claimed is None or self.claimed == self.table.certificate

    @property
    def holds(self) -> bool:
        assert self.table.certificate is not None
        return self.same and self.table.certificate.holds(self.table.epsilon, Decimal(self.delta))

    @property
    def verdict(self) -> str:
        if not self.same:
            return "REJECTED: the certificate in the file is not the one its counts prove."
        budget = f"epsilon {self.table.epsilon} per record with delta {self.delta}"
        return f"HOLDS: {budget}." if self.holds else f"REJECTED: this table does not keep {budget}."

    def title(self) -> str:
        return self.verdict

    def facts(self) -> dict[str, str]:
        proof = self.table.certificate
        assert proof is not None
        facts = {"table": self.table.title()}
        facts["one draw"] = f"epsilon {proof.epsilon_release or 'unbounded'}, likelihood ratio {proof.ratio or '∞'}"
        facts["one record"] = f"epsilon {proof.epsilon_record or 'unbounded'} with delta 0"
        return facts | {"proved for": proof.neighbours}

    def to_dict(self) -> dict[str, Any]:
        head = self.table.to_dict()
        named = {"schema_version": head.pop("schema_version"), **({"file": self.name} if self.name else {})}
        return {**named, **head, "holds": self.holds, "verdict": self.verdict}

    def rows(self) -> list[dict[str, Any]]:
        made = self.to_dict()
        return [{name: made[name] for name in made if name not in ("schema_version", "verdict")}]

    def figure(self) -> "Figure":
        return self.table.figure()


@checked
def certify(table: Table, delta: float | str | Decimal = "0") -> TableCheck:
    """Prove, from its counts, what a table protects; `holds` says if it keeps its epsilon with that delta.

    >>> import sensorsim as ss
    >>> ss.certify(ss.noise_table(epsilon=1.6, release=1)).holds
    True
    """
    from sensorsim.noise.noise_table import certified
    from sensorsim.noise.table_file import read_table as read

    tolerated = _delta(delta)
    if isinstance(table, NoiseTable):
        return TableCheck(certified(table), table.certificate, tolerated)
    found = read(table)
    return TableCheck(certified(found), found.certificate, tolerated, str(table))


def _delta(delta: float | str | Decimal) -> str:
    try:
        value = Decimal(str(delta))
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or not 0 <= value < 1:
        raise InputError(f"delta is {delta}; give a number from 0 to below 1, as in 1e-6.")
    return str(delta)
