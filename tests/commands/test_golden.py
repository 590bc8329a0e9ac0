"""The wording of help and of common refusals, one file a command in tests/commands/golden.

Renew them with `RENEW=1 pytest tests/commands/test_golden.py`, and read the difference in git.
"""

import os
from pathlib import Path

import pytest
from bad_inputs import declared, furnish
from command import run

from sensorsim._util.option_kinds import Choice, Flag, Output
from sensorsim.commands import GROUPS

GOLDEN = Path(__file__).with_name("golden")
REFUSED = {  # lines that are refused, beside a value of another kind for every option
    "cost": ["--n 3 --l 4", "--level machine --m 3", "--sweep n=2:3 --n 3", "--metric energy", "--lock a --check b"],
    "kernel": ["spof --at rounds=3", "nobody", "spof --cpu ,"],
    "plan": ["--columns a,b --features 3", "--for model --expect 0.2"],
    "train": ["--lr 0.1", "--packets noise.bin"],
    "verify": ["", "--elf noise.bin", "full --cc gcc --jobs 2"],
    "export": ["--out p --kernels ,", "--out full"],
}


def lines(name: str) -> list[str]:
    """Return refused lines of a command: a word in place of each number, choice and figure, then those by hand."""
    wrong = [word for word, kind in declared().get(name, {}).items() if isinstance(kind, Choice)]
    wrong += [word for word, kind in declared().get(name, {}).items() if kind.bounds and not isinstance(kind, Flag)]
    wrong += [word for word, kind in declared().get(name, {}).items() if isinstance(kind, Output) and kind.endings]
    return [f"{word} -7x" for word in wrong if word.startswith("--")] + REFUSED.get(name, [])


@pytest.mark.parametrize("name", ["", *GROUPS, *declared()])
def test_words_are_as_agreed(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    furnish(tmp_path)
    made = [run(capsys, *name.split(), "--help")[1]]
    for line in lines(name):
        code, out, said = run(capsys, *name.split(), *line.split())
        assert (code, out) == (2, "")
        made.append(f"$ sensorsim {name} {line}\n{said}")
    file, text = GOLDEN / f"{name.replace(' ', '_') or 'sensorsim'}.txt", "\n".join(made)
    if os.environ.get("RENEW"):
        file.write_text(text, "utf-8")
    assert file.read_text("utf-8") == text, f"renew it: RENEW=1 pytest {__file__}"


def test_no_file_is_left_over():
    names = {name.replace(" ", "_") or "sensorsim" for name in ("", *GROUPS, *declared())}
    assert {path.stem for path in GOLDEN.iterdir()} == names
