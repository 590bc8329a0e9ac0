"""Bad inputs, made from what the commands declare: every option of each, with values bad for its kind.

A value is bad by construction: of another type, outside of any range, a path that cannot be read or written, a file of
another kind.
"""

import gzip
import hashlib
import json
import os
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from functools import cache
from pathlib import Path

from sensorsim._util import option_kinds as kinds
from sensorsim._util.option_kinds import Kind, flag_of
from sensorsim.commands import COMMANDS
from sensorsim.commands.declare import options_of
from sensorsim.commands.shell import extras_of

ROOT = Path(__file__).parents[2]
COLUMNS = ("a", "b", "c")

# ---- a folder with good files and with bad ones


def furnish(folder: Path) -> None:
    """Good files of every kind that takes no time to make, and what no reader should take for one."""
    days = "\n".join(["Id,a,b,c", *(f"{k // 4},{k % 7},{k % 5},{k % 3}" for k in range(48)), ""])
    files = {
        "table.txt": (ROOT / "tables" / "noise" / "rows-eps1.6-1.txt").read_bytes(),
        "encoder.json": (ROOT / "tables" / "encoders" / "default.json").read_bytes(),
        "days.csv": days,
        "ranges.csv": "name,low,high,unit\na,0,10,x\nb,0,10,x\nc,0,10,x\n",
        "mine.py": KERNEL,
        **{f"x{k}.hex": "".join(f"{number % 251:02x}{k}7\n" for number in range(600)) for k in range(2)},
        **dict.fromkeys(("empty", "empty.csv"), ""),
        **dict.fromkeys(("noise.bin", "noise.csv"), random.Random(0).randbytes(997)),
        **dict.fromkeys(("words.txt", "words.csv"), "not what you are looking for\n" * 3),
        **dict.fromkeys(("deep.json", "deep.csv"), "[" * 100_000 + "]" * 100_000),
        "digits.json": '{"schema_version": ' + "9" * 5000 + "}",
        "other.json": json.dumps({"content": "recipes", "schema_version": 1, "n": -1, "files": {}}),
        **dict.fromkeys(ARCHIVES, gzip.compress(days.encode(), mtime=0)),
        "zero.npz": b"PK\x05\x06" + bytes(18),
        "full/letter.txt": "dear all\n",
    }
    for name in ("full", "full.csv"):
        (folder / name).mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    database = sqlite3.connect(folder / "foreign.sqlite")
    database.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT)")
    database.execute("CREATE TABLE cells (key TEXT, recipe TEXT)")
    database.commit()
    database.close()
    with (folder / HUGE).open("wb") as file:
        file.truncate(30 << 30)  # of which nothing is on the disk
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.csv")
    for name, target in LINKS.items():
        (folder / name).symlink_to(target)


KERNEL = """from sensorsim.language import Q, add, kernel
X = Q("x", "i32", 0, 0, 9, "")
WIDE = Q("wide", "i32", 0, 0, 99, "")
@kernel()
def twice(x: X) -> WIDE:
    return add(x, x)
"""
HUGE = "huge.csv"
LINKS = dict(zip(("loop", "loop.csv", "round", "about", "nowhere", "to_full"),
                 ("loop", "loop.csv", "about", "round", "missing/new", "full"), strict=True))  # fmt: skip
NEVER = ("\0", "a\0b", "x" * 5000, "y/" * 3000)  # no path, no name, no number
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "pipe")
DEAD = ("", "full", "to_full", "loop", "round", "nowhere", "table.txt/x", *DEVICES, *NEVER)  # no file, in or out
URLS = ("http://127.0.0.1:9/days.csv", "https://localhost:9/x", "s3://bucket/x.csv", "file:///etc/passwd", "ftp://x/y")
WRONG = ("empty", "noise.bin", "words.txt", "deep.json", "digits.json", "other.json", "foreign.sqlite", "zero.npz")
ARCHIVES = ("days.csv.gz", "zipped.csv")
TEXT = ("", " ", "nonsense", "-", "--", "ü", "😀", "\udcff", "a,,b", ",", "1", "nan", "../..", "x" * 300, *NEVER)
WHOLE = ("", " ", "x", "1.5", "1e3", "nan", "inf", "0x10", "99999999999999999999", "-99999999999999999999", "9" * 5000,
         "½", "1 2", "--", "1;2", *NEVER)  # fmt: skip
REAL = ("", " ", "x", "nan", "inf", "-inf", "1e300", "1e400", "-1e400", "1,5", "0x10", "½", "1 2", "9" * 5000, *NEVER)
LISTS = ("", " ", "x", "nan", "inf", "1e300", "1,nan", "1:2", "1:0:1", "0:1:0", "0:1:-1", "0:1e300:1e-9", "1:2:3:4",
         ",", "1;2", "0:inf:1", "9" * 5000, *NEVER)  # fmt: skip
OUT = (*DEAD, "/", "/proc/x", "missing/x")
OWN_TABLES = ("missing.csv", "loop.csv", "full.csv", "pipe.csv", "words.csv", "noise.csv", "empty.csv", "deep.csv",
              "days.csv", "table.txt/x.csv", ".csv", HUGE)  # fmt: skip
PLACES = ("", "x", "=", "x=", "=1", "x=1=2", "x=0x", "x=-1", "x=1.5", "x=99999999999999999999", "x=nan", *NEVER)
PATHS = (*DEAD, "missing", "missing/more", *URLS, *WRONG, *ARCHIVES, HUGE)
STORE = (*OUT, "-", "foreign.sqlite", "noise.bin", "words.txt")
OUTPUTS = {"folder": (*OUT, "-"), "database": STORE, "file": OUT, "several": OUT}
BELOW = ("0", "-1", "-0.5")
SEEDS = ("noise_audit/--seed", "noise_make/--seed", "data_make/--seed", "data_compare/--seed", "verify/--seed")
FAMILY = ("full", "to_full", "missing/x", "/")  # folders that take files of ours beside others, and are made
TAKEN = {  # of all these values, those that an option takes after all
    "cpus_check/files": (*WRONG, *ARCHIVES),  # it reports what is wrong with a file: that is its answer
    "receive/packets": (HUGE, "pipe", *WRONG, *ARCHIVES),  # what is no packet is counted as refused, with exit code 1
    **dict.fromkeys(SEEDS, ("99999999999999999999",)),  # a seed of any size
    **dict.fromkeys(("figures/--out", "data_fit/--out"), FAMILY),
    "sensitivity/--n": ("99999999999999999999",),  # a formula in n
    "export/--packet-numbers": ("",),
    "export/--prefix": ("nonsense", "nan"),
    "export/--spdx": ("nonsense", "1", "nan"),  # a licence of one's own
    "kernel/--at": ("",),  # which is none
    "kernel/--verify": ("",),
    "cost/--m": ("99999999999999999999",),  # a factor of any size
    "fleet/--every": ("99999999999999999999",),  # then only the last day is shown
}

# ---- a command line that holds, for each command: options, then arguments by name

DATA = {"--data": "days.csv", "--columns": "a,b,c", "--ranges": "ranges.csv"}
SMALL = {"--l": "2", "--m": "1"}
Values = dict[str, str | tuple[str, ...]]  # () for a flag
HOLDS: dict[str, Values] = {
    "cost": {},
    "cpus": {},
    "cpus check": {},
    "cpus show": {"name": "k7"},
    "plan": {"--columns": "a,b,c", "--ranges": "ranges.csv"},
    "fleet": {"--devices": "2", "--days": "2", "--noise": "table.txt", "--out": "fleet.sqlite", "--jobs": "1"},
    "train": {**DATA, **SMALL},
    "evaluate": {"--model": "model.npz", **DATA},
    "decode": {"--model": "model.npz", "--packets": "packets.bin", "--table": "table.txt"},
    "sweep": {**DATA, **SMALL, "--mechanism": "spof", "--epsilon": "1", "--sigma": "0", "--runs": "1", "--jobs": "1"},
    "figures": {"--out": "drawn", "--only": "accuracy_epsilon", "--mechanism": "spof", "--runs": "1", "--jobs": "1"},
    "data compare": {"file": "fitbit.csv"},
    "data fit": {"file": "fitbit.csv", "--out": "full"},
    "data make": {"--out": "made.csv", "--rows": "40", "--persons": "4"},
    "data ranges": {},
    "noise audit": {"file": "table.txt", "--draws": "1e4"},
    "noise check": {"file": "table.txt"},
    "noise make": {"--epsilon": "1.6", "--features": "2", "--symbols": "3", "--frac-bits": "6"},
    "noise peers": {},
    "noise show": {"file": "table.txt"},
    "kernel": {"kernel": "mine.py:twice"},
    "export": {"--out": "package", "--kernels": "spof"},
    "verify": {"folder": "package", "--target": "host", "--random-host": "5", "--random-core": "5", "--jobs": "0"},
    "receive": {"packets": "packets.bin", "--table": "table.txt"},
    "claims": {"only": "cost-spof"},
    "report": {"--out": "report.html", "--no-claims": ()},
    "completion": {"shell": "bash"},
    "sensitivity": {},
}
IMAGE: Values = {"--elf": "image.elf", "--manifest": "package/MANIFEST.json"}
CROWDS: Values = {"--out": "drawn", "--only": "accuracy_records", "--jobs": "1"}
OTHERWISE: dict[str, Values] = {  # lines for options that mean nothing in the usual one
    "verify/--elf": IMAGE,
    "verify/--manifest": IMAGE,
    "verify/--symbol": IMAGE,
    "verify/--cc": {"folder": "package"},
    "noise_audit/--samples": {"file": "table.txt", "--draws": "1e4"},
    "noise_audit/--package": {"--draws": "1e4"},
    "export/--packet-numbers": {"--out": "sensor"},
    "kernel/--at": {"kernel": "mine.py:twice"},
    "claims/--data": {},
    **dict.fromkeys(("figures/--records", "figures/--records-epsilon", "figures/--records-runs"), CROWDS),
    "evaluate/--runs": {"--model": "model.npz", **DATA, "--sigma": "5"},
}
# Pairs that contradict each other, and lines that are no question at all.
PAIRS: tuple[tuple[str, ...], ...] = (
    ("cost", "--n", "3", "--l", "4"),
    ("cost", "--lock", "a.lock", "--check", "b.lock"),
    ("cost", "--lock", "a.lock", "--sweep", "n=1:3"),
    ("cost", "--level", "machine", "--sweep", "n=1:3"),
    ("cost", "--metric", "energy"),
    ("data", "make", "--rows", "3", "--persons", "9", "--out", "x.csv"),
    ("fleet", "--devices", "2", "--days", "2", "--noise", "table.txt", "--out", "x", "--plot", "x"),
    ("fleet", "--devices", "2", "--days", "2", "--noise", "table.txt", "--out", "table.txt"),
    ("noise", "audit", "table.txt", "--epsilon", "1"),
    ("plan", "--columns", "a,b,c", "--features", "2", "--ranges", "ranges.csv"),
    ("plan", "--write-table", "x.txt", "--plot", "x.txt"),
    ("receive", "table.txt", "--table", "table.txt", "--out", "table.txt"),
    ("train", "--out", "x.json", "--encoder", "x.json"),
    ("train", "--packets", "noise.bin"),
    ("verify", "--elf", "noise.bin"),
    ("verify", "full", "--elf", "noise.bin", "--manifest", "other.json"),
    ("nonsense",),
    ("cost", "more"),
    ("noise", "nonsense"),
)


def seen(folder: Path) -> dict[str, str]:
    """Return everything in a folder: names, contents, where links lead."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif name == HUGE:
            found[name] = f"{path.stat().st_size} bytes, {path.stat().st_blocks} on the disk"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder" if path.is_dir() else "device"
    return found


@dataclass(frozen=True)
class Case:
    """A line that must be refused."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(ascii(word) if len(word) < 40 else f"{word[:30]!a}*{len(word)}" for word in self.words)


@cache
def declared() -> dict[str, dict[str, Kind]]:
    """Return the options of every command, by name: the word that is typed, or an argument's name, and its kind."""
    found = {}
    for name, entry in COMMANDS.items():
        if entry.shell:
            command = entry.load()
            fields = {field: one for field, one in options_of(command).items() if one.shell}
            own = {(one.argument and field) or f"--{flag_of(field, one)}": one.kind for field, one in fields.items()}
            found[name] = own | {f"--{extra}": kind for extra, (kind, _) in extras_of(command).items()}
    return found


def bad_values(kind: Kind) -> tuple[str, ...]:
    """Return values that are bad for a kind by construction; none for a flag."""
    if isinstance(kind, kinds.Several):
        return bad_values(kind.kind)
    if isinstance(kind, kinds.Flag):
        return ()
    if isinstance(kind, kinds.Choice):
        return tuple(value for value in TEXT if value not in kind.values)
    if isinstance(kind, kinds.Output):
        return OUTPUTS[kind.form]
    if isinstance(kind, kinds.Path):
        return PATHS
    if isinstance(kind, kinds.Known):
        return (*TEXT, *OWN_TABLES) if kind.files else TEXT
    if isinstance(kind, kinds.Whole | kinds.Number):
        ends = [str(end) for end in (kind.least and kind.least - 1, kind.most and kind.most + 1) if end]
        return (*(WHOLE if isinstance(kind, kinds.Whole) else REAL), *(ends if kind.bounds else BELOW))
    if isinstance(kind, kinds.Budget | kinds.Open):
        return (*LISTS, *BELOW)
    return (*LISTS, *PLACES) if type(kind).check is not Kind.check else TEXT


def line(name: str, values: Values) -> tuple[str, ...]:
    """Return a command line: options first, arguments after `--` so that any text may be one."""
    given = {option: (value,) if isinstance(value, str) else value for option, value in values.items()}
    options = [word for option, words in given.items() if option.startswith("-") for word in (option, *words)]
    arguments = [word for option, words in given.items() if not option.startswith("-") for word in words]
    return (*name.split(), *options, *(["--", *arguments] if arguments else []))


def of_command(name: str, options: dict[str, Kind]) -> Iterator[Case]:
    """Yield lines with a bad value of one option each, all else as it should be; and lines that are none."""
    for word, kind in options.items():
        key = f"{name.replace(' ', '_')}/{word}"
        base = OTHERWISE.get(key, HOLDS.get(name, {}))
        for value in bad_values(kind):
            if value not in TAKEN.get(key, ()):
                for bad in [(value, "x1.hex"), ("x0.hex", value)] if kind.count == 2 else [value]:
                    yield Case(line(name, {**base, word: bad}))
    for word in COMMANDS[name].load().__dataclass_fields__.values():
        if word.default is MISSING:
            left_out = {word.name, f"--{flag_of(word.name, word.metadata['option'])}"}
            yield Case(line(name, {key: value for key, value in HOLDS[name].items() if key not in left_out}))
    for more in (["--nonsense"], ["--format"], ["-x"], ["--format", "json", "--nonsense=1"]):
        yield Case((*name.split(), *more))


@cache
def every_case() -> tuple[Case, ...]:
    """Return all cases, in the order of the commands."""
    return (*(case for name, options in declared().items() for case in of_command(name, options)), *map(Case, PAIRS))


def furnish_more(folder: Path) -> None:
    """Make what takes longer: a model, a package, readings of days, and packets of sensors."""
    import numpy as np

    from sensorsim.codegen.manifest import open_package
    from sensorsim.commands.program import main
    from sensorsim.device.firmware import Firmware
    from sensorsim.machine.targets import TARGETS, Ziglang
    from sensorsim.noise.batch_release import sampled_records
    from sensorsim.noise.table_file import read_table

    assert folder == Path.cwd()
    main(["data", "make", "--rows", "457", "--persons", "35", "--out", "fitbit.csv"])
    main([*line("train", HOLDS["train"]), "--out", "model.npz"])
    main(list(line("export", HOLDS["export"])))
    package = open_package(folder / "package")
    kernel = package.kernels[0]
    sources = package.kernel_sources(folder / "temporary")
    (folder / "temporary").mkdir(exist_ok=True)
    Ziglang().elf(TARGETS["k7"], sources, package.include, package.names.functions[kernel], folder / "image.elf")
    table = read_table("table.txt")
    layout = Firmware(table).layout
    which, values = sampled_records(np.full((50, table.features), 9000, np.uint16), table, 1)
    made = b""
    for place, value in zip(which[:, 0], values[:, 0], strict=True):
        number = layout.head | int(place) << 20 | int(value) << 20 + layout.which_bits
        made += number.to_bytes(layout.bytes, "little")
    (folder / "packets.bin").write_bytes(made)
