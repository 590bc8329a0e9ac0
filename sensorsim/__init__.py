"""sensorsim: what privacy on a body-worn sensor costs, protects and delivers, and the C to ship it.

    import numpy as np
    import sensorsim as ss

    ss.cost(n=14, l=7)                             # what a private record costs
    table = ss.noise_table(epsilon=1.6, release=1) # noise, with a proof of what it protects
    ss.release(np.full((20000, 14), 0.9), table)   # records through it, and what can be estimated

Every function is the command of its name, with the same defaults; every result has a short repr, `to_dict`, `to_frame`
and `plot`. Importing the package imports nothing heavy: torch, numba, numpy, pandas and matplotlib are imported by the
function that needs them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim._util.errors import FailedProofError as FailedProofError
    from sensorsim._util.errors import InputError as InputError
    from sensorsim.api.auditing import audit as audit
    from sensorsim.api.evaluating import evaluate as evaluate
    from sensorsim.api.fleets import fleet as fleet
    from sensorsim.api.noise import certify as certify
    from sensorsim.api.noise import noise_table as noise_table
    from sensorsim.api.noise import read_table as read_table
    from sensorsim.api.noise import write_table as write_table
    from sensorsim.api.planning import plan as plan
    from sensorsim.api.receiving import receive as receive
    from sensorsim.api.releasing import release as release
    from sensorsim.api.training import train as train
    from sensorsim.commands.cost import Cost
    from sensorsim.commands.cpus import ListCpus
    from sensorsim.commands.declare import function_of
    from sensorsim.commands.export import Export
    from sensorsim.commands.inspect_kernel import InspectKernel
    from sensorsim.commands.sensitivity import ShowSensitivity
    from sensorsim.commands.verify import Verify
    from sensorsim.device.firmware import Firmware as Firmware
    from sensorsim.device.sensor import Sensor as Sensor
    from sensorsim.paper.recompute import claims as claims
    from sensorsim.reporting.page import report as report

    cost = function_of(Cost, "cost")
    cpus = function_of(ListCpus, "cpus")
    export = function_of(Export, "export")
    kernel = function_of(InspectKernel, "kernel")
    verify = function_of(Verify, "verify")
    sensitivity = function_of(ShowSensitivity, "sensitivity")

    __version__: str

# Functions that are made from the declarations of commands.
NAMES = ["cost", "cpus", "export", "kernel", "sensitivity", "verify"]
# By name: where it is.
_PLACES = {
    "Firmware": "sensorsim.device.firmware",
    "FailedProofError": "sensorsim._util.errors",
    "InputError": "sensorsim._util.errors",
    "Sensor": "sensorsim.device.sensor",
    "audit": "sensorsim.api.auditing",
    "certify": "sensorsim.api.noise",
    "claims": "sensorsim.paper.recompute",
    "evaluate": "sensorsim.api.evaluating",
    "fleet": "sensorsim.api.fleets",
    "noise_table": "sensorsim.api.noise",
    "plan": "sensorsim.api.planning",
    "read_table": "sensorsim.api.noise",
    "receive": "sensorsim.api.receiving",
    "release": "sensorsim.api.releasing",
    "report": "sensorsim.reporting.page",
    "train": "sensorsim.api.training",
    "write_table": "sensorsim.api.noise",
}
__all__ = [*_PLACES, *NAMES]


if not TYPE_CHECKING:  # to a type checker the names above are all there are

    def __getattr__(name: str) -> Any:
        if name == "__version__":  # looked up when asked for: reading package metadata takes longer than the rest of us
            from importlib.metadata import version

            return version("sensorsim")
        from importlib import import_module

        if name in _PLACES:
            from sensorsim.calls import checked

            found = getattr(import_module(_PLACES[name]), name)
            globals()[name] = found = found if isinstance(found, type) else checked(found)
            return found
        from sensorsim.commands import python_function

        try:
            globals()[name] = made = python_function(name)
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return made


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "__doc__", "__name__", "__path__"])
