"""The self-test of a sensor: what it expects of the table and of packets, worked out by the firmware model."""

from collections.abc import Callable, Sequence
from zlib import crc32

from sensorsim.codegen.sensor import SensorCode
from sensorsim.codegen.write import template
from sensorsim.device.firmware import Firmware
from sensorsim.device.running import plain
from sensorsim.device.sensor import Clock, Sensor
from sensorsim.device.status import Status
from sensorsim.language.c.comments import with_prefix
from sensorsim.language.c.declarations import array
from sensorsim.noise.noise_table import NoiseTable

PACKETS, REOPENED, FIRST_EPOCH = 8, 4, 100
START = 2463534242  # of the test board's xorshift32
HASH = """
/* CRC-32 of the table, its bytes in the order of little-endian memory, and of the constants that go with it. */
static uint32_t crc_of(uint32_t sum, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0U; i < (8U * bytes); i++) {
        const uint32_t bit = (sum ^ (value >> i)) & 1U;
        sum = (sum >> 1) ^ ((bit != 0U) ? 0xEDB88320U : 0U);
    }
    return sum;
}

static uint32_t hash(void)
{
    uint32_t sum = 0xFFFFFFFFU;
@ENTRIES@@CONSTANTS@    return ~sum;
}
"""
THRESHOLDS = """
/* How often each symbol is drawn in each row, from the thresholds: as certified, and in no larger ratio. */
static bool counts(void)
{
@EXPECTED@    bool right = true;
    for (uint32_t symbol = 0U; symbol < @SYMBOLS@U; symbol++) {
        uint32_t least = 0xFFFFFFFFU;
        uint32_t most = 0U;
        for (uint32_t row = 0U; row < @ROWS@U; row++) {
            const uint32_t at = (row * @CUTS@U) + symbol;
            const uint32_t upper = (symbol < @CUTS@U) ? (uint32_t)ss_noise_table[at] : 0x10000U;
            const uint32_t lower = (symbol > 0U) ? (uint32_t)ss_noise_table[at - 1U] : 0U;
            const uint32_t count = upper - lower;
            right = right && (count == (uint32_t)expected[(row * @SYMBOLS@U) + symbol]);
            least = (count < least) ? count : least;
            most = (count > most) ? count : most;
        }
        right = right && (most <= 0xFFFFU) && (least <= 0xFFFFU) && ((most * @DENOMINATOR@U) <= (least * @NUMERATOR@U));
    }
    return right;
}
"""
HISTOGRAM = """
/* How often each value stands in each row of the table: as certified. */
static bool counts(void)
{
@EXPECTED@    bool right = true;
    for (uint32_t row = 0U; row < @ROWS@U; row++) {
        for (uint32_t value = 0U; value < @VALUES@U; value++) {
            uint32_t count = 0U;
            for (uint32_t i = 0U; i < @ENTRIES@U; i++) {
                const int32_t entry = (int32_t)ss_noise_table[(row * @ENTRIES@U) + i];
                count += (entry == ((int32_t)value + (@LEAST@))) ? 1U : 0U;
            }
            right = right && (count == (uint32_t)expected[(row * @VALUES@U) + value]);
        }
    }
    return right;
}
"""
CHECK = """
static uint32_t table(void)
{
    uint32_t wrong = 0U;
    if (hash() != @HASH@U) {
        wrong = SS_SELFTEST_TABLE;
    }@MORE@
    return wrong;
}
"""
COUNTED = " else if (!counts()) {\n        wrong = SS_SELFTEST_COUNTS;\n    } else {\n        /* as certified */\n    }"


def sensor_selftest(code: SensorCode, banner: str) -> dict[str, str]:
    """test/ss_selftest.c and .h; the kernels' golden vectors are in files of their own."""
    prefix = code.prefix
    packets = expected_packets(code.firmware)
    rows = ",\n".join("        { " + ", ".join(f"0x{byte:02X}U" for byte in one) + " }" for one in packets)
    width = f"{prefix}PACKET_BYTES".upper()
    fill = {
        "PACKETS": str(PACKETS),
        "TABLE_CHECKS": table_checks(code),
        "EXPECTED": f"    static const uint8_t expected[PACKETS][{width}] = {{\n{rows}\n    }};\n",
    }
    return {
        f"test/{prefix}selftest.c": banner + template("sensor/test/ss_selftest.c", prefix, fill),
        f"test/{prefix}selftest.h": banner + template("sensor/test/ss_selftest.h", prefix),
    }


def expected_packets(firmware: Firmware) -> list[bytes]:
    """One release in each epoch, a reset half way, with the entropy of the test's board."""
    clock, entropy = Clock(FIRST_EPOCH), xorshift32(START)
    sensor = Sensor(firmware, entropy=entropy, epoch=clock, runs=plain)
    made = []
    for number in range(PACKETS):
        if number in (0, REOPENED):
            opened = sensor.open()
            assert opened == Status.OK, opened
        status, packet = sensor.release([(2741 * i + 9973 * number) & 0x7FFF for i in range(firmware.n)])
        assert status == Status.OK, status
        made.append(packet)
        clock.epoch += 1
    return made


def xorshift32(state: int) -> Callable[[int], bytes]:
    """The entropy of the test's board: known bytes for known packets, never for real ones."""

    def entropy(count: int) -> bytes:
        nonlocal state
        made = bytearray()
        for _ in range(count):
            state ^= state << 13 & 0xFFFFFFFF
            state ^= state >> 17
            state ^= state << 5 & 0xFFFFFFFF
            made.append(state >> 24)
        return bytes(made)

    return entropy


def table_checks(code: SensorCode) -> str:
    """C that compares the table in the device's memory with what was certified."""
    table, values = code.firmware.table, code.noise.table.values
    size = int(code.noise.table.storage[1:]) // 8
    entries = constants = ""
    data = b""
    if values:
        mask = f" & 0x{2 ** (8 * size) - 1:X}U" if size < 4 else ""
        entries = (
            f"    for (uint32_t i = 0U; i < {len(values)}U; i++) {{\n"
            f"        sum = crc_of(sum, (uint32_t)ss_noise_table[i]{mask}, {size}U);\n    }}\n"
        )
        data += b"".join((value % 2 ** (8 * size)).to_bytes(size, "little") for value in values)
    for name, value in code.noise.table.constants:
        plain = "SS_" + name.removeprefix(code.prefix.upper())
        constants += f"    sum = crc_of(sum, (uint32_t){plain}, 4U);\n"
        data += (value % 2**32).to_bytes(4, "little")
    counted = _counts(table)
    text = HASH.replace("@ENTRIES@", entries).replace("@CONSTANTS@", constants) + counted
    text += CHECK.replace("@HASH@", f"0x{crc32(data):08X}").replace("@MORE@", COUNTED if counted else "")
    return with_prefix(text, code.prefix)


def _counts(table: NoiseTable) -> str:
    found = table.stored_counts()
    if found is None:
        return ""  # one bit: two constants, which the hash covers
    rows, values = found.rows, len(found.rows[0])
    fill: dict[str, object] = {"EXPECTED": _expected(rows), "ROWS": len(rows)}
    if not found.sums:
        return _filled(HISTOGRAM, {**fill, "VALUES": values, "ENTRIES": sum(rows[0]), "LEAST": found.least})
    ratio = table.certify().ratio
    assert ratio is not None
    fill |= {"SYMBOLS": values, "CUTS": values - 1, "NUMERATOR": ratio.numerator, "DENOMINATOR": ratio.denominator}
    return _filled(THRESHOLDS, fill)


def _expected(rows: Sequence[Sequence[int]]) -> str:
    flat = [count for row in rows for count in row]
    text = array("expected", "u16", flat, str(len(flat)), "static const ")
    return "".join(f"    {line}\n" for line in text.rstrip("\n").split("\n"))


def _filled(text: str, fill: dict[str, object]) -> str:
    for key, value in fill.items():
        text = text.replace(f"@{key}@", str(value))
    return text
