"""A mechanism from outside the package is known everywhere: cost, export, accounting, training, sweeps, figures."""

import importlib.metadata
import json
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import outside_mechanism  # noqa: E402

from sensorsim import mechanisms  # noqa: E402
from sensorsim._util.errors import InputError  # noqa: E402
from sensorsim.accounting.composition import Covers  # noqa: E402
from sensorsim.codegen.package_options import choose  # noqa: E402
from sensorsim.commands.program import main  # noqa: E402
from sensorsim.costing.cost_report import cost  # noqa: E402
from sensorsim.datasets import synthetic  # noqa: E402
from sensorsim.datasets.dataset import prepare  # noqa: E402
from sensorsim.mechanisms import every, find, register  # noqa: E402
from sensorsim.training import cells, loop, results_file, run_figures, sweeps  # noqa: E402
from sensorsim.training.config import Config, checked  # noqa: E402
from sensorsim.training.fitting import statement  # noqa: E402
from sensorsim.training.step import Source  # noqa: E402

COLUMNS = ("TotalSteps", "Calories", "SedentaryMinutes", "LightActiveDistance")
EVERY = every()


@pytest.fixture(scope="module")
def small():
    return prepare(synthetic.make(rows=60, persons=8), columns=COLUMNS)


@pytest.fixture
def outside(monkeypatch):
    monkeypatch.setattr(mechanisms, "_known", dict(mechanisms._known))
    return register(outside_mechanism.MECHANISM)


def test_a_name_that_is_taken_is_refused(outside):
    for name, aliases in (("spof", ()), ("exact", ()), ("new", ("sampled",)), ("outside", ()), ("new", ("exact",))):
        taken = type("Taken", (outside_mechanism.Outside,), {"name": name, "aliases": aliases})()
        with pytest.raises(InputError, match="already"):
            register(taken)
    assert [mechanism.name for mechanism in every()] == [*(mechanism.name for mechanism in EVERY), "outside"]


def test_it_is_counted_exported_and_accounted(outside, capsys):
    found = cost().mechanisms["outside"]
    assert found.traced.total == found.symbolic.total > 0 and found.printed is None
    assert (found.random_bits, found.bits_sent) == (32 * 14, 32 * 14)
    main(["cost"])
    assert "a record with noise" in capsys.readouterr().out
    assert choose(["outside"], "lean") == choose(["formerly-outside"], "paper") == [outside_mechanism.noisy_record]
    once = mechanisms.spent("outside", 0.9, forward="released")
    assert (once.epsilon, once.delta, once.covers) == (pytest.approx(0.9), 0.0, Covers.RELEASE)
    with pytest.warns(FutureWarning, match="is now called outside"):
        assert mechanisms.spent("formerly-outside", 0.9).covers is Covers.RELEASE  # as it trains by default
    assert mechanisms.spent("outside", 0.9, forward="raw").covers is Covers.COEFFICIENTS
    assert mechanisms.nominal_scale("outside", 0.5) == 28


def test_it_trains_and_says_what_it_spent(outside, small):
    config = checked(Config("outside", 2.0, c=1.0, k=2, l=2, runs=2, epochs=1, seed=0), small.n)
    assert (config.mechanism, config.c, config.k) == ("outside", 0.0, None)
    said = statement(config, small.n)
    assert said.spent_epsilon == pytest.approx(2.0) and "weights included" in said.covers
    assert statement(checked(Config("outside", 2.0, l=2, forward="raw"), 4), 4).covers_short == "coefficients"
    assert torch.isfinite(loop.train_block(small, config, 2, Source()).flat).all()
    first, second = (cells.run_cell(small, config) for _ in range(2))
    assert first["accuracy"] == second["accuracy"] and first["spent_epsilon"] == said.spent_epsilon


def test_it_is_in_sweeps_and_figures(outside, small, tmp_path, capsys):
    base = Config("none", l=2, runs=2, epochs=1, seed=0)
    cells = sweeps.grid(base, ["none", "outside", "dpsgd"], [1.0, 4.0], [0.0], [0.0], small.n)
    with results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept:
        rows = [sweeps.row(result) | {"data": small.source} for result in sweeps.run(small, cells, kept)]
        trivial = sweeps.trivial(small, cells, kept)
    assert [row["mechanism"] for row in rows] == ["none", "outside", "outside", "dpsgd", "dpsgd"]
    texts = " ".join(drawn_labels(run_figures.accuracy_against_epsilon(rows, trivial)))
    assert all(title in texts for title in ("no privacy", "outside", "dpsgd"))
    costs = {"outside": float(cost().mechanisms["outside"].traced.total)}
    assert "outside" in " ".join(drawn_labels(run_figures.accuracy_against_cost(rows, trivial, costs, "macro-ops")))
    words = ["--columns", ",".join(COLUMNS), "--l", "2", "--epochs", "1", "--runs", "2", "--sigma", "0"]
    grid = ["--mechanism", "formerly-outside", "--epsilon", "1.5", "--jobs", "1", "--format", "json"]
    main(["sweep", *words, *grid, "--results", str(tmp_path / "s.sqlite")])
    said = capsys.readouterr()
    assert [row["mechanism"] for row in json.loads(said.out)["rows"]] == ["outside"]
    assert "formerly-outside is now called outside" in said.err


def drawn_labels(figure):
    """Every text in a figure."""
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text)}


def test_it_is_found_by_its_entry_point(monkeypatch, small):
    asked = []

    def entry_points(group):
        asked.append(group)
        return [SimpleNamespace(load=lambda: outside_mechanism.MECHANISM)]

    monkeypatch.setattr(mechanisms, "_known", dict(mechanisms._known))
    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert find("spof").name == "spof" and not asked  # nobody looks without need: it takes time
    with pytest.warns(FutureWarning):
        assert mechanisms.spent("formerly-outside", 0.9).epsilon == pytest.approx(0.9)
    assert asked == ["sensorsim.mechanisms"] and every()[-1] is outside_mechanism.MECHANISM
    assert checked(Config("outside", 1.0, l=2), small.n).object is outside_mechanism.MECHANISM
    with pytest.raises(InputError, match=r"choose from .*outside"):
        find("magic")


def test_afterwards_nothing_is_left():
    assert every() == EVERY
    with pytest.raises(InputError, match="no mechanism 'outside'"):
        find("outside")
