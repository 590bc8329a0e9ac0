"""The notebook in docs/ runs from top to bottom, and says what it says there."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "plan_a_study.ipynb"


def said(notebook):
    """Return what the cells print or show, without figures."""
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", output
            shown.append(output.get("text") or output.get("data", {}).get("text/plain"))
    return shown


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the kernel's own process and its messages
def test_the_notebook_runs_and_says_what_is_stored():
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(fresh, timeout=300, kernel_name="python3").execute()
    assert said(fresh) == said(stored)


def test_what_is_stored_is_whole():
    """Every code cell was run, in order, and drew its figure."""
    stored = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any("image/png" in output.get("data", {}) for output in code[-1].outputs)
    for cell in code:
        compile(cell.source.replace("%matplotlib inline\n", ""), "cell", "exec")
    assert said(stored)[0].startswith("Plan(5,000 devices, epsilon 1: ±")
