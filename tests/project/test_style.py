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


LANGUAGE = pytest.param(("-p", "sensorsim.kernels", "-p", "sensorsim.language"), id="the language and the kernels")
EVERYTHING = pytest.param((), id="everything", marks=pytest.mark.slow)  # a cold start reads all of torch


@pytest.mark.parametrize("what", [LANGUAGE, EVERYTHING])
def test_types(what, tmp_path):
    """In a tree laid out as the package is installed: mypy cannot map kernels/ and tables/ to where they belong."""
    package = tmp_path / "sensorsim"
    package.mkdir()
    for part in [*(ROOT / "sensorsim").iterdir(), ROOT / "kernels", ROOT / "tables"]:
        (package / part.name).symlink_to(part)
    if what:  # the package's own names lead everywhere, and these parts ask for none of them
        (package / "__init__.py").unlink()
        (package / "__init__.py").write_text("")
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *what]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
