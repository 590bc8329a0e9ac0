"""When a sensor releases whose budget does not pay for every record: time sampling, by public arithmetic.

A budget period has so many slots, one for each record, and pays for so many releases. Which slots they fall on follows
from the sensor's serial number and the period alone, so it tells nothing of the person, and a reset does not change it.

Privacy: nothing here reads a record. What is released is what a certified table draws, with the whole epsilon that the
budget has for it: a person's epsilon of a period is that of the releases in it, and time sampling needs no proof of its
own.
"""

from sensorsim.kernels.formats import FLAG, NUMBER

from sensorsim.language import (
    Q,
    addu,
    divu,
    geu,
    kernel,
    mulu,
    selectu,
    shru,
    wrapping_addu,
    wrapping_mulu,
    wrapping_subu,
    xor,
)

MOST_SLOTS = 2**16 - 1
SLOT = Q("slot", "u32", 0, 0, MOST_SLOTS - 1, "of the period, the first is 0")
SLOTS = Q("slots", "u32", 0, 1, MOST_SLOTS, "records of a budget period")
ALLOWED = Q("allowed", "u32", 0, 1, MOST_SLOTS, "releases that the budget of a period pays for")
# 2^32 over the golden ratio sets serial numbers apart; then MurmurHash3's last steps (Appleby), with their constants.
SPREAD, MIX_1, MIX_2 = 0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35


@kernel(step="schedule")
def mixed(serial: NUMBER, epoch: NUMBER) -> NUMBER:
    """A public word that looks random: that of one sensor in one period.

    Scaling and overflow: words that are meant to wrap.
    """
    start = wrapping_addu(wrapping_mulu(serial, SPREAD), epoch)
    once = wrapping_mulu(xor(start, shru(start, 16)), MIX_1)
    twice = wrapping_mulu(xor(once, shru(once, 13)), MIX_2)
    return xor(twice, shru(twice, 16))


@kernel(step="schedule")
def due(serial: NUMBER, epoch: NUMBER, slot: SLOT, slots: SLOTS, allowed: ALLOWED) -> FLAG:
    """1 where this record is to be released: `allowed` of the period's slots, as evenly apart as they can be.

    Systematic sampling: with u from 0 to slots - 1, slot s is due where (s·allowed + u) mod slots is below `allowed`.
    Every slot is due with probability allowed/slots, within 2^-16 of it over the serial numbers, and each period has
    exactly `allowed` of them. With `allowed` of slots or more all are due.

    Scaling and overflow: (2^16 - 2)·(2^16 - 1) + 2^16 - 2 is below 2^32; the multiple of slots that is taken off is no
    more than what it is taken from.
    """
    start = shru(mulu(shru(mixed(serial, epoch), 16), slots), 16)
    turn = addu(mulu(slot, allowed), start)
    place = wrapping_subu(turn, wrapping_mulu(divu(turn, slots), slots))
    return selectu(geu(place, allowed), 0, 1)
