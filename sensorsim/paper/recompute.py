"""`claims(…)`: recompute the claims, and their results as one value."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim._util.results import CELL, Result, bars
from sensorsim._util.terminal import counted, fold
from sensorsim.paper.claim import ARITHMETIC, DEPENDS, HOLDS, NOT, STATEMENTS, VERDICTS, Claim, Statement

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
WIDTH = 80
PLURAL = {HOLDS: "hold", ARITHMETIC: "hold as arithmetic", NOT: "do not hold", DEPENDS: "depend"}
Progress = Callable[[str, int, int], None]  # called with what begins, the number done, and the total


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

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(Claim.__dataclass_fields__))

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

    def _repr_html_(self) -> str:
        names = ("id", "verdict", "printed", "computed", "where", "how")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(row[name]))}</td>" for name in names) + "</tr>" for row in self.rows()
        )
        caption = f'<caption style="{CELL}">{escape(self.title())}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def statements() -> list[Statement]:
    """Return all statements in the order of the answer, whichever module was imported first."""
    from sensorsim.paper import (
        cost_claims,
        experiment_claims,
        loss_claims,
        noise_claims,
        project_claims,
        release_claims,
        sensitivity_claims,
    )

    order = (cost_claims, loss_claims, sensitivity_claims, release_claims, noise_claims, experiment_claims,
             project_claims)  # fmt: skip
    place = {module.__name__: number for number, module in enumerate(order)}
    return sorted(STATEMENTS.values(), key=lambda one: place.get(one.function.__module__, len(order)))


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
    from sensorsim.paper.experiment import Experiment

    known, only = statements(), [only] if isinstance(only, str) else only
    chosen = _select(known, only, full) if only else [one for one in known if full or not one.full]
    found: list[Claim] = []

    def report_step(what: str) -> None:
        progress(f"{chosen[len(found)].id}: {what}", len(found), len(chosen))

    experiment = Experiment(data, full, report_step)
    experiment.check()
    for one in chosen:
        progress(one.id, len(found), len(chosen))
        found.append(one.check(experiment))
    left = 0 if full or only else sum(one.full for one in known)
    return Claims(tuple(found), full, experiment.name, left)


def _select(known: list[Statement], only: Sequence[str], full: bool) -> list[Statement]:
    by_id = {one.id: one for one in known}
    for name in only:
        if name not in by_id:
            hint = did_you_mean(name, by_id)
            raise InputError(f"there is no claim {name[:40]!r}{hint}; `sensorsim claims --format csv` lists them.")
        if by_id[name].full and not full:
            raise InputError(f"claim {name} trains or compiles; add --full.")
    return [by_id[name] for name in dict.fromkeys(only)]
