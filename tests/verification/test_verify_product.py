"""The proof covers the product: whatever is changed in a package, with all hashes repaired, is named."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from exported import refresh

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.commands.program import main
from sensorsim.noise.kinds.rows_table import RowsTable
from sensorsim.noise.noise_table import certified, make_table, ready_table
from sensorsim.noise.table_file import read_table, write_table
from sensorsim.verification import verification as steps_module
from sensorsim.verification.audited_package import Release
from sensorsim.verification.bits import Effort
from sensorsim.verification.every_draw import draw_proof
from sensorsim.verification.package_checks import differences, read_tables, table_in, table_proofs
from sensorsim.verification.step_runner import Worker
from sensorsim.verification.verification import Setup, Step, selftest_on_host, verify

FEW = ["--random-core", "40", "--random-host", "40"]
STRANGER = '''"""A kernel of my own."""
from sensorsim.kernels.formats import RANDOM
from sensorsim.language import kernel, xor


@kernel()
def mixed(word: RANDOM) -> RANDOM:
    """A word with some bits turned.

    Scaling and overflow: there is nothing to overflow.
    """
    return xor(word, 5)
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Options of a package with a table and a stranger's kernel, and its files."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "own.py").write_text(STRANGER, "utf-8")
    write_table(folder / "t.txt", ready_table("1.6", 1))
    options = Options(("sampled", str(folder / "own.py:mixed")), noise=folder / "t.txt")
    return options, make_package(options)


@pytest.fixture
def package(made, tmp_path):
    write_folder(tmp_path / "p", made[1])
    return tmp_path / "p"


@pytest.fixture
def again(made):
    """Export, which knows what it made of the same options already."""
    wanted, texts = made

    def make(options, load, as_data):
        known = options.noise.read_bytes() == wanted.noise.read_bytes() if options.noise else False
        return texts if known and options.command == wanted.command else make_package(options, load, as_data)

    return make


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def edit(folder, change_data):
    """Change the manifest, and repair its own hash."""
    path = folder / "MANIFEST.json"
    data = json.loads(path.read_text())
    change_data(data)
    path.write_text(json.dumps(data, indent=1) + "\n")
    refresh(folder)


def test_a_package_is_written_anew_to_the_same_bytes(package):
    """By export itself, from nothing but the folder: the table and the stranger's kernel are in it."""
    before = sorted(path for path in package.rglob("*"))
    assert differences(open_package(package)) == []
    assert sorted(path for path in package.rglob("*")) == before  # and nothing is left behind


def flip(folder, seed):
    """One changed byte somewhere in the package, hashes repaired where that is possible; the file."""
    chance = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[seed % len(files)]
    data = bytearray(path.read_bytes())
    place = chance.randrange(len(data))
    data[place] = chance.choice([byte for byte in range(256) if byte != data[place]])
    path.write_bytes(data)
    try:
        refresh(folder)
    except (ValueError, KeyError, TypeError, AttributeError):
        assert path.name == "MANIFEST.json"
    return path.relative_to(folder).as_posix()


def named(folder, make):
    """What is said of the package's files."""
    try:
        return "; ".join(differences(open_package(folder), make))
    except InputError as error:
        assert isinstance(error, FailedProofError), error
        return str(error)


@pytest.mark.parametrize("seed", [*range(12), 1000, 2003, 3001])
def test_any_changed_byte_is_named(made, package, again, seed):
    file = flip(package, seed)
    if file == "MANIFEST.json" and whole(package, made[1]):
        return  # a changed hash: the repair undid it
    said = named(package, again)
    assert file in said or "MANIFEST.json" in said or Path(file).name in said


@pytest.mark.parametrize("step", [149, pytest.param(1, marks=pytest.mark.slow)])
def test_every_changed_byte_of_the_manifest_is_found(package, step):
    """Also one that JSON reads as the same value: white space, and the last digit of a number with too many."""
    path = package / "MANIFEST.json"
    content = path.read_bytes()
    assert open_package(package)
    for place in range(0, len(content), step):
        for other in {*b" \t\r\n0", content[place] ^ 1} - {content[place]}:
            path.write_bytes(content[:place] + bytes([other]) + content[place + 1 :])
            with pytest.raises(FailedProofError):
                open_package(package)
                pytest.fail(f"byte {place} may be {other}: {content[max(place - 20, 0) : place + 20]!r}")


SAME_VALUES = {
    "a key twice": lambda text: text.replace('{\n "schema_version"', '{\n "schema_version": 4,\n "schema_version"', 1),
    "digits too many": lambda text: re.sub(r"( \d+\.\d+)(,?\n)", r"\g<1>0\2", text, count=1),
    "a letter": lambda text: text.replace('"sensorsim"', r'"\u0073ensorsim"', 1),
    "one line": lambda text: json.dumps(json.loads(text)) + "\n",
    "no end of line": lambda text: text.removesuffix("\n"),
    "ends of lines": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("what", SAME_VALUES)
def test_a_manifest_of_the_same_values_in_other_bytes_is_found(package, what):
    path = package / "MANIFEST.json"
    text = path.read_bytes().decode()
    path.write_bytes(SAME_VALUES[what](text).encode())
    assert path.read_bytes().decode() != text and json.loads(path.read_bytes()) == json.loads(text)
    with pytest.raises(
        FailedProofError, match=r"MANIFEST\.json was altered: its bytes are not those that export writes"
    ):
        open_package(package)


def whole(folder, texts):
    return all((folder / name).read_bytes() == text.encode() for name, text in texts.items())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_any_changed_byte_is_named_often(made, again, tmp_path, part):
    for seed in range(100 * part, 100 * part + 60):
        folder = tmp_path / f"p{seed}"
        write_folder(folder, made[1])
        file = flip(folder, 7919 * seed + 13)
        assert whole(folder, made[1]) or named(folder, again), file
        shutil.rmtree(folder)


def test_what_make_built_is_named_with_the_way_out(package):
    (package / "build").mkdir()
    (package / "build" / "evil.c").write_text("int more;\n")
    with pytest.raises(
        FailedProofError, match=r"build holds what `make` built.*`make clean` in the package removes it\.$"
    ):
        open_package(package)


@pytest.mark.parametrize("file", ["x.c", "src/ss_more.h", ".hidden", "test/.a/b", "kernel_sources/__pycache__/own.pyc"])
def test_an_added_file_is_named_listed_or_not(package, again, file):
    (package / file).parent.mkdir(parents=True, exist_ok=True)
    (package / file).write_text("int more;\n")
    with pytest.raises(FailedProofError, match=re.escape(f"{package / file} does not belong to the package")):
        open_package(package)
    refresh(package, file)
    assert file in named(package, again)


def test_a_missing_file_and_a_link_are_named(package, again):
    (package / "LICENSE").unlink()
    refresh(package)
    assert "LICENSE is missing" in named(package, again)
    (package / "LICENSE").symlink_to(package / "README.md")
    refresh(package, "LICENSE")
    assert "LICENSE is a link" in named(package, again)


@pytest.mark.parametrize(
    ("what", "changed", "said"),
    [
        ("spdx", lambda d: d["parameters"].update(spdx="GPL-3.0-only"), "LICENSE differs"),
        ("type", lambda d: d["parameters"].update(reserve="1"), "parameter `reserve`"),
        ("asked", lambda d: d["parameters"].update(asked=["/etc/evil.py:x"]), "no kernel of the package"),
        ("comma", lambda d: d["parameters"].update(asked=["sampled,/etc/evil.py"]), "no kernel of the package"),
        ("name", lambda d: d["parameters"].update(noise="../t.txt"), "no copy"),
        ("refused", lambda d: d["parameters"].update(budget_days=3), "export refuses"),
        ("files", lambda d: d.update(files=[]), "`files`"),
        ("version", lambda d: d.update(sensorsim="9.9.9"), "names sensorsim 9.9.9"),
        ("schema", lambda d: d.update(schema_version=1), "of version 1"),
        ("tool", lambda d: d["tools"].update(compiler="clang 1 by ziglang 1"), "its compiler is clang 1"),
        ("function", lambda d: d["functions"]["ss_mixed"].update(file="/etc/evil.py"), "names no file '/etc/evil.py'"),
        ("order", lambda d: d.update(command=d.pop("command")), "MANIFEST.json differs"),
    ],
)
def test_an_altered_manifest_is_named(package, again, what, changed, said):
    if what == "files":
        path = package / "MANIFEST.json"
        data = json.loads(path.read_text())
        changed(data)
        path.write_text(json.dumps(data))
    else:
        edit(package, changed)
    assert said in named(package, again)


def test_what_is_no_package_or_another_version_s_is_another_question(package, again, tmp_path):
    def of_another(data):
        data["sensorsim"] = "9.9.9"
        data["command"] = data["command"].replace(data_version, "9.9.9")

    data_version = json.loads((package / "MANIFEST.json").read_text())["sensorsim"]
    edit(package, of_another)
    with pytest.raises(InputError, match=r"made by sensorsim 9\.9\.9 and .*pip install sensorsim==9\.9\.9") as e:
        open_package(package)
    assert not isinstance(e.value, FailedProofError)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "MANIFEST.json").write_text('{"name": "another tool"}')
    with pytest.raises(InputError, match="is no package") as e:
        open_package(tmp_path / "other")
    assert not isinstance(e.value, FailedProofError)


TABLES = [
    *(ready_table(eps, release, kind) for eps in ("0.1", "1.6", "6.4") for release in (1, "all")
      for kind in ("rows", "stairs")),
    make_table("rows", "6.4", release=1, count_bits=8),
    make_table("naive", "4", entries=256),
    make_table("quantile", "4", entries=256),
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=lambda t: f"{t.kind}-{t.epsilon}-{t.release}")
def test_a_table_is_read_back_from_what_firmware_stores(table):
    constants = table.c_constants()
    sizes = {"n": table.features, "k": table.release} if table.for_releases else {}
    back = certified(table.from_c(table.c_array()[1], sizes | constants))
    assert back.c_array() == table.c_array()
    assert back.c_constants() == constants
    assert back.certificate == certified(table).certificate


def test_thresholds_that_fall_are_no_table():
    table = ready_table("1.6", 1)
    values = list(table.c_array()[1])
    values[0], values[1] = values[1], values[0]
    with pytest.raises(ValueError, match="0 or more"):
        certified(table.from_c(values, {"n": 14, "k": 1} | table.c_constants()))


def proofs(folder, build, targets=("host", "cortex-m0plus")):
    found = table_proofs(open_package(folder), targets, build)
    return {proof.name: proof for proof in found}


def test_the_table_is_certified_from_the_code(package, tmp_path):
    found = proofs(package, tmp_path)
    assert found["table"].passed and found["certificate"].passed
    assert "n = 14, k = 1, cuts = 4, knot_bits = 2" in found["table"].detail
    assert str(certified(ready_table("1.6", 1)).certificate.epsilon_record) in found["certificate"].detail


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("src/ss_tables.c", "{\n    32966U", "{\n    32967U", "ss_noise_table[0]"),
        ("include/ss_kernels.h", "SS_NOISE_KNOT_BITS 2", "SS_NOISE_KNOT_BITS 1", "SS_NOISE_KNOT_BITS is 1"),
        ("include/ss_kernels.h", "SS_NOISE_K 1", "SS_NOISE_K 2", "SS_NOISE_K is 2"),
    ],
)
def test_a_changed_table_or_constant_is_named(package, tmp_path, file, old, new, said):
    change(package / file, old, new)
    refresh(package)
    found = proofs(package, tmp_path)["table"]
    assert not found.passed
    assert said in found.detail
    assert "cortex-m0plus" in found.detail


def test_a_table_of_zeros_protects_nothing_and_is_named(package, tmp_path):
    path = package / "src/ss_tables.c"
    head, tail = path.read_text().split("ss_noise_table[SS_NOISE_TABLE_ENTRIES] = {")
    path.write_text(head + "ss_noise_table[SS_NOISE_TABLE_ENTRIES] = {" + re.sub(r"\d+U", "0U", tail))
    refresh(package)
    found = proofs(package, tmp_path)["table"]
    assert not found.passed
    assert "ss_noise_table[0]" in found.detail
    drawn = draw_proof(open_package(package), tmp_path)[0]
    assert not drawn.passed
    assert "as compiled has epsilon" in drawn.detail


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("MANIFEST.json", "1.599958023791", "0.100000000000", "noise_table.certificate.epsilon_re"),
        ("include/ss_kernels.h", "1.599958023791", "0.100000000000", "include/ss_kernels.h"),
        ("src/ss_tables.c", "1.599958023791", "0.100000000000", "src/ss_tables.c"),
        ("include/ss_kernels.h", "1.19680888", "1.29680888", "symbol values"),
    ],
)
def test_an_edited_certificate_is_named(package, tmp_path, file, old, new, said):
    change(package / file, old, new)
    refresh(package)
    found = proofs(package, tmp_path, ["host"])["certificate"]
    assert not found.passed and said in found.detail


def test_a_certificate_edited_in_the_table_s_own_file_is_named(package, tmp_path):
    path = package / "tables/noise.txt"
    body = path.read_text().rpartition("sha256 ")[0].replace("epsilon_record 1.599958023791", "epsilon_record 0.1")
    path.write_text(body + f"sha256 {hashlib.sha256(body.encode()).hexdigest()}\n")
    assert read_table(path).certificate.epsilon_record < 1
    refresh(package)
    found = proofs(package, tmp_path, ["host"])["certificate"]
    assert "tables/noise.txt says epsilon_record 0.1, its counts prove 1.599958023791" in found.detail


def test_the_table_of_a_linked_program(package, tmp_path):
    from sensorsim.machine.elf import read_elf
    from sensorsim.machine.targets import TARGETS, compile_elf

    opened = open_package(package)
    keep = tmp_path / "keep.c"
    head = "const void *keep(void)"
    keep.write_text(f'#include "ss_kernels.h"\n{head};\n{head} {{ return ss_noise_table; }}\n')

    def linked():
        sources = [package / "src" / "ss_tables.c", keep]
        out = compile_elf(TARGETS["rv32imc"], sources, opened.include, "keep", tmp_path / "keep.elf")
        return read_elf(out.read_bytes())

    assert table_in(linked(), opened).certificate == read_tables(opened).table.certificate
    change(package / "src/ss_tables.c", "6656U", "6657U")
    with pytest.raises(FailedProofError, match=r"ss_noise_table\[8\] in the program"):
        table_in(linked(), opened)


def small_package(folder, table):
    write_table(folder / "t.txt", table)
    kernel = "sampled" if table.sampled else "release"
    write_folder(folder / "p", make_package(Options((kernel,), noise=folder / "t.txt")))
    return open_package(folder / "p")


def naive_ratio(table):
    """Of the counts of rows, by plain loops over every knot and symbol."""
    rows = table.rows.all_counts()
    worst = Fraction(1)
    for symbol in range(len(rows[0])):
        for one in rows:
            for other in rows:
                worst = max(worst, Fraction(one[symbol], other[symbol]))
    return worst


@pytest.mark.slow
def test_every_draw_of_the_compiled_release(package, tmp_path):
    """Of five knots by a search of thresholds, 2^29 words by their two parts; some of them by the plain rule too."""
    import numpy as np

    opened = open_package(package)
    (proof,) = draw_proof(opened, tmp_path)
    assert proof.passed
    assert "observed epsilon 1.599958023791, as certified" in proof.detail
    assert "each of 14 features is picked as often" in proof.detail
    table = ready_table("1.6", 1)
    assert isinstance(table, RowsTable) and naive_ratio(table) == certified(table).certificate.ratio
    release = Release(opened, opened.kernels[0], tmp_path)
    words = np.random.default_rng(3).integers(0, 2**32, 300, np.uint32)
    for x in (0, 5000, 16384, 32768):
        want = []
        for word in map(int, words):
            row = table.counts[(x + word % 2**13) // 2**13]
            drawn, symbol = word // 2**16, 0
            while drawn >= sum(row[: symbol + 1]):
                symbol += 1
            want.append(symbol)
        assert release.draw(words, x).tolist() == want


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("src/ss_rows.h", "(drawn, cut)", "(drawn, cut + 1U)", "as compiled has epsilon"),
        ("src/ss_choice.h", ", left) >>", ", left - 1U) >>", "picks other features"),
    ],
)
def test_a_draw_that_was_altered_is_seen_in_its_likelihoods(package, tmp_path, file, old, new, said):
    path = package / file if (package / file).exists() else package / file.replace(".h", ".c")
    change(path, old, new)
    refresh(package)
    (proof,) = draw_proof(open_package(package), tmp_path)
    assert not proof.passed
    assert said in proof.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        make_table("rows", "0.3", release=1, symbols=2, knots=2),
        make_table("rows", "1.6", release=3),
        make_table("rows", "6.4", release=1, count_bits=8),
        make_table("stairs", "8", release=1, entries=1 << 10),
        ready_table("1.6", 1, "stairs"),
        ready_table("6.4", "all", "stairs"),
        ready_table("6.4", "all"),
        ready_table("6.4", 1),
    ],
    ids=lambda t: f"{t.kind}-{t.epsilon}-{t.release}",
)
def test_every_draw_of_every_kind(table, tmp_path):
    opened = small_package(tmp_path, table)
    (proof,) = draw_proof(opened, tmp_path)
    assert proof.passed
    epsilon = certified(table).certificate.epsilon_release
    assert f"observed epsilon {epsilon}, as certified" in proof.detail
    assert all(one.passed for one in table_proofs(opened, ["host", "k7"], tmp_path))


def test_a_self_test_that_never_ends_is_ended(package, tmp_path, monkeypatch):
    monkeypatch.setattr(steps_module, "SELFTEST_SECONDS", 1)
    monkeypatch.setattr(steps_module, "compile_host", looping)
    with pytest.raises(FailedProofError, match="no answer on host in 1 s"):
        selftest_on_host(open_package(package), tmp_path)


def looping(sources, include, out):
    """A library whose self-test never ends."""
    from sensorsim.machine.targets import compile_host

    source = out.with_suffix(".c")
    head = "unsigned ss_selftest(void)"
    source.write_text(f"{head};\n{head} {{ volatile int a = 0; while (a == 0) {{}} return 0; }}")
    return compile_host([source], [], out)


def test_a_process_that_is_lost_is_a_failed_proof_and_leaves_nothing(package, tmp_path):
    setup = Setup(package, tmp_path, ("host",), Effort(10, 10, 4), 0, False)
    worker = Worker(setup, "w")
    assert worker.do(Step("self-test", "self-test on host", "host")) is None
    process = worker.process
    os.killpg(process.pid, 9)
    with pytest.raises(FailedProofError, match="a step: the code ended the process"):
        worker.do(Step("self-test", "a step", "host"))
    assert process.poll() is not None
    assert worker.do(Step("self-test", "self-test on host", "host")) is None  # started again
    process = worker.process
    worker.end()
    assert process.poll() is not None


@pytest.mark.slow
def test_a_report_says_what_was_proved_and_an_altered_package_all_that_fails(made, package, capsys):
    report = verify(package, ["host"], Effort(40, 40, 8), made=made[1])
    assert [p.name for p in report.proofs] == [
        *("files", "table", "certificate", "every draw", "self-test", "bits", "UBSan")
    ]
    assert report.passed
    change(package / "src/ss_tables.c", "32966U", "32000U")
    (package / "test/golden.json").write_text('{"schema_version": 4, "vectors": []}')
    change(package / "README.md", "#", "# Safe ")
    refresh(package)
    with pytest.raises(SystemExit) as caught:
        main(["verify", str(package), "--target", "host", *FEW, "--format", "json"])
    assert caught.value.code == 1
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 2
    assert data["passed"] is False
    failing = {proof["name"]: proof["detail"] for proof in data["proofs"] if not proof["passed"]}
    assert failing.keys() == {"files", "table", "every draw"}
    for file in ("src/ss_tables.c differs at line", "test/golden.json differs", "README.md differs"):
        assert file in failing["files"]


@pytest.mark.slow
def test_a_sensor_and_its_encoder_are_proved_in_two_processes(tmp_path):
    from importlib.resources import files

    encoder = Path(str(files("sensorsim.tables") / "encoders" / "default.json"))
    write_table(tmp_path / "t.txt", make_table("stairs", "3.2", features=7, release=1, entries=256))
    options = Options(
        noise=tmp_path / "t.txt", encoder=encoder, budget_epsilon="16", budget_days=7, reserve=2, prefix="my_",
        packet_numbers=("epoch",), spdx="Apache-2.0",
    )  # fmt: skip
    write_folder(tmp_path / "p", make_package(options))
    assert "accuracy" not in (tmp_path / "p" / "tables/encoder.json").read_text()
    few = ["--random-core", "60", "--random-host", "60", "--jobs", "2", "--target", "host,cortex-m0plus"]
    done = subprocess.run([sys.executable, "-m", "sensorsim", "verify", str(tmp_path / "p"), *few], capture_output=True)
    assert done.returncode == 0, done
    change(tmp_path / "p" / "src/my_tables.h", "#define MY_NOISE_STAIR_BITS 1", "#define MY_NOISE_STAIR_BITS 01")
    refresh(tmp_path / "p")
    done = subprocess.run([sys.executable, "-m", "sensorsim", "verify", str(tmp_path / "p"), *few], capture_output=True)
    assert done.returncode == 1
    assert b"src/my_tables.h differs" in done.stdout and b"STAIR_BITS" in done.stdout


def fifo(path):
    os.mkfifo(path)


def link(path):
    beside = path.parent.parent / "beside"
    path.rename(beside) if path.exists() else beside.touch()
    path.symlink_to(beside)


@pytest.mark.parametrize(
    "name", ["MANIFEST.json", "test/golden.json", "kernel_sources/own.py", "MISRA.md", "src/new.c"]
)
@pytest.mark.parametrize(("kind", "said"), [(fifo, "is no ordinary file"), (link, "is a link")])
def test_only_ordinary_files_are_read(name, kind, said, package):
    """A pipe has no end, and behind a link is another file, even where the bytes are the same."""
    path = package / name
    if kind is fifo:
        path.unlink(missing_ok=True)
    kind(path)
    with pytest.raises(FailedProofError) as caught:
        open_package(package)
    assert f"{path} {'does not belong to the package' if name == 'src/new.c' else said}" in str(caught.value)


def test_a_pipe_is_not_opened_to_look_for_a_version(package):
    """A manifest of another version has the golden vectors read before any hash."""
    edit(package, lambda data: data.update(schema_version=5))
    (package / "test/golden.json").unlink()
    os.mkfifo(package / "test/golden.json")
    with pytest.raises(FailedProofError, match="it is of version 5"):
        open_package(package)


def test_the_comparison_reads_ordinary_files_only(package, made):
    opened = open_package(package)
    (package / "README.md").unlink()
    os.mkfifo(package / "README.md")
    assert differences(opened, lambda *_: made[1]) == [f"{package / 'README.md'} is no ordinary file"]


def test_a_file_without_end_is_refused(package, monkeypatch):
    monkeypatch.setattr("sensorsim.codegen.manifest.MOST_BYTES", 1 << 20)
    with (package / "README.md").open("ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(FailedProofError, match=r"README\.md is larger than any file of a package"):
        open_package(package)
    with (package / "MANIFEST.json").open("ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(FailedProofError, match=r"MANIFEST\.json is larger than any file of a package"):
        open_package(package)


@pytest.mark.parametrize("depth", [300, 990, 100_000])
def test_json_nested_too_deeply_is_a_sentence(depth, package):
    nested = "[" * depth + "]" * depth
    manifest = (package / "MANIFEST.json").read_text()
    (package / "test/golden.json").write_text(f'{{"schema_version": 5, "vectors": {nested}}}')
    refresh(package)
    edit(package, lambda data: data.update(schema_version=5))
    with pytest.raises(InputError, match="of version 5"):
        open_package(package)
    (package / "MANIFEST.json").write_text(manifest.replace("{", f'{{"a": {nested},', 1))
    with pytest.raises(FailedProofError, match=r"MANIFEST\.json was altered"):
        open_package(package)


def test_golden_vectors_that_cannot_be_read_are_a_sentence(package):
    (package / "test/golden.json").write_text("[" * 100_000)
    refresh(package)
    opened = open_package(package)
    with pytest.raises(FailedProofError, match=r"golden\.json holds no vectors"):
        opened.golden(opened.kernels[0])


def of_compiler(name):
    def change_data(data):
        data["tools"]["compiler"] = data["sizes"]["compiler"] = name

    return change_data


@pytest.mark.parametrize("name", ["", " ", "clang $(reboot)", "clang 1.2`reboot`", "clang --index-url=http://x"])
def test_no_text_of_a_manifest_gets_into_a_command(name, package):
    edit(package, of_compiler(name))
    with pytest.raises(InputError) as caught:
        differences(open_package(package))
    assert "pip" not in str(caught.value)
    assert "export the package again" in str(caught.value)


def test_a_number_gets_into_a_command(package):
    edit(package, of_compiler("clang version 1.2.3 by ziglang 0.1.2"))
    with pytest.raises(InputError, match=r"here is .*`pip install ziglang==0\.1\.2`, or export the package again") as e:
        differences(open_package(package))
    assert not isinstance(e.value, FailedProofError)


@pytest.mark.parametrize(("made_by", "hint"), [("0.0.1", True), ("0.0.1 --index-url=http://x", False)])
def test_another_version_s_hint_is_a_number(made_by, hint, package):
    edit(package, lambda data: data.update(sensorsim=made_by, command=f"x (sensorsim {made_by})"))
    with pytest.raises(InputError, match="export the package again") as caught:
        open_package(package)
    assert (f"`pip install sensorsim=={made_by}`" in str(caught.value)) is hint
    assert ("pip" in str(caught.value)) is hint


def test_half_a_character_and_control_codes_are_refused(package):
    edit(package, lambda data: data.update(note="\ud800"))
    with pytest.raises(FailedProofError, match="it is no JSON"):
        open_package(package)
    edit(package, lambda data: data.pop("note"))
    path = package / "MANIFEST.json"
    path.write_text(path.read_text().replace('"README.md":', '"\\u001b[2Jx": "", "README.md":', 1))
    with pytest.raises(FailedProofError, match=r"it lists '\\x1b\[2Jx'"):
        open_package(package)


def test_what_export_is_given_again_is_kept_in_the_build_folder(package, made, tmp_path):
    """A worker that is killed leaves what it copied in the folder that the verification clears."""
    build, seen = tmp_path / "build", []
    build.mkdir()

    def make(options, load, as_data):
        seen.append(options.noise)
        assert any(build.iterdir())
        return made[1]

    assert differences(open_package(package), make, build=build) == []
    assert len(seen) == 1 and all(path.is_relative_to(build) for path in seen)
    assert not any(build.iterdir())
