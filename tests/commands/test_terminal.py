"""What a terminal shows of every command: lines that fit, in any encoding, with or without a place to write to."""

import contextlib
import io
import os
from pathlib import Path

import pytest
from bad_inputs import HOLDS, declared, furnish, furnish_more, line

from sensorsim._util.terminal import LETTERS, NARROW
from sensorsim.commands.program import main

# A line that holds, for every command; where that of the bad inputs does not end well, another one.
LINES = {
    **{name: line(name, values) for name, values in HOLDS.items()},
    "figures": ("figures", "--out", "drawn", "--only", "sensitivity,bmax_density"),
    "decode": ("decode", "--model", "model.npz", "--packets", "packets.bin", "--table", "small.txt"),
    "noise make": ("noise", "make", "--epsilon", "1.6", "--kind", "stairs", "--entries", "2^8", "--out", "made.txt"),
    "claims": ("claims", "cost-spof", "cost-dpsgd"),
    "report": ("report", "--out", "page.html", "--no-claims"),
    "completion": ("completion", "bash"),
}
QUICK = ("cost", "cpus show", "cpus check", "noise show", "noise check", "noise make", "receive", "sensitivity",
         "kernel", "data ranges", "data make", "claims", "completion")  # fmt: skip
NOT_OURS = {"completion"}  # a program for a shell, which has no screen
ENDS = {"decode": 1}  # packets of another encoder: none is accepted
NAMES = list(declared())


def marked(names):
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in names]


@pytest.fixture(scope="module")
def furnished(tmp_path_factory, request):
    """A folder with what the lines need; the slow ones need more."""
    folder, before = tmp_path_factory.mktemp("terminal"), Path.cwd()
    os.chdir(folder)
    furnish(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if any(item.get_closest_marker("slow") for item in request.session.items):
            furnish_more(folder)
            main(["noise", "make", "--kind", "stairs", "--epsilon", "1", "--features", "2", "--out", "small.txt"])
        else:
            (folder / "packets.bin").write_bytes(bytes(40))
    yield folder
    os.chdir(before)


def shown(words, encoding="utf-8"):
    """Exit code, stdout and stderr of a command on a terminal of that encoding; a letter that is none fails."""
    raws = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(raw, encoding) for raw in raws)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(words))
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    for stream in (out, err):
        stream.flush()
    return code, *(raw.getvalue().decode(encoding) for raw in raws)


def test_every_command_has_a_line():
    assert set(NAMES) - set(LINES) == set() and set(LINES) - set(NAMES) <= {"completion"}


@pytest.mark.parametrize("name", marked(name for name in NAMES if name not in NOT_OURS))
def test_lines_fit(name, furnished, monkeypatch):
    for width in (NARROW, 60):  # narrower than we go, it still ends as it should
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, err = shown(LINES[name])
        assert code in (0, ENDS.get(name, int(name == "receive"))), err
        assert "Traceback" not in err
        long = [text for text in (out + err).splitlines() if len(text) > NARROW]
        assert code or not long, "\n".join(long)  # a sentence that ends a command stays one line


@pytest.mark.parametrize("name", ["", *NAMES, *dict.fromkeys(name.split()[0] for name in NAMES if " " in name)])
def test_help_fits(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(NARROW))
    code, out, _ = shown([*name.split(), "--help"])
    assert code == 0 and max(map(len, out.splitlines())) <= NARROW


@pytest.mark.parametrize("name", marked(NAMES))
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_any_encoding(name, encoding, furnished, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    _, full, _ = shown(LINES[name])
    code, out, err = shown(LINES[name], encoding)
    assert code in (0, ENDS.get(name, int(name == "receive"))), err
    assert "\x1b" not in out + err and "\x1b" not in full
    if not any(letter not in LETTERS and ord(letter) > 127 for letter in full):
        assert out.count("?") == full.count("?")
