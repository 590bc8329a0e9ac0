"""An exported sensor on simulated boards: a Cortex-M3 whose power is cut, an 8-bit AVR, a Z80."""

import re
import shutil
import subprocess

import pytest
from exported import BOARDS, STRICT, check_means, export, need, run

pytestmark = pytest.mark.slow
RECORDS = 1000


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    return export(tmp_path_factory.mktemp("sensor") / "box")


def includes(box):
    return [f"-I{box / folder}" for folder in ("include", "src", "test")]


def sources(box, kernels=True):
    """The sensor and its self-test; the golden vectors of single kernels want more RAM than an ATmega328P has."""
    vectors = box / "test" / "ss_selftest_kernels.c" if kernels else BOARDS / "no_kernel_vectors.c"
    return [*sorted((box / "src").glob("*.c")), box / "test" / "ss_selftest.c", vectors]


def truth(record):
    """The features of the Cortex-M3's records, as numbers in 0 to 1."""
    return [((0x3F94 >> i & 1) * 26000 + record * 7919 % 4096) / 32768 for i in range(14)]


@pytest.mark.parametrize("reserve", [1, 16])
def test_a_cortex_m3_that_loses_power_at_any_byte_sends_records_that_a_hospital_can_use(reserve, box, tmp_path, capsys):
    cc, qemu = need("arm-none-eabi-gcc", "qemu-system-arm")
    core = ("-mcpu=cortex-m3", "-mthumb", "-Os", "-std=c99", "-ffreestanding", "-nostdlib", "-lgcc")
    defines = (f"-DRECORDS={RECORDS}U", f"-DSS_RESERVE={reserve}", f"-DSEED={reserve}")
    script = ("-T", BOARDS / "cortex_m.ld", "-o", tmp_path / "image.elf")
    run(cc, *core, *defines, *STRICT, *includes(box), *(box / "src").glob("*.c"), BOARDS / "cortex_m.c", *script)
    board = ("-M", "lm3s6965evb", "-nographic", "-semihosting-config", "enable=on,target=native")
    done = run(qemu, *board, "-kernel", tmp_path / "image.elf", stdin=subprocess.DEVNULL)
    lines = re.findall(r"packet (\d+) (\d+) ([0-9a-f]{8})\n", done.stdout + done.stderr)
    cuts = int(re.search(r"end (\d+) cuts", done.stdout + done.stderr)[1])
    assert [int(record) for _, record, _ in lines] == list(range(RECORDS))
    assert cuts >= RECORDS // reserve // 8  # about every fifth store
    by_epoch = [int(epoch) for epoch, _, _ in lines]
    for epoch in set(by_epoch):
        assert by_epoch.count(epoch) <= 625
    # A cut loses what one store counted and no more: an epoch that ended sent its budget but for that.
    ended = sorted(set(by_epoch))[:-1]
    assert ended and sum(625 - by_epoch.count(epoch) for epoch in ended) <= cuts * reserve
    check_means([packet for _, _, packet in lines], truth, tmp_path, capsys)


def on_avr(box, build, core, kernels=True):
    """Build the self-test for an AVR and run it; (result, flash bytes, bytes of variables, bytes of stack)."""
    cc, simavr, size = need("avr-gcc", "simavr", "avr-size")
    image = build / f"{core}.elf"
    flags = (f"-mmcu={core}", "-std=gnu99", "-Os", *STRICT, *includes(box))
    run(cc, *flags, *sources(box, kernels), BOARDS / "avr.c", "-o", image)
    done = run(simavr, "-m", core, "-f", "16000000", image, stdin=subprocess.DEVNULL)
    said = re.search(r"selftest (\d+) stack (\d+)", done.stdout + done.stderr)
    text, data, bss = map(int, run(size, image).stdout.splitlines()[1].split()[:3])
    return int(said[1]), text + data, data + bss, int(said[2])


def test_the_sensor_proves_itself_on_an_atmega328p(box, tmp_path):
    """32 KB of flash, 2 KB of RAM, 16-bit int."""
    result, flash, variables, stack = on_avr(box, tmp_path, "atmega328p", kernels=False)
    assert result == 0
    assert flash <= 16 * 1024 and variables + stack <= 1024  # half of what there is, with the test's own board in it
    cc, objdump = need("avr-gcc", "avr-objdump")
    run(cc, "-mmcu=atmega328p", "-std=gnu99", *includes(box), "-c", box / "src" / "ss_tables.c", "-o", tmp_path / "t.o")
    sections = dict(re.findall(r"\d+ (\.\S+) +([0-9a-f]{8})", run(objdump, "-h", tmp_path / "t.o").stdout))
    in_flash = sum(int(size, 16) for name, size in sections.items() if name.startswith(".progmem"))
    in_ram = sum(int(size, 16) for name, size in sections.items() if name.startswith((".rodata", ".data", ".bss")))
    assert in_flash > 0 and in_ram == 0


def test_every_kernel_proves_itself_on_an_avr_with_more_ram(box, tmp_path):
    assert on_avr(box, tmp_path, "atmega1284p")[0] == 0


def test_an_avr_sees_a_table_that_was_altered(box, tmp_path):
    """One threshold off by one: the release would work, and not be what was certified."""
    altered = tmp_path / "altered"
    shutil.copytree(box, altered)
    path = altered / "src" / "ss_tables.c"
    text = path.read_text()
    start = text.index("{", text.index("ss_noise_table"))
    path.write_text(text[:start] + re.sub(r"\d+", lambda found: str(int(found[0]) + 1), text[start:], count=1))
    assert on_avr(altered, tmp_path, "atmega328p", kernels=False)[0] == 0x10001


def test_the_self_test_passes_on_a_z80(box, tmp_path):
    """SDCC would inline every function into every other: as plain static functions the whole fits 64 KB."""
    sdcc = need("sdcc")
    simulator = need("sz80") if shutil.which("sz80") else need("ucsim_z80")  # the name has changed over the years
    for source in (*sources(box), BOARDS / "z80.c"):
        flags = ("-mz80", "--std-c99", "--opt-code-size", "-DSS_LOCAL=static", *includes(box))
        run(sdcc, *flags, "-c", source, "-o", tmp_path / f"{source.stem}.rel")
    objects = [tmp_path / "z80.rel", *(tmp_path / f"{source.stem}.rel" for source in sources(box))]
    run(sdcc, "-mz80", "--code-loc", "0x200", "--data-loc", "0xC000", *objects, "-o", tmp_path / "test.ihx")
    interface = f"if=rom[0xff],out={tmp_path / 'said'}"
    run(simulator, "-b", "-q", "-I", interface, "-e", "run", "-c", "-", tmp_path / "test.ihx", stdin=subprocess.DEVNULL)
    assert (tmp_path / "said").read_text() == "selftest 0\n"
