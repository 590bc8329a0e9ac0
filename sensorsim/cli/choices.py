"""Options and arguments whose values a shell completes.

Each list is read where it lives, when the shell asks for it. What was typed is not checked here: the commands do that,
each in its own words, and they know names that are not listed, older ones for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

MOST_BYTES = 1 << 16  # of a first line with the names of columns


class Names(click.types.StringParamType):
    """A name of a list, or several with commas, or a file of one's own where the option takes one."""

    def __init__(
        self, known: Callable[[], Iterable[str]], several: bool = False, files: bool = False, name: str = "text"
    ) -> None:
        self.known, self.several, self.files = known, several, files
        self.name = name

    def names(self, _: click.Context) -> Iterable[str]:
        """What can be typed here."""
        return self.known()

    def shell_complete(self, ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        before, comma, last = incomplete.rpartition(",") if self.several else ("", "", incomplete)
        taken = before.split(",")
        found = [name for name in self.names(ctx) if name.startswith(last) and name not in taken]
        items = [CompletionItem(f"{before}{comma}{name}") for name in found]
        # Files come first, as the script for bash forgets what stands before them; and not for an empty word, which
        # the script for zsh would take for no word at all.
        return [*_files(incomplete), *items] if self.files and incomplete and not comma else items


class Columns(Names):
    """Columns of the CSV file that --data names, or else those that there are public ranges of."""

    def __init__(self, several: bool, name: str) -> None:
        super().__init__(columns, several, name=name)

    def names(self, ctx: click.Context) -> Iterable[str]:
        data = ctx.params.get("data")
        return _header(Path(data)) if data else self.known()


class Paths(click.types.StringParamType):
    """A path, as text; `name` is what stands for it in --help."""

    def __init__(self, name: str, kind: str = "file") -> None:
        self.name, self.kind = name, kind

    def shell_complete(self, _: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        return _files(incomplete, self.kind)


class Output(Paths):
    """A path that a command writes to. `sensorsim.cli.writing` checks it before the command begins.

    `form` says what is written: a file, which `-` sends to standard output, or what cannot be sent there. With
    `endings` a file must have one of them; the first is that of standard output.
    """

    def __init__(self, form: str = "file", endings: tuple[str, ...] = (), name: str = "file") -> None:
        super().__init__(name, "dir" if form == "folder" else "file")
        self.form, self.endings = form, endings


def _files(incomplete: str, kind: str = "file") -> list[CompletionItem[Any]]:
    """The shell itself looks for files or folders."""
    return [CompletionItem(incomplete, type=kind)]


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV file; none where it cannot be read, or is something else."""
    import csv

    try:
        if not path.is_file():  # a pipe would wait, and lose what is read of it
            return []
        with path.open("rb") as file:
            line = file.readline(MOST_BYTES).decode("utf-8-sig")
        names = next(csv.reader([line.rstrip("\r\n")], strict=True), [])
    except (OSError, ValueError, csv.Error):
        return []
    return [name for name in names if name and name.isprintable() and "," not in name]


def columns() -> list[str]:
    """Those that there are public ranges of."""
    from sensorsim.datasets.public_ranges import ready_ranges

    return list(ready_ranges())


def cpus() -> list[str]:
    from sensorsim.costing.prices import cpu_names

    return cpu_names()


def chips() -> list[str]:
    from sensorsim.costing.chips import chip_names

    return chip_names()


def radios() -> list[str]:
    from sensorsim.costing.chips import radio_names

    return radio_names()


def mechanisms() -> list[str]:
    from sensorsim.mechanisms import every

    return [mechanism.name for mechanism in every()]


def observed() -> list[str]:
    """What `noise audit` can watch."""
    from sensorsim.auditing.table_sources import SPOF_VARIANTS
    from sensorsim.mechanisms import every

    return [*(mechanism.name for mechanism in every() if mechanism.audited), *SPOF_VARIANTS]


def kernels() -> list[str]:
    from sensorsim.language.load import offered

    return offered()


def exported() -> list[str]:
    """What `export --kernels` takes: kernels, and the mechanisms that have one."""
    return list(dict.fromkeys([*mechanisms(), *kernels()]))


def targets() -> list[str]:
    from sensorsim.machine.targets import CORES, HOST

    return [HOST, *CORES]


def kinds() -> list[str]:
    from sensorsim.noise.kinds import KINDS

    return list(KINDS)


def claims() -> list[str]:
    from sensorsim.paper.recompute import statements

    return [one.id for one in statements()]


def packet_numbers() -> list[str]:
    from sensorsim.kernels.packet import NUMBERS

    return list(NUMBERS)


def of_training(setting: str) -> Names:
    """A setting of `train` by its name in `Config`."""

    def allowed() -> Iterable[str]:
        from sensorsim.training.config import CHOICES

        return CHOICES[setting]

    return Names(allowed)


CPU, CPUS = Names(cpus, files=True), Names(cpus, several=True, files=True)
CHIP, RADIO = Names(chips, files=True), Names(radios)
MECHANISM, MECHANISMS = Names(mechanisms), Names(mechanisms, several=True)
OBSERVED = Names(observed)
KERNEL, EXPORTED = Names(kernels, files=True), Names(exported, several=True, files=True)
TARGETS, KIND, CLAIM = Names(targets, several=True), Names(kinds), Names(claims)
PACKET_NUMBERS = Names(packet_numbers, several=True)
COLUMN, COLUMNS = Columns(several=False, name="column"), Columns(several=True, name="names")
FILE, TABLE, DIR = Paths("file"), Paths("table"), Paths("dir", "dir")
WRITTEN, FIGURE = Output(), Output(endings=(".svg", ".png", ".pdf"))
SUMS = Output(endings=(".json", ".csv", ".parquet"))
MODEL, ENCODERS = Output(endings=(".safetensors", ".npz")), Output("several", endings=(".json",))
DATABASE, FOLDER = Output("database"), Output("folder", name="folder")
