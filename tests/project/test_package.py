"""The wheel holds what the folders hold, and works in a clean environment from another directory."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"sensorsim": "sensorsim", "kernels": "sensorsim/kernels", "tables": "sensorsim/tables"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    source = tmp_path_factory.mktemp("source")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:  # a copy, so that the build leaves nothing in the work tree
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", out, source], check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_folders(wheel):
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    inside = set(zipfile.ZipFile(wheel).namelist())
    for name in tracked:
        top, _, rest = name.partition("/")
        own = Path(name).suffix not in (".md", ".sh") or "/templates/" in name
        if top in FOLDERS and own and (ROOT / name).exists():
            assert f"{FOLDERS[top]}/{rest}" in inside


def test_nothing_that_the_package_needs_is_ignored_by_git():
    """A template in a folder that git ignores works here and in no clone."""
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", *FOLDERS]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in ignored if "__pycache__" not in name] == []


def test_the_wheel_runs_in_a_clean_environment(wheel, tmp_path):
    """Only click beside it: `cost` needs nothing else."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "clean"], check=True)
    python = tmp_path / "clean" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", "click"], check=True)
    command = [tmp_path / "clean" / "bin" / "sensorsim", "cost", "--n", "14", "--l", "7"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "74.06 %" in done.stdout
