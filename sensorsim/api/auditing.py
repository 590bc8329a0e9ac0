"""`audit`: run what releases, and look for a leak."""

import os
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim._util.progress import step
from sensorsim.api.noise import Table, read_table
from sensorsim.calls import checked
from sensorsim.noise.noise_table import NoiseTable

if TYPE_CHECKING:
    from sensorsim.auditing import Audit, Source

Path_ = str | os.PathLike[str]
MOST_DRAWS = 10**12


@checked
def audit(
    table: Table | None = None,
    mechanism: str | None = None,
    epsilon: float | str | Decimal | None = None,
    samples: tuple[Path_, Path_] | None = None,
    package: Path_ | None = None,
    draws: int = 10**8,
    confidence: float = 0.9999,
    threads: int = 2,
    seed: int = 0,
    progress: Callable[[int], None] = lambda drawn: None,
) -> "Audit":
    """Run the kernel that draws from a table on several inputs and look for a leak; `passed` says if none was found.

    Without a table, the ready one of `epsilon` is audited, 1 where that is not given. `samples` are two files of
    packets of a real board for two records that differ, `package` is the folder of an exported package, whose C is
    compiled and run. No leak found is no proof: that is the certificate.

        >>> import sensorsim as ss
        >>> ss.audit(ss.noise_table(epsilon=1.6, release=1), draws=100_000).passed
        True
    """
    from sensorsim.auditing import examine, make_source

    _check(table, mechanism, epsilon, samples, package, draws, threads, seed)
    if samples:
        source, draws = _captures(samples, table, epsilon)
        name = f"{samples[0]} and {samples[1]}"
    elif package:
        source, name = _package(package, table, epsilon), str(package)
    else:
        noise, name = _noise(table, mechanism, epsilon)
        source = make_source(noise, mechanism)
    with step("auditing"):
        found = examine(source, draws, seed, confidence, min(threads, os.cpu_count() or 1), progress)
    return replace(found, name=name)


def _check(
    table: Table | None,
    mechanism: str | None,
    epsilon: object,
    samples: object,
    package: object,
    draws: int,
    threads: int,
    seed: int,
) -> None:
    if type(draws) is not int or not 0 <= draws <= MOST_DRAWS:
        raise InputError(f"draws is {draws}; give a whole number, as in 1e8.")
    if table is not None and epsilon:
        raise InputError("a file and --epsilon are two tables; give one of them.")
    if type(threads) is not int or type(seed) is not int or threads < 1 or seed < 0:
        raise InputError("--threads is at least 1 and --seed at least 0.")
    if samples and package:
        raise InputError("--samples and --package are two things to audit; give one of them.")
    if mechanism and (samples or package):
        raise InputError("--mechanism is of a kernel that is run here; leave it out with --samples and --package.")


def _noise(table: Table | None, mechanism: str | None, epsilon: object) -> tuple[NoiseTable, str]:
    from sensorsim.noise.noise_table import certified, ready_table

    if table is not None:
        noise = read_table(table)
        return noise, str(table) if isinstance(table, str | os.PathLike) else noise.title()
    release = 1 if mechanism == "sampled" else "all"
    budget = "1" if epsilon is None else str(epsilon)
    return certified(ready_table(budget, release)), f"ready table, epsilon {budget}, release {release}"


def _captures(samples: tuple[Path_, Path_], table: Table | None, epsilon: object) -> tuple["Source", int]:
    """The packets of a board, and how many there are."""
    from sensorsim.auditing.packet_source import capture_source, read_capture
    from sensorsim.noise.certificate import certify
    from sensorsim.noise.noise_table import budget_of

    if table is not None:
        noise = read_table(table)
        proved = certify(noise).epsilon_record  # whatever the file says
        claimed = float(noise.epsilon if proved is None else min(proved, noise.epsilon))
    elif epsilon:
        claimed = float(budget_of(str(epsilon)))
    else:
        raise InputError("packets alone claim nothing; give the table that the board draws from, or --epsilon.")
    names = (str(samples[0]), str(samples[1]))
    packets = [read_capture(path) for path in names]
    return capture_source(packets, names, claimed), 2 * min(map(len, packets))


def _package(package: Path_, table: Table | None, epsilon: object) -> "Source":
    from sensorsim.verification.audited_package import package_source

    if epsilon:
        raise InputError("a package claims what its manifest says; leave --epsilon out, or give its table as FILE.")
    return package_source(Path(package), None if table is None else read_table(table))
