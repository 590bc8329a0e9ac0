"""Noise tables: what the firmware draws from, with a certificate of what that protects.

`NoiseTable` is the interface of every table; the kinds implement it in kinds/, one file each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim._util.results import Shown
from sensorsim._util.terminal import counted
from sensorsim.kernels.formats import FRAC, N
from sensorsim.language.arguments import array_length
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.noise.baseline import baseline_sds
from sensorsim.noise.certificate import Certificate, certify
from sensorsim.noise.kinds import DEFAULT, KINDS, kind_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

READY_EPSILONS = ("0.1", "0.2", "0.4", "0.8", "1", "1.6", "3.2", "6.4")
MOST_FEATURES = N.hi
OPTIONS = {"most_clamped": "clamped", "limit_scales": "limit"}  # names on the command line
WORD_BITS = 31  # sums of a release must fit a signed 32-bit word


SCHEMA_VERSION = 2
LOCAL = "local, per record"


@dataclass(frozen=True)
class Delivered:
    """Standard deviations of an unbiased estimate of one released feature, in ranges of x; None where unknown."""

    secret_bits: int  # per value
    value_bits: int  # of one value on the air
    bits_on_air: int  # of a record: its values, and which features they are of
    table_bytes: int
    estimate_sd: float | None  # at the x where it is largest
    estimate_sd_mean: float | None  # root of the mean variance over all x
    best_known_sd: float | None  # the best that a linear program found for this epsilon
    hybrid_sd: float
    piecewise_sd: float
    one_bit_sd: float
    laplace_sd: float


class StoredCounts(NamedTuple):
    """The counts in an array of firmware: each row lists values, or holds the running sums of their counts."""

    rows: Sequence[Sequence[int]]  # the counts of the values, for each row of the array
    least: int = 0  # the first value
    sums: bool = False


@dataclass(frozen=True, repr=False)
class NoiseTable(Shown):
    """One table. x_q, a feature, is any of 0 … 2^frac_bits; its release is a value, a whole number."""

    epsilon: Decimal  # nominal, of a whole record
    features: int
    release: int  # features released of each record
    frac_bits: int
    certificate: Certificate | None = field(default=None, kw_only=True)

    kind: ClassVar[str]
    for_releases: ClassVar[bool] = True  # whether `release` and `sampled` draw from it
    file_version: ClassVar[int]
    figure_function: ClassVar[str]  # of noise_figures.py
    options: ClassVar[tuple[str, ...]]  # of `make_table`, beyond the common ones
    parameters: ClassVar[dict[str, Any]]  # of its file, before the certificate, and their readers

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """Make a table without its certificate; missing options are None."""
        raise NotImplementedError

    @classmethod
    def fitting(cls, epsilon: Decimal, features: int, release: int) -> Self:
        """Make a table for the kernels, of the size that the epsilon needs."""
        return cls.make(epsilon, features, release, FRAC, **dict.fromkeys(cls.options))

    @classmethod
    def parse(cls, found: dict[str, Any], lines: list[str]) -> Self:
        """Parse the parameters and last lines of a file; raise ValueError for a table that `make` never writes."""
        raise NotImplementedError

    def body(self) -> list[str]:
        """Return the last lines of the file: the counts, from which everything else follows."""
        raise NotImplementedError

    def certify(self) -> Certificate:
        """Prove what the table protects, from its counts alone."""
        raise NotImplementedError

    def rocq_definitions(self) -> dict[str, str]:
        """Return what proofs/KIND.v needs of the table, by name and type; nothing for a kind without a pure epsilon."""
        return {}

    def extremes(self) -> Sequence[Sequence[int]]:
        """Return counts over the outputs at some inputs; a release of any other input can be computed from these.

        It is a mixture of some of them, with probabilities that do not depend on the input, or post-processing.
        """
        raise InputError(f"a {self.kind} table proves no epsilon, so nothing adds up; use --kind rows.")

    @property
    def kernels(self) -> str:
        """Return the module of the kernels that draw from this table."""
        raise InputError(f"a release needs a rows or stairs table, not a {self.kind} one; make it with --kind rows.")

    def kernel(self, mechanism: str) -> Kernel:
        """Return the kernel by which a mechanism, `release` or `sampled`, draws from this table."""
        module, one = self.kernels, "_one" if mechanism == "sampled" and self.release == 1 else ""
        found: Kernel = getattr(import_module(f"sensorsim.kernels.{module}"), f"{mechanism}_{module}{one}")
        return found

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of those kernels; raise InputError if they cannot draw from this table."""
        if self.kernels and self.frac_bits != FRAC:
            raise InputError(
                f"this table has {self.frac_bits} fraction bits and the kernels' x has {FRAC}; make it with "
                f"--frac-bits {FRAC} (the {self.kind} stay the same)."
            )
        return self.bound_constants()

    def samples(self) -> "np.ndarray[Any, Any]":
        """Return the table as SPOF's kernels take it: 32-bit noise in Q15, no clamp, no place on a stair."""
        raise InputError(f"SPOF adds noise and this is a {self.kind} table; use it with release or sampled.")

    def c_array(self) -> tuple[str, tuple[int, ...]]:
        """Return the parameter that takes the stored table, and its values; without values there is no array."""
        raise NotImplementedError

    def c_constants(self) -> dict[str, int]:
        """Return the numbers beside the array that define the table."""
        raise NotImplementedError

    def bound_constants(self) -> dict[str, int]:
        """Return the arguments of the kernels that follow from those numbers, worked out before they reach a device."""
        return self.c_constants()

    def from_c(self, values: Sequence[int], constants: Mapping[str, int]) -> Self:
        """Return the table that firmware holds, without a certificate: the inverse of `c_array` and `c_constants`.

        What firmware does not hold, such as the nominal epsilon, is taken from this table. Raise ValueError if no
        table is stored like that.
        """
        raise NotImplementedError

    def check_kernels(self) -> None:
        """Check that the arguments of the table are in the ranges for which its kernels are proved."""
        given = self.arguments()
        for kernel in (self.kernel("release"), self.kernel("sampled")):
            lengths = {name: value for name, value in given.items() if name in kernel.lengths}
            for name, value in given.items():
                kind: Any = kernel.parameters[name]
                array = name in kernel.arrays
                low, high = (int(min(value)), int(max(value))) if array else (value, value)
                element = kind.element if array else kind
                whole = not array or len(value) == array_length(kernel, name, kernel.lengths_at(lengths))
                if not (element.lo <= low and high <= element.hi and whole):
                    raise InputError(f"{name} of this table is not what the kernel {kernel.name} takes; make it again.")

    def c_remark(self) -> list[str]:
        """Return what a receiver of the released values must know, as lines of a comment."""
        return []

    def takes(self, kernel: Kernel) -> bool:
        """Return whether a kernel draws from such a table."""
        name, values = self.c_array()
        needed = {name} if values else set(self.bound_constants())
        ours = reachable([self.kernel("release"), self.kernel("sampled")])
        return needed <= kernel.parameters.keys() and kernel in ours

    def distribution(self, x_q: int) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        """Return every value that can be released for x_q, and how many of the draws give it."""
        raise NotImplementedError

    def draw(self, x_q: int, top: Any, low: Any, low_bits: int) -> Any:
        """Return the outputs at x_q for the top and the low parts of random words, by the plain rule of the kind.

        Both parts are arrays of 64-bit integers. This shares nothing with the kernels: their C is compared with it.
        """
        raise NotImplementedError

    def worst_inputs(self) -> Sequence[int]:
        """Return the x_q among which two have the certified likelihood ratio; none where it is an upper bound."""
        return ()

    def stored_counts(self) -> StoredCounts | None:
        """Return the counts that a self-test finds in the array of `c_array`; None where there is no array."""
        return None

    def estimate(self, y: Any) -> Any:
        """Return unbiased estimates of x in 0 … 1 from released values: public post-processing."""
        raise InputError(f"a {self.kind} table has no unbiased estimate that is known to hold; use --kind rows.")

    @property
    def estimate_sd(self) -> float | None:
        """Return the standard deviation of that estimate at the x where it is largest, in ranges of x."""
        return None

    @property
    def estimate_sd_mean(self) -> float | None:
        """Return the root of its mean variance over all x."""
        return None

    @property
    def secret_bits(self) -> int:
        """Return the number of secret uniform bits of one value."""
        raise NotImplementedError

    @property
    def value_bits(self) -> int:
        """Return the number of bits of one released value on the air."""
        raise NotImplementedError

    @property
    def symbols(self) -> int | None:
        """Return the number of symbols; None if a value is a number."""
        return None

    @property
    def table_bytes(self) -> int:
        """Return the number of bytes that firmware stores."""
        raise NotImplementedError

    def details(self) -> dict[str, Any]:
        """Return the facts that only this kind has, for reports."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """Return these facts as lines for the terminal."""
        raise NotImplementedError

    def picture(self) -> str:
        """Draw the table in the terminal."""
        raise NotImplementedError

    def figure(self) -> "Figure":
        """Draw the table."""
        from sensorsim.noise import noise_figures

        made: Figure = getattr(noise_figures, self.figure_function)(self)
        return made

    def title(self) -> str:
        return f"{self.kind} table: {self.release} of {counted(self.features, 'feature')} of a record"

    def facts(self) -> dict[str, str]:
        about = self.delivered()
        facts = {"protects": f"{self.promise()}; {LOCAL}"}
        if about.estimate_sd is not None:
            beside = f", {about.estimate_sd / about.best_known_sd:.3f} of the best known" if about.best_known_sd else ""
            facts["sd of an estimate"] = f"{about.estimate_sd:.4g} ranges of x at the worst x{beside}"
        facts["firmware stores"] = f"{about.table_bytes} bytes; {about.secret_bits} secret bits a draw"
        facts["on the air"] = f"{about.bits_on_air} bits a record"
        return facts

    def promise(self) -> str:
        """Prove the table and say what it protects."""
        try:
            proof = certify(self)
        except InputError as error:
            return f"NOTHING IS PROVED: {error}"
        if proof.holds(self.epsilon):
            return f"epsilon {proof.epsilon_record} per record, proved now"
        return f"NOT PRIVATE: it does not keep its nominal epsilon {self.epsilon}"

    def delivered(self) -> Delivered:
        """Return sizes and accuracy, and the baselines at the epsilon of one released feature."""
        names = ("secret_bits", "value_bits", "bits_on_air", "table_bytes", "estimate_sd", "estimate_sd_mean")
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Delivered(**own, **baseline_sds(float(self.share)))

    def row(self) -> dict[str, Any]:
        """Return parameters, the certificate computed now with exact numbers as text, and accuracy, as one row."""
        known = {name: getattr(self, name) for name in ("kind", "features", "release", "frac_bits")}
        proof = {name: None if value is None else str(value) for name, value in asdict(certify(self)).items()}
        return {"epsilon": str(self.epsilon)} | known | proof | asdict(self.delivered()) | self.details()

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, certificate and accuracy, as `sensorsim noise check --format json` prints them."""
        return {"schema_version": SCHEMA_VERSION, **self.row()}

    def to_frame(self) -> "pd.DataFrame":
        """Return every value that can be released, and its probability at x = 0, 1/2 and 1."""
        import pandas as pd

        shares = {}
        for x in (0.0, 0.5, 1.0):
            values, counts = self.distribution(round(x * (1 << self.frac_bits)))
            shares[x] = dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))
        every = sorted(set().union(*shares.values()))
        columns = {f"probability_at_{x:g}": [share.get(value, 0.0) for value in every] for x, share in shares.items()}
        return pd.DataFrame({"value": every, **columns})

    @property
    def share(self) -> Fraction:
        """Return the budget of one released feature."""
        return Fraction(self.epsilon) / self.release

    @property
    def sampled(self) -> bool:
        """Return whether a record releases some of its features, picked at random, rather than all of them."""
        return self.release < self.features

    @property
    def bits_on_air(self) -> int:
        """Return the bits of one record: its values, and the indices of picked features."""
        which = (self.features - 1).bit_length() if self.sampled else 0
        return self.release * (self.value_bits + which)


def make_table(
    kind: str,
    epsilon: float | str | Decimal,
    features: int = 14,
    release: int | str = "all",
    frac_bits: int = FRAC,
    **options: Any,
) -> NoiseTable:
    """Make and certify a table. The options depend on the kind: see its `make`."""
    made = kind_of(kind)
    budget = budget_of(epsilon)
    if not 1 <= features <= MOST_FEATURES:
        raise InputError(f"features is {features}; give 1 to {MOST_FEATURES}, the most that the kernels take.")
    number = isinstance(release, str) and release.isdecimal() and len(release) < 10
    released = features if release == "all" else int(release) if number else release
    if not isinstance(released, int) or not 1 <= released <= features:
        raise InputError(
            f"release is {release}; give `all` or a number from 1 to {features}, the features of a record."
        )
    if not 2 <= frac_bits <= WORD_BITS - 1:
        raise InputError(f"frac-bits is {frac_bits}; a 32-bit word allows 2 to {WORD_BITS - 1}.")
    given = {name: value for name, value in options.items() if value is not None}
    foreign = [name for name in given if name not in made.options]
    if foreign:
        shown = [OPTIONS.get(name, name.replace("_", "-")) for name in (foreign[0], *made.options)]
        raise InputError(f"{shown[0]} does not shape a {kind} table; leave it out: there are {', '.join(shown[1:])}.")
    table = made.make(budget, features, released, frac_bits, **dict.fromkeys(made.options) | given)
    return certified(table)


def certified(table: NoiseTable) -> NoiseTable:
    """Return the table with the certificate that its counts prove."""
    return replace(table, certificate=table.certify())


def ready_table(epsilon: float | str | Decimal, release: int | str = "all", kind: str = DEFAULT) -> NoiseTable:
    """Return a table that ships with sensorsim: 14 features, all of them or one per record, 15 fraction bits."""
    from sensorsim.noise.table_file import parse_table

    if kind not in KINDS:
        raise InputError(f"kind is {kind[:40]!r}{did_you_mean(kind, KINDS)}; choose from {', '.join(KINDS)}.")
    name = f"{kind}-eps{budget_of(epsilon)}-{'all' if release in ('all', 14) else release}.txt"
    path = files("sensorsim.tables") / "noise" / name
    if not path.is_file():
        raise InputError(
            f"no ready {kind} table for epsilon {epsilon} and release {release}; there are {', '.join(READY_EPSILONS)},"
            " each for all features and for 1, as rows and stairs, or make one with `sensorsim noise make`."
        )
    return parse_table(path.read_bytes(), name)


def budget_of(epsilon: float | str | Decimal, name: str = "epsilon") -> Decimal:
    """Return a privacy budget as it was written, without trailing zeros; `name` is for messages."""
    try:
        budget = Decimal(str(epsilon))
    except InvalidOperation:
        raise InputError(f"{name} is {epsilon!r}; a privacy budget is a number above 0, as in 0.5.") from None
    if not budget.is_finite() or not Decimal("1e-6") <= budget <= 1000:
        raise InputError(f"{name} is {epsilon}; a privacy budget is a number above 0, from 0.000001 to 1000.")
    exact = budget.normalize()
    return exact.quantize(Decimal(1)) if exact == exact.to_integral() else exact
