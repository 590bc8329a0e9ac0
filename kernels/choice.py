"""Which features of a record are released: picked at random with secret words that do not depend on the record.

What is picked is released beside the values, so it is no secret; that it is random is what puts the whole epsilon on a
few features instead of all. Every word is uniform, used once, and from a true or cryptographic generator.
"""

from sensorsim.kernels.formats import LEFT, RANDOM, REMAINING, N

from sensorsim.language import Below, kernel, mulu, shru

CHOICE_BITS = 20  # of the word that picks a feature: with n <= 4096 the product still fits 32 bits
CHOICE_DROP = 32 - CHOICE_BITS
ORDER = Below("n", once=True)  # the features in any order, each of them once
PICKED = "which features are picked follows from the words alone and is released as `chosen`: it is no secret"


@kernel(step="choice")
def choose(word: RANDOM, left: LEFT) -> RANDOM:
    """One of `left` places from a secret word: its top 20 bits times `left`, the high part. MUL.

    A place has a probability within 2^-20 of 1/left. That is no loss of privacy, because the choice does not depend on
    x, and a loss of accuracy far below the noise. No division, no rejection: the same time for every word.

    Scaling and overflow: below 2^20 times at most 2^12 fits 32 bits; the result is below `left`.
    """
    return shru(mulu(shru(word, CHOICE_DROP), left), CHOICE_BITS)


@kernel(exposes={"address": PICKED})
def choose_next(order: ORDER["n"], word: RANDOM, n: N, left: REMAINING) -> None:
    """Move one of the `left` features that are not picked yet to order[left - 1]: a round of a Fisher–Yates shuffle.

    `order` holds the numbers 0 … n-1 once each, the first `left` of them not picked yet, and keeps them from round to
    round and from record to record: the first k rounds of a shuffle are uniform whatever the order was. Set it up once.
    To pick one feature of n no order is needed: `choose` alone does it.

    Scaling and overflow: see `choose`; left <= n, so both places lie in the order.
    """
    place = choose(word, left)
    picked = order[place]
    order[place] = order[left - 1]
    order[left - 1] = picked
