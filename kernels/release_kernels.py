"""Release the features of a record through any draw: all of them, or a few that are picked at random.

A draw is a kernel `draw(x, word, …)` of one feature, one secret word and what its table fixes. For any two values of x
it is epsilon0-DP with delta = 0, which its own module proves. What holds of a record is proved here, for all draws.
"""

from sensorsim.kernels.choice import ORDER, PICKED, choose, choose_next
from sensorsim.kernels.formats import RANDOM, K, N, X

from sensorsim.language import Below, Kernel, Q, kernel, out, rest


def releases(draw: Kernel, value: Q) -> tuple[Kernel, Kernel, Kernel]:
    """Declare release_X, sampled_X and sampled_X_one for the draw X, which returns a `value`."""

    @kernel(name=f"release_{draw.name}", module=draw.module)
    def release(x: X["n"], word: RANDOM["n"], y: out(value["n"]), n: N, *bound: rest(draw, "x", "word")) -> None:
        """Release every feature of a record, one secret word each.

        Privacy: n·epsilon0-DP with delta = 0 for any two records, epsilon0 that of `draw`: the n words are independent,
        so the likelihood ratios multiply. What is computed from y later (coefficients, a trained model) is
        post-processing and costs nothing more, as long as x itself is read nowhere else.

        Scaling and overflow: see `draw`.
        """
        for i in range(n):
            y[i] = draw(x[i], word[i], *bound)

    @kernel(name=f"sampled_{draw.name}", module=draw.module, exposes={"address": PICKED})
    def sampled(
        x: X["n"],
        word: RANDOM["2 * k"],
        order: ORDER["n"],
        chosen: out(Below("n")["k"]),
        y: out(value["k"]),
        n: N,
        k: K,
        *bound: rest(draw, "x", "word"),
    ) -> None:
        """Release k different features of a record, picked at random: two secret words each, to pick and to draw.

        `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

        Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of
        `draw`, so a table made for k features puts the whole epsilon on k instead of n. Proof: `chosen` is as likely
        for every x, since neither the words nor the order depend on x; given it, k features are released with
        independent words, whose likelihood ratios multiply. `chosen` need not be hidden.

        Scaling and overflow: see `draw` and `choose_next`; k <= n, so at least one feature is left in every round.
        """
        for j in range(k):
            left = n - j
            choose_next(order, word[2 * j], n, left)
            picked = order[left - 1]
            chosen[j] = picked
            y[j] = draw(x[picked], word[2 * j + 1], *bound)

    @kernel(name=f"sampled_{draw.name}_one", module=draw.module, exposes={"address": PICKED})
    def sampled_one(
        x: X["n"],
        word: RANDOM["2"],
        chosen: out(Below("n")["1"]),
        y: out(value["1"]),
        n: N,
        *bound: rest(draw, "x", "word"),
    ) -> None:
        """Release one feature of a record, picked at random: the first word picks, the second draws.

        One pick cannot repeat, so the place is the feature, and there is no order to keep.

        Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of
        `draw`: `chosen` is as likely for every x, since its word does not depend on x. `chosen` need not be hidden.

        Scaling and overflow: see `draw` and `choose`.
        """
        picked = choose(word[0], n)
        chosen[0] = picked
        y[0] = draw(x[picked], word[1], *bound)

    return release, sampled, sampled_one
