"""The linter, the formatter and the type checker have nothing to say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


TYPES = pytest.param(("mypy",), marks=pytest.mark.slow)  # a cold start reads all of torch


@pytest.mark.parametrize("words", [("ruff", "check"), ("ruff", "format", "--check"), TYPES], ids=" ".join)
def test_clean(words):
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
