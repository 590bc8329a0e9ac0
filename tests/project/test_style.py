"""The linter, the formatter and the type checker have nothing to say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("words", [("ruff", "check"), ("ruff", "format", "--check")], ids=" ".join)
def test_clean(words):
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types():
    """In a tree laid out as the package is installed: mypy cannot map kernels/ and tables/ to where they belong."""
    tree = ROOT / ".mypy_cache" / "installed"  # stays, so that the next run reads what has changed
    package = tree / "sensorsim"
    package.mkdir(parents=True, exist_ok=True)
    for part in package.iterdir():
        part.unlink()
    for part in [*(ROOT / "sensorsim").iterdir(), ROOT / "kernels", ROOT / "tables"]:
        (package / part.name).symlink_to(part)
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tree / "cache"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
