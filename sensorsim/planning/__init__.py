"""Plan a study before anything is built: design, interval, epsilon and energy of a fleet of sensors.

The lines of a plan name functions of this package to compute a number again. They are imported on use.
"""

from importlib import import_module
from typing import Any

PLACES = {
    "deployment": ("Asked",),
    "estimands": ("correlation", "mean_half", "packets", "value_sd"),
    "person_epsilon": ("group_epsilon", "most_anywhere", "most_releases"),
    "study_plan": ("Plan", "plan", "record_of", "release_cost"),
    "synthetic_people": ("column_variance", "simulate_model"),
}


def __getattr__(name: str) -> Any:
    for module, names in PLACES.items():
        if name in names:
            return getattr(import_module(f"sensorsim.planning.{module}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
