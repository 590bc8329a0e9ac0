"""`sensorsim figures`: every data figure of the paper from our own runs, and two of our own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.sweep import run_with_progress
from sensorsim.cli.training import data_options, load_data, numbers, seed_option
from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.train.config import Config
    from sensorsim.train.data import Dataset
    from sensorsim.train.store import Store

C_RANGE = "0:2.5:0.25"
C_EPSILON = 1.6  # the paper names no epsilon for its sweep of c


@click.command()
@click.option("--out", required=True, metavar="FOLDER", help="Where the PNG files go.")
@click.option("--epsilon", default="0.1,0.2,0.4,0.8,1.6,3.2,6.4", show_default=True, help="Nominal budgets per record.")
@click.option("--sigma", default="0,5", show_default=True, help="Environmental noise on the inputs.")
@click.option("--runs", type=int, default=100, show_default=True, help="Monte-Carlo runs of each cell.")
@data_options
@seed_option
@click.option("--results", metavar="FILE", help="Where finished cells are kept.  [default: FOLDER/results.sqlite]")
@click.option("--jobs", type=int, help="Processes.  [default: the processors of this machine]")
@click.option("--dask", metavar="ADDRESS", help="Run on this Dask cluster.")
def command(out: str, **chosen: Any) -> None:
    """Redraw the paper's data figures, with the trivial predictors in each, and two of our own.

    Runs every cell it needs first (resumable, like sweep), then draws seven PNG files.

    Example: sensorsim figures --out figures --runs 20
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {out}: {error.strerror}; give another with --out.") from None
    dataset = load_data(chosen)
    from sensorsim.train.store import Store

    with Store(chosen["results"] or folder / "results.sqlite", dataset.digest) as store:
        drawn = draw_all(dataset, store, folder, chosen)
    for path in drawn:
        click.echo(str(path))


def draw_all(dataset: Dataset, store: Store, folder: Path, chosen: dict[str, Any]) -> list[Path]:
    """All figures; returns their paths."""
    from sensorsim.privacy.figures import draw_sensitivity
    from sensorsim.train import figures, sweep

    epsilons, sigmas = numbers(chosen["epsilon"], "epsilon"), numbers(chosen["sigma"], "sigma")
    main, constants = _cells(dataset, chosen, epsilons, sigmas)
    results = run_with_progress(dataset, [*main, *constants], store, chosen["jobs"], chosen["dask"])
    trivial = sweep.trivial(dataset, [*main, *constants], store)
    rows = [sweep.row(result) | {"decode_c": result["config"]["decode_c"]} for result in results]
    over_epsilon, over_c = rows[: len(main)], rows[len(main) :]
    names = (
        "accuracy_c",
        "accuracy_epsilon",
        "accuracy_spent",
        "accuracy_cost",
        "bmax_density",
        "bmax_probability",
        "sensitivity",
    )
    paths = {name: folder / f"{name}.png" for name in names}
    figures.accuracy_against_c(over_c, trivial, paths["accuracy_c"])
    figures.accuracy_against_epsilon(over_epsilon, trivial, paths["accuracy_epsilon"])
    figures.accuracy_against_epsilon(over_epsilon, trivial, paths["accuracy_spent"], spent=True)
    figures.accuracy_against_cost(over_epsilon, trivial, *_costs(dataset.n), paths["accuracy_cost"])
    figures.density_of_b_max(paths["bmax_density"])
    figures.probability_of_b_max(paths["bmax_probability"])
    draw_sensitivity(paths["sensitivity"])
    return list(paths.values())


def _cells(
    dataset: Dataset, chosen: dict[str, Any], epsilons: list[float], sigmas: list[float]
) -> tuple[list[Config], list[Config]]:
    """The grid over epsilon, and the sweep of c with and without c in the decoder."""
    from sensorsim.mechanisms import every
    from sensorsim.train import sweep
    from sensorsim.train.config import Config

    base = Config("none", runs=chosen["runs"], m=chosen["m"], seed=chosen["seed"])
    names = [mechanism.name for mechanism in every()]
    main = sweep.grid(base, names, epsilons, sigmas, [base.c], dataset.n)
    constants = [
        config
        for decoded in (False, True)
        for config in sweep.grid(
            replace(base, decode_c=decoded), ["spof"], [C_EPSILON], sigmas[:1], numbers(C_RANGE, "c"), dataset.n
        )
    ]
    return main, constants


def _costs(n: int, l: int = 7) -> tuple[dict[str, float], str]:
    """Executed operations per record of each mechanism whose kernel is known, and their unit."""
    from sensorsim.cost.report import cost
    from sensorsim.mechanisms import every

    report = cost(n=n, l=l)
    totals = {}
    for mechanism in every():
        form = mechanism.cost_form()
        if form is not None:
            totals[mechanism.name] = float(report.mechanisms[form.name].traced.total)
    pricing = report.pricing
    return totals, f"{pricing.unit}, {pricing.cpu.name.upper()}, {pricing.width}-bit, {pricing.accounting} accounting"
