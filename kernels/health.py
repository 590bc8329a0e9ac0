"""Is the entropy alive: the tests of NIST SP 800-90B, section 4.4, on every byte that seeds the generator.

Repetition count: the same byte too often in a row. Adaptive proportion: one byte too often in a window of 512 bytes,
and once more on bits, one value of a bit too often in a window of 1024: bytes alone notice only a gross lean. Each
alarms less than once in 2^29 windows of a source whose bytes have at least 6 bits of min-entropy and whose bits at
least 6/8, which is what the board promises; a source that is stuck or leans to some values gives an alarm.
"""

from sensorsim.kernels.formats import SECRET_FLAG, SEED, SEEDS

from sensorsim.language import Q, addu, and_, geu, kernel, minu, or_, selectu, shru, u32, xor

CLAIMED_BITS = 6  # of min-entropy in a byte
ALARM_BITS = 30  # a healthy source alarms with probability 2^-30
WINDOW = 512  # bytes of the adaptive proportion test, as SP 800-90B has it for samples that are not bits
BIT_WINDOW = 1024  # the same for bits
BIT_PLACES = 127  # the last byte of a window of bits has these low bits in its place
REPEATED = 6  # 1 + ceil(ALARM_BITS / CLAIMED_BITS) equal bytes in a row
TOO_MANY = 31  # 1 + the 1 - 2^-30 quantile of a binomial of WINDOW trials at 2^-CLAIMED_BITS
TOO_MANY_BITS = 703  # 1 + that of BIT_WINDOW trials at 2^-(CLAIMED_BITS/8)
TOO_FEW_BITS = BIT_WINDOW - TOO_MANY_BITS
START_UP = 1024  # bytes that are looked at before the first is used (section 4.3)
NO_BYTE = 256
STATE_WORDS = 6
HEALTH = Q("health", "u32", 0, 0, BIT_WINDOW, "a byte, or a count of the health tests", secret=True)
ONES = Q("ones", "u32", 0, 0, 32, "one bits of a byte", secret=True)


@kernel(step="health")
def same(a: HEALTH, b: HEALTH) -> SECRET_FLAG:
    """1 where two values are equal, without a branch.

    Scaling and overflow: there is nothing to overflow.
    """
    return selectu(geu(0, xor(a, b)), 1, 0)


@kernel(step="health")
def ones_of(byte: SEED) -> ONES:
    """How many bits of a byte are one: added in pairs, in fours, in all.

    Scaling and overflow: 8 at most, which three additions of narrow fields hold.
    """
    pairs = addu(and_(byte, 0x55), and_(shru(byte, 1), 0x55))
    fours = addu(and_(pairs, 0x33), and_(shru(pairs, 2), 0x33))
    return addu(and_(fours, 15), shru(fours, 4))


@kernel(step="health")
def watch(bytes: SEED["count"], health: HEALTH["6"], count: SEEDS) -> SECRET_FLAG:
    """Run the tests over some bytes; 1 for an alarm. `health` is kept from call to call.

    health[0] is the last byte (256 before the first), [1] how often it came in a row, [2] the first byte of the window,
    [3] how often that came, [4] the place in the window, [5] the one bits of the window of bits. Start it at 256 and
    zeros.

    Scaling and overflow: counts stop at their limits, the place goes from 0 to 511 and round.
    """
    alarm = u32(0)
    for i in range(count):
        byte = u32(bytes[i])
        again = same(byte, health[0])
        run = selectu(geu(again, 1), minu(addu(health[1], 1), REPEATED), 1)
        health[0] = byte
        health[1] = run
        begins = same(health[4], 0)
        first = selectu(geu(begins, 1), byte, health[2])
        seen = selectu(geu(begins, 1), 0, health[3])
        seen = minu(addu(seen, same(byte, first)), TOO_MANY)
        health[2] = first
        health[3] = seen
        place = and_(health[4], BIT_PLACES)
        ones = addu(selectu(geu(same(place, 0), 1), 0, health[5]), ones_of(byte))
        health[5] = minu(ones, BIT_WINDOW)
        leans = or_(selectu(geu(ones, TOO_MANY_BITS), 1, 0), selectu(geu(TOO_FEW_BITS, ones), 1, 0))
        ends = same(place, BIT_PLACES)
        health[4] = and_(addu(health[4], 1), WINDOW - 1)
        alarm = or_(alarm, or_(selectu(geu(run, REPEATED), 1, 0), selectu(geu(seen, TOO_MANY), 1, 0)))
        alarm = or_(alarm, and_(leans, ends))
    return alarm
