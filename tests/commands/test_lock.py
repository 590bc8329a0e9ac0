"""Locks: every change of a figure is found, whoever wrote the file; and nothing but a lock is ever written over."""

import hashlib
import json
import os
import re
import sys
from pathlib import Path

import pytest
from command import run as run_command
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Path as Path_
from sensorsim.commands import COMMANDS
from sensorsim.commands.declare import options_of
from sensorsim.commands.lock_file import Figure, Lock, Taken, compare, read_lock, write_lock
from sensorsim.commands.locked_figures import figures_of
from sensorsim.commands.locks import Locks

KERNEL = """from sensorsim.language import Q, add, kernel
X = Q("x", "i32", 0, 0, {most}, "")
WIDE = Q("wide", "i32", 0, 0, 99, "")
@kernel(step="notes")
def twice(x: X) -> WIDE:
    return {body}
"""
COST = COMMANDS["cost"].load()
# The choices that a lock of `cost` has, at their defaults; without machine code.
USUAL = {name: COST.__dataclass_fields__[name].default for name, one in options_of(COST).items() if one.lock == "keep"}
USUAL |= {"cores": ""}


@pytest.fixture
def no_tools(monkeypatch):
    """Remove the compiler: locks of `cost` are made in no time."""
    monkeypatch.setitem(sys.modules, "ziglang", None)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *words: run_command(capsys, *words)


@pytest.fixture
def lock(run, no_tools):
    """A lock of `cost`, of kernels alone."""
    code, out, err = run("cost", "--lock", "cost.lock")
    assert code == 0 and "SPOF (Algorithm 1)" in out and err.count("\n") == 1 and "cost.lock" in err
    return Path("cost.lock")


def refused(answer):
    code, out, err = answer
    assert (code, out) == (2, ""), answer
    assert err.startswith("Error: ") and err.count("\n") == 1 and len(err) < 300, err
    return err


def table(text):
    """Return the rows of the one table in a Markdown text, by another's parser; each cell as its plain text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "table_open" for token in tokens) == 1
    rows = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline" and rows:
            assert {child.type for child in token.children} <= {"text", "code_inline", "text_special"}, token.content
            rows[-1].append("".join(child.content for child in token.children))
    return rows[1:]


def test_a_lock_has_the_figures_of_the_json_on_sorted_lines_and_is_the_same_again(lock, run):
    kept = json.loads(lock.read_text("utf-8"))["figures"]
    assert run("cost", "--check", lock) == (0, f"no change, {len(kept)} figures\n", "")
    lines = [line for line in lock.read_text("utf-8").splitlines() if line.startswith("  ") and '{"value"' in line]
    assert [next(iter(json.loads("{" + line.rstrip(",") + "}"))) for line in lines] == sorted(kept)
    before = lock.read_bytes()
    assert run("cost", "--lock", lock)[0] == 0 and lock.read_bytes() == before
    report = json.loads(run("cost", "--format", "json")[1])
    for name, mechanism in report["mechanisms"].items():
        assert kept[f"{name}/random_bits"] == {"value": mechanism["random_bits"], "unit": "bits"}
        for view in {"printed", "symbolic", "traced"} & mechanism.keys():
            assert kept[f"{name}/{view}/total"] == {"value": mechanism[view]["total"], "unit": report["unit"]}
            for step, part in mechanism[view]["steps"].items():
                for operation, count in part["operations"].items():
                    assert kept[f"{name}/{view}/steps/{step}/operations/{operation}"]["value"] == count
    assert kept["dpsgd/printed/formula"] == {"value": "80n + 283"}  # the paper's
    assert kept["parameters/formats/X"]["value"].startswith("u16, 15 fraction bits")
    assert float(kept["parameters/sensor/certified_epsilon"]["value"]) <= 1.6
    assert 0 < kept["parameters/sensor/worst_sd"]["value"] < 1
    file = Path(__file__).parents[2] / "tables/encoders/default.json"
    assert kept["parameters/encoder/sha256"]["value"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_changed_total_or_toolchain(lock, run):
    """1403 is the paper's total of DP-SGD, and no other figure."""
    text = lock.read_text("utf-8")
    lock.write_text(re.sub(r"\b1403\b", "1400", text), "utf-8")
    code, out, err = run("cost", "--check", lock)
    assert (code, err) == (1, "")
    assert table(out) == [["dpsgd/printed/total", "1400", "1403", "+0.214 % macro-ops"]]
    code, out, _ = run("cost", "--check", lock, "--format", "json")
    (change,) = json.loads(out)["changes"]
    assert code == 1 and (change["was"], change["now"], change["kind"]) == (1400, 1403, "changed")
    assert change["percent"] == pytest.approx(100 * 3 / 1400)
    code, out, _ = run("cost", "--check", lock, "--format", "csv")
    assert code == 1 and out.splitlines()[1].startswith("changed,dpsgd/printed/total,1400,1403,macro-ops,")
    version = json.loads(text)["toolchain"]["sensorsim"]
    lock.write_text(lock.read_text().replace(f'"sensorsim": "{version}"', '"sensorsim": "0.0.0"'), "utf-8")
    assert [row[0] for row in table(run("cost", "--check", lock)[1])] == ["toolchain/sensorsim", "dpsgd/printed/total"]


def other(value):
    """Return values next to one."""
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, str):
        return [value + " ", value[:-1] + "?"]
    return [value + 1, value - 1, str(value), value * (1 + 2**-30) if value else -1]


def test_every_figure_is_watched(lock):
    """Each one alone: another value, another unit, gone, come."""
    now = read_lock(lock).taken
    for name, (value, unit) in now.figures.items():
        rest = {key: figure for key, figure in now.figures.items() if key != name}
        for figure in [*(Figure(each, unit) for each in other(value)), Figure(value, unit + "s")]:
            (change,) = compare(Taken({name: figure}, {}), Taken({name: now.figures[name]}, {})).changes
            assert (change.figure, change.was, change.now) == (name, figure.value, value)
        if name.endswith("total"):  # in the whole lock; all of them would take long
            (gone,) = compare(now, Taken(rest, now.toolchain)).changes
            (come,) = compare(Taken(rest, now.toolchain), now).changes
            assert (gone.kind, gone.figure, gone.now) == ("removed", name, None)
            assert (come.kind, come.figure, come.was) == ("added", name, None)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
TAKEN = st.builds(Taken, st.dictionaries(TEXT, st.builds(Figure, VALUES, TEXT)), st.dictionaries(TEXT, TEXT))


@settings(max_examples=100, deadline=None)
@given(taken=TAKEN, more=st.dictionaries(TEXT, VALUES | st.none()))
def test_what_is_written_is_read(taken, more, tmp_path_factory):
    path = tmp_path_factory.mktemp("lock") / "any.lock"
    write_lock(path, Lock("cost", more | USUAL, taken))
    assert read_lock(path) == Lock("cost", more | USUAL, taken)
    assert compare(read_lock(path).taken, taken).same


@settings(max_examples=150, deadline=None)
@given(was=TAKEN, now=TAKEN)
def test_changes_by_hand(was, now):
    """Beside a reference that knows nothing of how they are found; the table shows each, whatever it is called."""
    tools = was.toolchain.keys() | now.toolchain.keys()
    names = {f"toolchain/{name}" for name in tools if was.toolchain.get(name) != now.toolchain.get(name)}
    for name in was.figures.keys() | now.figures.keys():
        a, b = was.figures.get(name), now.figures.get(name)
        if a is None or b is None or (repr(a) != repr(b) and (a != b or bool in (type(a.value), type(b.value)))):
            names.add(name)
    found = compare(was, now)
    changes = [*found.toolchain, *found.changes]
    assert sorted(change.figure for change in changes) == sorted(names)
    assert found.same == (not names) and found.figures == len(was.figures.keys() | now.figures.keys())
    if names:
        rows = table(found.markdown())
        assert len(rows) == len(changes) and all(len(row) == 4 for row in rows)


@pytest.mark.parametrize(
    "text", ["a|b", "`", "a`|`b", "\\|", "\\", "<b>x</b>", "![x](http://y)", "a\nb", "\x1b[2J", "**"]
)
def test_nothing_is_read_out_of_a_cell(text):
    now = Taken({text: Figure(text, text)}, {text: text})
    rows = table(compare(Taken({}, {}), now).markdown())
    shown = text.replace("\n", "\ufffd").replace("\x1b", "\ufffd")
    assert rows == [[f"toolchain/{shown}", "–", shown, "added"], [shown, "–", shown, f"added {shown}"]]


def test_the_locks_choices(run, no_tools):
    """They are taken from it, may be said again, and not otherwise."""
    words = ["--n", 20, "--l", 3, "--accounting", "full", "--cpu", "cortex-m4", "--width", 32, "--signed"]
    assert run("cost", *words, "--lock", "a.lock")[0] == 0
    assert run("cost", "--check", "a.lock")[0] == 0
    assert run("cost", *words, "--check", "a.lock")[0] == 0
    for option, value, kept in [("--n", "14", "20"), ("--cpu", "k7", "cortex-m4"), ("--unsigned", None, "True")]:
        message = refused(run("cost", option, *([value] if value else []), "--check", "a.lock"))
        assert f"{option.replace('un', '')} is given as" in message and kept in message and "a.lock" in message
    assert "--chip" in refused(run("cost", "--chip", "nrf52832", "--check", "a.lock"))


def test_a_lock_of_another_kernel_is_a_wrong_question():
    locks = Locks("kernel", COMMANDS["kernel"].load(), None, "k.lock", "table")
    locks.old = Lock("kernel", {}, Taken({"spof.spof/ranges/proved": Figure(True)}, {}))
    for kernel, said in (("crc.crc16", r"a lock of spof\.spof, not of crc\.crc16"), ("spof.spof", "")):
        with pytest.raises((InputError, SystemExit), match=said or "1"):  # a kernel that was removed is a change
            locks.settle(Taken({f"{kernel}/ranges/proved": Figure(False)}, {}))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--lock", "x", "--check", "cost.lock"], "one of them"),
        (["--sweep", "n=1:3", "--lock", "x"], "--sweep"),
        (["--plot", "x.svg", "--check", "cost.lock"], "--plot"),
        (["--check", "nowhere.lock"], "cannot read nowhere.lock"),
        (["--check", "."], "cannot read"),
        (["--check", "/dev/zero"], "device"),
        (["--check", "pipe"], "device or a pipe"),
        (["--lock", "no/folder/x"], "no folder"),
        (["--lock", "/dev/null"], "device or a pipe"),
        (["--lock", "pipe"], "device or a pipe"),
        (["--lock", "link"], "is a link"),
        (["--lock", "."], "is a folder"),
    ],
)
def test_wrong_questions(words, told, lock, run):
    Path("link").symlink_to(lock)
    os.mkfifo("pipe")
    assert told in refused(run("cost", *words))


def altered(choices=(), without=(), **parts):
    """Return the text of a lock of usual choices that has no figures, with parts replaced."""
    chosen = {name: value for name, value in (USUAL | dict(choices)).items() if name not in without}
    whole = {"schema_version": 1, "command": "cost", "choices": chosen, "toolchain": {}, "figures": {}}
    return json.dumps(whole | parts)


ONE = altered(figures={"a": {"value": 1}})
FIGURES = [{"a": {"value": float("nan")}}, {"a": {"value": float("-inf")}}, {"a": 1}, {"a": {"value": [1]}}, [],
           {"a": {"unit": "bits"}}, {"a": {"value": None}}, {"a": {"value": 1, "unit": 2}}, {"\ud800": {"value": 1}},
           {"a": {"value": 1, "more": 2}}]  # fmt: skip
CHOICES = [{"cpu": "\ud800"}, {"n": "14"}, {"n": True}, {"n": 14.5}, {"n": None}, {"width": "8"}, {"cpu": 7},
           {"accounting": "none"}, {"n": [14]}, {"plot": "/tmp/x.svg"}, {"cores": ",,"}, {"cores": "ibex,"},
           {"cores": 7}]  # fmt: skip
ASKED_OF_THE_COMMAND = [{"cpu": "../../etc/passwd"}, {"n": 10**9}, {"cores": "z80"}]  # it answers as without a lock
PARTS = [{"schema_version": 2}, {"schema_version": True}, {"more": 1}, {"command": "verify"}, {"command": None},
         {"toolchain": {"sensorsim": 1}}]  # fmt: skip
GARBAGE = {
    **{text[:40]: text for text in ("", "dpsgd = 1403", "[]", "{}", b"\xff\xfe\x00", "[" * 100_000)},
    "deep inside": altered(choices={"n": 0}).replace("0", '{"a":' * 5000 + "1" + "}" * 5000),
    "too large a number": ONE.replace('"value": 1', '"value": 1e999'),
    "too long a number": ONE.replace('"value": 1', '"value": ' + "1" * 5000),
    "a name twice": altered().replace('"figures": {}', '"figures": {"a": {"value": 1}, "a": {"value": 2}}'),
    "large": " " * (4 << 20) + altered(),
    **{f"figures {figures!r}": altered(figures=figures) for figures in FIGURES},
    **{f"choices {choices!r}": altered(choices=choices) for choices in CHOICES + ASKED_OF_THE_COMMAND},
    **{f"parts {parts!r}": altered(**parts) for parts in PARTS},
    **{f"{name} is deleted": altered(without=[name]) for name in USUAL},
}


@pytest.mark.parametrize("what", GARBAGE, ids=lambda what: repr(what)[:40])
def test_what_is_no_lock(what, run, no_tools):
    content = GARBAGE[what]  # as ASCII, so half a character is written as an escape
    Path("bad.lock").write_bytes(content if isinstance(content, bytes) else content.encode())
    told = refused(run("cost", "--check", "bad.lock"))
    assert "bad.lock" in told or any(repr(choices) in str(what) for choices in ASKED_OF_THE_COMMAND)


def test_the_choices_that_a_lock_must_have(lock, run):
    """One that lacks a new choice is written anew; with the usual ones the rest of what is no lock would be one."""
    Path("usual.lock").write_text(altered(), "utf-8")
    assert run("cost", "--check", "usual.lock")[0] == 1
    found = json.loads(lock.read_text("utf-8"))
    del found["choices"]["radio"]
    lock.write_text(json.dumps(found), "utf-8")
    assert "is no lock (its choice radio is missing)" in refused(run("cost", "--check", lock))
    assert run("cost", "--lock", lock)[0] == 0 and run("cost", "--check", lock)[0] == 0


def test_a_lock_runs_no_program_and_trusts_none():
    """What it says is done on the machine that checks it: no path and no program is taken from it."""
    locked = [entry.load() for entry in COMMANDS.values() if entry.load().lockable]
    assert len(locked) == 3
    for command in locked:
        kept = {name: one.kind for name, one in options_of(command).items() if one.lock == "keep"}
        assert not {"cc", "elf", "trust", "folder", "kernel", "c", "manifest"} & set(kept)
        assert not [name for name, kind in kept.items() if isinstance(kind, Path_)]


@pytest.mark.parametrize("content", [b"", b"my notes", altered(figures=FIGURES[0]).encode()])
def test_only_a_lock_is_written_over(content, run, no_tools):
    Path("notes.txt").write_bytes(content)
    assert "no lock" in refused(run("cost", "--lock", "notes.txt"))
    with pytest.raises(InputError, match="no lock"):  # whoever asks
        write_lock(Path("notes.txt"), Lock("cost", {}, Taken({}, {})))
    assert Path("notes.txt").read_bytes() == content


@pytest.mark.parametrize("where", ["os.fdopen", "pathlib.Path.replace"])
def test_nothing_half_written(where, lock, run, monkeypatch):
    """Interrupted at either end of the writing: the old lock, and nothing beside it."""
    before = lock.read_bytes()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, interrupt)
        assert run("cost", "--n", 3, "--l", 1, "--lock", lock)[0] == 130
        assert run("cost", "--n", 3, "--l", 1, "--lock", "new.lock")[0] == 130
    assert lock.read_bytes() == before
    assert [path.name for path in Path.cwd().iterdir()] == [lock.name]


def test_machine_code(run):
    """Cycles and bytes of the compiled kernels, with the compiler; without one the check says what to install."""
    words = ["--variant", "paper", "--cpu", "cortex-m4"]
    assert run("cost", *words, "--lock", "a.lock")[0] == 0
    kept = read_lock(Path("a.lock")).taken
    report = json.loads(run("cost", "--level", "machine", *words, "--format", "json")[1])
    for case in report["cases"]:
        for name in ("instructions", "flash_bytes", "stack_bytes"):
            assert kept.figures[f"machine/cortex-m4/{case['mechanism']}/{name}"].value == case[name]
        assert kept.figures[f"machine/cortex-m4/{case['mechanism']}/total"] == (case["machine"]["total"], "cycles")
    assert kept.toolchain["compiler"] == report["compiler"]
    assert run("cost", "--level", "machine", *words, "--lock", "m.lock")[0] == 0
    assert run("cost", "--check", "m.lock")[0] == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ziglang", None)
        assert "pip install" in refused(run("cost", "--check", "a.lock"))


def test_a_kernel_of_your_own(run):
    """Its step is called `notes`, as a part of our own reports is: it is locked all the same."""
    Path("mine.py").write_text(KERNEL.format(most=9, body="add(x, x)"))
    assert run("kernel", "mine.py:twice", "--cpu", "cortex-m0plus,avr", "--lock", "k.lock")[0] == 0
    kept = read_lock(Path("k.lock")).taken.figures
    assert kept["mine.twice/counts/notes/ADD"] == (1, "operations")
    assert kept["mine.twice/ranges/result"].value == "0, 18"
    units = {"machine_instructions": "instructions", "machine_cost": "cycles"}
    units |= dict.fromkeys(("flash_bytes", "ram_bytes", "stack_bytes"), "bytes")
    for core in ("cortex-m0plus", "avr"):
        assert {name: kept[f"machine/{core}/mine.twice/{name}"].unit for name in units} == units
    # ADDS or LSLS of one cycle and BX of two, each of two bytes
    on_arm = {name: kept[f"machine/cortex-m0plus/mine.twice/{name}"] for name in ("flash_bytes", "machine_worst_case")}
    assert on_arm == {"flash_bytes": (4, "bytes"), "machine_worst_case": (3, "cycles")}
    assert "clang" in read_lock(Path("k.lock")).taken.toolchain["compiler"]
    assert run("kernel", "mine.py:twice", "--check", "k.lock")[0] == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ziglang", None)
        assert "pip install" in refused(run("kernel", "mine.py:twice", "--check", "k.lock"))
    assert "--cpu" in refused(run("kernel", "mine.py:twice", "--cpu", "k7", "--check", "k.lock"))
    assert "another command" in refused(run("cost", "--check", "k.lock"))
    assert "a lock of mine.twice" in refused(run("kernel", "crc32", "--check", "k.lock"))
    Path("more.py").write_text(KERNEL.format(most=9, body="add(add(x, x), x)"))
    code, out, _ = run("kernel", "more.py:twice", "--check", "k.lock")
    assert code == 1 and ["mine.twice/counts/notes/ADD", "1", "–", "removed operations"] in table(out)


@pytest.mark.slow
def test_a_proof_that_is_lost_is_a_change(run):
    """No wrong question: the file is as good as before, and what it says does not hold any more."""
    Path("mine.py").write_text(KERNEL.format(most=9, body="add(x, x)"))
    words = ["kernel", "mine.py:twice", "--verify", "cortex-m0plus"]
    assert run(*words, "--lock", "k.lock")[0] == 0
    kept = read_lock(Path("k.lock")).taken
    assert kept.figures["mine.twice/verified/cortex-m0plus/differing_bits"] == (0, "bits")
    assert "clang" in kept.toolchain["compiler"]
    Path("mine.py").write_text(KERNEL.format(most=90, body="add(x, x)"))
    code, out, err = run(*words, "--check", "k.lock")
    rows = table(out)
    assert code == 1 and "proved kernels only" in err
    assert ["mine.twice/ranges/proved", "true", "false", "changed"] in rows
    assert ["mine.twice/verified/cortex-m0plus/passed", "true", "–", "removed"] in rows


def test_what_is_not_proved_is_not_locked(run):
    Path("mine.py").write_text(KERNEL.format(most=2**30, body="add(x, x)"))
    code, out, err = run("kernel", "mine.py:twice", "--lock", "k.lock")
    assert code == 1 and "REFUSED" in out and "not written" in err
    assert not Path("k.lock").exists()


def test_a_report_laid_flat():
    """Values beside what a reader of the JSON would call them."""
    result = {"kernel": "spof", "target": "ibex", "cost_unit": "cycles", "cost_max": 7.0, "ram_bytes": 0, "runtime": ""}
    report = {
        "schema_version": 1, "passed": True, "compiler": "c", "flags": "", "folder": "/home/me/x", "gcc": "g",
        "table": {"certificate": {"epsilon": "1.6"}, "worst": 1 / 3}, "nothing": None,
        "results": [result, result | {"target": "host", "classes": {"add": 1}}],
    }  # fmt: skip
    assert figures_of(report) == {
        "passed": (True, ""), "table/certificate/epsilon": ("1.6", ""), "table/worst": (0.333333333333, ""),
        **{f"spof/{target}/{name}": figure for target in ("ibex", "host") for name, figure in
           {"cost_max": (7, "cycles"), "ram_bytes": (0, "bytes"), "runtime": ("", "")}.items()},
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="two figures"):
        figures_of({"results": [result, result]})


@pytest.mark.slow
def test_a_package(run):
    assert run("export", "--kernels", "spof", "--out", "pk")[0] == 0
    few = ["--target", "host,cortex-m0plus", "--random-host", 100, "--random-core", 50]
    assert run("verify", "pk", *few, "--lock", "v.lock")[0] == 0
    assert run("verify", "pk", "--check", "v.lock")[0] == 0
    text = Path("v.lock").read_text("utf-8")
    name = next(name for name in json.loads(text)["figures"] if name.endswith("cortex-m0plus/stack_bytes"))
    Path("v.lock").write_text(re.sub(rf'("{name}": {{"value": )\d+', r"\g<1>1", text), "utf-8")
    code, out, _ = run("verify", "pk", "--check", "v.lock")
    assert code == 1 and [row[:2] for row in table(out)] == [[name, "1"]]
