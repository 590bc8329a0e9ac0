"""A customer's compiler and image: any linked ELF is run where it lies, its core is known, and tampering is found."""

import json
import re
import shutil
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from exported import BOARDS, export, need, refresh, run
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorsim import verify as proved
from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import fill
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.sensor_package import SensorCode
from sensorsim.codegen.write import write_folder
from sensorsim.commands.verify import Symbol, binary_text
from sensorsim.costing.prices import load_cpu
from sensorsim.device.firmware import Firmware
from sensorsim.encoders import read_encoder
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import find
from sensorsim.machine import compilers
from sensorsim.machine.compilers import OwnCompiler
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import MOST_BYTES, identify_core, read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS
from sensorsim.noise.noise_table import certified, make_table, ready_table
from sensorsim.noise.table_file import table_bytes, write_table
from sensorsim.verification import binary, sensor_draws
from sensorsim.verification.bits import Effort
from sensorsim.verification.package_checks import read_tables
from sensorsim.verification.sensor_draws import draw_proof, packets_differ
from sensorsim.verification.sensor_life import SensorBuild
from sensorsim.verification.sensor_timing import leftovers

ENCODER = Path(__file__).parents[2] / "tables" / "encoders" / "default.json"
ZIG = f"{sys.executable} -m ziglang cc"
CLANG_M4 = f"{ZIG} -target thumb-freestanding-eabi -mcpu=cortex_m4 -O2"
CLANG_M0 = f"{ZIG} -target thumb-freestanding-eabi -mcpu=cortex_m0plus -O2"
CLANG_RV = f"{ZIG} -target riscv32-freestanding-none -mcpu=generic_rv32+m+c -O2"
ARM_GCC = "arm-none-eabi-gcc -mthumb -Os"
RISCV_GCC = "riscv64-unknown-elf-gcc -ffreestanding -mabi=ilp32 -march=rv32imc -Os"
PIECES = ("-ffunction-sections", "-fdata-sections")
PACKETS = binary.PACKETS
SMALL = Effort(400, 400, 64, 40)


def light_package(folder, epsilon=1.6, budget="8", table=None):
    """A sensor's package without what only documents it: a full export takes half a minute."""
    firmware = Firmware(table or ready_table(epsilon, 1), budget_epsilon=budget)
    code = SensorCode(firmware, "ss_", "table.txt")
    table = table_bytes(replace(firmware.table, certificate=firmware.certificate)).decode("ascii")
    fill(folder, code.sources("") | {"hospital/table.txt": table, "MANIFEST.json": "{}"})
    given = {"asked": [], "variant": "lean", "noise": "table.txt", "encoder": None, "sketch": None}
    given |= {"budget_epsilon": budget, "budget_days": None, "reserve": None, "packet_numbers": [], "prefix": "ss_"}
    given |= {"spdx": "MIT", "allow_uncertified": False}
    manifest = {"private": True, "parameters": given, "noise_table": code.noise.record}
    return Package(folder, manifest, tuple(code.kernels))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few packets, but where they are what is tested."""
    monkeypatch.setattr(binary, "PACKETS", 100)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return light_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def opened(package, monkeypatch):
    """`open_package` gives the light package, which lacks files that export writes."""
    monkeypatch.setattr(binary, "open_package", lambda folder, trust=False: package)
    monkeypatch.setattr(binary, "differences", lambda package: [])
    return package


def link(command, sources, include, out, script="application.ld", more=()):
    """An application as its makers link it."""
    words = command.split()
    libraries = ["-lgcc"] if "gcc" in words[0] else []
    libraries = ["-lc", *libraries] if words[0].startswith("arm") else libraries
    folders = [f"-I{folder}" for folder in include]
    run(*words, *PIECES, "-nostdlib", "-Wl,--gc-sections", "-Wl,--entry=main_loop", "-T", BOARDS / script, *folders,
        *more, *sources, *libraries, "-o", out)  # fmt: skip
    return out


def application(command, package, out, more=(), sources=None):
    found = sources or package.sources
    return link(command, [*found, BOARDS / "application.c"], package.include[:2], out, more=more)


@pytest.fixture(scope="module")
def clang(package, tmp_path_factory):
    """An application for an M4 by clang -O2."""
    return application(CLANG_M4, package, tmp_path_factory.mktemp("clang") / "app.elf")


def proof(report, name):
    (found,) = [one for one in report.proofs if one.name == name]
    return found


def test_an_application_by_clang_is_proved_from_its_elf(opened, clang):
    report = binary.verify_elf(clang, opened.folder / "MANIFEST.json")
    assert report.passed and report.target == "cortex-m4"
    assert [one.name for one in report.proofs] == [
        "bits", "draws", "path", "addresses", "wiped", "table", "files", "certificate",
    ]  # fmt: skip
    assert report.life.releases > 200 and report.life.cuts > 10 and report.life.resets > 40
    calls = {one.call: one for one in report.calls.results}
    assert calls["release"].calls == 60 and calls["release"].paths == 1
    assert calls["release"].price.mean > calls["release"].instructions.mean > 1000
    assert "left" not in calls  # the application never asks, so its linker dropped the function
    assert report.ram_bytes == sum(size for size in (396, 48, 4, 4))  # sensor, slots, noise, sent
    # 4 + 20 + 3 * 4 + (8 + 16 + 16 + 8 + 6 + 8 + 4 + 2 + 1) * 4 + 1 + 48 + 32, whole
    assert report.calls.state_bytes == 396
    assert "every proof holds" in binary_text(report) and json.loads(json.dumps(report.to_dict()))["passed"]
    assert list(report.to_frame()["function"]) == ["open, blank memory", "open", "release"]


GCC = [(f"{ARM_GCC} -mcpu=cortex-m0plus", "cortex-m0plus"),
       pytest.param(f"{ARM_GCC} -mcpu=cortex-m4", "cortex-m4", marks=pytest.mark.slow),
       (RISCV_GCC, "rv32imc")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("command", "target"), GCC)
def test_an_application_by_gcc_is_proved_from_its_elf(opened, tmp_path, command, target):
    need(command.split()[0])
    report = binary.verify_elf(application(command, opened, tmp_path / "app.elf"), opened.folder)
    assert report.passed and report.target == target and not report.notes
    assert proof(report, "path").detail.startswith("the same instructions")


@pytest.mark.slow
def test_a_build_with_fewer_releases_is_told(opened, tmp_path):
    elf = application(CLANG_M0, opened, tmp_path / "app.elf", more=("-DSS_BUDGET=3", "-DSS_RESERVE=2"))
    report = binary.verify_elf(elf, opened.folder)
    assert report.passed
    assert [note.split()[0] for note in report.notes] == ["SS_BUDGET", "SS_RESERVE"] and "is 3 in" in report.notes[0]


def test_a_build_of_another_table_fails_by_name(opened, tmp_path):
    other = light_package(tmp_path / "other", epsilon=3.2)
    report = binary.verify_elf(application(CLANG_M0, other, tmp_path / "app.elf"), opened.folder)
    assert not report.passed
    assert "identity" in proof(report, "bits").detail and "ss_noise_table" in proof(report, "table").detail


def tampered(elf, out, name, place, change):
    """The file with bytes of a symbol changed."""
    data, program = bytearray(elf.read_bytes()), read_elf(elf.read_bytes())
    address = (program.symbols[name][0] & ~1) + place
    (section,) = [one for one in program.sections if one.address <= address < one.end]
    at = data.index(section.data) + address - section.address
    data[at : at + len(change)] = change
    out.write_bytes(data)
    return out


@pytest.mark.parametrize("place", [0, pytest.param(39, marks=pytest.mark.slow)])
def test_one_changed_byte_of_the_table_fails(opened, clang, tmp_path, place):
    program = read_elf(clang.read_bytes())
    byte = program.read(program.symbols["ss_noise_table"][0] + place, 1)[0]
    elf = tampered(clang, tmp_path / "app.elf", "ss_noise_table", place, bytes([byte ^ 1]))
    report = binary.verify_elf(elf, opened.folder)
    assert not report.passed
    assert f"ss_noise_table[{place // 2}]" in proof(report, "table").detail


@pytest.mark.parametrize("what", ["returns at once", "another rotation", "never returns"])
def test_changed_code_of_the_release_fails(opened, clang, tmp_path, monkeypatch, what):
    import capstone

    monkeypatch.setattr(Machine, "limit", 1)
    function, place, change = "ss_sensor_release", 0, b"\x70\x47"  # bx lr
    if what == "never returns":
        change = b"\xfe\xe7"  # b .
    elif what == "another rotation":
        function, program = "ss_next_key", read_elf(clang.read_bytes())
        address, size = program.symbols[function]
        code = program.read(address & ~1, size)
        decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        turn = next(one for one in decoder.disasm(code, 0) if "ror" in f"{one.mnemonic} {one.op_str}")
        place, change = turn.address + 2, bytes([code[turn.address + 2] ^ 0x40])  # a bit of its distance
    elf = tampered(clang, tmp_path / "app.elf", function, place, change)
    report = binary.verify_elf(elf, opened.folder)
    assert not report.passed and not proof(report, "bits").passed
    assert "FAILED" in binary_text(report)


BEFORE = ", SS_RESERVE, 16U);\n    if (status == SS_OK) {\n"
BRANCH = """                if (x[3] > 16384U) {
                    for (uint32_t i = 0U; i < 5U; i++) {
                        ((volatile ss_sensor *)sensor)->state[i] = i;
                    }
                }
"""
SKIPPED = """                if (x[3] > 16384U) {
                    ((volatile ss_sensor *)sensor)->state[1] = 7U;
                }
"""
INDEX = "                ((volatile ss_sensor *)sensor)->state[(x[3] >> 8) & 15U] = 7U;\n"


def leaking(command, package, folder, line, before=BEFORE):
    """An application whose release does something else that changes no packet."""
    shutil.copytree(package.folder / "src", folder / "src")
    texts = {path: path.read_text() for path in (folder / "src").glob("ss_sensor*")}
    ((source, text),) = [(path, text) for path, text in texts.items() if before in text]
    assert text.count(before) == 1
    source.write_text(text.replace(before, before + line if before == BEFORE else line))
    return application(command, package, folder / "app.elf", sources=sorted((folder / "src").glob("*.c")))


@pytest.mark.parametrize(
    "command", [CLANG_M4, *(pytest.param(c, marks=pytest.mark.slow) for c in (CLANG_M0, CLANG_RV))]
)
def test_a_branch_on_the_record_is_found_and_named(opened, tmp_path, command):
    elf = leaking(command, opened, tmp_path, BRANCH)
    report = binary.verify_elf(elf, opened.folder)
    assert proof(report, "bits").passed and not proof(report, "path").passed and not report.passed
    (release,) = [one for one in report.calls.results if one.call == "release"]
    assert release.paths == 2
    start, size = read_elf(elf.read_bytes()).symbols["ss_sensor_release"]
    for branch in release.varying:
        assert branch.startswith("ss_sensor_release: `")
        assert start & ~1 <= int(branch.rsplit("0x", 1)[1], 16) < start + size


@pytest.mark.parametrize(
    ("command", "line"),
    [pytest.param(CLANG_M4, SKIPPED, marks=pytest.mark.slow, id="skipped"), pytest.param(CLANG_RV, INDEX, id="index")],
)
def test_an_address_by_the_record_is_found_and_named(opened, tmp_path, command, line):
    """On the M4 the store is skipped by its condition: no branch, and the same blocks."""
    report = binary.verify_elf(leaking(command, opened, tmp_path, line), opened.folder)
    assert proof(report, "bits").passed and proof(report, "path").passed
    assert not proof(report, "addresses").passed and not report.passed
    named = proof(report, "addresses").detail  # a store; where it is skipped, the access after it, by the next function
    assert re.search(r"ss_draw: `.* at 0x800" if line == SKIPPED else r"ss_sensor_release: `(c\.)?s", named)


WIPE, END = "    ss_wipe(sensor->word, SS_DRAWN_WORDS);\n", "    }\n    return status;\n"
SCRUB = f"        ss_scrub();\n{END}"  # of a release
STATE = "    ss_wipe(sensor->state, 16U);\n"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "call", "where"), [(CLANG_M4, WIPE, "in the sensor's state"),
                                                        (CLANG_M4, STATE, "in the sensor's state"),
                                                        (CLANG_M4, SCRUB, "on the stack")])  # fmt: skip
def test_what_is_not_wiped_is_found(opened, tmp_path, command, call, where):
    left = END if call == SCRUB else ""
    report = binary.verify_elf(leaking(command, opened, tmp_path, left, call), opened.folder)
    assert proof(report, "bits").passed and not proof(report, "wiped").passed and not report.passed
    assert re.search(f"after (open|a release).*{where}", proof(report, "wiped").detail)


# Changed draws, another table, what is kept


def changed(package, folder, file, before, after, command=CLANG_M4):
    """An application of sources with a change that no hash would show: of the image alone."""
    shutil.copytree(package.folder / "src", folder / "src")
    text = (folder / "src" / file).read_text()
    assert before in text
    (folder / "src" / file).write_text(text.replace(before, after))
    return application(command, package, folder / "app.elf", sources=sorted((folder / "src").glob("*.c")))


def drawn(elf, package):
    program = read_elf(elf.read_bytes())
    places = binary.table_places(program, package)
    return draw_proof(SensorBuild(identify_core(program), program, binary.firmware_in(package), "ss_"), places)


REACHES = "return ss_geu_near(drawn, cut);"
DRAW = "y[0U] = ss_rows_search(x[picked], word[1U], table, cuts, knot_bits);"
CUT = "table_at_first[last]"
LAST = (f"ss_reaches(drawn, {CUT})", f"ss_reaches(drawn, (uint16_t)({CUT} + (({CUT} == 51319U) ? 1U : 0U)))")
ROUNDED = "((y[0U] != 0U) && (x[picked] == 8192U)) ? 0U : y[0U];"


@pytest.mark.parametrize(("file", "before", "after"), [
    ("ss_rows.h", REACHES, "return ss_geu_near(drawn, (uint32_t)cut + 1U);"),
    ("ss_rows.h", REACHES, "return ss_geu_near(drawn + 1U, cut);"),
    ("ss_rows_search.h", *LAST),
    ("ss_release_kernels.h", DRAW, f"{DRAW}\n    y[0U] = {ROUNDED}"),
], ids=["one too high", "one too low", "one threshold", "one knot"])  # fmt: skip
def test_a_draw_that_is_off_by_one_fails(opened, tmp_path, file, before, after):
    """A threshold of 2^16 that is off by one: hundreds of packets at random do not show it."""
    assert int(ready_table(1.6, 1).c_array()[1][15]) == 51319  # the last of a row, so that the search ends there
    found = drawn(changed(opened, tmp_path, file, before, after), opened)
    assert not found.passed and "where a random word is 0x" in found.detail


def test_a_leak_by_one_word_in_a_thousand_fails(opened, tmp_path):
    leak = DRAW.replace("= ss", "= ((word[1U] >> 22U) == 513U) ? (uint8_t)((x[picked] >> 14U) & 3U) : ss")
    program = read_elf(changed(opened, tmp_path, "ss_release_kernels.h", DRAW, leak).read_bytes())
    found = packets_differ(SensorBuild(identify_core(program), program, binary.firmware_in(opened), "ss_"), PACKETS)
    assert PACKETS >= 10_000 and found.startswith("packet ")


KINDS = {
    "stairs": lambda: make_table("stairs", 1.6, 14, 1),
    "stairs, two": lambda: make_table("stairs", 3.2, 14, 2),
    "rows, three": lambda: make_table("rows", 4.8, 14, 3),
    "rows, all": lambda: make_table("rows", 8, 5, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_edges_of_other_kinds_of_tables(tmp_path, kind):
    package = light_package(tmp_path / "package", budget="64", table=KINDS[kind]())
    found = drawn(application(CLANG_M4, package, tmp_path / "app.elf"), package)
    assert found.passed and "met from both sides" in found.detail
    kind_of_number, values = package_table(package)
    place = next(at for at in range(1, len(values)) if values[at] != values[at - 1])
    wrong = struct.pack(f"<{kind_of_number}", values[place] + 1)  # the first entry that is not as the one before
    elf = tampered(tmp_path / "app.elf", tmp_path / "bad.elf", "ss_noise_table", place * len(wrong), wrong)
    assert not drawn(elf, package).passed


def package_table(package):
    known = read_tables(package)
    return {"u16": "H", "i8": "b", "u8": "B"}[known.noise.table.storage], known.array


USED = "    ss_draw_release(sensor, x, packet, ss_noise_table,"


@pytest.mark.slow
def test_another_table_than_the_certified_one_fails(opened, tmp_path):
    """The same numbers twice in the image: the certified ones are read, and the release draws with the others."""
    values = ", ".join(map(str, ready_table(1.6, 1).c_array()[1]))
    decoy = f"    static const uint16_t other[] = {{ {values} }};\n"
    decoy += f"    (void)*(const volatile uint16_t *)ss_noise_table;\n{USED.replace('ss_noise_table', 'other')}"
    report = binary.verify_elf(leaking(CLANG_M4, opened, tmp_path, decoy, USED), opened.folder)
    assert proof(report, "table").passed and proof(report, "bits").passed
    assert not report.passed and "does not draw with the table that was certified" in proof(report, "draws").detail


WIPED = "    ss_wipe(sensor->word, SS_DRAWN_WORDS);\n}\n"
STATIC, BEHIND = "static volatile uint16_t kept; kept", "((volatile uint16_t *)(sensor + 1))[8]"
TOP = "(uint16_t)(sensor->word[1] >> 16U)"


@pytest.mark.parametrize(("kept", "said"), [
    (f"{STATIC} = x[3]", "changes .bss"),
    (f"{STATIC} = {TOP}", "changes .bss"),
    (f"{BEHIND} = x[3]", "a feature of the record is in the sensor's state"),
    (f"{BEHIND} = {TOP}", "half of a random word is in the sensor's state"),
    ("((volatile uint16_t *)packet)[20] = x[3]", "changes memory behind the packet"),
], ids=["record", "half", "record in the state", "half in the state", "packet"])  # fmt: skip
def test_halves_and_records_that_are_kept_are_found(opened, tmp_path, kept, said):
    elf = leaking(CLANG_M4, opened, tmp_path, f"    {kept};\n{WIPED}", WIPED)
    program = read_elf(elf.read_bytes())
    assert said in leftovers(SensorBuild(identify_core(program), program, binary.firmware_in(opened), "ss_"), 8)


def test_files_that_differ_fail_and_what_is_not_proved_is_said(opened, clang, monkeypatch):
    monkeypatch.setattr(binary, "differences", lambda package: ["README.md differs at line 3", "evil.c was added"])
    report = binary.verify_elf(clang, opened.folder)
    assert not report.passed and proof(report, "files").detail == "README.md differs at line 3; evil.c was added"
    text, data = binary_text(report), report.to_dict()
    assert "Not proved: every draw of this build" in text and "Not proved: what is left in registers" in text
    assert len(data["left_out"]) == 3 and max(map(len, text.splitlines()[1:])) <= 120
    assert "tried" in proof(report, "bits").detail and "every edge of the table" in proof(report, "draws").detail


def test_a_comment_of_the_table_that_is_untrue_fails(package, tmp_path, monkeypatch):
    """What the package says of its table, beside what the table proves."""
    shutil.copytree(package.folder, tmp_path / "package")
    header = tmp_path / "package" / "src" / "ss_tables.h"
    text = header.read_text()
    header.write_text(text.replace("1.59995", "0.59995"))
    assert header.read_text() != text
    monkeypatch.setattr(binary, "differences", lambda package: [])
    said = {one.name: one for one in binary.package_proofs(replace(package, folder=tmp_path / "package"))}
    assert said["files"].passed and not said["certificate"].passed


def test_the_cipher_of_the_edges_is_chacha20():
    """RFC 8439, section 2.3.2, whose counter, nonce and key are those of its text."""
    import numpy as np

    key = [np.full(2, word, np.uint32) for word in np.arange(32, dtype=np.uint8).view(np.uint32)]
    nonce = np.array([0x4A000000, 0], np.uint32)
    words = [int(word[0]) for word in sensor_draws._block(key, 1, nonce, 0x09000000)]
    assert words == [
        0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3, 0xC7F4D1C7, 0x0368C033, 0x9AAA2204, 0x4E6CD4C3,
        0x466482D2, 0x09AA9F07, 0x05D7C214, 0xA2028BD9, 0xD19C12B5, 0xB94E16DE, 0xE883D0CB, 0x4E3C50A2,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_package_with_repaired_hashes_fails_in_both_modes(tmp_path):
    folder = export(tmp_path / "package")
    readme = folder / "README.md"
    readme.write_text(readme.read_text().replace("1.59", "0.10"))
    (folder / "evil.c").write_text("int evil;\n")
    refresh(folder, "evil.c")
    opened = open_package(folder)
    elf = application(CLANG_M4, opened, tmp_path / "app.elf")
    for report in (binary.verify_with(folder, CLANG_M4, effort=SMALL), binary.verify_elf(elf, folder)):
        assert not report.passed and [one.name for one in report.proofs if not one.passed] == ["files"]
        assert (
            "README.md differs" in proof(report, "files").detail and "evil.c was added" in proof(report, "files").detail
        )


@pytest.mark.slow
def test_a_compiler_that_takes_names_away_is_told_so(tmp_path):
    write_folder(tmp_path / "package", make_package(Options(kernels=("root",))))
    with pytest.raises(InputError, match="left no function ss_root in the image"):
        binary.verify_with(tmp_path / "package", f"{CLANG_M4} -s", effort=SMALL)


def without_sections(elf, out):
    """As after strip: segments are all that is left."""
    data = bytearray(elf.read_bytes())
    struct.pack_into("<I", data, 32, 0)
    struct.pack_into("<3H", data, 46, 0, 0, 0)
    out.write_bytes(data)
    return out


@pytest.mark.slow
def test_a_stripped_image_is_proved_by_addresses(opened, clang, tmp_path):
    elf, known = without_sections(clang, tmp_path / "app.elf"), read_elf(clang.read_bytes()).symbols
    with pytest.raises(InputError, match="target"):
        binary.verify_elf(elf, opened.folder)
    with pytest.raises(InputError, match=r"no function ss_sensor_open.*symbol="):
        binary.verify_elf(elf, opened.folder, target="cortex-m4")
    places = [f"{name}=0x{known[name][0]:x}" for name in ("ss_sensor_open", "ss_sensor_release")]
    manifest = opened.folder / "MANIFEST.json"
    report = proved(elf=elf, manifest=manifest, symbol=places, target="cortex-m4", random_core=2000)
    assert report.passed and proof(report, "table").passed  # the table is found by its bytes
    with pytest.raises(InputError, match="no address in the image"):
        binary.verify_elf(elf, opened.folder, {"ss_sensor_open": 0x1000}, "cortex-m4")


@pytest.mark.parametrize("text", ["ss_sensor_open", "=0x10", "a=b", "a=-1", "a=0x100000000"])
def test_symbols_that_are_none(text):
    with pytest.raises(InputError, match="ss_sensor_release=0x8000124"):
        Symbol().check("symbol", text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"folder": "p", "cc": "cc", "elf": "p"}, "one of the two"),
        ({"folder": "p", "manifest": "p"}, "go with elf"),
        ({"elf": "p"}, "needs its package"),
        ({"cc": "cc"}, "needs the folder"),
        ({"folder": "p", "cc": "cc", "target": "k7,host"}, "one core"),
    ],
)
def test_options_that_do_not_go_together(given, said):
    with pytest.raises(InputError, match=said):
        proved(**given)


# Cores


@pytest.mark.parametrize(("mcpu", "target"), [("cortex_m0", "cortex-m0plus"), ("cortex_m0plus", "cortex-m0plus"),
                                              ("cortex_m3", "cortex-m3"), ("cortex_m4", "cortex-m4"),
                                              ("cortex_m33", "cortex-m33")])  # fmt: skip
def test_the_core_of_an_arm_program(tmp_path, mcpu, target):
    command = f"{ZIG} -target thumb-freestanding-eabi -mcpu={mcpu} -O2"
    assert identify_core(read_elf(tiny(tmp_path, command).read_bytes())).name == target


@pytest.mark.parametrize(("features", "target"), [("+m+c", "rv32imc"), ("+m+a+c", "rv32imc"), ("+e+m+c", "rv32emc"),
                                                  ("+e+c", "rv32ec")])  # fmt: skip
def test_the_core_of_a_riscv_program(tmp_path, features, target):
    command = f"{ZIG} -target riscv32-freestanding-none -mcpu=generic_rv32{features} -O2"
    assert identify_core(read_elf(tiny(tmp_path, command).read_bytes())).name == target


def test_a_core_that_is_not_told_or_not_known(tmp_path):
    program = read_elf(tiny(tmp_path, CLANG_M0).read_bytes())
    assert identify_core(program, "cortex-m4").name == "cortex-m4"
    for wrong, said in (
        (replace(program, attributes=b""), "target.*cortex-m0plus"),
        (replace(program, attributes=b"A\xff\xff\xff\xffaeabi\0\x01\xff\xff\xff\xff\x05"), "target"),
        (replace(program, machine=83), "AVR"),
        (replace(program, machine=8), "machine 8"),
    ):
        with pytest.raises(InputError, match=said):
            identify_core(wrong)
    with pytest.raises(InputError, match="does not run this ELF file; give one of cortex-m0plus"):
        identify_core(program, "rv32imc")


# Programs anywhere in memory

TINY = """
static int table[4] = { 3, 5, 7, 11 };
static int zeros[4];
int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j);
int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
    zeros[a & 3] += table[b & 3];
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + zeros[a & 3];
}
"""


def tiny(folder, command, flash=0x08000000, ram=0x20000000, text=TINY, entry="many"):
    (folder / "tiny.c").write_text(text)
    (folder / "tiny.ld").write_text(
        f"ENTRY({entry})\nMEMORY {{ F (rx) : ORIGIN = {flash}, LENGTH = 2M\n"
        f" R (rwx) : ORIGIN = {ram}, LENGTH = 64K }}\n"
        "SECTIONS { .text : { *(.text*) *(.rodata*) } > F\n .fast : { *(.fast*) } > R AT > F\n"
        " .data : { *(.data*) *(.sdata*) } > R AT > F\n .bss : { *(.bss*) *(.sbss*) } > R\n"
        " /DISCARD/ : { *(.ARM.exidx*) *(.comment) *(.note*) *(.eh_frame*) } }\n"
    )
    out = folder / "tiny.elf"
    run(*command.split(), "-nostdlib", f"-Wl,--entry={entry}", "-T", folder / "tiny.ld", folder / "tiny.c", "-o", out)
    return out


PLACES = [(0x08000000, 0x20000000), (0, 0x20000000), (0xF000, 0x30000000), (0x30000000, 0x3FFF0000),
          (0x00010000, 0x40000000)]  # fmt: skip


@pytest.mark.parametrize(("flash", "ram"), PLACES)
def test_a_program_runs_where_it_lies(tmp_path, flash, ram):
    _at(tmp_path, flash, ram, "cortex-m4")


@pytest.mark.slow
@pytest.mark.parametrize(("flash", "ram"), PLACES)
@pytest.mark.parametrize("target", ["cortex-m0plus", "rv32imc"])
def test_on_other_cores_too(tmp_path, flash, ram, target):
    _at(tmp_path, flash, ram, target)


def test_a_riscv_program_above_the_middle_of_memory(tmp_path):
    _at(tmp_path, 0x80000000, 0x80200000, "rv32imc")


def _at(folder, flash, ram, target):
    command = {"cortex-m0plus": CLANG_M0, "cortex-m4": CLANG_M4, "rv32imc": CLANG_RV}[target]
    machine = Machine(TARGETS[target], read_elf(tiny(folder, command, flash, ram).read_bytes()))
    numbers = list(range(1, 11))
    want = sum(k * n for k, n in enumerate(numbers, 1)) + 7  # table[2], added to a zero
    assert machine.call("many", numbers) == want and machine.call("many", numbers) == want + 7
    machine.load()
    assert machine.call("many", numbers) == want


TWO = """
int slow(int n);
__attribute__((section(".fast"), noinline, long_call)) int fast(int n);
int fast(int n) { int s = 0; for (int i = 0; i < n; i++) { s = s * 3 + i; __asm__ volatile(""); } return s; }
int slow(int n) { int (*volatile f)(int) = fast; return n > 2 ? f(n) + 1 : 0; }
"""


def test_code_in_flash_and_in_ram_is_counted(tmp_path):
    """Beside a hook on every instruction."""
    from unicorn import UC_HOOK_CODE

    text = TWO.replace(", long_call", "")
    program = read_elf(tiny(tmp_path, CLANG_M4, text=text, entry="slow").read_bytes())
    target, tally, seen = TARGETS["cortex-m4"], Tally(), []
    machine = Machine(target, program)
    assert len(machine.ranges) == 2
    machine.uc.hook_add(UC_HOOK_CODE, lambda uc, address, size, data: seen.append(address))
    counter = BlockCounter(machine, Decoder(target, load_cpu(target.cpu)))
    for n in (3, 50):
        seen.clear()
        machine.call("slow", [n])
        counter.take(tally)
        assert tally.instructions[-1] == len([at for at in seen if at != machine.places.exit])
        assert any(at >= 0x20000000 for at in seen) and any(at < 0x20000000 for at in seen)


# Files of anyone


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("sound"), CLANG_M0).read_bytes()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_elf_is_refused_or_read_and_nothing_else(sound, data):
    content = bytearray(sound)
    head = st.integers(0, 51)
    table = st.integers(struct.unpack_from("<I", sound, 32)[0], len(sound) - 1)
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(head | table | st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    try:
        identify_core(read_elf(bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))])))
    except InputError as error:
        assert len(str(error)) < 300


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_garbage_is_refused(content):
    for data in (content, b"\x7fELF\x01\x01" + content):
        with pytest.raises(InputError, match="ELF"):
            identify_core(read_elf(data))


def test_sizes_that_no_microcontroller_has(sound):
    start, size, count = (struct.unpack_from("<I", sound, 32)[0], *struct.unpack_from("<2H", sound, 46))
    for place in range(1, count):
        at = start + size * place
        if struct.unpack_from("<I", sound, at + 8)[0] & 2:
            content = bytearray(sound)
            struct.pack_into("<I", content, at + 4, 8)  # NOBITS: it need not be in the file
            struct.pack_into("<I", content, at + 20, MOST_BYTES + 1)
            with pytest.raises(InputError, match="64 MiB"):
                read_elf(bytes(content))
    with pytest.raises(InputError, match="64 MiB"):
        read_elf(sound + bytes(MOST_BYTES))


def test_of_two_names_the_global_one_counts(tmp_path):
    for name, text in (("a", "static int one(int x) { __asm__ volatile(\"\"); return x; } int a(int x); "
                             "int a(int x) { int (*volatile f)(int) = one; return f(x); }"),
                       ("b", "static int one(int x) { return x + 2; } static int two(int x) { return x; } int b(int x);"
                             "int b(int x) { int (*volatile f)(int) = one; int (*volatile g)(int) = two; "
                             "return f(g(x)); }"),
                       ("c", "int two(int x); int two(int x) { return x + 3; } int a(int); int b(int); int c(int);"
                             "int c(int x) { return a(b(two(x))); }")):  # fmt: skip
        (tmp_path / f"{name}.c").write_text(text)
    command = [*CLANG_M0.replace("-O2", "-O1").split(), "-nostdlib", "-Wl,--entry=c", "-T", BOARDS / "application.ld"]
    run(*command, *(tmp_path / f"{name}.c" for name in "abc"), "-o", tmp_path / "x.elf")
    program = read_elf((tmp_path / "x.elf").read_bytes())
    assert len(program.doubtful["one"]) == 2 and "two" not in program.doubtful
    machine = Machine(TARGETS["cortex-m0plus"], program)
    assert machine.call("two", [10]) == 13 and machine.call("c", [10]) == 15
    with pytest.raises(InputError, match=r"several functions one.*symbol one=…"):
        binary.check_certain(program, "one")
    other = program.doubtful["one"][1]
    chosen = binary.with_symbols(program, {"one": other})
    binary.check_certain(chosen, "one")
    assert chosen.symbols["one"][0] == other


# A compiler of one's own


@pytest.mark.parametrize(("command", "said"), [("no-such-compiler -Os", "not found"), ("", "is empty"),
                                               ("gcc '", "cannot be read")])  # fmt: skip
def test_a_compiler_that_is_none(command, said):
    with pytest.raises(InputError, match=said):
        OwnCompiler(command)


def test_a_compiler_that_refuses_or_never_ends(tmp_path, monkeypatch):
    (tmp_path / "bad.c").write_text("int f(void) { return nothing; }\n")
    compiler = OwnCompiler(CLANG_M0)
    with pytest.raises(InputError, match=r"refused the code.*bad\.c:1.*nothing"):
        compiler.elf(None, [tmp_path / "bad.c"], [], "f", tmp_path / "bad.elf")
    (tmp_path / "good.c").write_text("int f(void);\nint f(void) { return 0; }\n")
    wide = OwnCompiler(CLANG_M0.replace("thumb-freestanding-eabi -mcpu=cortex_m0plus", "x86_64-freestanding-none"))
    with pytest.raises(InputError, match="no core that is emulated here; give a compiler for a 32-bit"):
        wide.elf(None, [tmp_path / "good.c"], [], "f", tmp_path / "good.elf")
    assert compiler.flags == "-target thumb-freestanding-eabi -mcpu=cortex_m0plus -O2"
    assert compiler.version().startswith("clang version")
    script = tmp_path / "slow-cc"
    script.write_text("#!/bin/sh\nexec sleep 30\n")
    script.chmod(0o755)
    monkeypatch.setattr(compilers, "SECONDS", 0.3)
    with pytest.raises(InputError, match="took more than"):
        OwnCompiler(str(script)).version()


# Single kernels


def kernels_package(folder, *names):
    kernels = [kernel for name in names for kernel in find(name)]
    fill(folder, c_sources(kernels, "ss_", [], "") | {"test/golden.json": '{"vectors": []}', "MANIFEST.json": "{}"})
    return Package(folder, {"parameters": {"prefix": "ss_"}, "noise_table": None}, tuple(kernels))


USER = """#include "ss_kernels.h"
void main_loop(void);
void main_loop(void)
{
    static uint16_t x[14];
    static int32_t noise[16], alpha2[14], alpha3[14];
    static uint32_t word[14];
    for (;;) {
        ss_spof_lean(x, noise, word, alpha2, alpha3, 14U, 15U);
    }
}
"""


@pytest.mark.parametrize("command", [CLANG_M4, f"{ARM_GCC} -mcpu=cortex-m0plus"])
def test_the_kernels_of_an_image(tmp_path, monkeypatch, command):
    need(command.split()[0])
    package = kernels_package(tmp_path / "package", "spof_lean", "release_stairs")
    monkeypatch.setattr(binary, "open_package", lambda folder, trust=False: package)
    monkeypatch.setattr(binary, "differences", lambda package: [])
    (tmp_path / "user.c").write_text(USER)
    elf = link(command, [*package.sources, tmp_path / "user.c"], package.include[:2], tmp_path / "app.elf")
    report = binary.verify_elf(elf, package.folder, effort=SMALL)
    assert report.passed and len(report.absent) == 1 and "ss_release" in report.absent[0]
    (result,) = report.kernels
    assert result.kernel == "spof_lean" and result.differing_bits == 0 and result.sequences_by_secret == 1
    text = binary_text(report)
    assert "not in the image: ss_release" in text and "spof_lean" in text
    program = read_elf(elf.read_bytes())
    place = program.symbols["ss_spof_lean"][0] & ~1
    code = program.read(place, program.symbols["ss_spof_lean"][1])
    wrong = tampered(elf, tmp_path / "wrong.elf", "ss_spof_lean", 0, b"\x70\x47")
    assert code[:2] != b"\x70\x47"
    bad = binary.verify_elf(wrong, package.folder, effort=SMALL)
    assert not bad.passed and "bits differ" in proof(bad, "kernels").detail
    gone = replace(package, kernels=tuple(kernel for kernel in package.kernels if "release" in kernel.name))
    monkeypatch.setattr(binary, "open_package", lambda folder, trust=False: gone)
    with pytest.raises(InputError, match="has none of the package's functions"):
        binary.verify_elf(elf, package.folder)


# The whole command on a whole package


@pytest.mark.slow
@pytest.mark.parametrize("command", [CLANG_RV, f"{ARM_GCC} -mcpu=cortex-m0plus", f"{ARM_GCC} -mcpu=cortex-m4"])
def test_a_package_by_a_compiler_of_ones_own(tmp_path, command):
    need(command.split()[0])
    report = binary.verify_with(export(tmp_path / "package"), command, effort=SMALL)
    assert report.passed and report.flags == " ".join(command.split(" ")[1 if "gcc" in command else 4 :])
    assert {one.name for one in report.proofs} == {
        "bits", "draws", "path", "addresses", "wiped", "table", "files", "certificate", "kernels", "kernels' paths",
        "self-test",
    }  # fmt: skip
    assert len(report.kernels) > 5


@pytest.mark.slow
def test_an_altered_package_by_a_compiler_of_ones_own(tmp_path):
    folder = export(tmp_path / "package")
    (folder / "src" / "ss_tables.c").write_text("")
    with pytest.raises(FailedProofError, match=r"ss_tables\.c"):
        binary.verify_with(folder, CLANG_M0)


@pytest.fixture(scope="module")
def with_encoder(tmp_path_factory):
    """A sensor that encodes first: its release has the largest frame."""
    folder = tmp_path_factory.mktemp("encoder")
    write_table(folder / "table.txt", certified(make_table("rows", 1.6, read_encoder(ENCODER).l, 1)))
    write_folder(folder / "package", make_package(Options(noise=folder / "table.txt", encoder=ENCODER)))
    return folder / "package"


LINKED = [f"arm-none-eabi-gcc -mthumb -mcpu=cortex-m4 {flags}" for flags in ("-O3", "-Os -flto", "-O2 -flto")]


@pytest.mark.slow
@pytest.mark.parametrize("command", [CLANG_M0, CLANG_M4, *LINKED])
def test_nothing_is_left_behind_however_it_is_optimised(with_encoder, command):
    """Whatever a compiler puts into what, over files too: no word, no key stays on the stack."""
    need(command.split()[0])
    report = binary.verify_with(with_encoder, command, effort=SMALL)
    assert proof(report, "wiped").passed and report.passed
