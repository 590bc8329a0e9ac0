"""Kernels with a record and a board, for tests: a counter that is kept in two bytes of memory."""

from sensorsim.language import Port, Q, addu, and_, board, geu, kernel, minu, or_, out, selectu, shlu, shru, struct, u32

BYTE = Q("byte", "u8", 0, 0, 255, "a byte")
SECRET = Q("secret", "u8", 0, 0, 255, "a secret byte", secret=True)
COUNT = Q("count", "u32", 0, 0, 65535, "a count")
FAILED = Q("failed", "u32", 0, 0, 2**32 - 1, "0, or anything else where it failed")
SLOT = Q("slot", "u32", 0, 0, 1, "a slot")

LOAD = Port("load", (SLOT,), out(BYTE["2"]), FAILED, "read two bytes")
STORE = Port("store", (SLOT,), BYTE["2"], FAILED, "write two bytes")
DRAW = Port("draw", (), out(SECRET["4"]), FAILED, "fill with entropy")
TIME = Port("time", (), None, COUNT, "what time it is", fails=False)

METER = struct(
    "meter",
    port=(board(LOAD, STORE, DRAW, TIME), "the board"),
    count=(COUNT, "what was counted"),
    bytes=(BYTE["4"], "memory at work"),
    seed=(SECRET["4"], "entropy"),
)


@kernel()
def read_count(meter: METER) -> FAILED:
    """Read the count of slot 1 into the record. Scaling and overflow: two bytes fill 16 bits."""
    failed = meter.port.load(1, meter.bytes[2:4])
    if geu(failed, 1):
        return u32(failed)
    meter.count = or_(meter.bytes[2], shlu(meter.bytes[3], 8))
    return u32(0)


@kernel()
def count_once(meter: METER, most: COUNT) -> FAILED:
    """Count one more, up to `most`, and store it. Scaling and overflow: the count stops at `most`."""
    failed = read_count(meter)
    if geu(failed, 1):
        return u32(failed)
    now = meter.port.time()
    more = minu(addu(meter.count, selectu(geu(now, 1), 1, 0)), most)
    meter.count = more
    meter.bytes[0] = and_(more, 255)
    meter.bytes[1] = shru(more, 8)
    stored = meter.port.store(1, meter.bytes[0:2])
    return u32(stored)


@kernel()
def seed(meter: METER) -> FAILED:
    """Fill the seed. Scaling and overflow: there is nothing to overflow."""
    failed = meter.port.draw(meter.seed[0:4])
    return u32(failed)
