"""`sensorsim kernel`: a stranger's file from the outside, as the page on kernels shows it."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import sensorsim as ss
from sensorsim.commands.program import group, main
from sensorsim.language.load import find
from sensorsim.language.secrecy import NOT_PROVED, unproved

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kernels.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M)

HEAD = """from sensorsim.language import *

BYTE = Q('byte', 'u32', 0, 0, 255, '')
SECRET = Q('s', 'u32', 0, 0, 255, '', secret=True)
"""
PAST = f"{HEAD}N = Length('n', 1, 9, '')\n@kernel()\ndef past(x: BYTE['n'], n: N) -> BYTE:\n    return x[n]\n"
LEAK = f"{HEAD}@kernel()\ndef leak(x: SECRET) -> BYTE:\n    if geu(x, 9):\n        return u32(1)\n    return u32(0)\n"
WORDS = """from sensorsim.language import Q, kernel

WORD = Q('w', 'u32', 0, 0, 2**32 - 1, '')
BIT = Q('b', 'u32', 0, 0, 1, '')

"""


def block(word):
    """The one block of the page that has this word."""
    (found,) = [text for text in BLOCKS if word in text]
    return found


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder that has nothing to do with the package, with the page's file in it."""
    (tmp_path / "smooth.py").write_text(block("def smooth("), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kernel(*words):
    return CliRunner().invoke(group, ["kernel", *words])


def answer(*words):
    return json.loads(kernel(*words, "--format", "json").stdout)["kernels"]


def refused(capsys, *words):
    with pytest.raises(SystemExit) as left:
        main(["kernel", *words])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("Error: ") and error.count("\n") == 1 and len(error) < 300, error
    return error


def test_the_page_s_kernel_runs_one_window_or_many(outside):
    """As a stranger would: another folder, another process. What the page prints, test_pages.py holds."""
    program = """import sys
sys.path.insert(0, "")
import numpy as np
from smooth import smooth
samples = np.arange(50, dtype=np.int16)
many = smooth.batch(sample=np.stack([samples, -samples]))["returns"].tolist()
assert many == [smooth.run(sample=samples)["returns"], smooth.run(sample=-samples)["returns"]], many
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=outside, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_page_s_primitive_goes_through_every_reader(tmp_path):
    file = tmp_path / "odd.py"
    use = '\n\n@kernel()\ndef odd(x: WORD) -> BIT:\n    """x. Scaling and overflow: none."""\n    return parity(x)\n'
    file.write_text(WORDS + block("@primitive(") + use, "utf-8")
    done = kernel(f"{file}:odd", "--cpu", "cortex-m0plus,k7", "--verify", "host,cortex-m0plus", "--format", "json")
    assert done.exit_code == 0, done.stdout
    found = json.loads(done.stdout)["kernels"]["odd.odd"]
    assert found["cost"]["cortex-m0plus"]["typical"] == 11
    assert found["cost"]["k7"]["typical"] is None
    assert "prices={'k7': …}" in found["cost"]["k7"]["missing"][0]
    assert [row["differing_bits"] for row in found["verified"]] == [0, 0]
    assert found["ranges"]["result"] == [0, 1]


def test_the_whole_answer_as_json(outside):
    found = answer("smooth.py:smooth", "--at", "count=20", "--cpu", "k7,cortex-m0plus", "--accounting", "full")
    (name, one) = next(iter(found.items()))
    assert name == "smooth.smooth"
    assert one["at"] == {"count": 20, "taps": 4}
    assert one["formula"]["MUL"] == "4count - 12"
    assert one["counts"]["filter"] == {"MUL": 68}
    assert set(one["cost"]) == {"k7", "cortex-m0plus"}
    for cpu, price in one["cost"].items():
        assert {"unit", "width", "signed", "accounting", "typical", "min", "max", "formula"} <= price.keys()
        words = ["smooth.py:smooth", "--at", "count=20", "--cpu", cpu, "--format", "csv"]
        rows = csv.DictReader(io.StringIO(kernel(*words).stdout))
        assert price["typical"] == sum(float(row["total"]) for row in rows)
    assert one["ranges"]["proved"] and one["ranges"]["result"] == [-32768, 32767]
    assert one["secrecy"]["proved"] and one["secrecy"]["secrets"] == ["sample"]


def test_both_kernels_of_a_file_and_one_that_ships(outside):
    assert list(answer("smooth.py")) == ["smooth.weighted", "smooth.smooth"]
    assert list(answer("smooth.py:weighted,root")) == ["smooth.weighted", "root.root"]
    (name, found), *_ = answer("sampled_stairs_one", "--at", "n=14", "--accounting", "paper").items()
    assert name == "stairs.sampled_stairs_one" and found["cost"]["k7"]["typical"] == 7
    assert list(answer("sampled")) == ["rows_search.sampled_rows_search_one"]  # a mechanism's name is understood too


def test_what_is_not_proved_is_exit_1_with_its_line_and_no_c_is_written(tmp_path, capsys):
    file = tmp_path / "past.py"
    file.write_text(PAST)
    done = kernel(str(file), "--format", "json")
    found = json.loads(done.stdout)["kernels"]["past.past"]
    assert done.exit_code == 1
    assert found["ranges"]["proved"] is False
    assert (found["ranges"]["error"]["file"], found["ranges"]["error"]["line"]) == ("past.py", 8)
    assert found["cost"]["k7"]["typical"] is None  # what was not counted does not cost nothing
    assert kernel(str(file)).exit_code == 1
    assert "proved kernels only" in refused(capsys, str(file), "--c", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_leak_is_exit_1_with_its_line(tmp_path):
    file = tmp_path / "leak.py"
    file.write_text(LEAK)
    done = kernel(str(file), "--format", "json")
    found = json.loads(done.stdout)["kernels"]["leak.leak"]["secrecy"]
    assert done.exit_code == 1
    assert [(f["kind"], f["file"], f["line"]) for f in found["findings"]] == [("branch", "leak.py", 7)]
    assert "leak.py:7" in kernel(str(file)).stdout
    read = find(str(file))[0].secrecy().verdict
    assert unproved({"leak": read, "other": "proved: nothing"}) == [f"secrecy of leak, {read.removeprefix(NOT_PROVED)}"]
    assert unproved({"leak": read})[0].startswith("secrecy of leak, for x: the branch `if geu(x, 9)`")


BAD = {
    ("no-such-file.py",): "there is no such file",
    ("smooth.py:nobody",): "declares no kernel 'nobody'",
    ("nobody",): "kernel 'nobody' is not known",
    ("smooth.py", "--at", "rounds=3"): "no length of these kernels",
    ("smooth.py", "--at", "count"): "write n=14,rate=3",
    ("smooth.py", "--at", "count=3"): "outside 4 … 1024",
    ("smooth.py", "--at", "count=" + "9" * 50): "write n=14",
    ("smooth.py", "--cpu", "z80"): "z80",
    ("smooth.py", "--cpu", ","): "no processor is named",
    ("smooth.py", "--verify", "z80"): "z80",
    ("smooth.py", "--c", "smooth.py"): "is a file",
    ("broken.py",): "broken.py:1",
    ("empty.py",): "declares no kernel",
    ("round.py",): "cannot read round.py",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_questions(words, outside, capsys):
    (outside / "broken.py").write_text("def x(:\n")
    (outside / "empty.py").write_text("x = 1\n")
    (outside / "round.py").symlink_to("round.py")
    before = sorted(outside.iterdir())
    assert BAD[words] in refused(capsys, *words)
    assert sorted(outside.iterdir()) == before


@pytest.mark.slow
def test_the_package_it_writes_is_one_that_verify_takes(outside):
    assert kernel("smooth.py:smooth", "--c", "package").exit_code == 0
    done = CliRunner().invoke(group, ["verify", "package", "--target", "host", "--random-host", "1000"])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_a_package_of_a_kernel_that_leaks_says_so(outside):
    Path("leak.py").write_text(LEAK)
    said = "Not proved: secrecy of leak, for x: the branch"
    words = ["export", "--kernels", "leak.py:leak", "--out", "package"]
    assert said in CliRunner().invoke(group, words).output
    done = CliRunner().invoke(group, ["verify", "package", "--target", "host", "--random-host", "1000"])
    assert done.exit_code == 1 and "NO   secrecy of leak, for x: the branch" in done.output


def test_the_next_step_is_one_that_works(outside, tmp_path):
    file = tmp_path / "two.py"
    past = "@kernel()\ndef past(x: BYTE['n'], n: N) -> BYTE:\n    return x[n]\n"
    file.write_text(HEAD + f"N = Length('n', 1, 9, '')\n{past}@kernel()\ndef kept(x: BYTE) -> BYTE:\n    return x\n")
    shown = kernel(str(file)).stdout
    assert f"sensorsim kernel {file}:kept --c DIR" in " ".join(shown.split()) and ":past" not in shown


BRANCHES = """
N = Length("n", 1, 64, "")


@kernel()
def some(x: BYTE["n"], n: N) -> BYTE:
    last = u32(0)
    for i in range(n):
        if geu(x[i], 100):
            last = and_(x[i], 15)
    return last


@kernel()
def rounds(x: BYTE) -> BYTE:
    last = u32(0)
    for i in range(x):
        last = u32(7)
    return last


@kernel()
def endless(n: N) -> BYTE:
    last = u32(0)
    for i in range(n * 30000000):
        last = u32(7)
    return last
"""


def test_what_depends_on_the_data_has_two_ends(tmp_path):
    """The least input is no price of a kernel that branches: the ways that were read stand beside it."""
    (tmp_path / "some.py").write_text(HEAD + BRANCHES)
    found = answer(f"{tmp_path}/some.py:some:rounds", "--at", "n=10")
    cost = found["some.some"]["cost"]["k7"]
    counted = sum(found["some.some"]["counts"]["loops and memory"].values())
    assert cost["by_data"][0] <= cost["typical"] < cost["by_data"][1]
    assert "AND" not in found["some.some"]["counts"]["loops and memory"] and counted == 5 * 10 + 2 + 10
    assert found["some.rounds"]["cost"]["k7"]["by_data"] == [2, 255 * 3 + 2]
    shown = kernel(f"{tmp_path}/some.py:some", "--at", "n=10").stdout
    assert "by the data" in shown and " AND " in shown
    ends = " to ".join(f"{end:g}" for end in cost["by_data"])
    told = repr(ss.kernel(f"{tmp_path}/some.py:some", at="n=10"))
    assert f"{ends} macro-ops" in shown and f"{ends} macro-ops, by the data" in told


@pytest.mark.slow
def test_a_kernel_that_runs_too_long_is_told_so(tmp_path, capsys):
    (tmp_path / "some.py").write_text(HEAD + BRANCHES)
    assert "runs too long to be counted" in refused(capsys, f"{tmp_path}/some.py:endless")


DECLARATIONS = {
    "S = Q('s', 'i8', 0, 0.5, 10, '')": "0.5 is no whole number",
    "S = Q('s', 'i8', 0, 0, 1000, '')": "does not fit i8",
    "S = Q('s', 'i8', 0, 0, 10)": "about",
    "N = Length('n', 1.5, 9, '')": "1.5 is no whole number",
    "T = Array(BYTE, '2', contents=(1.0, 2))": "1.0 is no whole number",
    "T = Array(BYTE, 4)": "a length in quotes",
    "T = out(BYTE)": "is for an array",
    "raise ValueError('two\\nlines')": "ValueError: two lines",
    "raise SystemExit(3)": "SystemExit: 3",
    "kernel(1)(2)": "",
}


@pytest.mark.parametrize("line", DECLARATIONS)
def test_a_bad_declaration_is_the_strangers_line(line, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(HEAD + line + "\n")
    error = refused(capsys, f"{tmp_path}/mine.py")
    assert error.startswith("Error: mine.py:5: ") and DECLARATIONS[line] in error, error


def test_rules_of_a_stranger_that_fail(tmp_path):
    text = (
        HEAD
        + """
@primitive("EQUAL", operands="u32 u32", result="flag", c="(uint32_t)({{0}} == {{1}})")
def equal(a, b):
    return a == b


@primitive("HALF", operands="u32", result="u32", c="{{0}} / 2U", interval={rule})
def half(a):
    return a // 2


@kernel()
def one(a: BYTE) -> BYTE:
    if equal(a, 3):
        return u32(1)
    return selectu(equal(a, 4), half(a), 0)
"""
    )
    rules = {"lambda a: Span(0, a.hi // 2)": True, "lambda a: Span(0, a.hi / 2)": False, "lambda a: a.high": False}
    for rule, proved in rules.items():
        (tmp_path / "mine.py").write_text(text.format(rule=rule))
        found = answer(f"{tmp_path}/mine.py:one")["mine.one"]["ranges"]
        assert found["proved"] is proved, rule
        assert proved or "half (mine.py:" in found["error"]["text"]


ONES = """
HELPER = \'\'\'\\
/* The number of ones. */
static inline uint32_t ss_ones(uint32_t a)
{
    uint32_t rest = a;
    uint32_t count = 0U;
    while (rest != 0U) {
        rest &= rest - 1U;
        count++;
    }
    return count;
}
\'\'\'


@primitive("ONES", operands="u32", result="u32", interval=lambda a: Span(0, 32), c="ss_ones({0})", helper=HELPER%s)
def ones(a):
    n = 0
    for k in range(32):
        n += (a >> k) & 1
    return n


@kernel(%s)
def counts(x: SECRET) -> SECRET:
    return ones(x)
"""


def looping(tmp_path, says="", accepts=""):
    """A file whose primitive loops on its operand, with what it says of its time and what the kernel accepts."""
    file = tmp_path / "looping.py"
    file.write_text(HEAD + "from sensorsim.language import Span, primitive\n" + ONES % (says, accepts), "utf-8")
    return f"{file}:counts"


def test_a_primitive_that_says_nothing_of_its_time_is_unknown(tmp_path):
    done = kernel(looping(tmp_path), "--format", "json")
    (found,) = json.loads(done.stdout)["kernels"]["looping.counts"]["secrecy"]["findings"]
    assert done.exit_code == 1
    assert found["kind"] == "operation" and found["text"].startswith("unknown timing of `ones`")
    for says, accepts in ((", varies=()", ""), ("", "exposes={'operation': 'a test'}")):
        assert kernel(looping(tmp_path, says, accepts)).exit_code == 0


def test_every_proof_that_fails_is_printed(tmp_path, monkeypatch):
    """The C is not compiled here: what a verification may find is made by hand."""
    from sensorsim.verification import verification
    from sensorsim.verification.kernel_timing import KernelResult, Proof
    from sensorsim.verification.verification import Verification, paths

    leaky = KernelResult(
        "counts", "cortex-m0plus", 9, 0, secrets=("x",), sequences=5, sequences_by_secret=5, tried=9, watched=9
    )
    proofs = (Proof("files", True, "fine"), Proof("UBSan", False, "a shift by 40"), *paths([leaky]))
    report = Verification("p", "clang", "-O2", None, 1, (leaky,), proofs)
    monkeypatch.setattr(verification, "verify", lambda *given, **more: report)
    file = looping(tmp_path, ", varies=()")
    done = kernel(file, "--verify", "cortex-m0plus")
    shown = " ".join(done.stdout.split())
    assert done.exit_code == 1
    assert "FAILED UBSan: a shift by 40" in shown
    assert "FAILED path: counts on cortex-m0plus: secrets change the path (5 in 9 tried)" in shown
    assert "secrecy NOT kept by the machine code" in shown and "files: fine" not in shown
    data = json.loads(kernel(file, "--verify", "cortex-m0plus", "--format", "json").stdout)
    assert [text.partition(":")[0] for text in data["failed"]] == ["UBSan", "path"]


@pytest.mark.slow
def test_a_loop_on_a_secret_in_a_helper_is_found_in_machine_code(tmp_path):
    done = kernel(looping(tmp_path, ", varies=()"), "--verify", "host,cortex-m0plus")
    assert done.exit_code == 1 and "FAILED    path: counts on cortex-m0plus" in done.stdout
    accepted = looping(tmp_path, "", "exposes={'operation': 'a test'}")
    assert kernel(accepted, "--verify", "host,cortex-m0plus").exit_code == 0
