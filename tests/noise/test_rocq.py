"""Certificates as theorems: Rocq accepts those of sound tables and rejects every changed count."""

import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from sensorsim import InputError
from sensorsim.noise.noise_table import make_table
from sensorsim.noise.rocq import rocq_text
from sensorsim.noise.table_file import read_table

NOISE = Path(__file__).parents[2] / "tables" / "noise"
SHIPPED = sorted(NOISE.glob("*-eps*.txt"))


def text_of(path: Path) -> str:
    return rocq_text(read_table(path))


def accepts(text: str, folder: Path) -> bool:
    """Return whether coqc accepts the file, with no axioms but those of the real numbers."""
    if not shutil.which("coqc"):
        pytest.skip("coqc is not installed")
    (folder / "certificate.v").write_text(text)
    done = subprocess.run(["coqc", "certificate.v"], cwd=folder, capture_output=True, text=True, timeout=600)
    axioms = re.findall(r"^(\S+) :", done.stdout, re.M)
    return done.returncode == 0 and all(name.startswith(("Classical", "Functional")) for name in axioms)


def test_the_text_states_the_printed_epsilon():
    text = text_of(NOISE / "rows-eps1.6-1.txt")
    assert "Definition epsilon_digits : Z := 1599958023791." in text and "Theorem certificate" in text
    assert "Admitted" not in text and "Axiom" not in text


def test_a_table_without_a_pure_epsilon_is_refused():
    with pytest.raises(InputError, match="no pure epsilon"):
        rocq_text(make_table("naive", Decimal(2), features=1, release=1, entries=256))


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_rocq_accepts_every_shipped_table(path, tmp_path):
    assert accepts(text_of(path), tmp_path)


CHANGES = {
    "a count of a row": ("rows-eps1.6-1", "[32966; 17612", "[32967; 17612"),
    "two counts of a row": ("rows-eps1.6-1", "[32966; 17612", "[32967; 17611"),
    "a smaller epsilon of rows": ("rows-eps1.6-1", "1599958023791", "1599958023790"),
    "a stair": ("stairs-eps1-1", None, None),
    "a smaller epsilon of stairs": ("stairs-eps1-1", "epsilon_digits : Z := ", "epsilon_digits : Z := -"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_rocq_rejects_a_changed_table(change, tmp_path):
    name, old, new = CHANGES[change]
    text = text_of(NOISE / f"{name}.txt")
    if old is None:  # the innermost stair, twice as often
        counts = re.search(r"counts : list Z := \[(.*?)\]", text)[1].split("; ")
        middle = len(counts) // 2
        old, new = "; ".join(counts), "; ".join([*counts[:middle], str(2 * int(counts[middle])), *counts[middle + 1 :]])
    assert old in text and not accepts(text.replace(old, new, 1), tmp_path)
