"""Helpers for tests of exported sensors: a package on disk, tools that may be missing, packets at the hospital."""

import json
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import OWN_HASH, sha256, write_folder
from sensorsim.commands.program import main

BOARDS = Path(__file__).parent / "boards"
TABLE = Path(str(files("sensorsim.tables") / "noise" / "rows-eps1.6-1.txt"))  # one feature of 14 in 4 bytes
STRICT = ("-Wall", "-Wextra", "-Werror")


@cache
def _texts(prefix):
    return make_package(Options(noise=TABLE, budget_epsilon="1000", prefix=prefix))


def export(folder, prefix="ss_"):
    """Write a sensor of the table above with a budget of 625 releases a day; made once for all tests."""
    write_folder(folder, _texts(prefix))
    return folder


def need(*tools):
    """The paths of programs; skips the test where one is missing."""
    found = [shutil.which(tool) for tool in tools]
    for tool, path in zip(tools, found, strict=True):
        if path is None:
            pytest.skip(f"{tool} is not installed on this machine")
    return found if len(found) > 1 else found[0]


def run(*command, cwd=None, code=0, **options):
    """Run a command that must end with this code; return what it said."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == code, f"{command[0]} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done


def feature_of(packet):
    """Return the feature of a packet of the table, of 14: bits 20 to 23, the lowest first."""
    return int.from_bytes(bytes.fromhex(packet), "little") >> 20 & 15


def check_means(packets, truth, folder, capsys):
    """Receive the packets; the interval of a feature holds the mean of truth(number)[feature] over its own packets.

    An interval misses in one case of twenty at most, so five or fewer of fourteen miss but for one time in 30,000.
    """
    (folder / "packets.hex").write_text("".join(f"{packet}\n" for packet in packets))
    capsys.readouterr()
    main(["receive", str(folder / "packets.hex"), "--table", str(TABLE), "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert report["accepted"] == len(packets)
    held = []
    for feature, row in enumerate(report["features"]):
        own = [truth(number)[feature] for number, packet in enumerate(packets) if feature_of(packet) == feature]
        assert row["count"] == len(own)
        held.append(row["low"] <= sum(own) / len(own) <= row["high"])
    assert len(held) == 14 and held.count(False) <= 5


def refresh(folder, *added):
    """Repair every hash of a package that was altered, as its author could; list the added files too."""
    file = folder / "MANIFEST.json"
    data = json.loads(file.read_text())
    names = [name for name in dict.fromkeys((*data["files"], *added)) if (folder / name).exists()]
    data["files"] = {name: sha256((folder / name).read_bytes()) for name in names}
    del data[OWN_HASH]
    data[OWN_HASH] = sha256(json.dumps(data, indent=1) + "\n")
    file.write_text(json.dumps(data, indent=1) + "\n")
