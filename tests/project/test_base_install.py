"""The README's first command in a fresh copy: what a plain install does, and what it says where an extra is missing."""

import os
import shutil
import subprocess
import sys

import pytest
from pages import ROOT

pytestmark = pytest.mark.slow
LEFT_OUT = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "__pycache__")
WORKS = {
    "help": ["--help"],
    "cost": ["cost", "--n", "14", "--l", "7"],
    "kernel": ["kernel", "spof"],
    "plan": ["plan", "--columns", "TotalSteps", "--devices", "5000", "--budget-epsilon", "1"],
    "noise": ["noise", "make", "--epsilon", "1.6", "--release", "1", "--out", "table.txt"],
    "claims": ["claims"],
    "report": ["report", "--out", "report.html"],
}
MISSING = {
    "simulate": (["noise", "audit", "table.txt"], "'.[simulate]'"),
    "plot": (["cost", "--plot", "cost.svg"], "'.[plot]'"),
    "train": (["train", "--out", "model.safetensors"], "'.[train]'"),
    "firmware": (["cost", "--level", "machine"], "'.[firmware]'"),
    "data": (["receive", "packets.parquet", "--table", "table.txt"], "'.[data]'"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Copy the project, install it by the README's first command, and make an empty folder."""
    copy = tmp_path_factory.mktemp("fresh") / "clone"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    readme = (copy / "README.md").read_text("utf-8")
    command = next(line.strip() for line in readme.splitlines() if "-c constraints.txt . &&" in line)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    bare["PATH"] = f"{os.path.dirname(sys._base_executable)}{os.pathsep}{bare['PATH']}"  # noqa: PTH120
    done = subprocess.run(["bash", "-c", command], cwd=copy, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Cost of one private record")
    folder = tmp_path_factory.mktemp("work")
    (folder / "packets.parquet").write_bytes(b"PAR1 and no more")

    def run(*words):
        program = [str(copy / ".venv" / "bin" / "sensorsim"), *words]
        return subprocess.run(program, cwd=folder, env=bare, capture_output=True, text=True)

    run.folder = folder
    return run


def test_what_a_plain_install_does(place):
    for name, words in WORKS.items():
        done = place(*words)
        assert done.returncode == 0, f"{name}: {done.stderr}"
    assert (place.folder / "report.html").read_text("utf-8").startswith("<!")


def test_one_sentence_where_an_extra_is_missing(place):
    place(*WORKS["noise"])
    before = sorted(place.folder.iterdir())
    for extra, (words, said) in MISSING.items():
        done = place(*words)
        assert done.returncode == 2 and said in done.stderr, f"{extra}: {done.stderr}"
        assert len(done.stderr.splitlines()) == 1 and len(done.stderr) < 300 and done.stdout == ""
    assert sorted(place.folder.iterdir()) == before
