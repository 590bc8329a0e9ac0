"""The Zephyr module of an exported sensor: its port on a stub of Zephyr's headers, its Kconfig and its CMake file."""

import pytest
from exported import BOARDS, STRICT, export, need, run

pytestmark = pytest.mark.slow  # a package of its own is exported first


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    return export(tmp_path_factory.mktemp("sensor") / "box")


ZEPHYR = BOARDS / "zephyr"
FLAGS = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-DCONFIG_SS_NVS_FIRST_ID=21322", *STRICT)


def zephyr_includes(box):
    folders = (ZEPHYR / "include", ZEPHYR, box / "include", box / "src", box / "ports" / "zephyr")
    return [f"-I{folder}" for folder in folders]


@pytest.mark.parametrize("partition", ["storage_partition", "ss_partition"])
def test_the_zephyr_port_lives_through_mishaps_on_a_stub_of_zephyr(partition, box, tmp_path):
    cc = need("cc")
    own = ["-DOWN_PARTITION", "-DCONFIG_SETTINGS_NVS"] if partition == "ss_partition" else []
    sources = [*(box / "src").glob("*.c"), *(box / "ports" / "zephyr").glob("*.c"), *ZEPHYR.glob("*.c")]
    run(cc, *FLAGS, *own, *zephyr_includes(box), *sources, "-o", tmp_path / "app")
    assert run(tmp_path / "app").stdout == ""


@pytest.mark.parametrize(
    ("define", "message"),
    [("CONFIG_NVS_INIT_BAD_REGION", "switch it off"), ("CONFIG_SETTINGS_NVS", "add a partition ss_partition")],
)
def test_a_zephyr_that_would_lose_the_journal_does_not_compile(define, message, box, tmp_path):
    port = box / "ports" / "zephyr" / "ss_port_zephyr.c"
    command = (need("cc"), *FLAGS, f"-D{define}", *zephyr_includes(box), "-c", port, "-o", tmp_path / "port.o")
    assert message in run(*command, code=1).stderr


def test_the_zephyr_module_names_what_is_there(box, tmp_path):
    need("cmake")
    said = ("zephyr_library", "zephyr_include_directories", "zephyr_compile_definitions", "zephyr_library_sources")
    stubs = "".join(f'function({name})\n  message("{name} ${{ARGN}}")\nendfunction()\n' for name in said)
    stubs += "function(zephyr_library_include_directories)\nendfunction()\n"
    settings = "".join(f"set(CONFIG_SS_{key} {value})\n" for key, value in
                       {"SENSOR": "y", "ZEPHYR_PORT": "y", "BUDGET": 7, "RESERVE": 2}.items())  # fmt: skip
    (tmp_path / "run.cmake").write_text(stubs + settings + f"include({box / 'zephyr' / 'CMakeLists.txt'})\n")
    lines = run("cmake", "-P", tmp_path / "run.cmake").stderr.splitlines()
    assert "zephyr_compile_definitions SS_BUDGET=7;SS_RESERVE=2" in lines
    sources = [line.split()[1] for line in lines if line.startswith("zephyr_library_sources")]
    wanted = {*(box / "src").glob("*.c"), box / "ports" / "zephyr" / "ss_port_zephyr.c"}
    assert {(box / "zephyr" / path).resolve() for path in sources} == {path.resolve() for path in wanted}


def test_kconfig_lets_a_team_spend_less_and_never_more(box):
    kconfiglib = pytest.importorskip("kconfiglib", reason="kconfiglib is not installed")
    settings = kconfiglib.Kconfig(str(box / "zephyr" / "Kconfig"), warn_to_stderr=False)
    value = lambda name: settings.syms[name].str_value  # noqa: E731
    settings.syms["SS_SENSOR"].set_value("y")
    assert (value("SS_BUDGET"), value("SS_RESERVE"), value("SS_ZEPHYR_PORT")) == ("625", "1", "n")  # no flash there
    for asked, given in (("12", "12"), ("626", "625"), ("0", "625")):
        settings.syms["SS_BUDGET"].unset_value()
        settings.syms["SS_BUDGET"].set_value(asked)
        assert value("SS_BUDGET") == given
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    module = yaml.safe_load((box / "zephyr" / "module.yml").read_text())
    assert module == {"name": "ss-sensor", "build": {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}}
