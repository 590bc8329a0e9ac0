"""The self-test of a sensor on an emulated core: it passes for every kind of sensor, and sees what is broken."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from test_sensor_c import NAMES, SLOW, firmware

from sensorsim._util.files import fill
from sensorsim.codegen.golden import golden_vectors, kernel_selftest, sensor_selftest
from sensorsim.codegen.sensor_package import SensorCode
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.targets import TARGETS, compile_elf

TABLE, COUNTS, PACKET, JOURNAL, BUDGET = 0x10001, 0x10002, 0x10010, 0x10020, 0x10021
DAMAGE, ENTROPY, WEAR = 0x10023, 0x10025, 0x10026
Change = Callable[[dict[str, str]], None]


def files(name: str) -> dict[str, str]:
    code = SensorCode(firmware(name))
    vectors = golden_vectors(code.kernels)
    return code.sources("") | sensor_selftest(code) | kernel_selftest(vectors, code.names)


def selftest(texts: dict[str, str], folder: Path, *options: str) -> int:
    fill(folder, texts)
    target = TARGETS["cortex-m0plus"]
    sources = [*sorted((folder / "src").glob("*.c")), *sorted((folder / "test").glob("*.c"))]
    include = [folder / part for part in ("include", "src", "test")]
    program = compile_elf(target, sources, include, "ss_selftest", folder / "test.elf", options)
    return Machine(target, read_elf(program.read_bytes())).call("ss_selftest", [])


@pytest.mark.parametrize("name", [*NAMES, *SLOW])
def test_every_sensor_passes_its_self_test(name: str, tmp_path: Path) -> None:
    assert selftest(files(name), tmp_path) == 0


@pytest.mark.parametrize("options", [("-DSS_BUDGET=1",), ("-DSS_BUDGET=3", "-DSS_RESERVE=2"), ("-DSS_RESERVE=255",)])
def test_it_passes_with_a_smaller_budget_and_another_reserve(options: tuple[str, ...], tmp_path: Path) -> None:
    assert selftest(files("rows"), tmp_path, *options) == 0


def replaced(path: str, old: str, new: str) -> Change:
    def change(texts: dict[str, str]) -> None:
        assert texts[path].count(old) >= 1, (path, old)
        texts[path] = texts[path].replace(old, new, 1)

    return change


def another_entry(texts: dict[str, str]) -> None:
    """One threshold of the table, three more."""
    path = "src/ss_tables.c"
    start = texts[path].index("ss_noise_table[")
    found = re.compile(r"(\d+)U,").search(texts[path], texts[path].index("{", start))
    assert found is not None
    texts[path] = texts[path][: found.start(1)] + str(int(found[1]) + 3) + texts[path][found.end(1) :]


def without_its_hash(texts: dict[str, str]) -> None:
    another_entry(texts)
    texts["test/ss_selftest.c"] = re.sub(r"hash\(\) != 0x\w+U", "hash() == 0U", texts["test/ss_selftest.c"])


DRAW, KERNELS = "src/ss_sensor_draw.h", "src/ss_sensor_kernels.h"
BROKEN = {
    "a table entry": (another_entry, {TABLE}),
    "a table entry and the hash": (without_its_hash, {COUNTS}),
    "the packet's head": (replaced(DRAW, "ss_pack_head(packet, ", "ss_pack_head(packet, 0x1U ^ "), {PACKET}),
    "a key that is not replaced": (
        replaced("src/ss_generator.h", "key[i] = block[i];", "key[i] = key[i] ^ (block[i] & 0U);"),
        set(range(1, 200)) | {PACKET, PACKET + 1},
    ),
    "a count that is not stored": (
        replaced(KERNELS, "status = ss_store_entry(sensor, identity, crc, slot, now, sensor->entry[1U], reserve,\n"
                 "                                crc_size);\n        if", "status = slot & 0U;\n        if"),
        {JOURNAL, *range(PACKET, PACKET + 9)},
    ),
    "a budget of one more": (replaced(KERNELS, "uint32_t status = ss_spend(sensor->found, sensor->entry, now, budget,",
                                      "uint32_t status = ss_spend(sensor->found, sensor->entry, now, budget + 1U,"),
                             {BUDGET}),
    "entropy that is not tested": (replaced(KERNELS, "return ss_judge(alarm);", "return ss_judge(alarm & 0U);"),
                                   {ENTROPY}),
    "no reading back": (
        replaced(KERNELS, "differ = differ | ((uint32_t)slots[i] ^ (uint32_t)slots[24U + i]);",
                 "differ &= slots[i] & 0U;"),
        {WEAR},
    ),
    "doubt that opens": (replaced(KERNELS, "if (answer != 0U) {\n            return SS_BAD_JOURNAL_;\n        }",
                                  "if (answer > 6U) {\n            return SS_BAD_JOURNAL_;\n        }"), {DAMAGE}),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_seen(what: str, tmp_path: Path) -> None:
    change, expected = BROKEN[what]
    texts = files("rows")
    change(texts)
    assert selftest(texts, tmp_path) in expected
