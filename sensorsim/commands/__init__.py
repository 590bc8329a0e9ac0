"""The commands, one frozen dataclass each; `COMMANDS` lists them, and each is imported when it is used.

Declare a command in a module of its own:

    @dataclass(frozen=True)
    class Cost(Command[CostReport]):
        \"\"\"Text of the help below the one line of COMMANDS.\"\"\"

        example = "sensorsim cost --n 14 --l 7"
        n: int = option(14, Whole(1, 4096), "Features of a record.")

        def run(self) -> CostReport: ...  # compute; raise InputError for bad input

Fields stand in the order of the Python function's parameters. A kind (_util/option_kinds.py) reads, checks, completes
and describes a value: `run` checks only what options mean together. A result gives `to_dict` for JSON, `rows` for CSV
and `text` for a terminal. `run` prints nothing: notes go through `_util.progress.note`, bars through
`outputs.progress_bar`, which are silent in Python. Messages name options as `--budget-days`; in Python they are shown
as `budget_days`. Add a line to COMMANDS; the function `sensorsim.NAME` and its type follow in sensorsim/__init__.py.

declare.py        the base class, the Python function, the JSON schema of the options
shell.py          the click command of a declaration
program.py        the program `sensorsim`: group, exit codes, endings
outputs.py        tables, JSON and CSV on stdout; output files checked first; progress bars
completion.py     scripts for bash, zsh and fish
locks.py          --lock and --check; lock_file.py the file; locked_figures.py what is in it
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sensorsim.commands.declare import Command


class Entry(NamedTuple):
    """A command: where it is declared, and the one line that describes it everywhere."""

    place: str  # module below sensorsim.commands, and class
    about: str
    function: str | None = ""  # its Python function; "" takes the command's name, and None is for none
    shell: bool = True  # False: a Python function only

    def load(self) -> "type[Command[Any]]":
        """Import the command."""
        module, _, name = self.place.partition(":")
        found: type[Command[Any]] = getattr(import_module(f"sensorsim.commands.{module}"), name)
        return found


COMMANDS = {
    "cost": Entry("cost:Cost", "Compute what a private record costs on a sensor's processor."),
    "cpus": Entry("cpus:ListCpus", "List the processors, chips and radios whose tables are known."),
    "cpus show": Entry("cpus:ShowCpu", "Print the table of a processor."),
    "cpus check": Entry("cpus:CheckCpus", "Validate tables of yours, or every table of the package."),
    "plan": Entry("plan:PlanStudy", "Compute what a fleet of sensors reaches within a budget, before it is built."),
    "fleet": Entry("fleet:SimulateFleet", "Simulate many sensors over days: intervals, spend, batteries, faults."),
    "train": Entry("train:TrainModel", "Train one on-body encoder privately and save it."),
    "evaluate": Entry("evaluate:EvaluateModel", "Measure how well a model does on raw records. Not private."),
    "decode": Entry("decode:DecodePackets", "Turn packets of hidden units back into readings, at the hospital."),
    "sweep": Entry("sweep:SweepGrid", "Measure accuracy over a grid of mechanisms and budgets, resumable."),
    "figures": Entry("figures:DrawFigures", "Draw the paper's figures, and our own."),
    "data ranges": Entry("data:ShowRanges", "Show the public ranges that are ready, or check your own."),
    "data make": Entry("data:MakeData", "Write a synthetic set of daily activity."),
    "data compare": Entry("data:CompareData", "Measure how far the synthetic set is from a real file."),
    "data fit": Entry("data:FitData", "Fit the two tables of the generator to a real file."),
    "noise make": Entry("noise:MakeTable", "Make a noise table and prove what it protects.", None),
    "noise check": Entry("noise:CheckTable", "Prove again, from its counts, what a table protects.", "certify"),
    "noise show": Entry("noise:ShowTable", "Show what a table puts out, and the privacy loss of each value.", None),
    "noise audit": Entry("audit:AuditTable", "Run the real kernel on several inputs and look for a leak.", "audit"),
    "noise peers": Entry("noise:ComparePeers", "Compare the ready tables with other mechanisms.", "noise_peers"),
    "noise_table": Entry("noise:DesignTable", "Make a noise table with a proof of what it protects.", shell=False),
    "read_table": Entry("noise:ReadTable", "Read a noise table and prove what it protects.", shell=False),
    "write_table": Entry("noise:WriteTable", "Write a noise table with its certificate.", shell=False),
    "release": Entry("noise_release:ReleaseRecords", "Release records through a noise table.", shell=False),
    "kernel": Entry("inspect_kernel:InspectKernel", "Report cost, proof, secrecy and C of a kernel of your own."),
    "export": Entry("export:Export", "Write the kernels as a C package for firmware."),
    "verify": Entry("verify:Verify", "Prove a C package on machine code, bit for bit."),
    "receive": Entry("receive:ReceivePackets", "Estimate mean and interval of every feature from packets of sensors."),
    "claims": Entry("claims:RecomputeClaims", "Recompute every checkable statement of the paper, and ours."),
    "report": Entry("report:WriteReport", "Write one page: what a record costs, protects and delivers."),
    "completion": Entry("completion:Completion", "Print the script that completes commands in your shell.", None),
    "sensitivity": Entry("sensitivity:ShowSensitivity", "Show what the paper prints as sensitivity, and what holds."),
}
# Commands that are nothing but subcommands, as in "noise make": their line and their example.
GROUPS = {
    "data": "Show public ranges; make, compare and fit synthetic daily-activity data.\n\n"
    "Example: sensorsim data make --rows 457 --persons 35 --out days.csv",
    "noise": "Make, check, show and audit noise tables with a proof of what they protect.\n\n"
    "Example: sensorsim noise make --epsilon 1 && sensorsim noise check rows-eps1-all.txt",
}


def python_function(name: str) -> Callable[..., Any]:
    """Return the Python function of this name, with those of subcommands as attributes; KeyError if there is none."""
    from sensorsim.commands.declare import function_of

    entries = {
        entry.function or command.replace(" ", "."): entry
        for command, entry in COMMANDS.items()
        if entry.function is not None
    }
    below = [each for each in entries if each.startswith(f"{name}.")]
    entry = entries[name if name in entries or not below else below[0]]
    function = function_of(entry.load(), name, entry.about)
    for each in below:
        setattr(function, each.rpartition(".")[2], function_of(entries[each].load(), each, entries[each].about))
    return function
