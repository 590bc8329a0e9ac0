"""Small files of a sweep and of a fleet, for pages that tell of them."""

import json
import sqlite3

from sensorsim.training.results_file import ABOUT_DATA, CONFIG, RESULTS_VERSION, TABLES, TRIVIAL

SAID = {"nominal_epsilon": 1.6, "spent_epsilon": 1.599958023791, "epsilon_person_median": 20.8, "trust": "local",
        "with_secret_noise": "weights too"}  # fmt: skip


def write_sweep(path, mechanism="sampled", source="mine.csv", accuracies=(97.0, 98.0, 99.0), said=SAID, n=14):
    """Write a file of `sensorsim sweep`: one cell of three runs, and two trivial predictors."""
    config = {"mechanism": mechanism, "sigma": 0.0, "c": 0.0, "epsilon": 1.6}
    scores = {"accuracy": 90.0, "accuracy_held_out": 89.0, "r2": None}
    cells = {
        ABOUT_DATA: {"source": source, "n": n, "normalise": "ranges", "rows": 456},
        f"{CONFIG}one": config,
        "one": said,
        f"{CONFIG}plain": config | {"mechanism": "none"},
        f"{TRIVIAL}plain": {"zeros": scores, "column mean": scores | {"accuracy": 97.6}},
    }
    with sqlite3.connect(path) as database:
        for statement in TABLES.values():
            database.execute(statement)
        database.execute("INSERT INTO meta VALUES ('results_version', ?)", (str(RESULTS_VERSION),))
        database.executemany("INSERT INTO cells VALUES (?, ?)", [(key, json.dumps(one)) for key, one in cells.items()])
        runs = [("one", place, json.dumps(scores | {"accuracy": one})) for place, one in enumerate(accuracies)]
        database.executemany("INSERT INTO runs VALUES (?, ?, ?)", runs)
    database.close()
    return path


def write_fleet(path, devices=40, days=14, noise=None, finished=True, budget="1"):
    """Sums as `sensorsim fleet` keeps them, of devices that made their records and released none."""
    from sensorsim.fleets.fleet_file import FleetFile

    settings = fleet_settings(devices, days, noise, budget)
    with FleetFile(path, settings, devices if finished else devices // 2) as store:
        store.claim()
        store.add(0, silent_counts(settings, store.range_of(0)[1]))
    return path


def fleet_settings(devices=40, days=14, noise=None, budget="1"):
    import numpy as np

    from sensorsim.device.firmware import Firmware
    from sensorsim.fleets.settings import People, Settings
    from sensorsim.noise.noise_table import ready_table

    table = noise or ready_table("1", 1)
    names = [f"feature {place}" for place in range(table.features)]
    people = People.of(names, np.full((2, table.features), 0.5), [0, 1], "two people")
    return Settings(Firmware(table, budget_epsilon=budget, budget_days=30), people, devices, days)


def silent_counts(settings, devices):
    """Two packets of the first feature came, with symbols in the middle; all other records were passed over."""
    from sensorsim.kernels.formats import ONE

    from sensorsim.fleets.counts import OUTCOMES, Counts

    counts = Counts.empty(settings)
    records = devices * settings.days
    counts.records[:] = devices
    counts.truth[:] = devices * ONE // 2
    for name, value in {"records": records, "passed over": records - 2, "released": 2, "received": 2}.items():
        counts.outcomes[OUTCOMES.index(name)] = value
    counts.tally[0, 0, settings.columns // 2] = 2
    counts.behind[0, 0] = ONE
    counts.spent[0], counts.spent[1] = devices - 2, 2
    counts.worst[:] = 1
    counts.energy[0] = devices
    return counts
