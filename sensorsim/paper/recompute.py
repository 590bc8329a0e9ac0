"""Register claims, recompute them with `claims(…)`, and hold the results.

A claim is one function. Its decorator gives the id, the place of the statement, and the statement with its printed
figures. The docstring is the `how` of the answer: how the figures are recomputed. The function gets the figures as they
are printed, and the Experiment if it has a parameter of that name; it returns the recomputed text and a verdict, or
whether the statement holds. No figure of the paper occurs anywhere else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted, fold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.paper.experiment_claims import Experiment

SCHEMA_VERSION = 1
WIDTH = 80
HOLDS, ARITHMETIC, NOT, DEPENDS = "holds", "holds as arithmetic", "does not hold", "depends"
# A statement that holds as arithmetic follows from one that does not hold, so its mark is not that of HOLDS.
MARKS = {HOLDS: "✓", ARITHMETIC: "◐", NOT: "✗", DEPENDS: "~"}
VERDICTS = tuple(MARKS)
PLURAL = {HOLDS: "hold", ARITHMETIC: "hold as arithmetic", NOT: "do not hold", DEPENDS: "depend"}
N, L, C, CONSTANT = 14, 7, 4.0, 2.5  # features, hidden units, clipping bound, stabilization constant of the paper
TRAINED = "20 runs as printed, at epsilon 0.1, 0.4, 1.6 and 6.4; within two standard errors counts as chance"
MODULES = (  # with claims, in the order of the answer
    *("cost_claims", "loss_claims", "printed_sensitivities", "release_claims", "experiment_claims", "project_claims"),
)
Found = tuple[str, str | bool]  # the recomputed text, and a verdict or whether the statement holds
Function = Callable[..., Found]
Progress = Callable[[str, int, int], None]  # called with what begins, the number done, and the total


@dataclass(frozen=True)
class Claim:
    """A statement and the result of recomputing it."""

    id: str
    where: str
    printed: str
    computed: str
    verdict: str
    how: str


class Statement(NamedTuple):
    """A printed statement with the function that recomputes it."""

    id: str
    where: str
    printed: str
    figures: tuple[str, ...]
    how: str
    full: bool  # it trains or compiles
    function: Function

    def check(self, experiment: "Experiment | None", *figures: str) -> Claim:
        """Recompute the statement, or the same with other `figures`."""
        on_records = "experiment" in signature(self.function).parameters
        computed, found = self.function(*([experiment] if on_records else []), *(figures or self.figures))
        return Claim(self.id, self.where, self.printed, computed, MARKED.get(found, str(found)), self.how)


MARKED: dict[str | bool, str] = {True: HOLDS, False: NOT}
STATEMENTS: dict[str, Statement] = {}


def claim(id: str, where: str, printed: str, *figures: str, full: bool = False) -> Callable[[Function], Function]:
    """Register a claim. `figures` fill the places in `printed`; {trained} in the docstring stands for TRAINED."""

    def register(function: Function) -> Function:
        if id in STATEMENTS:
            raise ValueError(f"there are two claims {id}")
        how = " ".join((function.__doc__ or "").split()).format(trained=TRAINED)
        STATEMENTS[id] = Statement(id, where, printed.format(*figures), figures, how, full, function)
        return function

    return register


def agrees(value: Any, printed: str) -> bool:
    """Check whether a value rounds to the printed one, to as many decimals as are printed."""
    expected = Decimal(printed)
    return Decimal(repr(float(value))).quantize(expected, ROUND_HALF_UP) == expected


def derived_verdict(follows: bool, premise_holds: bool) -> str:
    """Return the verdict on a result that follows, or not, from a premise that holds or not."""
    return MARKED[follows] if premise_holds or not follows else ARITHMETIC


def verdict_over(cases: Iterable[bool]) -> str:
    """Return the verdict on a statement that was checked in several cases."""
    seen = set(cases)
    return DEPENDS if len(seen) > 1 else MARKED[seen == {True}]


@dataclass(frozen=True, repr=False)
class Claims(Result):
    """Recomputed claims. `left` is the number of claims that only `full` recomputes."""

    claims: tuple[Claim, ...]
    full: bool
    data: str  # name of the records
    left: int

    def counts(self) -> dict[str, int]:
        """Count the claims of each verdict."""
        found = Counter(claim.verdict for claim in self.claims)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def summary(self, full: str = "--full") -> str:
        """Return the counts as one sentence. `full` is the name of the option that adds the rest."""
        counts = self.counts().items()
        parts = ", ".join(f"{count} {verdict if count == 1 else PLURAL[verdict]}" for verdict, count in counts)
        more = f" {full} adds {self.left} that train or compile." if self.left else ""
        return f"{counted(len(self.claims), 'claim')}: {parts}.{more}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "full": self.full,
            "data": self.data,
            "counts": self.counts(),
            "left_for_full": self.left,
            "claims": list(self.rows()),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        yield from map(asdict, self.claims)

    def text(self) -> str:
        """Format for a terminal of 80 columns: each claim as a block, then the summary."""
        lines: list[str] = []
        for claim in self.claims:
            lines.append(f"{claim.id}: {claim.verdict}")
            for name in ("where", "printed", "computed", "how"):
                lines += fold(getattr(claim, name), WIDTH - 1, f"  {name:10}")
            lines.append("")
        return "\n".join(lines + fold(self.summary(), WIDTH - 1))

    def figure(self) -> "Figure":
        return bars(f"{self.summary()} Recomputed on {self.data}.", dict(self.counts()), "claims with this verdict")

    def title(self) -> str:
        return self.summary("full=True")

    def facts(self) -> dict[str, str]:
        return {claim.id: f"{claim.verdict}: {claim.computed}" for claim in self.claims}


def statements() -> list[Statement]:
    """Return all statements in the order of the answer, whichever module was imported first."""
    order = [import_module(f"sensorsim.paper.{name}").__name__ for name in MODULES]
    return sorted(STATEMENTS.values(), key=lambda one: order.index(one.function.__module__))


def claims(
    full: bool = False,
    data: str | None = None,
    only: str | Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> Claims:
    """Recompute all claims that need no training; with `full` also those that train or compile.

    `data` is a file of daily activity in place of the synthetic set; `only` names the claim or claims to recompute.
    `progress` is called with the step that begins, the number of claims done and their total.
    """
    from sensorsim.paper.experiment_claims import Experiment

    known, only = {one.id: one for one in statements()}, [only] if isinstance(only, str) else only
    for name in only:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"there is no claim {name[:40]!r}{hint}; `sensorsim claims --format csv` lists them.")
        if known[name].full and not full:
            raise InputError(f"claim {name} trains or compiles; add --full.")
    chosen = [known[name] for name in dict.fromkeys(only)] or [one for one in known.values() if full or not one.full]
    found: list[Claim] = []

    def report_step(what: str) -> None:
        progress(f"{chosen[len(found)].id}: {what}", len(found), len(chosen))

    experiment = Experiment(data, full, report_step)
    experiment.check()
    for one in chosen:
        progress(one.id, len(found), len(chosen))
        found.append(one.check(experiment))
    left = 0 if full or only else sum(one.full for one in known.values())
    return Claims(tuple(found), full, experiment.name, left)
