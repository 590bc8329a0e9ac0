"""Simulate a fleet of sensors over days, with journal and generator, in batches of devices.

from sensorsim.fleets import FleetResult, People, Settings, simulate
settings = Settings(Firmware(table), People.generated(), devices=5000, days=28)
result = FleetResult(settings, simulate(settings, "fleet.sqlite"))

Only sums are stored: symbols per feature and day, the truth beside them, and outcomes of devices. This is a simulation
with seeded generators, and the truth is beside the estimates: nothing of it is private.

settings.py, energy.py         what is simulated, who wears the devices, what it takes
chance.py, board.py, life.py   random events, a sensor's steps and its days, as Numba runs them
counts.py                      sums of a batch
simulation.py, fleet_file.py   batches on this machine or on a Dask cluster, and the file of finished ones
estimates.py, fleet_*.py       means with intervals, distributions over devices; on a screen and on a page
"""

from importlib import import_module
from typing import Any

_PLACES = {"FleetResult": "fleet_result", "simulate": "simulation"}  # others are in settings.py
__all__ = ["Faults", "FleetResult", "People", "Settings", "simulate"]


def __getattr__(name: str) -> Any:
    """Load a module when it is used: Numba takes a second."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"sensorsim.fleets.{_PLACES.get(name, 'settings')}"), name)
