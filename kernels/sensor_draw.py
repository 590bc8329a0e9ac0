"""Draw the release that a sensor has counted: random words, a release of the record with them, a packet.

Every firmware has a table, a packet and perhaps an encoder or a sketch of its own, so its draw is declared when these
are known. The record of a sensor then has the memory of one release beside what every sensor has.
"""

from functools import cache
from typing import NamedTuple

from sensorsim.kernels.encoder import encoder
from sensorsim.kernels.formats import (
    BYTE,
    DIRECTION_NUMBER,
    ENCODER_BIAS,
    ENCODER_WEIGHT,
    HIDDEN,
    RANDOM,
    SIGMOID_TABLE,
    X,
)
from sensorsim.kernels.generator import BLOCK_WORDS, fresh_words
from sensorsim.kernels.packet import NUMBERS, Layout, pack_chosen, pack_head, pack_number, pack_symbols, pack_values
from sensorsim.kernels.sensor import SENSOR, settle, wipe
from sensorsim.kernels.sketch import pack_direction

from sensorsim.language import Array, Kernel, Length, Q, Struct, kernel, out, rest, u32

OWN = ("x", "word", "order", "chosen", "y", "n", "k")  # what the sensor itself gives to a release of features
OF_SKETCH = ("x", "word", "chosen", "y")  # and to that of a sketch
SIGMOID_ENTRIES = len(SIGMOID_TABLE)


class Plan(NamedTuple):
    """Everything that the draw of a firmware depends on."""

    release: Kernel  # release_X, sampled_X or sampled_X_one, or sketch_X
    n: int  # features of a record
    features: int  # that the release reads: those of a record, or the hidden units of an encoder
    k: int  # of these, how many are released
    blocks: int  # of the generator that a release takes
    layout: Layout
    limit: int = 0  # of the values of a release; 0: it releases symbols
    encoded: bool = False
    sketched: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """Return the parameters of the release that the sensor gives itself; the others are bound."""
        return OF_SKETCH if self.sketched else tuple(name for name in OWN if name in self.release.parameters)

    @property
    def length(self) -> str:
        """Return how long a record is: a number, or the length n of a sketch."""
        return "n" if self.sketched else str(self.n)


class Draw(NamedTuple):
    """The draw of a firmware: the record that it works on, and its kernels."""

    record: Struct
    start: Kernel | None  # to be called after an opening; none where there is nothing to set up
    draw_release: Kernel


@kernel(lasting=True)
def wipe_units(units: out(X["count"]), count: Length("count", 1, 4096, "hidden units", typical=7)) -> None:
    """Zero hidden units that nobody reads again.

    Scaling and overflow: there is nothing to overflow.
    """
    for i in range(count):
        units[i] = 0


@cache
def declare_draw(plan: Plan) -> Draw:
    """Declare the record and the kernels of a firmware's draw."""
    record = _record(plan)
    release, pack = _release(plan, record), _pack(plan, record)
    start = _start(plan, record) if "order" in record.fields else None
    return Draw(record, start, (_draw_encoded if plan.encoded else _draw)(plan, record, release, pack))


def _record(plan: Plan) -> Struct:
    """Return the record of a sensor with the memory of one release."""
    takes, place = plan.release.parameters, Q("place", "u32", 0, 0, plan.features - 1, "one of the features")
    more = {"word": (RANDOM[BLOCK_WORDS * plan.blocks], "random words of a release; zeros outside of it")}
    if "order" in takes:
        more["order"] = place[plan.features], "the features, kept from release to release"
    if "chosen" in takes:
        more["chosen"] = (DIRECTION_NUMBER if plan.sketched else place)[plan.k], "which were released"
    more["y"] = plan.release.arrays["y"].element[plan.k], "what was released of them"
    if plan.encoded:
        more["hidden"] = X[plan.features], "hidden units; zeros outside of a release"
    return SENSOR.with_fields(**more)


def _start(plan: Plan, record: Struct) -> Kernel:
    RELEASED_FROM = plan.features

    @kernel(step="sensor")
    def start_order(sensor: record) -> None:
        """Set up the order of the features: each of them once.

        Scaling and overflow: there is nothing to overflow.
        """
        for i in range(RELEASED_FROM):
            sensor.order[i] = i

    return start_order


def _release(plan: Plan, record: Struct) -> Kernel:
    release, RELEASED_FROM, RELEASED_FEATURES = plan.release, plan.features, plan.k
    length = plan.length if plan.sketched else str(plan.features)
    DIRECTED, ORDERED, PICKED = plan.sketched, "order" in record.fields, "chosen" in record.fields

    @kernel(step="release")
    def release_features(sensor: record, x: X[length], *bound: rest(release, *plan.given)) -> None:
        """Release what the firmware releases of x, with the random words of the sensor.

        Privacy: that of `release`.

        Scaling and overflow: see `release`.
        """
        if DIRECTED:
            release(x, sensor.word, sensor.chosen, sensor.y, *bound)
        elif ORDERED:
            release(x, sensor.word, sensor.order, sensor.chosen, sensor.y, RELEASED_FROM, RELEASED_FEATURES, *bound)
        elif PICKED:
            release(x, sensor.word, sensor.chosen, sensor.y, RELEASED_FROM, *bound)
        else:
            release(x, sensor.word, sensor.y, RELEASED_FROM, *bound)

    return release_features


def _pack(plan: Plan, record: Struct) -> Kernel:
    layout, RELEASED_FROM, RELEASED_FEATURES, LARGEST_VALUE = plan.layout, plan.features, plan.k, plan.limit
    PACKET_HEAD, PACKET_LENGTH = layout.head, layout.bytes
    WITH_EPOCH, WITH_SEQUENCE = "epoch" in layout.numbers, "sequence" in layout.numbers
    EPOCH_BIT, SEQUENCE_BIT = (layout.number_at(name) if name in layout.numbers else 0 for name in NUMBERS)
    DIRECTED, PICKED, SYMBOLS = plan.sketched, layout.which_bits > 0, plan.limit == 0
    PICKED_BIT, PICKED_BITS = layout.chosen_at, layout.which_bits
    VALUES_BIT, VALUE_BITS = layout.values_at, layout.value_bits

    @kernel(step="packet")
    def pack_release(sensor: record, packet: out(BYTE[layout.bytes])) -> None:
        """Pack the numbers that a packet carries, what was picked, and the values of it.

        Scaling and overflow: see the kernels that are called.
        """
        if DIRECTED:
            number = u32(sensor.chosen[0])
        pack_head(packet, PACKET_HEAD, PACKET_LENGTH)
        if WITH_EPOCH:
            pack_number(packet, sensor.epoch, EPOCH_BIT)
        if WITH_SEQUENCE:
            pack_number(packet, sensor.used, SEQUENCE_BIT)
        if DIRECTED:
            pack_direction(packet, number, PICKED_BIT, PICKED_BITS)
        elif PICKED:
            pack_chosen(packet, sensor.chosen, PICKED_BIT, RELEASED_FROM, RELEASED_FEATURES, PICKED_BITS)
        if SYMBOLS:
            pack_symbols(packet, sensor.y, VALUES_BIT, RELEASED_FEATURES, VALUE_BITS)
        else:
            pack_values(packet, sensor.y, LARGEST_VALUE, VALUES_BIT, RELEASED_FEATURES, VALUE_BITS)

    return pack_release


def _draw(plan: Plan, record: Struct, release: Kernel, pack: Kernel) -> Kernel:
    DRAWN_BLOCKS, DRAWN_WORDS, DIRECTED = plan.blocks, BLOCK_WORDS * plan.blocks, plan.sketched

    @kernel(step="sensor")
    def draw_release(
        sensor: record, x: X[plan.length], packet: out(BYTE[plan.layout.bytes]), *bound: rest(release, "sensor", "x")
    ) -> None:
        """Draw the release that was counted, pack it, and wipe what it was drawn with.

        The number of a sketch's direction is part of a random word, so it is wiped as well; the packet has it.

        Privacy: that of `release`. Nothing stays in memory but the next key and what the packet says.

        Scaling and overflow: see the kernels that are called.
        """
        fresh_words(sensor.key, sensor.word, sensor.state, sensor.block, sensor.used, sensor.epoch, DRAWN_BLOCKS)
        release(sensor, x, *bound)
        pack(sensor, packet)
        if DIRECTED:
            wipe(sensor.chosen, 1)
        settle(sensor)
        wipe(sensor.word, DRAWN_WORDS)

    return draw_release


def _draw_encoded(plan: Plan, record: Struct, release: Kernel, pack: Kernel) -> Kernel:
    DRAWN_BLOCKS, DRAWN_WORDS = plan.blocks, BLOCK_WORDS * plan.blocks
    ENCODED_FEATURES, HIDDEN_UNITS = plan.n, plan.features

    @kernel(step="sensor")
    def draw_release(
        sensor: record,
        x: X[plan.n],
        packet: out(BYTE[plan.layout.bytes]),
        weights: ENCODER_WEIGHT[plan.n * plan.features],
        bias: ENCODER_BIAS[plan.features],
        sigmoid: Array(HIDDEN, str(SIGMOID_ENTRIES), contents=SIGMOID_TABLE),
        *bound: rest(release, "sensor", "x"),
    ) -> None:
        """Encode the record, draw the release that was counted from its hidden units, pack it, and wipe the rest.

        Privacy: that of `release` for any two records, for it holds for any two lists of hidden units.

        Scaling and overflow: see the kernels that are called.
        """
        fresh_words(sensor.key, sensor.word, sensor.state, sensor.block, sensor.used, sensor.epoch, DRAWN_BLOCKS)
        encoder(x, weights, bias, sigmoid, sensor.hidden, ENCODED_FEATURES, HIDDEN_UNITS, SIGMOID_ENTRIES)
        release(sensor, sensor.hidden, *bound)
        pack(sensor, packet)
        wipe_units(sensor.hidden, HIDDEN_UNITS)
        settle(sensor)
        wipe(sensor.word, DRAWN_WORDS)

    return draw_release
