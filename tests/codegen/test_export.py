"""The package: what is in it, that it is the same every time, and that bad input leaves nothing behind."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill
from sensorsim.codegen.compliance import unexplained
from sensorsim.codegen.kernels_package import example, make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options, choose
from sensorsim.codegen.write import sha256, write_folder
from sensorsim.commands.program import main
from sensorsim.language.c.identifiers import Names
from sensorsim.language.load import find, load_file, shipped
from sensorsim.machine.targets import compile_host
from sensorsim.noise.noise_table import make_table, ready_table
from sensorsim.noise.table_file import parse_table, write_table


@pytest.fixture(scope="module")
def texts():
    return make_package(Options(("spof", "dpsgd"), "paper"))


@pytest.fixture
def package(texts, tmp_path):
    write_folder(tmp_path / "package", texts)
    return tmp_path / "package"


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes():
    assert make_package(Options(("spof",))) == make_package(Options(("spof",)))


def test_what_is_in_a_package(texts):
    assert set(texts) >= {
        *("include/ss_kernels.h", "src/ss_spof.c", "src/ss_tables.c", "src/ss_arithmetic.h", "test/ss_selftest.c"),
        *("test/golden.json", "CMakeLists.txt", "zephyr/module.yml", "library.json", "README.md", "MISRA.md"),
    }
    manifest = json.loads(texts["MANIFEST.json"])
    assert manifest["parameters"]["kernels"] == ["spof", "dpsgd"]
    assert manifest["operations"]["spof"]["MUL"] == "n"
    assert {record["module"] for record in manifest["kernel_sources"]} >= {
        *("sensorsim.kernels.spof", "sensorsim.kernels.dpsgd", "sensorsim.kernels.formats"),
        *("sensorsim.language.primitives", "sensorsim.language.c.helpers"),
    }
    sizes = manifest["sizes"]["by_function"]["ss_dpsgd"]
    assert sizes["cortex-m0plus"]["runtime"] == ["__aeabi_idiv", "__aeabi_uidiv"]
    assert sizes["cortex-m4"]["runtime"] == []
    assert unexplained(manifest["misra_findings"]) == []
    assert "e^a" in texts["include/ss_kernels.h"]


def test_the_first_line_is_the_command(texts, tmp_path):
    command = "sensorsim export --kernels spof,dpsgd --variant paper (sensorsim "
    for path, text in texts.items():
        if not path.endswith(".json") and path != "LICENSE":
            assert text.splitlines()[0].lstrip("/*#<!- ").startswith(command), path
    assert texts["src/ss_spof.c"].splitlines()[1] == "/* SPDX-License-Identifier: MIT */"
    assert json.loads(texts["MANIFEST.json"])["command"].startswith(command)
    options = Options((str(tmp_path / "my.py:ema"), "release"), noise=tmp_path / "t.txt", allow_uncertified=True)
    assert options.command.startswith(
        "sensorsim export --kernels my.py:ema,release --noise t.txt --allow-uncertified (sensorsim "
    )


def test_a_package_made_from_other_kernels_is_named(package):
    path = package / "MANIFEST.json"
    manifest = json.loads(path.read_text())
    record = next(record for record in manifest["kernel_sources"] if record["module"] == "sensorsim.kernels.spof")
    record["sha256"] = "0" * 64
    key = "sha256_of_this_file_without_this_line"
    del manifest[key]
    manifest[key] = sha256(json.dumps(manifest, indent=1) + "\n")
    path.write_text(json.dumps(manifest, indent=1) + "\n")
    with pytest.raises(InputError, match=r"spof\.py is not what"):
        open_package(package)


def test_a_folder_with_other_files_is_left_alone(texts, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.txt"):
        write_folder(tmp_path, texts)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="is a file"):
        write_folder(tmp_path / "mine.txt", texts)


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_nothing(failure, texts, tmp_path, monkeypatch):
    write = Path.write_text
    left = iter(range(5))

    def fails(self, *args, **options):
        if next(left, None) is None:
            raise failure
        return write(self, *args, **options)

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        write_folder(tmp_path / "package", texts)
    assert list(tmp_path.iterdir()) == []
    assert isinstance(failure, KeyboardInterrupt) or "No space left" in str(caught.value)


def test_a_rows_table_comes_with_its_arguments_and_what_its_symbols_stand_for(tmp_path):
    table = ready_table(1, 1)
    write_table(tmp_path / "noise.txt", table)
    texts = make_package(Options(("sampled",), noise=tmp_path / "noise.txt"))
    header, readme = texts["include/ss_kernels.h"], " ".join(texts["README.md"].split())
    assert "extern const uint16_t ss_noise_table[SS_NOISE_TABLE_ENTRIES];" in header
    assert f"#define SS_NOISE_CUTS {table.rows.symbols - 1}\n" in header
    assert "#define SS_NOISE_K 1\n" in header
    for value in table.rows.values():
        assert f"{float(value):.9g}" in header
    assert "ss_sampled_rows_search_one(x, word, chosen, y, SS_NOISE_N, ss_noise_table, SS_NOISE_CUTS" in readme
    assert "order" not in readme
    record = json.loads(texts["MANIFEST.json"])["noise_table"]
    assert record["certified"] is True and record["kind"] == "rows"


def test_one_bit_needs_no_table(tmp_path):
    table = ready_table("0.1", "all")
    write_table(tmp_path / "noise.txt", table)
    texts = make_package(Options(("release",), noise=tmp_path / "noise.txt"))
    base, slope = table.rows.one_bit()
    header = texts["include/ss_kernels.h"]
    assert f"#define SS_NOISE_BASE {base}\n" in header and f"#define SS_NOISE_SLOPE {slope}\n" in header
    assert "ss_noise_table" not in header and "src/ss_tables.c" not in texts
    assert "y, SS_NOISE_N, SS_NOISE_TOP, SS_NOISE_SLOPE" in " ".join(texts["README.md"].split())


@pytest.mark.slow
def test_a_stairs_table_comes_with_its_arguments(tmp_path):
    write_table(tmp_path / "noise.txt", ready_table(1, 1, "stairs"))
    texts = make_package(Options(("sampled",), noise=tmp_path / "noise.txt"))
    header = texts["include/ss_kernels.h"]
    assert "extern const int8_t ss_noise_table[SS_NOISE_TABLE_ENTRIES];" in header
    assert "#define SS_NOISE_STAIR_BITS" in header
    record = json.loads(texts["MANIFEST.json"])["noise_table"]
    assert record["certified"] is True
    assert record["certificate"]["epsilon_record"].startswith(("0.9", "1"))
    readme = " ".join(texts["README.md"].split())
    assert "ss_noise_table, SS_NOISE_MASK, SS_NOISE_OFFSET, SS_NOISE_LOWEST, SS_NOISE_LIMIT" in readme
    assert "#define SS_NOISE_LOWEST (-" in header
    assert "#define SS_NOISE_K 1\n" in header  # what the certificate speaks of is what the example calls
    assert "SS_NOISE_LIMIT, SS_NOISE_DROP, SS_NOISE_STAIR_BITS" in readme
    write_table(tmp_path / "three.txt", make_table("stairs", 3, 14, 3, entries=2**8))
    readme = make_package(Options(("sampled",), noise=tmp_path / "three.txt"))["README.md"]
    assert "SS_NOISE_N, SS_NOISE_K, ss_noise_table" in " ".join(readme.split())
    assert "static uint32_t order[14]; /* set up by you once" in readme
    with pytest.raises(InputError, match="no exported kernel can use"):
        make_package(Options(("spof",), noise=tmp_path / "noise.txt"))


def test_a_table_for_one_feature_is_not_used_to_release_all(tmp_path):
    """Its certificate speaks of one release per record; fourteen would spend fourteen times its epsilon."""
    write_table(tmp_path / "noise.txt", ready_table(1, 1))
    with pytest.raises(InputError, match="certified for 1 of 14 features"):
        make_package(Options(("release", "sampled"), noise=tmp_path / "noise.txt"))


def test_a_table_whose_bits_do_not_fit_one_word_is_refused(tmp_path):
    """2^18 entries and stairs of 2^15 need 33 bits of a 32-bit word: index and place would share one."""
    write_table(tmp_path / "noise.txt", make_table("stairs", 1, 14, 1, entries=2**18))
    with pytest.raises(InputError, match="make it with fewer entries"):
        make_package(Options(("sampled",), noise=tmp_path / "noise.txt"))


def test_a_table_that_protects_nothing_is_refused_or_marks_every_file(tmp_path):
    write_table(tmp_path / "naive.txt", make_table("naive", 1, entries=256))
    with pytest.raises(InputError, match="does not protect a record"):
        make_package(Options(("spof",), noise=tmp_path / "naive.txt"))
    texts = make_package(Options(("spof",), noise=tmp_path / "naive.txt", allow_uncertified=True))
    unmarked = [path for path, text in texts.items() if "NOT certified" not in text]
    assert unmarked == ["LICENSE", "tables/noise.txt"]  # the table as it was given: it says so in numbers
    given = parse_table(texts["tables/noise.txt"].encode(), "noise.txt")
    assert not given.certificate.holds(given.epsilon)


def test_a_trained_encoder_comes_as_constant_arrays(tmp_path):
    pytest.importorskip("sensorsim.kernels.encoder")
    rows = [[1, -2, 3], [-4, 5, 32767]]
    formats = {"weights": {"storage": "i16", "frac_bits": 11}, "bias": {"storage": "i32", "frac_bits": 13}}
    path = tmp_path / "encoder.json"
    own = {"schema_version": 2, "formats": formats, "columns": None, "ranges": None, "provenance": {}, "bias": [7, -7]}
    path.write_text(json.dumps({**own, "weights": rows}))
    texts = make_package(Options(("encoder",), encoder=path))
    assert (
        "const int16_t ss_encoder_weights[SS_ENCODER_WEIGHTS_ENTRIES] = { 1, -2, 3, -4, 5, 32767 };"
        in (texts["src/ss_tables.c"])
    )
    assert "#define SS_ENCODER_N 3" in texts["include/ss_kernels.h"]
    rows[1][2] = 32768
    path.write_text(json.dumps({**own, "weights": rows}))
    with pytest.raises(InputError, match="outside the kernel's range"):
        make_package(Options(("encoder",), encoder=path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "--out", "p", "--kernels", "absent.py:ema"], "cannot read absent.py: there is no such file"),
        (["export", "--out", "p", "--kernels", ","], "no kernel is named"),
        (["export", "--out", "p", "--kernels", "spof", "--budget-epsilon", "3"], "--budget-epsilon is for the sensor"),
        (["export", "--out", "p", "--allow-uncertified"], "a sensor is made of a certified table only"),
        (["export", "--out", "p", "--variant", "paper"], "--variant goes with --kernels"),
        (["export", "--out", "p", "--budget-epsilon", "1"], "allows no release that costs 1.59"),
        (["export", "--out", "p", "--reserve", "2"], "the reserve is 2; give 1 to 1"),
        (["export", "--out", "p", "--packet-numbers", "time"], "no number 'time'"),
        (["export", "--out", "p", "--prefix", "9x"], "cannot begin a C name"),
        (["export", "--out", "p", "--spdx", "*/"], "no SPDX licence"),
        (["verify", "absent"], "is no package"),
        (["verify", "y/" * 3000, "--jobs", "0"], "is no package"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def example_of(name):
    kernels = choose([name], "paper")
    return example(kernels[0], Names(kernels, "ss_"), None)


def test_the_readme_s_example_compiles(texts, tmp_path):
    fill(tmp_path, texts)
    for name, kernel in (("a", "spof"), ("b", "dpsgd")):
        (tmp_path / f"{name}.c").write_text(example_of(kernel) + "\n")
        compile_host([tmp_path / f"{name}.c"], [tmp_path / "include"], tmp_path / f"{name}.so")
    assert example_of("spof") in texts["README.md"]


def test_a_cmake_project_takes_the_package_and_runs_its_selftest(texts, tmp_path):
    if shutil.which("cmake") is None or shutil.which("cc") is None:
        pytest.skip("no cmake or no C compiler on this machine")
    fill(tmp_path / "privacy", texts)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(firmware C)\nenable_testing()\n"
        'option(SS_BUILD_SELFTEST "" ON)\nadd_subdirectory(privacy)\nadd_executable(app app.c)\n'
        "target_link_libraries(app PRIVATE ss_kernels)\n"
    )
    body = example_of("spof")
    (tmp_path / "app.c").write_text(body + "\nint main(void)\n{\n    return 0;\n}\n")
    run = lambda *command: subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)  # noqa: E731
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", "build")
    assert "100% tests passed, 0 tests failed out of 1" in run("ctest", "--test-dir", "build").stdout
    # A self-test that cannot fail proves nothing: one wrong golden number must be named by its vector.
    selftest = tmp_path / "privacy" / "test" / "ss_selftest.c"
    text = selftest.read_text()
    place = text.index("static bool vector_3")
    at = text.index("alpha2_expected[", place)
    start = text.index("{ ", at) + 2
    selftest.write_text(text[:start] + "12345 + " + text[start:])
    run("cmake", "--build", "build")
    assert subprocess.run([tmp_path / "build" / "privacy" / "ss_selftest"]).returncode == 3


EMA = '''"""Averages."""

from __future__ import annotations

from near import RATE, SHIFT

from sensorsim.kernels.formats import UNIT, N, X
from sensorsim.kernels.spof import feature
from sensorsim.language import add, asr, kernel, max_, min_, out, sub


@kernel(step="average")
def blend(old: UNIT, x: X, rate: RATE) -> UNIT:
    """One step toward x."""
    return min_(max_(add(old, asr(sub(feature(x), old), rate)), 0), 32768)


@kernel()
def ema(x: X["n"], start: UNIT, rate: RATE, y: out(UNIT["n"]), n: N) -> UNIT:
    """The average of a record, and where it came by."""
    last = start
    for i in range(n):
        last = blend(last, x[i], rate)
        y[i] = asr(last, SHIFT)
    return last
'''
NEAR = """from sensorsim.language import Q

RATE = Q("rate", "u8", 0, 1, 8, "how slowly")
SHIFT = 1
"""


@pytest.fixture
def stranger(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "ema.py").write_text(EMA, "utf-8")
    (folder / "near.py").write_text(NEAR, "utf-8")
    return folder


@pytest.mark.slow
def test_a_stranger_s_kernel_goes_through_export_and_verify(stranger, tmp_path, capsys):
    """The package carries its sources, so that it can be verified where the file never was."""
    main(["export", "--out", str(tmp_path / "p"), "--kernels", f"{stranger / 'ema.py'}:ema,release"])
    manifest = json.loads((tmp_path / "p" / "MANIFEST.json").read_text())
    assert manifest["functions"] == {
        "ss_ema": {"kernel": "ema", "file": "kernel_sources/ema.py"},
        "ss_release_rows_search": {"kernel": "rows_search.release_rows_search"},
    }
    files = {record["file"]: record["sha256"] for record in manifest["kernel_sources"]}
    assert files["kernel_sources/near.py"] == sha256(NEAR)
    shutil.rmtree(stranger)
    capsys.readouterr()
    few = ["--random-host", "300", "--random-core", "60"]
    main(["verify", str(tmp_path / "p"), "--target", "host,cortex-m0plus", *few, "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert data["passed"] is True
    ema = next(row for row in data["results"] if (row["kernel"], row["target"]) == ("ema", "cortex-m0plus"))
    assert ema["same_path_proved"] is True
    assert ema["differing_bits"] == 0
    carried = sorted(path.name for path in (tmp_path / "p" / "kernel_sources").iterdir())
    assert carried == ["ema.py", "kernels.json", "near.py"]
    (tmp_path / "p" / "kernel_sources" / "near.py").write_text(NEAR.replace("SHIFT = 1", "SHIFT = 2"))
    with pytest.raises(InputError, match=r"near\.py was altered"):
        open_package(tmp_path / "p")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", r"bad\.py:1: invalid syntax"),
        ("import absent_module\n", r"bad\.py:1: No module named 'absent_module'"),
        ("x = 1\ny = x / 0\n", r"bad\.py:2: ZeroDivisionError"),
        ("x = 1\n", "declares no kernel"),
        ("from sensorsim.language import kernel\n@kernel()\ndef f(a):\n    return a\n", r"bad\.py:3: "),
        ("open('/nowhere/at/all')\n", r"bad\.py:1: "),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence_with_its_line(text, message, tmp_path):
    (tmp_path / "bad.py").write_text(text, "utf-8")
    with pytest.raises(InputError, match=message) as caught:
        find(str(tmp_path / "bad.py"))
    assert len(str(caught.value).splitlines()) == 1


def test_files_of_one_name_and_their_neighbours_are_kept_apart(stranger, tmp_path):
    other = shutil.copytree(stranger, tmp_path / "others")
    (other / "near.py").write_text(NEAR.replace("SHIFT = 1", "SHIFT = 2"))
    first, second = (find(f"{folder / 'ema.py'}:ema")[0] for folder in (stranger, other))
    assert first.module != second.module
    y = [0]
    first([65535], 32768, 1, y, 1)
    assert y == [16384]
    second([65535], 32768, 1, y, 1)
    assert y == [8192]
    assert load_file(stranger / "ema.py").ema is first
    (stranger / "ema.py").write_text(EMA.replace("asr(last, SHIFT)", "asr(last, 3)"), "utf-8")
    assert load_file(stranger / "ema.py").ema is not first  # a changed file is read again
    assert not list(tmp_path.rglob("__pycache__"))


def test_kernels_are_found_by_every_way_of_naming_them(stranger):
    path = str(stranger / "ema.py")
    assert [k.name for k in find(path)] == ["blend", "ema"]
    assert [k.name for k in find(f"{path}:ema:blend")] == ["ema", "blend"]
    assert [k.qualified for k in find(f"spof,{path}:ema,blend,dpsgd.total")][0::3] == ["spof.spof", "dpsgd.total"]
    with pytest.raises(InputError, match=r"declares no kernel 'emma' .did you mean ema.*; it has blend, ema"):
        find(f"{path}:emma")
    assert "stairs.release_stairs" in shipped()


def test_an_edited_package_and_a_link_are_not_replaced(tmp_path):
    texts = make_package(Options(("spof",)))
    write_folder(tmp_path / "p", texts)
    (tmp_path / "p" / "build").mkdir()
    (tmp_path / "p" / "build" / "a.o").write_text("what make built")
    write_folder(tmp_path / "p", texts)
    assert not (tmp_path / "p" / "build").exists()
    source = tmp_path / "p" / "src" / "ss_spof_lean.c"
    source.write_text(source.read_text() + "/* mine */\n")
    with pytest.raises(InputError, match="was edited since the export"):
        write_folder(tmp_path / "p", texts)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with pytest.raises(InputError, match="is a link"):
        write_folder(tmp_path / "link", texts)
    assert (tmp_path / "link").is_symlink() and not list((tmp_path / "empty").iterdir())
