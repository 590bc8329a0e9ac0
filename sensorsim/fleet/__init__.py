"""A fleet of sensors over days: the device model, journal and generator included, in batches of devices.

from sensorsim.fleet import FleetResult, People, Settings, simulate
settings = Settings(Firmware(table), People.generated(), devices=5000, days=28)
result = FleetResult(settings, simulate(settings, "fleet.sqlite"))

What is kept is sums: symbols per feature and day, the truth beside them, and how devices fared. Rows are never kept.
It is a simulation: the generators are seeded, and the truth of the records stands beside the estimates. Nothing of it
is private.

settings.py, people.py, chance.py   what is simulated, who wears it, what happens by chance
board.py, draw.py, loop.py          a sensor's steps, its release and its days, as Numba runs them
life.py, counts.py                  a batch of devices, and the whole numbers that it adds up
run.py, store.py, sound.py          batches on this machine or on a Dask cluster, what is finished, and if it can be so
estimates.py, spread.py, energy.py  means with intervals, distributions over devices, what a battery gives
result.py, text.py, figures.py      all of it, on a screen and on a page
"""

from importlib import import_module
from typing import Any

from sensorsim.doors import open_door

# Loaded when they are used: Numba takes a second.
_PLACES = {
    "Faults": "settings",
    "Settings": "settings",
    "People": "people",
    "simulate": "simulation",
    "FleetResult": "result",
}
__all__ = ["Faults", "FleetResult", "People", "Settings", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(import_module(f"sensorsim.fleet.{_PLACES[name]}"), name)


open_door(__name__)
