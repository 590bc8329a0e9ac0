"""Linear programs for the design of rows: the best counts for given values, and where to move the values.

The range is -1..1 here, and everything is symmetric: row r backwards is the row of -x, the values are ±. So only the
rows of x <= 0 are unknown. Unknown are also the smallest count of each column and the worst variance, the goal:

    least[s] <= counts[r][s] <= ratio*least[s],    sum_s counts = total,    sum_s counts*value = total*x(r),
    sum_s counts*value² <= total*(variance + x²)   on the knots and on a few mixtures of two neighbours.

Between two knots x is a mixture of them, its second moment a mixture of theirs: linear in the counts as well.
"""

from dataclasses import dataclass
from typing import Any

# The top of a parabola between two of these is higher by (knot distance)²/256 at most.
MIXTURES = (0.0, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Solution:
    """The solution for given values: rows of x <= 0, smallest counts of the columns, worst variance for range -1..1."""

    variance: float
    counts: Any
    least: Any


class Program:
    """The constraints that do not depend on the values: of a ratio, 3, 5, 9 … knots, the symbols and a total."""

    def __init__(
        self, ratio: float, knots: int, symbols: int, total: int, mixtures: tuple[float, ...] = MIXTURES
    ) -> None:
        import numpy as np
        from scipy import sparse

        self.symbols, self.total = symbols, total
        self.rows, self.pairs = (knots + 1) // 2, (symbols + 1) // 2  # a symbol and its mirror image share a column
        self.cells = self.rows * symbols
        self.x = -1 + np.arange(self.rows) * 2 / (knots - 1)
        column = np.minimum(np.arange(symbols), np.arange(symbols)[::-1])
        cell = np.arange(self.cells)
        counts = sparse.identity(self.cells)
        least = sparse.csr_array((np.ones(self.cells), (cell, np.tile(column, self.rows))))
        self._ratio = sparse.vstack([sparse.hstack([counts, -ratio * least]), sparse.hstack([-counts, least])])
        self._mixing = _mixing(self.rows, mixtures)
        self._sums = sparse.kron(sparse.identity(self.rows), np.ones((1, symbols)))
        forwards = np.eye(symbols)[: symbols // 2]
        before = np.zeros((symbols // 2, self.cells - symbols))
        self._middle = sparse.csr_array(np.hstack([before, forwards - forwards[:, ::-1]]))  # the same backwards

    def values(self, half: Any) -> Any:
        """Return all values from the positive ones; an odd symbol has the value 0."""
        import numpy as np

        return np.concatenate([-half[::-1], np.zeros(self.symbols % 2), half])

    def solve(self, half: Any, least: Any = None, margin: int = 0) -> Solution | None:
        """Return the best counts for these values; `least` fixes the smallest counts of columns where it is not nan.

        Every count keeps a `margin` from both limits of its column, so that whole counts can be found there.
        """
        answer = self._run(half, None, 0.0, least, margin)
        if answer is None:
            return None
        counts = answer[: self.cells].reshape(self.rows, self.symbols)
        return Solution(float(answer[-1]) / self.total, counts, answer[self.cells : self.cells + self.pairs])

    def whole_minima(self, half: Any) -> list[int] | None:
        """Round the smallest count of every column, one after the other, the smaller first, to the better side."""
        import numpy as np

        at = self.solve(half)
        if at is None:
            return None
        settled = np.full(self.pairs, np.nan)
        for column in np.argsort(at.least, kind="stable"):
            options = []
            for whole in {max(1.0, np.floor(at.least[column])), max(1.0, np.ceil(at.least[column]))}:
                settled[column] = whole
                there = self.solve(half, settled)
                options += [(there.variance, whole, there)] if there else []
            if not options:
                return None
            _, settled[column], at = min(options, key=lambda option: option[:2])
        return [int(m) for m in settled]

    def move(self, half: Any, counts: Any, reach: float) -> tuple[Any, float] | None:
        """Return values moved by at most `reach`, and the variance that the tangent at these counts predicts."""
        import numpy as np

        answer = self._run(half, counts, reach, None, 0)
        if answer is None:
            return None
        moves = answer[self.cells + self.pairs : -1]
        return np.sort(np.abs(half + moves)), float(answer[-1]) / self.total

    def _run(self, half: Any, counts: Any, reach: float, least: Any, margin: int) -> Any:
        """Solve for, in this order: the cells, the smallest counts, the moves of the values if any, total*variance.

        The variance is in the units of the cells: the solver's tolerances are absolute.
        """
        import numpy as np
        from scipy import optimize

        moves = 0 if counts is None else len(half)
        upper, equal = self._lines(half, counts, moves)
        limits = np.concatenate([np.full(2 * self.cells, -margin), self.total * (self._mixing @ self.x) ** 2])
        sums = np.full(self.rows, self.total)
        wanted = np.concatenate([sums, self.total * self.x, np.zeros(self._middle.shape[0])])
        size = self.cells + self.pairs + moves + 1
        low, high = np.zeros(size), np.full(size, np.inf)
        low[size - 1 - moves : size - 1], high[size - 1 - moves : size - 1] = -reach, reach
        if least is not None:
            columns = slice(self.cells, self.cells + self.pairs)
            low[columns], high[columns] = np.nan_to_num(least, nan=0.0), np.nan_to_num(least, nan=np.inf)
        goal, bounds = np.eye(1, size, size - 1)[0], np.stack([low, high], axis=1)
        answer = optimize.linprog(goal, upper, limits, equal, wanted, bounds, method="highs")
        return answer.x

    def _lines(self, half: Any, counts: Any, moves: int) -> tuple[Any, Any]:
        """Return the left sides of the inequalities and of the equations."""
        import numpy as np
        from scipy import sparse

        values, every = self.values(half), sparse.identity(self.rows)
        means, seconds = sparse.kron(every, values[None]), sparse.kron(every, values[None] ** 2)
        d_means = d_seconds = np.zeros((self.rows, moves))
        if moves:  # a value and its mirror image move together: the derivatives of both moments of each row
            up, down = counts[:, -moves:], counts[:, :moves][:, ::-1]
            d_means, d_seconds = up - down, 2 * half * (up + down)

        def zeros(below: Any, columns: int) -> Any:
            return sparse.csr_array((below.shape[0], columns))

        mixing, middle = self._mixing, self._middle
        variance = -np.ones((mixing.shape[0], 1))
        upper = [
            [self._ratio, zeros(self._ratio, moves), zeros(self._ratio, 1)],
            [mixing @ seconds, zeros(mixing, self.pairs), mixing @ d_seconds, variance],
        ]
        equal = [
            [self._sums, zeros(self._sums, self.pairs + moves + 1)],
            [means, zeros(means, self.pairs), d_means, zeros(means, 1)],
            [middle, zeros(middle, self.pairs + moves + 1)],
        ]
        first, second = (sparse.vstack([sparse.hstack(line) for line in lines]).tocsc() for lines in (upper, equal))
        return first, second


def _mixing(rows: int, mixtures: tuple[float, ...]) -> Any:
    """Return one line for each x of the program: the shares of the rows that it mixes."""
    import numpy as np
    from scipy import sparse

    lines = []
    for row in range(rows):
        for t in mixtures if row < rows - 1 else (0.0,):
            line = np.zeros(rows)
            line[row] = 1 - t
            if t:
                line[row + 1] = t
            lines.append(line)
    return sparse.csr_array(np.array(lines))
