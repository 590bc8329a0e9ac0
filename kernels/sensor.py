"""The sensor: what it does from reset to reset, over the four things that only its board can do.

    open_sensor     seed the generator under the health tests, read the journal, begin one on blank memory
    count_release   take one release off the budget, in the journal first; what it counts may then be drawn
    left            releases that the budget still allows
    close_sensor    forget the key

A release is counted before it is drawn, so a power cut can lose one and cannot repeat one. Where anything is in doubt
the sensor stays closed. Nothing but the key, the entropy and the words made of it is secret here, and none of them
decides what is done: whether the entropy passes its tests is what `open_sensor` answers.
"""

from sensorsim.kernels.checksum import CRC, CRC_SIZE
from sensorsim.kernels.formats import BYTE, FLAG, NUMBER, SECRET_FLAG, SEED, WORD32
from sensorsim.kernels.generator import absorb
from sensorsim.kernels.health import HEALTH, NO_BYTE, watch, watch_patterns
from sensorsim.kernels.journal import (
    ALONE,
    BUDGET,
    COUNT,
    COUNTED,
    EPOCH,
    MOST,
    NEW,
    NEXT,
    RESERVE,
    equal,
    reaches_number,
    read_journal,
    spend,
    write_slot,
)

from sensorsim.language import (
    Length,
    Port,
    Q,
    addu,
    and_,
    board,
    geu,
    kernel,
    minu,
    or_,
    out,
    selectu,
    shlu,
    struct,
    subu,
    u32,
    xor,
)

# What a call answers; those of the journal are among them.
OK, SPENT, NO_ENTROPY, NO_STORE, BAD_JOURNAL, BAD_CLOCK, NOT_OPEN = range(7)
STATUS = Q("status", "u32", 0, OK, NOT_OPEN, "0 ok, 1 spent, 2 no entropy, 3 no store, 4 bad journal, 5 bad clock")
USED = Q("used", "u32", 0, 0, MOST + 1, "releases of an epoch, with the one that is made")
FAILED = Q("failed", "u32", 0, 0, 2**32 - 1, "0, or anything else where it failed")
WHICH = Q("slot", "u32", 0, 0, 1, "one of the two slots")

ENTROPY = Port("entropy", (), out(SEED["32"]), FAILED, "fill the bytes from a true random generator")
LOAD = Port("load", (WHICH,), out(BYTE["24"]), FAILED, "read a slot of non-volatile memory; blank memory reads 0xFF")
STORE = Port("store", (WHICH,), BYTE["24"], FAILED, "write a slot, and return when it would survive a power cut")
CLOCK = Port("epoch", (), None, NUMBER, "number of the budget period by the board's clock", fails=False)

SENSOR = struct(
    "sensor",
    open=(NUMBER, "whether it is open"),
    port=(board(ENTROPY, LOAD, STORE, CLOCK), "the board"),
    epoch=(NUMBER, "of the journal, as it was last seen"),
    spent=(COUNTED, "releases of the epoch that the journal has counted"),
    used=(USED, "of these, how many were drawn"),
    key=(WORD32["8"], "of the generator; replaced by every block"),
    state=(WORD32["16"], "the generator at work"),
    block=(WORD32["16"], "the generator at work"),
    health=(HEALTH["6"], "counts of the entropy's tests"),
    recent=(WORD32["8"], "the last of the entropy, for its tests; zeros outside of open"),
    found=(NUMBER["4"], "what the journal says"),
    entry=(COUNTED["2"], "what is stored next"),
    slots=(BYTE["48"], "the journal at work"),
    bytes=(SEED["32"], "entropy at work; zeros outside of open"),
)


@kernel(lasting=True)
def wipe(words: out(WORD32["count"]), count: Length("count", 1, 4096, "words", typical=8)) -> None:
    """Zero words that nobody reads again.

    Scaling and overflow: there is nothing to overflow.
    """
    for i in range(count):
        words[i] = 0


@kernel(lasting=True)
def wipe_bytes(bytes: out(SEED["count"]), count: Length("count", 1, 4096, "bytes", typical=32)) -> None:
    """Zero bytes that nobody reads again.

    Scaling and overflow: there is nothing to overflow.
    """
    for i in range(count):
        bytes[i] = 0


@kernel(lasting=True)
def settle_key(key: WORD32["8"]) -> None:
    """Let the key be in memory, where the key before it was, and not in registers alone.

    Scaling and overflow: there is nothing to overflow.
    """
    for i in range(8):
        key[i] = key[i]


@kernel(step="sensor")
def settle(sensor: SENSOR) -> None:
    """Leave nothing of the generator's work in memory but its key.

    Scaling and overflow: there is nothing to overflow.
    """
    settle_key(sensor.key)
    wipe(sensor.state, 16)
    wipe(sensor.block, 16)


@kernel(step="sensor")
def close_sensor(sensor: SENSOR) -> None:
    """Forget the key; the journal stays.

    Scaling and overflow: there is nothing to overflow.
    """
    sensor.open = 0
    wipe(sensor.key, 8)


@kernel(step="health")
def word_of(bytes: SEED["32"], place: Length("place", 0, 7, "a word of the bytes")) -> WORD32:
    """Return four bytes as a word, the first the lowest.

    Scaling and overflow: four bytes fill the word and no more.
    """
    low = or_(bytes[4 * place], shlu(bytes[4 * place + 1], 8))
    high = or_(bytes[4 * place + 2], shlu(bytes[4 * place + 3], 8))
    return or_(low, shlu(high, 16))


@kernel(step="health")
def put_aside(bytes: SEED["32"], block: WORD32["16"]) -> None:
    """Keep the bytes in the first half of `block`, and clear them.

    Scaling and overflow: there is nothing to overflow.
    """
    for i in range(8):
        block[i] = word_of(bytes, i)
    for i in range(32):
        bytes[i] = 0


@kernel(step="health")
def is_stale(bytes: SEED["32"], block: WORD32["16"]) -> SECRET_FLAG:
    """Return 1 where the bytes are those that were put aside: a buffer that nobody filled.

    Scaling and overflow: there is nothing to overflow.
    """
    differ = u32(0)
    for i in range(8):
        differ = or_(differ, xor(block[i], word_of(bytes, i)))
    return selectu(geu(0, differ), 1, 0)


@kernel(exposes={"result": "whether the entropy is taken is what opening a sensor answers"})
def judge(alarm: SECRET_FLAG) -> STATUS:
    """Return what the tests of the entropy come to.

    Scaling and overflow: there is nothing to overflow.
    """
    return selectu(geu(alarm, 1), NO_ENTROPY, OK)


@kernel(step="health")
def gather(sensor: SENSOR) -> STATUS:
    """Make a key of 1,024 bytes of entropy, all of which must pass the tests.

    Scaling and overflow: flags are 0 or 1.
    """
    alarm = u32(0)
    for _ in range(32):
        put_aside(sensor.bytes, sensor.block)
        failed = sensor.port.entropy(sensor.bytes[0:32])
        if geu(failed, 1):
            return u32(NO_ENTROPY)
        alarm = or_(alarm, is_stale(sensor.bytes, sensor.block))
        counts = watch(sensor.bytes, sensor.health, 32)
        patterns = watch_patterns(sensor.bytes, sensor.recent)
        alarm = or_(alarm, or_(counts, patterns))
        absorb(sensor.key, sensor.bytes, sensor.state, sensor.block)
    return judge(alarm)


@kernel(step="health", apart=True)
def seed(sensor: SENSOR) -> STATUS:
    """Make a new key from the board's entropy, and leave nothing else of it in memory.

    Scaling and overflow: there is nothing to overflow.
    """
    wipe(sensor.key, 8)
    wipe(sensor.recent, 8)
    wipe(sensor.health, 6)
    wipe_bytes(sensor.bytes, 32)
    sensor.health[0] = NO_BYTE
    status = gather(sensor)
    wipe_bytes(sensor.bytes, 32)
    wipe(sensor.health, 6)
    wipe(sensor.recent, 8)
    settle(sensor)
    return status


@kernel(step="journal")
def load_journal(sensor: SENSOR, identity: BYTE["8"], crc: CRC, crc_size: CRC_SIZE) -> STATUS:
    """Read both slots and say what they hold together, as `read_journal` does; 3 where they cannot be read.

    Scaling and overflow: there is nothing to overflow.
    """
    first = sensor.port.load(0, sensor.slots[0:24])
    second = sensor.port.load(1, sensor.slots[24:48])
    if geu(or_(first, second), 1):
        return u32(NO_STORE)
    answer = read_journal(sensor.slots, identity, crc, sensor.found, crc_size)
    return answer


@kernel(step="journal")
def compare_halves(slots: BYTE["48"]) -> STATUS:
    """Return 0 where both halves are alike, what was stored and what was read back, else 3.

    Scaling and overflow: there is nothing to overflow.
    """
    differ = u32(0)
    for i in range(24):
        differ = or_(differ, xor(slots[i], slots[24 + i]))
    return selectu(geu(0, differ), OK, NO_STORE)


@kernel(step="journal")
def store_entry(
    sensor: SENSOR,
    identity: BYTE["8"],
    crc: CRC,
    slot: WHICH,
    epoch: NUMBER,
    spent: NUMBER,
    reserve: RESERVE,
    crc_size: CRC_SIZE,
) -> STATUS:
    """Write one slot and read it back: worn memory may take a write and not keep it.

    Scaling and overflow: there is nothing to overflow.
    """
    write_slot(sensor.slots, identity, crc, reserve, epoch, spent, crc_size)
    failed = sensor.port.store(slot, sensor.slots[0:24])
    if geu(failed, 1):
        return u32(NO_STORE)
    unread = sensor.port.load(slot, sensor.slots[24:48])
    if geu(unread, 1):
        return u32(NO_STORE)
    return compare_halves(sensor.slots)


@kernel(step="journal")
def start(
    sensor: SENSOR, identity: BYTE["8"], crc: CRC, budget: BUDGET, reserve: RESERVE, crc_size: CRC_SIZE
) -> STATUS:
    """Read the journal, and begin one on blank memory.

    Where one slot is bad it may have been the newer one: what it may have counted is counted.

    Scaling and overflow: what is known of the releases spent is no more than the budget.
    """
    answer = load_journal(sensor, identity, crc, crc_size)
    if geu(equal(answer, NO_STORE), 1):
        return u32(NO_STORE)
    now = sensor.port.epoch()
    status = u32(OK)
    if geu(equal(answer, NEW), 1):
        sensor.found[EPOCH] = now
        sensor.found[COUNT] = 0
        status = store_entry(sensor, identity, crc, 0, now, 0, reserve, crc_size)
        if geu(0, status):
            status = store_entry(sensor, identity, crc, 1, now, 0, reserve, crc_size)
    else:
        if geu(answer, 1):
            return u32(BAD_JOURNAL)
        if geu(now, sensor.found[EPOCH]):
            if geu(sensor.found[ALONE], 1):
                more = spend(sensor.found, sensor.entry, now, budget, reserve)
                if geu(0, more):
                    slot = and_(sensor.found[NEXT], 1)
                    status = store_entry(sensor, identity, crc, slot, now, sensor.entry[1], reserve, crc_size)
                    sensor.found[EPOCH] = now
                    sensor.found[COUNT] = sensor.entry[1]
        else:
            return u32(BAD_CLOCK)
    spent = minu(sensor.found[COUNT], budget)
    sensor.epoch = sensor.found[EPOCH]
    sensor.spent = spent
    sensor.used = spent
    return status


@kernel(step="sensor")
def open_sensor(
    sensor: SENSOR, identity: BYTE["8"], crc: CRC, budget: BUDGET, reserve: RESERVE, crc_size: CRC_SIZE
) -> STATUS:
    """Seed the generator and read the journal; on anything but 0 the sensor is closed.

    Scaling and overflow: there is nothing to overflow.
    """
    close_sensor(sensor)
    status = seed(sensor)
    if geu(0, status):
        status = start(sensor, identity, crc, budget, reserve, crc_size)
    if geu(status, 1):
        close_sensor(sensor)
    return status


@kernel(step="journal")
def is_behind(sensor: SENSOR, epoch: NUMBER, spent: COUNTED) -> FLAG:
    """Return 1 where a journal says less than the sensor knows: it was put back to an earlier state.

    Scaling and overflow: there is nothing to overflow.
    """
    if geu(epoch, sensor.epoch):
        if geu(sensor.epoch, epoch):
            return xor(reaches_number(spent, sensor.spent), 1)
        return u32(0)
    return u32(1)


@kernel(step="journal")
def count_more(
    sensor: SENSOR,
    identity: BYTE["8"],
    crc: CRC,
    now: NUMBER,
    budget: BUDGET,
    reserve: RESERVE,
    crc_size: CRC_SIZE,
) -> STATUS:
    """Count a release in the journal, and some ahead, before anything is drawn.

    A journal that says more than the sensor knows was counted on by another sensor.

    Scaling and overflow: what is known of the releases spent is no more than the budget.
    """
    answer = load_journal(sensor, identity, crc, crc_size)
    epoch = u32(sensor.found[EPOCH])
    spent = minu(sensor.found[COUNT], budget)
    if geu(or_(answer, is_behind(sensor, epoch, spent)), 1):
        if geu(equal(answer, NO_STORE), 1):
            return u32(NO_STORE)
        close_sensor(sensor)
        return u32(BAD_JOURNAL)
    if geu(or_(xor(epoch, sensor.epoch), xor(spent, sensor.spent)), 1):
        sensor.epoch = epoch
        sensor.spent = spent
        sensor.used = spent
    status = spend(sensor.found, sensor.entry, now, budget, reserve)
    if geu(0, status):
        slot = and_(sensor.found[NEXT], 1)
        status = store_entry(sensor, identity, crc, slot, now, sensor.entry[1], reserve, crc_size)
        if geu(0, status):
            sensor.epoch = now
            sensor.used = addu(sensor.entry[0], 1)
            sensor.spent = sensor.entry[1]
    return status


@kernel(step="sensor")
def count_release(
    sensor: SENSOR, identity: BYTE["8"], crc: CRC, budget: BUDGET, reserve: RESERVE, crc_size: CRC_SIZE
) -> STATUS:
    """Take one release off the budget: one of those counted ahead, or one that is counted in the journal now.

    Scaling and overflow: releases that are used are at most one more than those counted.
    """
    now = sensor.port.epoch()
    epoch = u32(sensor.epoch)
    if geu(epoch, now):
        if geu(now, epoch):
            used = addu(sensor.used, 1)
            if geu(sensor.spent, used):
                sensor.used = used
                return u32(OK)
        else:
            return u32(BAD_CLOCK)
    status = count_more(sensor, identity, crc, now, budget, reserve, crc_size)
    return status


@kernel(step="sensor")
def left(sensor: SENSOR, budget: BUDGET) -> COUNTED:
    """Return how many releases the budget still allows in this epoch, as far as the sensor knows.

    Scaling and overflow: what is used is taken as no more than the budget.
    """
    now = sensor.port.epoch()
    if geu(sensor.epoch, now):
        if geu(now, sensor.epoch):
            return subu(budget, minu(sensor.used, budget))
        return u32(0)
    return budget
