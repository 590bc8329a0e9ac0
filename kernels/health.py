"""Test whether the entropy is alive: by NIST SP 800-90B, section 4.4, on every byte that seeds the generator, and two
more tests.

Repetition count: the same byte too often in a row. Adaptive proportion: one byte too often in a window of 512 bytes,
and once more on bits, one value of a bit too often in a window of 1024: bytes alone notice only a gross lean.
Counter: of 1024 bytes too many are as far from the byte eight places before as that is from the one sixteen before.
Every counter of 1, 2, 4 or 8 bytes is found by that, whatever its step, start and order of bytes. Cycle: the last eight
bytes are those at a mark. Marks are set when 32, 64, … 512 bytes were seen (Brent 1980), so a source that repeats
itself is found for every cycle of up to 512 bytes, also where it does so only after 500 others.

Each test alarms less than once in 2^29 windows of a source whose bytes have at least 6 bits of min-entropy and whose
bits at least 6/8, which is what the board promises. Sources that are stuck, lean to some values, count or repeat
themselves give an alarm; a generator that looks random and is not gives none.
"""

from sensorsim.kernels.formats import SECRET_FLAG, SEED, SEEDS, WORD32

from sensorsim.language import (
    Q,
    addu,
    and_,
    geu,
    kernel,
    minu,
    not_,
    or_,
    selectu,
    shlu,
    shru,
    u32,
    wrapping_shlu,
    xor,
)

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
TOO_EVEN = 46  # 1 + the 1 - 2^-30 quantile of a binomial of START_UP trials at 2^-CLAIMED_BITS
MARKED = 8  # bytes that must not come again: each time with a probability of at most 2^-(MARKED * CLAIMED_BITS)
LONGEST_CYCLE = START_UP // 2  # bytes
TURNS = START_UP // 32 - 1  # the number of calls with 32 bytes each has these bits
LOW_BITS, HIGH_BITS, LAST_BITS = 0x7F7F7F7F, 0x80808080, 0x01010101  # of each byte of a word
NO_BYTE = 256
STATE_WORDS = 6
RECENT_WORDS = 8
HEALTH = Q("health", "u32", 0, 0, BIT_WINDOW, "a byte, or a count of the health tests", secret=True)
ONES = Q("ones", "u32", 0, 0, 32, "one bits of a byte", secret=True)
EVEN = Q("even", "u32", 0, 0, 7, "bytes of a word that keep an even pace", secret=True)


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


@kernel(step="health")
def even_bytes(newest: WORD32, middle: WORD32, oldest: WORD32) -> EVEN:
    """Count the bytes of `newest` that are as far from those of `middle` as these are from those of `oldest`.

    Four bytes at once: without their highest bits they cannot carry into each other.

    Scaling and overflow: distances are modulo 256; two sevens of bits fill a byte and no more.
    """
    sums = xor(addu(and_(newest, LOW_BITS), and_(oldest, LOW_BITS)), and_(xor(newest, oldest), HIGH_BITS))
    bend = xor(sums, shlu(and_(middle, LOW_BITS), 1))
    some = or_(addu(and_(bend, LOW_BITS), LOW_BITS), bend)
    none = and_(shru(not_(some), 7), LAST_BITS)
    pairs = addu(none, shru(none, 16))
    return and_(addu(pairs, shru(pairs, 8)), 7)


@kernel(step="health")
def watch_patterns(bytes: SEED["32"], recent: WORD32["8"]) -> SECRET_FLAG:
    """Look for counters and cycles in the next 32 bytes; 1 for an alarm. `recent` is kept from call to call.

    recent[0] to [3] are the last sixteen bytes, the newest the lowest of [0], [4] and [5] the eight at the mark, [6] is
    the number of calls, up to 32 and round, [7] how many bytes of these calls keep an even pace. Start it at zeros; a
    mark of eight zeros, which the repetition count does not let pass, is none.

    Scaling and overflow: counts stop at their limits; what is older than sixteen bytes is shifted out.
    """
    turn = and_(recent[6], TURNS)
    even = selectu(geu(same(turn, 0), 1), 0, minu(recent[7], TOO_EVEN))
    last = u32(recent[0])
    before = u32(recent[1])
    second = u32(recent[2])
    oldest = u32(recent[3])
    least = not_(u32(0))
    for i in range(8):
        middle = before
        for j in range(4):
            before = or_(wrapping_shlu(before, 8), shru(last, 24))
            last = or_(wrapping_shlu(last, 8), bytes[4 * i + j])
            least = minu(least, or_(xor(last, recent[4]), xor(before, recent[5])))
        even = minu(addu(even, even_bytes(last, middle, oldest)), TOO_EVEN)
        oldest = second
        second = middle
    recent[0] = last
    recent[1] = before
    recent[2] = second
    recent[3] = oldest
    marked = selectu(geu(0, or_(recent[4], recent[5])), 0, 1)
    cycles = and_(selectu(geu(0, least), 1, 0), marked)
    marks = same(and_(addu(turn, 1), turn), 0)
    recent[4] = selectu(geu(marks, 1), last, recent[4])
    recent[5] = selectu(geu(marks, 1), before, recent[5])
    recent[6] = addu(turn, 1)
    recent[7] = even
    return or_(cycles, selectu(geu(even, TOO_EVEN), 1, 0))
