"""Which kernels a package is made of, and the command that makes it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path

from sensorsim.cost.pricing import VARIANTS
from sensorsim.errors import InputError
from sensorsim.language.c.text import ascii_text
from sensorsim.language.kernel import Kernel
from sensorsim.language.load import FILE, find, shipped
from sensorsim.mechanisms import known
from sensorsim.privacy.tables import NoiseTable


@dataclass(frozen=True)
class Options:
    """What to export: a private sensor, or single kernels where `kernels` names some.

    `kernels` are the names that users give; `variant` picks paper or lean where there are both. Budget, reserve and
    packet numbers are of a sensor.
    """

    kernels: tuple[str, ...] = ()
    variant: str = "lean"
    noise: Path | None = None
    encoder: Path | None = None
    sketch: Path | None = None
    budget_epsilon: str | None = None
    budget_days: int | None = None
    reserve: int | None = None
    packet_numbers: tuple[str, ...] = ()
    prefix: str = "ss_"
    spdx: str = "MIT"
    allow_uncertified: bool = False

    @property
    def command(self) -> str:
        """The command that makes the package: options that are not the usual ones, files without their folders."""
        words = ["sensorsim", "export"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            words.append("--" + field.name.replace("_", "-"))
            if isinstance(value, tuple):
                words.append(",".join(map(_without_folder, value)))
            elif not isinstance(value, bool):
                words.append(value.name if isinstance(value, Path) else str(value))
        plain = "".join(letter if letter.isprintable() else "?" for letter in ascii_text(" ".join(words)))
        return plain + f" (sensorsim {version('sensorsim')})"


def choose(names: Sequence[str], variant: str, table: NoiseTable | None = None) -> list[Kernel]:
    """The kernels of these names: a mechanism's, as printed or lean and for this table, or one by its own name."""
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r} is not known; there are {' and '.join(VARIANTS)}.")
    wanted = {name: mechanism.kernel(variant, table) for name in names if (mechanism := known(name)) is not None}
    ours = {name: kernel.qualified for name, kernel in wanted.items() if kernel.qualified in shipped()}
    others = [kernel for name, kernel in wanted.items() if name not in ours]  # of mechanisms from other packages
    left = [ours.get(name, name) for name in names if name in ours or name not in wanted]
    return [*(find(",".join(left)) if left or not others else []), *others]


def _without_folder(spec: str) -> str:
    match = FILE.fullmatch(spec)
    if match is None:
        return spec
    return Path(match["path"]).name + (f":{match['names']}" if match["names"] else "")
