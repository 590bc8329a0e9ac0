"""An exported sensor under a prefix of the team's own: nothing of it keeps the usual one."""

import re

import pytest
from exported import BOARDS, STRICT, export, need, run

from sensorsim.codegen.package_options import Options
from sensorsim.codegen.rendering import template
from sensorsim.codegen.sensor_package import PORTS, _build_files, firmware_of


def test_no_name_of_a_template_escapes_the_prefix():
    """Under another prefix two sensors live in one program; CONFIG_SS_ and libss_ would not."""
    options = Options(prefix="acme_")
    texts = _build_files({}, firmware_of(options), options, "")
    texts |= {path: template(f"sensor/{path}", "acme_") for path in PORTS}
    for path, text in texts.items():
        assert re.findall(r"(?i)\w*(?<![a-z])ss_\w*", text) == [] and text.isascii(), path


TWO = """\
#include "acme_port_host.h"
#include "acme_sensor.h"
#include "ss_port_host.h"
#include "ss_sensor.h"
int main(void)
{
    static ss_sensor one;
    static acme_sensor two;
    ss_port first;
    acme_port second;
    return (ss_port_host(&first, "one") != 0) || (ss_sensor_open(&one, &first) != SS_OK) ||
           (acme_port_host(&second, "two") != 0) || (acme_sensor_open(&two, &second) != ACME_OK);
}
"""


@pytest.mark.slow
def test_sensors_of_two_prefixes_live_in_one_program(tmp_path):
    need("cmake", "cc", "make")
    box, other = export(tmp_path / "box"), export(tmp_path / "other", prefix="acme_")
    (tmp_path / "app.c").write_text(TWO)
    ports = [folder / "ports" / "host" for folder in (box, other)]
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(firmware C)\nenable_testing()\n"
        f"add_subdirectory({box} one)\nadd_subdirectory({other} two)\n"
        f"add_executable(app app.c {ports[0]}/ss_port_host.c {ports[1]}/acme_port_host.c)\n"
        f"target_include_directories(app PRIVATE {ports[0]} {ports[1]})\n"
        "target_link_libraries(app PRIVATE ss::sensor acme::sensor)\n"
    )
    options = ("-DSS_BUILD_SELFTEST=ON", "-DACME_BUILD_SELFTEST=ON", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", *options)
    run("cmake", "--build", tmp_path / "build")
    assert "100% tests passed, 0 tests failed out of 2" in run("ctest", "--test-dir", tmp_path / "build").stdout
    run(tmp_path / "build" / "app", cwd=tmp_path)
    run("make", "selftest", "example", "install", f"PREFIX={tmp_path / 'usr'}", cwd=other)
    assert (tmp_path / "usr" / "lib" / "libacme_sensor.a").exists()


@pytest.mark.slow
def test_the_zephyr_port_has_settings_of_its_own_name(tmp_path):
    box = export(tmp_path / "box", prefix="acme_")
    folders = (BOARDS / "zephyr" / "include", box / "include", box / "ports" / "zephyr")
    flags = (
        "-std=c99",
        "-D_POSIX_C_SOURCE=200809L",
        *STRICT,
        "-DCONFIG_ACME_NVS_FIRST_ID=1",
        "-DSTUB_EXISTS_acme_partition=0",
    )
    port = box / "ports" / "zephyr" / "acme_port_zephyr.c"
    run(need("cc"), *flags, *(f"-I{folder}" for folder in folders), "-c", port, "-o", tmp_path / "port.o")
    for name in ("Kconfig", "CMakeLists.txt"):
        assert "ACME_BUDGET" in (box / "zephyr" / name).read_text()
