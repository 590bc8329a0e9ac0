"""`none`: cross-entropy on raw records. What privacy is compared with."""

from typing import Any

from sensorsim.mechanisms.base import Mechanism, Style


class Nothing(Mechanism):
    """No noise."""

    name = "none"
    title = "no privacy"
    about = "cross-entropy on raw records, no privacy"
    style = Style("-", "None", "black")
    private = False
    may_read = ("raw",)

    def spend(self, use: Any) -> Any:
        from sensorsim.privacy.spending import unbounded

        return unbounded("no noise is added")

    def step(self, step: Any) -> None:
        reads = step.seen
        h, z = step.forward(reads)
        step.backward(reads, h, z.sigmoid() - step.batch.x)


MECHANISM = Nothing()
