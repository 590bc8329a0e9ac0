"""The audit of a package: its C, its table and its constants, run on this machine."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_noise import rows_table

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill
from sensorsim.auditing.sequential_audit import examine
from sensorsim.auditing.table_sources import make_source
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.codegen.package_options import Options
from sensorsim.commands.program import main
from sensorsim.noise.noise_table import NoiseTable, make_table
from sensorsim.noise.table_file import write_table
from sensorsim.verification import audited_package as observed
from sensorsim.verification.audited_package import package_source

TABLES = {"all": (2, 2), "one": (14, 1), "some": (5, 2)}
DRAWS = 1 << 17


@pytest.fixture(
    scope="module", params=["one", *(pytest.param(name, marks=pytest.mark.slow) for name in ("some", "all"))]
)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[NoiseTable, Path]:
    """A table, and the package that was made with it."""
    table, folder = rows_table(*TABLES[request.param]), tmp_path_factory.mktemp("package")
    write_table(folder / "table.txt", table)
    kernels = ("sampled",) if table.sampled else ("release",)
    fill(folder / "c", make_package(Options(kernels=kernels, noise=folder / "table.txt")))
    return table, folder / "c"


def test_the_c_passes(made: tuple[NoiseTable, Path]) -> None:
    table, folder = made
    found = examine(package_source(folder, table), draws=DRAWS)
    assert found.passed and found.mechanism.endswith(" in C")
    assert found.last.distribution is not None and found.claimed == make_source(table).claimed
    alone = package_source(folder)  # what the manifest says is enough, but for the distribution
    assert alone.claimed == found.claimed and examine(alone, draws=DRAWS).passed


def test_the_c_draws_what_the_kernel_does(made: tuple[NoiseTable, Path]) -> None:
    """With the same words, packet by packet."""
    table, folder = made

    def words(seed: Any, count: int, width: int) -> Any:
        return np.random.default_rng(tuple(seed)).integers(0, 2**32, (count, width), np.uint32)

    source = make_source(table, words=words)
    in_c = package_source(folder)
    for one in source.inputs:
        packets = [here.draw(one.record, 64, (7, 1, 2)) for here in (source, in_c)]  # 64: an order starts anew then
        assert np.array_equal(*packets)


def test_a_table_that_was_altered_is_found(made: tuple[NoiseTable, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a wrong threshold, whose hashes are right: the first row never gives the last symbols."""
    table, folder = made
    package = open_package(folder)
    source = next(path for path in package.sources if "noise_table" in path.read_text("utf-8"))
    text = source.read_text("utf-8")
    numbers = re.search(r"noise_table\[[^]]*\] = \{([^}]*)\}", text)
    assert numbers is not None
    values = re.findall(r"\d+", numbers[1])
    place = sorted(range(5), key=lambda k: int(values[k]))[-1]  # the highest of the first row
    start = [match.start() for match in re.finditer(r"\d+", numbers[1])][place] + numbers.start(1)
    try:
        source.write_text(text[:start] + "65535" + text[start + len(values[place]) :], "utf-8")
        with pytest.raises(InputError, match="altered"):
            package_source(folder)
        unchecked = Package(folder, package.manifest, package.kernels)
        monkeypatch.setattr(observed, "open_package", lambda folder, trust: unchecked)
        found = examine(package_source(folder, table), draws=DRAWS)
        assert not found.matches
        assert examine(package_source(folder), draws=1 << 19).leaks
    finally:
        source.write_text(text, "utf-8")


def test_the_command(made: tuple[NoiseTable, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = made[1]
    main(shlex.split(f"noise audit {folder.parent / 'table.txt'} --package {folder} --draws 1e5"))
    out = capsys.readouterr().out
    assert "in C" in " ".join(out.split()) and "No leak found" in out and "not secret" in out


def test_packages_that_release_nothing(made: tuple[NoiseTable, Path], tmp_path: Path) -> None:
    fill(tmp_path, make_package(Options(kernels=("chacha20",))))
    with pytest.raises(InputError, match="with noise"):
        package_source(tmp_path)
    with pytest.raises(InputError, match="another table"):
        package_source(made[1], make_table("stairs", 1, features=3))
