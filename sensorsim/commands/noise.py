"""`sensorsim noise`: make, check, show and compare noise tables; read and write them in Python."""

from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.files import check_takes_files
from sensorsim._util.option_kinds import TABLE_KIND, Budget, Choice, Free, Number, Output, Path, Whole
from sensorsim._util.results import Listing, Result
from sensorsim._util.terminal import columns, counted, hung, table
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.kernels.formats import FRAC
from sensorsim.noise.kinds import DEFAULT, KINDS
from sensorsim.noise.noise_table import SCHEMA_VERSION, NoiseTable

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from sensorsim.noise.baseline import Peers
    from sensorsim.noise.certificate import Certificate

NOISE_TABLE = Path("table", "NoiseTable")
FEATURES = 14
OTHERS = ("best known", "hybrid", "piecewise", "one bit", "Laplace")
PEERS = ("Laplace", "one bit", "piecewise", "hybrid", "stairs", "rows", "best known")


def proved_table(given: "NoiseTable | str | os.PathLike[str]") -> NoiseTable:
    """Return the table of a file with what its counts prove now; a table stays as it is."""
    from sensorsim.noise.noise_table import certified
    from sensorsim.noise.table_file import read_table

    return given if isinstance(given, NoiseTable) else certified(read_table(given))


@dataclass(frozen=True)
class ReadTable(Command[NoiseTable]):
    """The certificate is what the counts prove now, for any statement in the file."""

    table: str = option(REQUIRED, NOISE_TABLE, "A file of `sensorsim noise make`.")

    def run(self) -> NoiseTable:
        return proved_table(self.table)


@dataclass(frozen=True)
class WriteTable(Command[None]):
    """Equal tables give equal files, those of `sensorsim noise make`."""

    path: str = option(REQUIRED, Output(), "File to write.")
    table: NoiseTable = option(REQUIRED, Path("table", "NoiseTable"), "A noise table.")

    def run(self) -> None:
        from sensorsim.noise.table_file import write_table

        write_table(self.path, proved_table(self.table))


@dataclass(frozen=True)
class DesignTable(Command[NoiseTable]):
    """The certificate is proved from the counts of the table. Some options shape one kind of table or another."""

    usage = """
        >>> import sensorsim as ss
        >>> ss.noise_table(epsilon=1.6, release=1)
        rows table: 1 of 14 features of a record
          protects           epsilon 1.599958023791 per record, proved now; local, per record
        ...
    """
    epsilon: Decimal | float | str = option(REQUIRED, Budget(), "Privacy budget of a whole record.")
    features: int = option(FEATURES, Whole(), "Features of a record.")
    release: int | str = option("all", Free("all|K"), "Features released of each record.")
    kind: str = option(DEFAULT, TABLE_KIND, f"{', '.join(KINDS)}; only rows and stairs are private.")
    frac_bits: int = option(FRAC, Whole(), "Fraction bits of x.")
    symbols: int | None = option(
        None, Whole(spelled=True), "rows: symbols.", default_text="the fewest that lose little"
    )
    knots: int | None = option(
        None, Whole(spelled=True), "rows: knots, 2^j+1.", default_text="the fewest that lose little"
    )
    count_bits: int | None = option(
        None, Choice(16, 8), "rows: 16, drawn by thresholds, or 8, by one load.", default_text="16"
    )
    entries: int | None = option(None, Whole(spelled=True), "stairs, naive, quantile: size, 2^k.", default_text="2^14")
    clamped: float | None = option(
        None, Number(), "stairs: most draws that may be clamped.", default_text="what loses least"
    )
    limit: float | None = option(None, Number(), "naive, quantile: clamp outputs to this many noise scales.")
    seed: int | None = option(None, Whole(0), "naive: seed of its samples.", default_text="0")

    def run(self) -> NoiseTable:
        from sensorsim.noise.noise_table import certified, make_table, ready_table

        options = {name: getattr(self, name) for name in ("symbols", "knots", "count_bits", "entries", "seed")}
        options |= {"most_clamped": self.clamped, "limit_scales": self.limit}
        if (self.features, self.frac_bits) == (FEATURES, FRAC) and not any(v is not None for v in options.values()):
            try:  # equal to the table that is made below, bit for bit
                return certified(ready_table(self.epsilon, self.release, self.kind))
            except InputError:
                pass  # no such table is ready
        with progress.step("making the table"):
            return make_table(self.kind, self.epsilon, self.features, self.release, self.frac_bits, **options)


def named_table(file: str, table: NoiseTable, picture: bool = False) -> Listing:
    """Return a proved table and the file that holds it: parameters, proof and accuracy, exact numbers as text."""
    rows = [{"file": file, **table.row()}]
    data = {"schema_version": SCHEMA_VERSION, **rows[0]}

    def text() -> str:
        return table_text(file, table) + ("\n\n" + table.picture() if picture else "")

    return Listing(f"{file}: {table.title()}", rows, data, lambda _: table.figure(), table.facts(), text)


def table_text(file: str, noise: NoiseTable) -> str:
    """Return size, proof, and standard deviations beside those of other mechanisms, for a terminal."""
    from sensorsim.noise.certificate import certify

    about, proof = noise.delivered(), certify(noise)
    one, whole, ratio = (
        "unbounded" if v is None else str(v) for v in (proof.epsilon_release, proof.epsilon_record, proof.ratio)
    )
    lines = [
        file,
        f"{noise.kind} table for epsilon {noise.epsilon}: {noise.release} of {counted(noise.features, 'feature')}",
        f"  size          {about.table_bytes} B; {about.secret_bits} secret bits a draw; on the air "
        f"{about.value_bits} bits a value, {about.bits_on_air} a record",
        f"  one draw      epsilon {one}, largest likelihood ratio {ratio}",
        f"  one record    epsilon {whole} with delta 0",
        f"  proved for    {proof.neighbours}",
        *noise.lines(),
    ]
    if about.estimate_sd is not None:
        beside = f", {about.estimate_sd / about.best_known_sd:.3f} of the best known" if about.best_known_sd else ""
        lines.append(
            f"  sd of x       {about.estimate_sd:.4g} at the worst x, {about.estimate_sd_mean:.4g} on average, "
            f"in ranges of x{beside}"
        )
    lines.append(f"  beside it     {', '.join(f'{name} {_short(_sd(about, name))}' for name in OTHERS)}")
    return hung("\n".join(lines), columns())


@dataclass(frozen=True)
class MakeTable(DesignTable):
    """Some options shape one kind of table or another."""

    example = "sensorsim noise make --epsilon 1.6 --release 1"

    out: str | None = option(None, Output(), "File to write.", default_text="KIND-epsEPSILON-RELEASE.txt")

    def run(self) -> Listing:  # type: ignore[override]
        from sensorsim.noise.table_file import write_table

        if self.out is None:
            check_takes_files(FilePath.cwd(), "the table")
        made = super().run()
        path = f"{self.kind}-eps{made.epsilon}-{self.release}.txt" if self.out is None else self.out
        write_table(path, made)
        return named_table(path, made)


@dataclass(frozen=True, repr=False)
class TableCheck(Result):
    """The proof of a table from its counts, and whether that is what it claims."""

    table: NoiseTable  # with the certificate that was proved
    claimed: "Certificate | None"  # by the table or its file
    delta: str
    name: str = ""

    @property
    def same(self) -> bool:
        """Return whether the claim is what the counts prove."""
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
        return {
            "table": self.table.title(),
            "one draw": f"epsilon {proof.epsilon_release or 'unbounded'}, likelihood ratio {proof.ratio or '∞'}",
            "one record": f"epsilon {proof.epsilon_record or 'unbounded'} with delta 0",
            "proved for": proof.neighbours,
        }

    def to_dict(self) -> dict[str, Any]:
        head = self.table.to_dict()
        named = {"schema_version": head.pop("schema_version"), **({"file": self.name} if self.name else {})}
        return {**named, **head, "holds": self.holds, "verdict": self.verdict}

    def rows(self) -> list[dict[str, Any]]:
        made = self.to_dict()
        return [{name: made[name] for name in made if name not in ("schema_version", "verdict")}]

    def figure(self) -> "Figure":
        return self.table.figure()


@dataclass(frozen=True)
class CheckTable(Command[TableCheck]):
    """Standard deviations of other mechanisms stand beside its own. Exit code 1 if it does not keep its epsilon."""

    example = "sensorsim noise check rows-eps1-all.txt"
    usage = """
        >>> import sensorsim as ss
        >>> ss.certify(ss.noise_table(epsilon=1.6, release=1)).holds
        True
    """
    holds = "holds"

    table: NoiseTable | str = option(REQUIRED, NOISE_TABLE, "A noise table.", argument=True)
    delta: Decimal | float | str = option("0", Budget(), "Delta that is tolerated.")
    rocq: str | None = option(
        None,
        Output(endings=(".v",)),
        "Write the certificate as a theorem for the Rocq prover, which checks it without sensorsim: coqc FILE.v.",
    )

    def run(self) -> TableCheck:
        from sensorsim._util.files import write_whole
        from sensorsim.noise.noise_table import certified
        from sensorsim.noise.rocq import rocq_text
        from sensorsim.noise.table_file import read_table

        try:
            tolerated = Decimal(str(self.delta))
        except InvalidOperation:
            tolerated = Decimal(-1)
        if not tolerated.is_finite() or not 0 <= tolerated < 1:
            raise InputError(f"delta is {self.delta}; give a number from 0 to below 1, as in 1e-6.")
        given = isinstance(self.table, NoiseTable)
        found = self.table if isinstance(self.table, NoiseTable) else read_table(self.table)
        if self.rocq is not None:
            write_whole(self.rocq, rocq_text(found))
        return TableCheck(certified(found), found.certificate, str(self.delta), "" if given else str(self.table))

    def text(self, answer: TableCheck) -> str:
        return hung(f"{table_text(answer.name, answer.table)}\n\n{answer.verdict}", columns())


@dataclass(frozen=True)
class ShowTable(Command[Listing]):
    """Each output is shown with its privacy loss. All of it is proved first."""

    example = "sensorsim noise show rows-eps1-all.txt --plot table.png"
    plots = "Draw the table and the privacy loss of its outputs into an .svg, .png or .pdf file."

    table: NoiseTable | str = option(REQUIRED, NOISE_TABLE, "A noise table.", argument=True)

    def run(self) -> Listing:
        name = "" if isinstance(self.table, NoiseTable) else str(self.table)
        return named_table(name, proved_table(self.table), picture=True)


@dataclass(frozen=True)
class ComparePeers(Command[Listing]):
    """Compare noise, size and bits on the air."""

    example = "sensorsim noise peers --plot records.png"
    plots = "Draw how many records each needs for the same accuracy into an .svg, .png or .pdf file."

    def run(self) -> Listing:
        from sensorsim.noise.baseline import peers

        found = peers()
        rows = [asdict(row) for row in found]
        said = {
            f"epsilon {row.epsilon:g}": f"rows {_short(row.rows_sd)}, Laplace {_short(row.laplace_sd)}" for row in found
        }
        title = "Standard deviation of the unbiased estimate of one feature at the worst x, in ranges of x"
        text = partial(peers_text, title, found)
        return Listing(title, rows, {"schema_version": 1, "rows": rows}, partial(_peers_figure, found), said, text)


def _peers_figure(found: "list[Peers]", _: str) -> "Figure":
    from sensorsim.noise.noise_figures import records_figure

    figure: Figure = records_figure(found)
    return figure


def peers_text(title: str, found: "Sequence[Peers]") -> str:
    """Return the ready tables for one feature beside other mechanisms, a row for each epsilon."""
    rows, width = [], columns()
    for row in found:
        shape = f"{row.knots} × {row.symbols}, {row.rows_bytes} B, {row.rows_bits} bit{'s' * (row.rows_bits > 1)}"
        rows.append([f"{row.epsilon:g}", *(_short(_sd(row, name)) for name in PEERS), shape])
    needed = [(row.laplace_sd / row.rows_sd) ** 2 for row in found]
    lines = [
        title,
        "",
        *table(("epsilon", *PEERS, "rows table"), rows, width, ("epsilon", *PEERS), drop=("rows table",)),
        "",
        f" Laplace noise needs {min(needed):.1f} to {max(needed):.1f} times the records of rows for the same error.",
        " Hybrid, piecewise and one bit are computed with real numbers; rows and stairs are certified in integers.",
    ]
    return hung("\n".join(lines), width)


def _sd(about: Any, name: str) -> float | None:
    found: float | None = getattr(about, name.lower().replace(" ", "_") + "_sd")
    return found


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
