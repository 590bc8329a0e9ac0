"""`pytest bench` measures: it ends with 0 and prints the table of pytest-benchmark, with -n too."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pages import ROOT


@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_a_benchmark_is_timed(more):
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [sys.executable, "-m", "pytest", "bench/bench_cost.py", "-k", "import", *more]
    done = subprocess.run(words, cwd=ROOT, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "benchmark 'start': 1 tests" in done.stdout and "Rounds" in done.stdout
    assert ("-n is left out" in done.stdout) == bool(more)


@pytest.mark.parametrize(("dist", "made"), [("load", "LoadFileScheduling"), ("loadscope", "NoneType")])
def test_tests_of_a_file_stay_on_one_worker(dist, made, request):
    pytest.importorskip("xdist")
    place = str(ROOT / "tests" / "conftest.py")
    own = next(one for one in request.config.pluginmanager.get_plugins() if getattr(one, "__file__", "") == place)
    config = SimpleNamespace(getoption=lambda name: dist, getvalue=lambda name: ["popen"], hook=None)
    found = own.pytest_xdist_make_scheduler(config, None)
    assert type(found).__name__ == made
