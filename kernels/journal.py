"""The journal of a sensor: how many releases are spent, in two slots of memory that survives a power cut.

    0 'S'   1 'J'   2 layout version   3 reserve   4-11 identity of the table   12-15 epoch   16-19 spent   20-23 CRC-32

Numbers are little endian, the checksum is over the twenty bytes before it. A release stores the next count in the
older slot before anything is drawn: a cut in the middle of that leaves the newer slot as it was, a cut after it loses
the release. Blank memory reads 0xFF. Nothing here is secret.
"""

from sensorsim.kernels.checksum import CRC, CRC_SIZE, crc_step
from sensorsim.kernels.formats import BYTE, FLAG, NUMBER

from sensorsim.language import (
    Length,
    Q,
    addu,
    and_,
    geu,
    kernel,
    minu,
    not_,
    or_,
    out,
    selectu,
    shlu,
    shru,
    u32,
    wrapping_subu,
    xor,
)

SLOT_BYTES = 24
CHECKED = 20  # bytes under the checksum
MAGIC_0, MAGIC_1 = 0x53, 0x4A  # "SJ"
VERSION = 1
HEAD = MAGIC_0 + (MAGIC_1 << 8) + (VERSION << 16)
RESERVE_AT, IDENTITY_AT, EPOCH_AT, SPENT_AT = 3, 4, 12, 16
IDENTITY_BYTES = 8
BLANK = 0xFF
# What a slot can be.
SLOT_OTHER, SLOT_BLANK, SLOT_BEGUN, SLOT_GOOD, SLOT_FOREIGN = 0, 1, 2, 3, 4
# What a journal can be, and what it answers to a release.
HOLDS, USED_UP, NEW, DOUBTFUL, BACKWARD = 0, 1, 2, 4, 5
EPOCH, COUNT, NEXT, ALONE = 0, 1, 2, 3  # in what is found: epoch, releases spent, the next slot, is one slot bad

SLOT = Length("slot", 0, 1, "one of the two slots", typical=0, tests=(0, 1))
STATE = Q("slot state", "u32", 0, 0, SLOT_FOREIGN, "what a slot holds: nothing known, blank, begun, good, foreign")
ANSWER = Q("answer", "u32", 0, 0, BACKWARD, "0 it holds, 1 spent, 2 blank, 4 in doubt, 5 the clock ran backward")
RESERVE = Q("reserve", "u32", 0, 1, 255, "releases that one store counts ahead")
MOST = 2**31 - 1  # releases of an epoch
BUDGET = Q("budget", "u32", 0, 1, MOST, "releases that an epoch allows")
COUNTED = Q("counted", "u32", 0, 0, MOST, "releases of an epoch")


@kernel(step="journal")
def equal(a: NUMBER, b: NUMBER) -> FLAG:
    """1 where two numbers are equal.

    Scaling and overflow: there is nothing to overflow.
    """
    return selectu(geu(0, xor(a, b)), 1, 0)


@kernel(step="journal")
def reaches_number(a: NUMBER, b: NUMBER) -> FLAG:
    """1 where a is at least b.

    Scaling and overflow: there is nothing to overflow.
    """
    return selectu(geu(a, b), 1, 0)


@kernel(step="journal")
def number_at(slots: BYTE["48"], place: Length("place", 0, 44, "the first of four bytes")) -> NUMBER:
    """Four bytes as a number, the first the lowest.

    Scaling and overflow: four bytes fill the word and no more.
    """
    low = or_(slots[place], shlu(slots[place + 1], 8))
    high = or_(slots[place + 2], shlu(slots[place + 3], 8))
    return or_(low, shlu(high, 16))


@kernel(step="journal")
def put_number(entry: BYTE["24"], place: Length("place", 0, 20, "the first of four bytes"), value: NUMBER) -> None:
    """A number as four bytes, the lowest first.

    Scaling and overflow: each byte is cut from the word.
    """
    for i in range(4):
        entry[place + i] = and_(shru(value, 8 * i), 255)


@kernel(step="journal")
def write_slot(
    entry: out(BYTE["24"]),
    identity: BYTE["8"],
    crc: CRC,
    reserve: RESERVE,
    epoch: NUMBER,
    spent: NUMBER,
    crc_size: CRC_SIZE,
) -> None:
    """The bytes of a slot, ready to be stored.

    Scaling and overflow: there is nothing to overflow.
    """
    for i in range(24):
        entry[i] = 0
    entry[0] = MAGIC_0
    entry[1] = MAGIC_1
    entry[2] = VERSION
    entry[RESERVE_AT] = reserve
    for i in range(8):
        entry[IDENTITY_AT + i] = identity[i]
    put_number(entry, EPOCH_AT, epoch)
    put_number(entry, SPENT_AT, spent)
    sum = not_(u32(0))
    for i in range(CHECKED):
        sum = crc_step(sum, entry[i], crc, crc_size)
    put_number(entry, CHECKED, not_(sum))


@kernel(step="journal")
def sum_of(
    slots: BYTE["48"], crc: CRC, slot: SLOT, bytes: Length("bytes", 0, 20, "bytes of a slot"), crc_size: CRC_SIZE
) -> NUMBER:
    """The checksum of the first bytes of a slot, before its last step.

    Scaling and overflow: there is nothing to overflow.
    """
    sum = not_(u32(0))
    for i in range(bytes):
        sum = crc_step(sum, slots[24 * slot + i], crc, crc_size)
    return sum


@kernel(step="journal")
def begun(slots: BYTE["48"], identity: BYTE["8"], crc: CRC, slot: SLOT, crc_size: CRC_SIZE) -> FLAG:
    """1 where a slot can be a first write cut short, of this epoch and with nothing spent.

    Memory is blank before, and a write only takes ones away, by the byte, by the bit or by the word. So every one of
    magic, version, identity and checksum that the whole write would leave is still one.

    Scaling and overflow: there is nothing to overflow.
    """
    low = or_(slots[24 * slot], shlu(slots[24 * slot + 1], 8))
    missing = and_(HEAD, not_(or_(low, shlu(slots[24 * slot + 2], 16))))
    for i in range(8):
        missing = or_(missing, and_(identity[i], not_(slots[24 * slot + IDENTITY_AT + i])))
    sum = sum_of(slots, crc, slot, SPENT_AT, crc_size)
    for _ in range(4):
        sum = crc_step(sum, 0, crc, crc_size)
    missing = or_(missing, and_(not_(sum), not_(number_at(slots, 24 * slot + CHECKED))))
    return equal(missing, 0)


@kernel(step="journal")
def slot_state(slots: BYTE["48"], identity: BYTE["8"], crc: CRC, slot: SLOT, crc_size: CRC_SIZE) -> STATE:
    """What one of the two slots holds.

    Good: checksum, magic, version and identity are right. Foreign: the checksum is right and something else is not.
    Blank: every byte is 0xFF. Begun: a first write that was cut short.

    Scaling and overflow: there is nothing to overflow.
    """
    sum = sum_of(slots, crc, slot, CHECKED, crc_size)
    if geu(equal(number_at(slots, 24 * slot + CHECKED), not_(sum)), 1):
        low = or_(slots[24 * slot], shlu(slots[24 * slot + 1], 8))
        differs = xor(or_(low, shlu(slots[24 * slot + 2], 16)), HEAD)
        for i in range(8):
            differs = or_(differs, xor(slots[24 * slot + IDENTITY_AT + i], identity[i]))
        ours = and_(equal(differs, 0), reaches_number(slots[24 * slot + RESERVE_AT], 1))
        return selectu(geu(ours, 1), SLOT_GOOD, SLOT_FOREIGN)
    ones = u32(BLANK)  # bits that are one in every byte
    for i in range(24):
        ones = and_(ones, slots[24 * slot + i])
    state = selectu(geu(begun(slots, identity, crc, slot, crc_size), 1), SLOT_BEGUN, SLOT_OTHER)
    return selectu(geu(ones, BLANK), SLOT_BLANK, state)


@kernel(step="journal")
def later(slots: BYTE["48"]) -> FLAG:
    """1 where slot 1 was written after slot 0: its epoch is later, or the same and more is spent.

    Scaling and overflow: there is nothing to overflow.
    """
    first = number_at(slots, EPOCH_AT)
    second = number_at(slots, SLOT_BYTES + EPOCH_AT)
    more = reaches_number(number_at(slots, SLOT_BYTES + SPENT_AT), number_at(slots, SPENT_AT))
    return selectu(geu(equal(first, second), 1), more, reaches_number(second, first))


@kernel(step="journal")
def follows(slots: BYTE["48"], newer: SLOT, older: SLOT) -> FLAG:
    """1 where the newer slot can have been written right after the older one.

    In one epoch a store counts up by 1 to its reserve; the first of an epoch starts at 0; both slots of a new journal
    say 0. Anything else is no history of this journal: a slot was put back, or belongs to another device.

    Scaling and overflow: a difference below zero wraps to more than any reserve, and is refused as it should be.
    """
    reserve = u32(slots[24 * newer + RESERVE_AT])
    spent = number_at(slots, 24 * newer + SPENT_AT)
    before = number_at(slots, 24 * older + SPENT_AT)
    same_epoch = equal(number_at(slots, 24 * newer + EPOCH_AT), number_at(slots, 24 * older + EPOCH_AT))
    step = selectu(geu(same_epoch, 1), wrapping_subu(spent, before), spent)
    stepped = and_(reaches_number(step, 1), reaches_number(reserve, step))
    both_new = and_(same_epoch, equal(or_(spent, before), 0))
    return or_(stepped, both_new)


@kernel(step="journal")
def read_journal(slots: BYTE["48"], identity: BYTE["8"], crc: CRC, found: NUMBER["4"], crc_size: CRC_SIZE) -> ANSWER:
    """What the two slots say together: 0 the journal holds, 2 it is blank, 4 it is in doubt.

    `found` is the epoch, the releases spent in it, the slot to write next and whether that slot is bad, where it holds.
    One good slot beside one that a power cut tore holds; since the bad one may have been the newer, a sensor that is
    opened on it counts on before anything else. One slot begun and one blank are a first write cut short, and count as
    blank. A slot of another table, two that are no history of one journal, and two of which neither is good are a
    reason to stay closed.

    Scaling and overflow: there is nothing to overflow.
    """
    first = slot_state(slots, identity, crc, 0, crc_size)
    second = slot_state(slots, identity, crc, 1, crc_size)
    if geu(or_(equal(first, SLOT_FOREIGN), equal(second, SLOT_FOREIGN)), 1):
        return u32(DOUBTFUL)
    one = equal(first, SLOT_GOOD)
    two = equal(second, SLOT_GOOD)
    if geu(0, or_(one, two)):
        blanks = addu(equal(first, SLOT_BLANK), equal(second, SLOT_BLANK))
        begun = addu(equal(first, SLOT_BEGUN), equal(second, SLOT_BEGUN))
        new = and_(reaches_number(blanks, 1), equal(addu(blanks, begun), 2))
        return selectu(geu(new, 1), NEW, DOUBTFUL)
    both = and_(one, two)
    found[ALONE] = xor(both, 1)
    use_second = selectu(geu(both, 1), later(slots), two)
    if geu(use_second, 1):
        found[EPOCH] = number_at(slots, SLOT_BYTES + EPOCH_AT)
        found[COUNT] = number_at(slots, SLOT_BYTES + SPENT_AT)
        found[NEXT] = 0
        history = follows(slots, 1, 0)
    else:
        found[EPOCH] = number_at(slots, EPOCH_AT)
        found[COUNT] = number_at(slots, SPENT_AT)
        found[NEXT] = 1
        history = follows(slots, 0, 1)
    return selectu(geu(and_(both, xor(history, 1)), 1), DOUBTFUL, HOLDS)


@kernel(step="journal")
def spend(found: NUMBER["4"], entry: COUNTED["2"], now: NUMBER, budget: BUDGET, reserve: RESERVE) -> ANSWER:
    """What to store before a release: 0 and the counts, 1 where the epoch's budget is spent, 5 for a clock gone back.

    `entry` is how many releases of this epoch are spent already and how many the store must say. A new epoch starts at
    0; the last store of an epoch stops at the budget.

    Scaling and overflow: what is spent is taken as no more than the budget, below 2^31, and a reserve is at most 255.
    """
    if geu(now, found[EPOCH]):
        this_epoch = equal(now, found[EPOCH])
        spent = minu(selectu(geu(this_epoch, 1), found[COUNT], 0), budget)
        entry[0] = spent
        entry[1] = minu(addu(spent, reserve), budget)
        return selectu(geu(spent, budget), USED_UP, HOLDS)
    return u32(BACKWARD)
