"""`sensorsim claims`: every checkable statement of the paper, and ours, recomputed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sensorsim._util.option_kinds import CLAIM, FILE, Flag, Function, Several
from sensorsim.commands.declare import Command, option
from sensorsim.paper.recompute import Claims, claims


@dataclass(frozen=True)
class RecomputeClaims(Command[Claims]):
    """For each: where it stands, what is printed, what this project computes just now, how, and a verdict: holds; holds
    as arithmetic (it follows from what is printed before it, which does not hold); does not hold; depends. Name claims
    by their ids to have only those.
    """

    example = "sensorsim claims cost-spof cost-dpsgd"

    full: bool = option(False, Flag("quick"), "Also what trains models or compiles C: a minute or two.")
    data: str | None = option(None, FILE, "CSV or Parquet of daily activity.", default_text="the synthetic set")
    only: str | Sequence[str] = option((), Several(CLAIM), "Claims by their ids.", argument=True)
    progress: Callable[[str, int, int], None] | None = option(
        None, Function(), "Is called with the step that begins, the claims done and their total.", shell=False
    )

    def run(self) -> Claims:
        from sensorsim.commands.outputs import progress_bar

        with progress_bar("claims", "claims", transient=True) as update:  # what is left of it would precede the answer

            def show(what: str, done: int, total: int) -> None:
                update(done, what, total)
                if self.progress is not None:
                    self.progress(what, done, total)

            return claims(self.full, self.data, self.only, show)
