"""What random words cost: a block of a cipher by its operations, or a chip's own generator by its energy.

A record takes whole blocks and what is left of the last one is thrown away: a word that is kept in memory is a secret
that can be read. A mechanism by itself takes all sixteen words of a ChaCha20 block; the sensor's generator gives eight
of them to its next key.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache

from sensorsim._util.hints import did_you_mean
from sensorsim.cost.chip_parts import NONE, Trng
from sensorsim.errors import InputError

CHACHA20, CHACHA12, TRNG, FREE = "chacha20", "chacha12", "trng", "free"
SOURCES = (CHACHA20, CHACHA12, TRNG, FREE)
DOUBLE_ROUNDS = {CHACHA20: 10, CHACHA12: 6}
BLOCK_BITS = 512
WORD_BITS = 32


def check_source(source: str, chip: str, trng: Trng | None) -> None:
    """Refuse a source that there is none of, or that this chip has not."""
    if source not in SOURCES:
        hint = did_you_mean(source, SOURCES)
        raise InputError(f"random words from {source!r} are not known{hint}; choose one of {', '.join(SOURCES)}.")
    if source == TRNG and trng is None:
        raise InputError(
            f"the table of {chip} has no figure for a generator of true random words; give --random chacha20."
        )
    if source == TRNG and trng is not None and trng.status == NONE:
        why = f" ({trng.note})" if trng.note else ""
        raise InputError(f"{chip} has no generator of true random words{why}; give --random chacha20.")


def blocks(bits: int) -> int:
    """Whole blocks of a cipher that so many bits take."""
    return -(-bits // BLOCK_BITS)


@cache
def block_operations(source: str) -> Mapping[str, int]:
    """The operations of one block of ChaCha, counted by reading the kernel; fewer rounds are so many rounds less."""
    from sensorsim.kernels.chacha20 import chacha20

    whole = Counter({operation: times.at() for (_, operation), times in chacha20.formula().items()})
    return dict(whole - missing_rounds(source))


@cache
def missing_rounds(source: str) -> Counter[str]:
    """The operations by which a block has less than the kernel's: of each double round, eight quarters and the loop."""
    from sensorsim.kernels.chacha20 import chacha20, quarter_round
    from sensorsim.language import ir
    from sensorsim.language.count import PER_ITERATION

    (loop,) = (node for node in chacha20.nodes if isinstance(node, ir.For) and isinstance(node.body[0], ir.Do))
    quarter = Counter({operation: times.at() for (_, operation), times in quarter_round.formula().items()})
    double = Counter(PER_ITERATION)
    for operation, times in quarter.items():
        double[operation] += times * len(loop.body)
    fewer = DOUBLE_ROUNDS[CHACHA20] - DOUBLE_ROUNDS[source]
    return Counter({operation: fewer * times for operation, times in double.items() if fewer})
