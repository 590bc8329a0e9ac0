"""The commands, one frozen dataclass each. `COMMANDS` lists them; a command is imported when it is used.

declare.py        how a command is declared
option_kinds.py   kinds of values: how they are read, checked and completed
shell.py          the click command of each, and the program `sensorsim`
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from sensorsim.commands.declare import Command


class Entry(NamedTuple):
    """A command: where it is declared, and the one line that describes it everywhere."""

    place: str  # module below sensorsim.commands, and class
    about: str
    function: str = ""  # its Python function; that of the command's name where none is given

    def load(self) -> "type[Command[Any]]":
        module, _, name = self.place.partition(":")
        found: type[Command[Any]] = getattr(import_module(f"sensorsim.commands.{module}"), name)
        return found


COMMANDS = {
    "sensitivity": Entry(
        "sensitivity:ShowSensitivity", "Show what the paper prints as sensitivity, beside what holds.", "sensitivity"
    ),
}


def functions() -> dict[str, Entry]:
    """Return the Python functions of all commands by name."""
    return {entry.function or name: entry for name, entry in COMMANDS.items()}
