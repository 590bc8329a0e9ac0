"""When a sensor releases whose budget does not pay for every record: time sampling, by public arithmetic.

A budget period has so many slots, one for each record, and pays for so many releases. Which slots they fall on follows
from the sensor's serial number and the period alone, so it tells nothing of the person, and a reset does not change it.

The period is cut into as many strata as it has releases, of lengths that differ by one at most, and turned by a random
number of slots; each stratum has one release, in a random slot of its own. So every slot is as likely, and no rhythm of
the records, of a day or of a week, can fall in with the schedule.

Privacy: nothing here reads a record. What is released is what a certified table draws, with the whole epsilon that the
budget has for it: a person's epsilon of a period is that of the releases in it, and time sampling needs no proof of its
own.
"""

from sensorsim.kernels.formats import FLAG, NUMBER

from sensorsim.language import (
    Q,
    addu,
    and_,
    divu,
    geu,
    kernel,
    maxu,
    minu,
    mulu,
    selectu,
    shru,
    subu,
    wrapping_addu,
    wrapping_mulu,
    wrapping_subu,
    xor,
)

MOST_SLOTS = 2**16 - 1
SLOT = Q("slot", "u32", 0, 0, MOST_SLOTS - 1, "of the period, the first is 0")
SLOTS = Q("slots", "u32", 0, 1, MOST_SLOTS, "records of a budget period")
ALLOWED = Q("allowed", "u32", 0, 1, MOST_SLOTS, "releases that the budget of a period pays for")
STRATUM = Q("stratum", "u32", 0, 0, MOST_SLOTS, "part of a period with one release, or the end")
# 2^32 over the golden ratio sets numbers apart that follow each other; MurmurHash3 (Appleby) mixes.
SPREAD, MIX_1, MIX_2 = 0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35


@kernel(step="schedule")
def mixed(word: NUMBER) -> NUMBER:
    """A public word that looks random, another one for every word: the last steps of MurmurHash3.

    Scaling and overflow: words that are meant to wrap.
    """
    once = wrapping_mulu(xor(word, shru(word, 16)), MIX_1)
    twice = wrapping_mulu(xor(once, shru(once, 13)), MIX_2)
    return xor(twice, shru(twice, 16))


@kernel(step="schedule")
def of_period(serial: NUMBER, epoch: NUMBER) -> NUMBER:
    """The word of one sensor in one period.

    Scaling and overflow: words that are meant to wrap.
    """
    return mixed(wrapping_addu(mixed(wrapping_mulu(serial, SPREAD)), epoch))


@kernel(step="schedule")
def one_of(word: NUMBER, count: SLOTS) -> SLOT:
    """A number below `count`, all as likely to one in 2^32: the high word of their product, in two steps.

    Scaling and overflow: (2^16 - 1)² + 2^16 is below 2^32; the result is below count, which minu says to the prover.
    """
    low = shru(mulu(and_(word, 0xFFFF), count), 16)
    return minu(shru(addu(mulu(shru(word, 16), count), low), 16), subu(count, 1))


@kernel(step="schedule")
def starts(stratum: STRATUM, slots: SLOTS, allowed: ALLOWED) -> STRATUM:
    """The first slot of a stratum, before the period is turned; past the last one, the number of slots.

    Scaling and overflow: (2^16 - 1)² is below 2^32; no stratum starts after the last slot, which minu says.
    """
    return minu(divu(mulu(stratum, slots), allowed), MOST_SLOTS)


@kernel(step="schedule")
def due(serial: NUMBER, epoch: NUMBER, slot: SLOT, slots: SLOTS, allowed: ALLOWED) -> FLAG:
    """1 where this record is to be released: `allowed` of the period's slots, one in each stratum.

    Every slot is due with probability allowed/slots over the serial numbers, and each period has exactly `allowed` of
    them; from `slots` of them on, all are due.

    Scaling and overflow: turned by less than a period, a slot is below 2^17 and is brought back below 2^16; (2^16 - 1)²
    is below 2^32. What lies in the period by arithmetic, minu and maxu say to the prover.
    """
    releases = minu(allowed, slots)
    whole = of_period(serial, epoch)
    turned = addu(slot, one_of(whole, slots))
    place = minu(selectu(geu(turned, slots), wrapping_subu(turned, slots), turned), MOST_SLOTS - 1)
    stratum = minu(divu(subu(mulu(addu(place, 1), releases), 1), slots), MOST_SLOTS - 1)
    first = starts(stratum, slots, releases)
    length = maxu(minu(wrapping_subu(starts(addu(stratum, 1), slots, releases), first), MOST_SLOTS), 1)
    own = mixed(wrapping_addu(whole, wrapping_mulu(addu(stratum, 1), SPREAD)))
    return selectu(geu(0, xor(addu(first, one_of(own, length)), place)), 1, 0)
