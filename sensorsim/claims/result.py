"""The claims as one value: for the command line, JSON, notebooks and pages."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sensorsim.claims.claim import ARITHMETIC, DEPENDS, HOLDS, NOT, VERDICTS, Claim
from sensorsim.results import CELL, Result
from sensorsim.terminal import counted, fold

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
WIDTH = 80
PLURAL = {HOLDS: "hold", ARITHMETIC: "hold as arithmetic", NOT: "do not hold", DEPENDS: "depend"}


@dataclass(frozen=True, repr=False)
class Claims(Result):
    """What came of recomputing. `left` says how many more there are that train or compile."""

    claims: tuple[Claim, ...]
    full: bool
    data: str  # the records that were used
    left: int

    def counts(self) -> dict[str, int]:
        """How many claims have each verdict."""
        found = Counter(claim.verdict for claim in self.claims)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def summary(self, full: str = "--full") -> str:
        """One sentence."""
        parts = ", ".join(
            f"{number} {verdict if number == 1 else PLURAL[verdict]}" for verdict, number in self.counts().items()
        )
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
        """One row for each claim."""
        for claim in self.claims:
            yield asdict(claim)

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(Claim.__dataclass_fields__))

    def text(self) -> str:
        """For a terminal of 80 columns: each claim stacked, then the summary."""
        lines: list[str] = []
        for claim in self.claims:
            lines.append(f"{claim.id}: {claim.verdict}")
            for name in ("where", "printed", "computed", "how"):
                lines += fold(getattr(claim, name), WIDTH - 1, f"  {name:10}")
            lines.append("")
        return "\n".join(lines + fold(self.summary(), WIDTH - 1))

    def figure(self) -> "Figure":
        """How many claims have each verdict."""
        from sensorsim.results import bars

        return bars(f"{self.summary()} Recomputed on {self.data}.", dict(self.counts()), "claims with this verdict")

    def title(self) -> str:
        return self.summary("full=True")

    def facts(self) -> dict[str, str]:
        return {claim.id: f"{claim.verdict}: {claim.computed}" for claim in self.claims}

    def _repr_html_(self) -> str:
        from html import escape

        names = ("id", "verdict", "printed", "computed", "where", "how")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(row[name]))}</td>" for name in names) + "</tr>" for row in self.rows()
        )
        caption = f'<caption style="{CELL}">{escape(self.title())}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
