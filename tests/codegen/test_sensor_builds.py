"""An exported sensor in the hands of a team: CMake both ways, make, PlatformIO, the example."""

import json
import re
import shutil
import signal
import subprocess
import time
import zlib
from hashlib import sha256
from importlib.metadata import version

import pytest
from exported import STRICT, check_means, export, feature_of, need, run

APP = """\
#include <stdio.h>
#include "ss_port_board.h"
#include "ss_sensor.h"
int main(void)
{
    static ss_sensor sensor;
    static uint16_t x[SS_FEATURES];
    uint8_t packet[SS_PACKET_BYTES] = { 1U };
    ss_port port;
    ss_port_board(&port);
    printf("%lu ", (unsigned long)SS_BUDGET);
    printf("%d%d", port.entropy(port.board, packet, 1U) != 0, port.load(port.board, 0U, packet, 1U) != 0);
    printf("%d%lu ", port.store(port.board, 0U, packet, 1U) != 0, (unsigned long)port.epoch(port.board));
    printf("%d ", (int)ss_sensor_open(&sensor, &port));
    printf("%d ", (int)ss_sensor_release(&sensor, x, packet));
    printf("%d\\n", (int)packet[0]);
    return 0;
}
"""
# The template's functions all fail: SS_NO_ENTROPY, SS_NOT_OPEN, a packet of zeros.
UNFINISHED = "625 1110 2 6 0\n"
PROJECT = "cmake_minimum_required(VERSION 3.13)\nproject(firmware C)\nenable_testing()\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return export(tmp_path_factory.mktemp("sensor") / "box")


@pytest.fixture
def box(original, tmp_path):
    return shutil.copytree(original, tmp_path / "box")


@pytest.fixture
def example(box):
    need("make", "cc")
    run("make", "example", f"CFLAGS=-O1 {' '.join(STRICT)}", cwd=box)
    return box / "build" / "ss_example"


def app_project(folder, how):
    """An empty project that takes the sensor in one line, with the template as its port."""
    folder.mkdir()
    (folder / "app.c").write_text(APP)
    (folder / "CMakeLists.txt").write_text(
        PROJECT + how + "add_executable(app app.c ${BOX}/ports/template/ss_port_board.c)\n"
        "target_include_directories(app PRIVATE ${BOX}/ports/template)\ntarget_link_libraries(app PRIVATE ss::sensor)\n"
    )
    return folder


@pytest.mark.slow
def test_cmake_takes_it_as_a_folder_of_the_project(box, tmp_path):
    need("cmake", "cc")
    folder = app_project(tmp_path / "app", "add_subdirectory(${BOX} box)\n")
    options = ("-DSS_BUILD_SELFTEST=ON", "-DSS_BUILD_EXAMPLE=ON", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}")
    run("cmake", "-S", folder, "-B", tmp_path / "build", f"-DBOX={box}", *options)
    run("cmake", "--build", tmp_path / "build")
    assert "100% tests passed, 0 tests failed out of 1" in run("ctest", "--test-dir", tmp_path / "build").stdout
    assert run(tmp_path / "build" / "app").stdout == UNFINISHED
    assert (tmp_path / "build" / "box" / "ss_example").exists()


def test_cmake_finds_it_where_it_was_installed(box, tmp_path):
    need("cmake", "cc")
    run("cmake", "-S", box, "-B", tmp_path / "made", "-DSS_BUDGET=3")
    run("cmake", "--build", tmp_path / "made")
    run("cmake", "--install", tmp_path / "made", "--prefix", tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "moved")  # what is installed can go elsewhere
    asked = ".".join(version("sensorsim").split(".")[:2])
    folder = app_project(tmp_path / "app", f"find_package(ss_sensor {asked} REQUIRED)\n")
    where = (f"-DBOX={box}", f"-DCMAKE_PREFIX_PATH={tmp_path / 'moved'}")
    run("cmake", "-S", folder, "-B", tmp_path / "build", *where)
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "app").stdout == UNFINISHED.replace("625", "3")  # the library's own number
    other = app_project(tmp_path / "other", "find_package(ss_sensor 9.0 REQUIRED)\n")
    assert "ss_sensor" in run("cmake", "-S", other, "-B", tmp_path / "no", *where, code=1).stderr


def test_a_budget_above_the_export_s_does_not_compile(box):
    need("make", "cc")
    assert "SS_BUDGET must be" in run("make", "CPPFLAGS=-DSS_BUDGET=626", cwd=box, code=2).stderr


def test_make_builds_tests_and_installs(box, tmp_path):
    need("make", "cc")
    assert "self-test passed" in run("make", "selftest", f"CFLAGS=-O2 {' '.join(STRICT)}", cwd=box).stdout
    run("make", "install", f"PREFIX={tmp_path / 'usr'}", cwd=box)
    (tmp_path / "app.c").write_text(APP)
    port = box / "ports" / "template"
    where = (f"-I{tmp_path / 'usr' / 'include'}", f"-I{port}", f"-L{tmp_path / 'usr' / 'lib'}")
    run(
        "cc",
        *STRICT,
        "-std=c99",
        tmp_path / "app.c",
        port / "ss_port_board.c",
        *where,
        "-lss_sensor",
        "-o",
        tmp_path / "a",
    )
    assert run(tmp_path / "a").stdout == UNFINISHED


def test_make_cross_compiles(box):
    need("make", "arm-none-eabi-gcc", "arm-none-eabi-nm")
    tools = ("CC=arm-none-eabi-gcc", "AR=arm-none-eabi-ar")
    run("make", *tools, f"CFLAGS=-Os -mcpu=cortex-m0plus -mthumb -ffreestanding {' '.join(STRICT)}", cwd=box)
    library = box / "build" / "libss_sensor.a"
    text = run("arm-none-eabi-nm", "--defined-only", "-g", library).stdout
    public = {line.split()[2] for line in text.splitlines() if " T " in line}
    assert public == {"ss_sensor_open", "ss_sensor_release", "ss_sensor_left", "ss_sensor_close"}


def measured(record):
    """What the example's pretended sensors measure, as numbers in 0 to 1."""
    return [(150 + 97 * i % 500 + 37 * record % 200) * 32768 // 1000 / 32768 for i in range(14)]


def test_the_example_goes_on_with_its_journal_and_the_hospital_reads_it(box, tmp_path, capsys):
    need("make", "cc")
    run("make", "example", "BUILD=counted", "CPPFLAGS=-DSS_RESERVE=25", cwd=box)  # so that few stores wait for the disk
    example = box / "counted" / "ss_example"
    first = run(example, tmp_path / "journal", 300)
    assert "open: 625 releases left" in first.stderr and "325 releases left" in first.stderr
    second = run(example, tmp_path / "journal", 400)  # the budget ends it, and that is no error
    assert "open: 325 releases left" in second.stderr and "budget of this period is spent" in second.stderr
    packets = [*first.stdout.split(), *second.stdout.split()]
    assert (len(first.stdout.split()), len(packets)) == (300, 625)
    assert {feature_of(packet) for packet in packets} == set(range(14))
    check_means(packets, lambda number: measured(number if number < 300 else number - 300), tmp_path, capsys)
    third = run(example, tmp_path / "journal")
    assert third.stdout == "" and "open: 0 releases left" in third.stderr


def slot(identity, epoch, spent):
    """A slot of a journal, by hand."""
    head = b"SJ\x01\x01" + identity + epoch.to_bytes(4, "little") + spent.to_bytes(4, "little")
    return head + zlib.crc32(head).to_bytes(4, "little")


def test_the_host_port_stays_closed_when_it_must(example, tmp_path):
    journal = tmp_path / "journal"
    run(example, journal, 3)
    one, two = journal / "ss_slot0", journal / "ss_slot1"
    kept = one.read_bytes(), two.read_bytes()
    identity, today = kept[0][4:12], int(time.time()) // 86400
    assert slot(identity, today, 2) in kept and slot(identity, today, 3) in kept
    newer = one if kept[0] == slot(identity, today, 3) else two
    newer.write_bytes(b"")  # torn to nothing: the other slot holds, and what it may have counted is counted
    assert "open: 622 releases left" in run(example, journal, 1).stderr
    one.write_bytes(b"")
    two.write_bytes(b"")  # both lost is not the same as never written
    assert "journal is damaged" in run(example, journal, code=4).stderr
    one.write_bytes(kept[0] + b"more")
    assert "could not be read" in run(example, journal, code=3).stderr
    one.write_bytes(slot(identity, today + 9, 1))
    two.write_bytes(slot(identity, today + 9, 2))
    assert "clock is behind" in run(example, journal, code=5).stderr
    one.write_bytes(slot(b"8 others", today, 1))
    assert "another table" in run(example, journal, code=4).stderr
    one.unlink()
    two.unlink()
    assert "open: 625 releases left" in run(example, journal, 1).stderr
    assert "cannot be used" in run(example, tmp_path / "absent" / "folder", code=1).stderr
    assert "usage" in run(example, code=1).stderr


def test_a_process_that_is_killed_anywhere_loses_nothing_that_was_spent(example, tmp_path):
    sent, left = 0, 625
    for number in range(25):
        with subprocess.Popen([example, tmp_path / "journal", "40"], stdout=-1, stderr=-1, text=True) as process:
            opened = process.stderr.readline()
            time.sleep(0.0004 * number)
            process.send_signal(signal.SIGKILL)
            sent += len(process.stdout.read().split())
        found = int(re.search(r"open: (\d+) releases left", opened)[1])
        assert found <= left
        left = found
    left = int(re.search(r"open: (\d+)", run(example, tmp_path / "journal", 0).stderr)[1])
    assert sent <= 625 - left


def test_two_processes_never_share_a_journal(example, tmp_path):
    """Together they would spend the same count twice."""
    import fcntl

    run(example, tmp_path / "journal", 1)
    with (tmp_path / "journal" / "ss_lock").open("r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert "another process has it" in run(example, tmp_path / "journal", code=1).stderr
    assert "open: 624 releases left" in run(example, tmp_path / "journal", 1).stderr


def test_the_template_says_what_the_sensor_will_ask_of_the_board(original):
    from sensorsim.kernels import generator, health

    text = " ".join((original / "ports" / "template" / "ss_port_board.c").read_text().split())
    assert f"({generator.SEED_BYTES} at a time)" in text and f"reads {health.START_UP} bytes" in text
    assert f"at least {health.CLAIMED_BITS} bits of min-entropy" in text


def test_the_bill_of_materials_lists_every_file_as_it_is(original):
    document = json.loads((original / "ss_sensor.spdx.json").read_text())
    listed = {record["fileName"]: record["checksums"][1]["checksumValue"] for record in document["files"]}
    left_out = document["packages"][0]["packageVerificationCode"]["packageVerificationCodeExcludedFiles"]
    assert left_out == ["./MANIFEST.json", "./ss_sensor.spdx.json"]
    there = {f"./{path.relative_to(original)}": path for path in original.rglob("*") if path.is_file()}
    wanted = {name: sha256(path.read_bytes()).hexdigest() for name, path in there.items()}
    assert listed == {name: digest for name, digest in wanted.items() if name not in left_out}


def test_platformio_s_manifest_names_what_is_there(original):
    library = json.loads((original / "library.json").read_text())
    build, example = library["build"], library["examples"][0]
    assert (original / build["includeDir"] / library["headers"]).exists()
    assert list((original / build["srcDir"]).glob("*.c")) and build["srcFilter"] == ["+<*.c>"]
    assert all((original / example["base"] / name).exists() for name in example["files"])
    assert len(library["description"]) <= 255 and re.fullmatch(r"[a-z0-9-]{1,50}", library["name"])


def test_every_misra_finding_has_a_reason(box):
    from sensorsim.codegen.compliance import unexplained

    findings = json.loads((box / "MANIFEST.json").read_text())["misra_findings"]
    assert findings and unexplained(findings) == []
