"""Simulate a fleet of sensors over days, with journal and generator, in batches of devices.

from sensorsim.fleets import FleetResult, People, Settings, simulate
settings = Settings(Firmware(table), People.generated(), devices=5000, days=28)
result = FleetResult(settings, simulate(settings, "fleet.sqlite"))

Only sums are stored: symbols per feature and day, the truth beside them, and outcomes of devices. This is a simulation
with seeded generators, and the truth is beside the estimates: nothing of it is private.

settings.py, chance.py       what is simulated, who wears the devices, random events
board.py, draw.py, loop.py   a sensor's steps, its release and its days, as Numba runs them
life.py, counts.py           a batch of devices, and its sums
simulation.py, fleet_file.py batches on this machine or on a Dask cluster, and the file of finished ones
estimates.py, energy.py      means with intervals, distributions over devices, energy
fleet_*.py                   the result, on a screen and on a page
"""

from importlib import import_module
from typing import Any

# Loaded when they are used: Numba takes a second.
_PLACES = {
    "Faults": "settings",
    "Settings": "settings",
    "People": "settings",
    "simulate": "simulation",
    "FleetResult": "fleet_result",
}
__all__ = ["Faults", "FleetResult", "People", "Settings", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(import_module(f"sensorsim.fleets.{_PLACES[name]}"), name)
