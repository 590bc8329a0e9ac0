"""Obvious loops for what sensorsim.noise and sensorsim.accounting compute cleverly. Shares no code with it."""

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction


def release_counts(counts: Iterable[tuple[int, int]], D: int, S: int, limit: int | None, x_q: int) -> Counter[int]:
    """Count how many of all draws give each output, draw by draw."""
    found: Counter[int] = Counter()
    for a, count in counts:
        for u in range(S) if S > 1 else [0]:
            y = x_q - D // 2 + S * a + u - S // 2
            if limit is not None:
                y = max(-limit, min(limit, y))
            found[y] += count
    return found


def worst_ratio(counts: Iterable[tuple[int, int]], D: int, S: int, limit: int) -> Fraction | None:
    """The largest likelihood ratio over all inputs 0..D and all outputs; None if an output tells two apart."""
    counts = list(counts)
    tables = [release_counts(counts, D, S, limit, x) for x in range(D + 1)]
    worst = Fraction(1)
    for y in set().union(*tables):
        seen = [table[y] for table in tables]
        if max(seen) > 0 and min(seen) == 0:
            return None
        worst = max(worst, Fraction(max(seen), min(seen)))
    return worst


def is_private(ratio: Fraction | None, epsilon: Decimal, releases: int) -> bool:
    """ratio^releases <= e^epsilon, to sixty digits."""
    if ratio is None:
        return False
    with localcontext() as context:
        context.prec = 60
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= (epsilon / releases).exp()


def hockey_stick(p: Counter[int], q: Counter[int], epsilon: float) -> float:
    total = sum(p.values())
    return sum(max(0.0, p[y] - math.exp(epsilon) * q[y]) for y in p) / total


def composed_delta(pairs: list[tuple[Counter[int], Counter[int]]], epsilon: float) -> float:
    """Hockey-stick divergence of independent releases, over every combination of likelihoods."""
    joint: Counter[tuple[Fraction, Fraction]] = Counter({(Fraction(1), Fraction(1)): 1})
    for p, q in pairs:
        total = sum(p.values())
        step: Counter[tuple[Fraction, Fraction]] = Counter()
        for (a, b), times in joint.items():
            for y in p:
                step[(a * Fraction(p[y], total), b * Fraction(q[y], total))] += times
        joint = step
    return sum(times * max(0.0, float(a) - math.exp(epsilon) * float(b)) for (a, b), times in joint.items())


def staircase_sd(epsilon: float, gamma: float) -> float:
    """Standard deviation of the staircase density by its definition, summed step by step."""
    mass = moment = 0.0
    left, height = 0.0, 1.0
    for k in range(4000):
        right = k + gamma
        mass += height * (right - left)
        moment += height * (right**3 - left**3) / 3
        left, height = right, height * math.exp(-epsilon)
    return math.sqrt(moment / mass)


def spof_term(a: float) -> float:
    """2·max over x of the sum of the six absolute derivatives of the cross-entropy at a, on a grid of x."""
    e = math.exp(a)
    best = 0.0
    for i in range(1001):
        x = i / 1000
        terms = (
            x * math.log(1 + 1 / e),
            x / (1 + e),
            x * e / (1 + e) ** 2,
            (1 - x) * math.log(1 + e),
            (1 - x) * e / (1 + e),
            (1 - x) * e / (1 + e) ** 2,
        )
        best = max(best, sum(terms))
    return 2 * best
