"""Which cells of an `out` array are certainly written: runs of places from one polynomial to another."""

from collections.abc import Iterable
from typing import NamedTuple

from sensorsim.language.intervals import Span
from sensorsim.language.polynomial import Polynomial
from sensorsim.language.polynomial_bounds import Bounds

Run = tuple[Polynomial, Polynomial]  # the first place, and the one behind the last


class Facts(NamedTuple):
    """Runs of written cells. More may be written than is said here, never less."""

    runs: tuple[Run, ...]

    def with_cell(self, place: Polynomial) -> "Facts":
        return self.and_also(Facts(((place, place + 1),)))

    def and_also(self, other: "Facts") -> "Facts":
        """Both, with runs that touch made one."""
        runs = list(dict.fromkeys((*self.runs, *other.runs)))
        merged = True
        while merged:
            merged = False
            for one in runs:
                follower = next((run for run in runs if run[0] == one[1] and run is not one), None)
                if follower is not None:
                    runs = [run for run in runs if run is not one and run is not follower]
                    runs.append((one[0], follower[1]))
                    merged = True
                    break
        return Facts(tuple(runs))

    def both(self, other: "Facts") -> "Facts":
        """What holds whichever of the two does."""
        return Facts(tuple(run for run in self.runs if run in other.runs))

    def since(self, before: "Facts") -> "Facts":
        """The runs that were not there before."""
        return Facts(tuple(run for run in self.runs if run not in before.runs))

    def without(self, counter: str) -> "Facts":
        """The runs that do not speak of this counter."""
        return Facts(tuple(run for run in self.runs if not _speaks(run, counter)))

    def swept(self, counter: str, first: Polynomial, last: Polynomial, bounds: Bounds) -> "Facts":
        """What the rounds from `first` to before `last` have written, where each goes on from the one before."""
        found = []
        for start, end in self.runs:
            if counter in start.names() and start.replace(counter, Polynomial.variable(counter) + 1) == end:
                # without a round the run must come out empty: it does where each round's is equally long
                even = counter not in (end - start).names() and bounds.lowest(end - start) >= 0
                if even or bounds.lowest(last - first) >= 0:
                    found.append((start.replace(counter, first), start.replace(counter, last)))
            elif counter in start.names() and end.replace(counter, Polynomial.variable(counter) + 1) == start:
                # from behind: a round ends where the one before began
                even = counter not in (end - start).names() and bounds.lowest(end - start) >= 0
                if even or bounds.lowest(last - first) >= 0:
                    found.append((end.replace(counter, last), end.replace(counter, first)))
        return Facts(tuple(found))

    def cover(self, at: Span, bounds: Bounds) -> bool:
        """Whether the place lies in one of the runs."""
        low = at.exact if at.exact is not None else Polynomial.constant(at.lo)
        return any(
            bounds.lowest(low - start) >= 0 and any(bounds.lowest(end - 1 - high) >= 0 for high in at.limits())
            for start, end in self.runs
        )


Written = dict[str, Facts]  # by the name of the array


def _speaks(run: Iterable[Polynomial], counter: str) -> bool:
    return any(counter in end.names() for end in run)
