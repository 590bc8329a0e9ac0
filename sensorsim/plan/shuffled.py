"""What shuffling adds to a plan: the epsilon of a person among the packets of one estimate, told apart from the local.

It is assumed that packets reach the analyst without identity, in an order that says nothing, and that which of them are
lost is chance and not the person's doing. It takes as many packets as almost every estimate has: those expected less
four standard deviations of a Poisson law, which is wider than the schedule's.

Days that begin with a budget period may hold fewer packets of a person than days that cross into the next one. Both are
told, the second by group privacy, up to a few packets.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sensorsim.errors import InputError
from sensorsim.plan.asked import given
from sensorsim.plan.lines import Line

if TYPE_CHECKING:
    from sensorsim.plan.solve import Settled

FEWER = 4  # standard deviations
MOST_TOGETHER = 4  # packets of a person; of more nothing is told
NEAR = 1e-6  # to which epsilon is solved, relative to that of a packet; upwards
WITHOUT_IDENTITY = (
    "if packets reach the analyst without identity, in an order that says nothing, and are lost by chance alone"
)


@dataclass(frozen=True)
class Shuffled:
    """An epsilon is None where a person has too many packets in an estimate, or where none arrives."""

    packets: int  # that almost every estimate has
    of_a_person: int  # at most, wherever the days begin
    epsilon: float | None
    aligned_of_a_person: int  # at most, from the start of a budget period on
    aligned_epsilon: float | None


def shuffled(settled: "Settled", of_a_person: int, aligned: int) -> Shuffled:
    from sensorsim.noise.certificate import certify

    asked, count = settled.asked, fewest_packets(settled.packets)
    own = float(given(certify(settled.table).epsilon_record))

    def of(packets: int) -> float | None:
        if not count or not 1 <= packets <= MOST_TOGETHER:
            return None
        return group_epsilon(own, count, asked.delta, packets)

    return Shuffled(count, of_a_person, of(of_a_person), aligned, of(aligned))


def fewest_packets(expected: Fraction) -> int:
    """As many as almost every estimate has, at least 1; 0 where less than one is expected."""
    from sensorsim.accounting.amplification import MOST_PACKETS

    if expected < 1:
        return 0
    return min(MOST_PACKETS, max(1, math.floor(float(expected) - FEWER * math.sqrt(expected))))


def group_epsilon(epsilon0: float, n: int, delta: float, packets: int = 1) -> float:
    """The epsilon at `delta` of a person with so many of n shuffled packets, each of epsilon0.

    Group privacy: if one packet changed is (e, d), then P <= exp(e)·P' + d <= exp(e)·(exp(e)·P'' + d) + d for two, and
    so on: k packets are (k·e, d·(1 + exp(e) + … + exp((k-1)·e))). The smallest e is taken whose delta is enough.
    """
    from sensorsim.accounting.amplification import shuffled_delta, shuffled_epsilon

    if type(packets) is not int or packets < 1:
        raise InputError(f"a person has {packets} packets; give a whole number of 1 or more.")
    if packets == 1:
        return shuffled_epsilon(epsilon0, n, delta)

    def enough(epsilon: float) -> bool:
        times = sum(math.exp(step * epsilon) for step in range(packets))
        return shuffled_delta(epsilon0, n, epsilon) * times <= delta

    low, high = 0.0, float(epsilon0)  # there delta is 0
    while high - low > NEAR * epsilon0 * min(1.0, high):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return packets * high


def lines(found: Shuffled, delta: float) -> list[Line]:
    """With the calls that say each again."""
    table_proof = "sensorsim.noise.certificate.certify(table).epsilon_record"
    unit = f"epsilon at delta {delta:g}, {WITHOUT_IDENTITY}"
    told = {
        "in the days of an estimate, begun anywhere": (found.of_a_person, found.epsilon),
        "in the days of an estimate, aligned": (found.aligned_of_a_person, found.aligned_epsilon),
    }
    made = []
    for when, (packets, epsilon) in told.items():
        if epsilon is not None:
            how = f"sensorsim.plan.shuffled.group_epsilon(float({table_proof}), {found.packets}, {delta!r}, {packets})"
            made.append(Line(f"epsilon of a person {when}, shuffled", epsilon, unit, how))
    return made
