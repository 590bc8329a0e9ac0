"""Options of an export: their checks, the command line that repeats it, and the kernels that they select."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.costing.pricing import VARIANTS
from sensorsim.datasets.public_ranges import brief
from sensorsim.language.c.comments import ascii_text
from sensorsim.language.kernel import Kernel
from sensorsim.language.load import FILE, find, shipped
from sensorsim.mechanisms import known
from sensorsim.noise.noise_table import NoiseTable

Load = Callable[[Path], dict[str, Kernel]]  # the kernels of a file by name
MOST_PREFIX, MOST_SPDX = 31, 200  # C compares 31 characters of a name
SPDX = re.compile(r"\(*[A-Za-z0-9][A-Za-z0-9.+() -]*")
SENSOR_ONLY = ("sketch", "budget_epsilon", "budget_days", "reserve", "packet_numbers")
NONE = type(None)
IN_JSON: dict[Any, tuple[type, ...]] = {  # the types that a field of an option has in a manifest
    **{str: (str,), bool: (bool,), tuple[str, ...]: (list,)},
    **{Path | None: (str, NONE), str | None: (str, NONE), int | None: (int, NONE)},
}


@dataclass(frozen=True)
class Options:
    """Options of an export: a private sensor, or single kernels where `kernels` names some.

    `kernels` are the names that users give; `variant` selects paper or lean where there are both. Budget, reserve and
    packet numbers belong to a sensor.
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
        """Return the command that makes the package: options other than the defaults, files without their folders."""

        def without_folder(spec: str) -> str:
            match = FILE.fullmatch(spec)
            return (
                spec if match is None else Path(match["path"]).name + (f":{match['names']}" if match["names"] else "")
            )

        words = ["sensorsim", "export"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            words.append("--" + field.name.replace("_", "-"))
            if isinstance(value, tuple):
                words.append(",".join(map(without_folder, value)))
            elif not isinstance(value, bool):
                words.append(value.name if isinstance(value, Path) else str(value))
        plain = "".join(character if character.isprintable() else "?" for character in ascii_text(" ".join(words)))
        return plain + f" (sensorsim {version('sensorsim')})"

    def parameters(self, asked: Sequence[str]) -> dict[str, Any]:
        """Return the options for a manifest; `asked` are the requested kernels."""
        found: dict[str, Any] = {"asked": list(asked)}
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            value = value.name if isinstance(value, Path) else value
            found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

    def check(self) -> None:
        """Refuse options that no package can be made of, or that do not go together."""
        name = self.prefix.rstrip("_")
        flags = [f"--{one.replace('_', '-')}" for one in SENSOR_ONLY if getattr(self, one) not in (None, ())]
        if not (name.isidentifier() and name.islower() and self.prefix.isascii() and len(self.prefix) <= MOST_PREFIX):
            allowed = f"at most {MOST_PREFIX} lower-case letters, as ss_"
            raise InputError(f"prefix {brief(self.prefix)!r} cannot begin a C name; give {allowed}.")
        if not SPDX.fullmatch(self.spdx) or len(self.spdx) > MOST_SPDX:
            raise InputError(f"{brief(self.spdx)!r} is no SPDX licence identifier; give one as MIT or Apache-2.0.")
        if self.kernels and flags:
            raise InputError(
                f"{flags[0]} is for the sensor, and --kernels exports single kernels; leave one of the two out."
            )
        if not self.kernels and self.allow_uncertified:
            raise InputError("a sensor is made of a certified table only; --allow-uncertified goes with --kernels.")
        if not self.kernels and self.variant != "lean":
            raise InputError("a sensor has one form; --variant goes with --kernels.")


def wrong_parameter(given: Mapping[str, Any]) -> str | None:
    """Return the first parameter of a manifest that is missing or of a wrong type."""
    kinds: dict[str, Any] = {"asked": tuple[str, ...]} | {field.name: field.type for field in fields(Options)[1:]}
    for name, kind in kinds.items():
        value = given.get(name)
        words = value if isinstance(value, list) else []
        if name not in given or type(value) not in IN_JSON[kind] or not all(isinstance(word, str) for word in words):
            return name
    return None


def choose(
    names: Sequence[str], variant: str, table: NoiseTable | None = None, load: Load | None = None
) -> list[Kernel]:
    """Return the kernels of these names: a mechanism's, as printed or lean and for this table, or one by its own name.

    `load` gives the kernels of a file; without it the file is run.
    """
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r} is not known; there are {' and '.join(VARIANTS)}.")
    wanted = {name: mechanism.kernel(variant, table) for name in names if (mechanism := known(name)) is not None}
    ours = {name: kernel.qualified for name, kernel in wanted.items() if kernel.qualified in shipped()}
    others = [kernel for name, kernel in wanted.items() if name not in ours]  # of mechanisms from other packages
    left = [ours.get(name, name) for name in names if name in ours or name not in wanted]
    return [*(find(left if load else ",".join(left), load) if left or not others else []), *others]
