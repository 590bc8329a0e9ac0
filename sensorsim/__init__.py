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
    from sensorsim.commands.audit import AuditTable
    from sensorsim.commands.claims import RecomputeClaims
    from sensorsim.commands.cost import Cost
    from sensorsim.commands.cpus import ListCpus
    from sensorsim.commands.data import ShowRanges
    from sensorsim.commands.declare import function_of
    from sensorsim.commands.decode import DecodePackets
    from sensorsim.commands.evaluate import EvaluateModel
    from sensorsim.commands.export import Export
    from sensorsim.commands.figures import DrawFigures
    from sensorsim.commands.fleet import SimulateFleet
    from sensorsim.commands.inspect_kernel import InspectKernel
    from sensorsim.commands.noise import CheckTable, ComparePeers, DesignTable, ReadTable, WriteTable
    from sensorsim.commands.noise_release import ReleaseRecords
    from sensorsim.commands.plan import PlanStudy
    from sensorsim.commands.receive import ReceivePackets
    from sensorsim.commands.report import WriteReport
    from sensorsim.commands.sensitivity import ShowSensitivity
    from sensorsim.commands.sweep import SweepGrid
    from sensorsim.commands.train import TrainModel
    from sensorsim.commands.verify import Verify
    from sensorsim.device.firmware import Firmware as Firmware
    from sensorsim.device.sensor import Sensor as Sensor

    cost = function_of(Cost, "cost")
    cpus = function_of(ListCpus, "cpus")
    export = function_of(Export, "export")
    kernel = function_of(InspectKernel, "kernel")
    verify = function_of(Verify, "verify")
    sensitivity = function_of(ShowSensitivity, "sensitivity")
    audit = function_of(AuditTable, "audit")
    certify = function_of(CheckTable, "certify")
    claims = function_of(RecomputeClaims, "claims")
    data = function_of(ShowRanges, "data")
    decode = function_of(DecodePackets, "decode")
    evaluate = function_of(EvaluateModel, "evaluate")
    figures = function_of(DrawFigures, "figures")
    fleet = function_of(SimulateFleet, "fleet")
    noise_peers = function_of(ComparePeers, "noise_peers")
    noise_table = function_of(DesignTable, "noise_table")
    plan = function_of(PlanStudy, "plan")
    read_table = function_of(ReadTable, "read_table")
    receive = function_of(ReceivePackets, "receive")
    release = function_of(ReleaseRecords, "release")
    report = function_of(WriteReport, "report")
    sweep = function_of(SweepGrid, "sweep")
    train = function_of(TrainModel, "train")
    write_table = function_of(WriteTable, "write_table")

    __version__: str

# Functions that are made from the declarations of commands.
NAMES = [
    *("audit", "certify", "claims", "cost", "cpus", "data", "decode", "evaluate", "export"),
    *("figures", "fleet", "kernel", "noise_peers", "noise_table", "plan", "read_table", "receive"),
    *("release", "report", "sensitivity", "sweep", "train", "verify", "write_table"),
]
# By name: where it is.
_PLACES = {
    "Firmware": "sensorsim.device.firmware",
    "FailedProofError": "sensorsim._util.errors",
    "InputError": "sensorsim._util.errors",
    "Sensor": "sensorsim.device.sensor",
}
__all__ = [*_PLACES, *NAMES]


if not TYPE_CHECKING:  # to a type checker the names above are all there are

    def __getattr__(name: str) -> Any:
        if name == "__version__":  # looked up when asked for: reading package metadata takes longer than the rest of us
            from importlib.metadata import version

            return version("sensorsim")
        from importlib import import_module

        if name in _PLACES:
            globals()[name] = found = getattr(import_module(_PLACES[name]), name)
            return found
        from sensorsim.commands import python_function

        try:
            globals()[name] = made = python_function(name)
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return made


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "__doc__", "__name__", "__path__"])
