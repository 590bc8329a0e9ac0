"""Pages as text: their blocks, the remarks before them, and when shown output is the real one."""

import difflib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

LEFT_OUT = " …"
FENCE = re.compile(r"^```(\w*)\s*$")
REMARK = re.compile(r"^<!-- (.*) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `first` is the line of its text, counted from 0."""

    kind: str
    text: str
    first: int
    remarks: dict[str, str] = field(default_factory=dict)

    @property
    def slow(self) -> bool:
        return "slow" in self.remarks

    @property
    def missing(self) -> str | None:
        """The program that it needs and this machine does not have."""
        program = self.remarks.get("needs")
        return program if program and not shutil.which(program) else None


def blocks(text: str) -> list[Block]:
    """Return every fenced block of a page, with the remarks before it."""
    found, remarks, kind, first = [], {}, None, 0
    lines = text.splitlines()
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if kind is not None:
            if line == "```":
                found.append(Block(kind, "\n".join(lines[first:number]) + "\n", first, remarks))
                kind, remarks = None, {}
        elif fence:
            kind, first = fence[1], number + 1
        elif "schemas" in remarks and line.startswith("|"):
            if not lines[number - 1].startswith("|"):
                first = number
            if number + 1 == len(lines) or not lines[number + 1].startswith("|"):
                found.append(Block("schemas", "\n".join(lines[first : number + 1]) + "\n", first, remarks))
                remarks = {}
        elif remark := REMARK.match(line):
            parts = (part.partition(":") for part in remark[1].split("; "))
            remarks = remarks | {name.strip(): rest.strip() for name, _, rest in parts}
        elif line.strip():
            remarks = {}
    return found


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block as they stand there, each with the lines of its output."""
    command, output = "", []
    for line in text.splitlines():
        if command.endswith("\\"):
            command += "\n" + line
        elif line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        else:
            output.append(line)
    if command:
        yield command, output


def trimmed(lines: list[str]) -> list[str]:
    """Remove spaces at line ends and empty lines at the end."""
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def parts(shown: list[str]) -> list[list[str]]:
    """Cut the shown lines where lines are left out."""
    found: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def same(shown: list[str], real: list[str], varies: str | None = None) -> bool:
    """Tell whether the real output is what is shown, some of it left out."""
    shown, real = ([_plain(line, varies) for line in lines] for lines in (shown, real))
    pieces = parts(shown)
    if len(pieces) == 1:
        return shown == real
    first, *middle, last = pieces
    if real[: len(first)] != first or (last and real[-len(last) :] != last):
        return False
    place, end = len(first), len(real) - len(last)
    for piece in middle:
        place = next((i for i in range(place, end) if real[i : i + len(piece)] == piece), end) + len(piece)
    return place <= end


def _plain(line: str, varies: str | None) -> str:
    return re.sub(r"\s*-?\d[\d.,]*", " #", line) if varies and re.search(varies, line) else line


def renewed(shown: list[str], real: list[str]) -> list[str]:
    """The real output, with lines left out as before: a part begins and ends at the lines most like its own."""
    pieces = parts(shown)
    if len(pieces) == 1:
        return real
    out: list[str] = []
    place = 0
    for number, piece in enumerate(pieces):
        begin = place if number == 0 else _nearest(piece[0], real, place) if piece else len(real)
        last = number == len(pieces) - 1
        end = len(real) if last else _nearest(piece[-1], real, begin) + 1 if piece else begin
        out += ([LEFT_OUT] if number else []) + real[begin:end]
        place = end
    return out


def _nearest(line: str, real: list[str], first: int) -> int:
    likeness = [difflib.SequenceMatcher(None, line, other).ratio() for other in real[first:]]
    return first + likeness.index(max(likeness)) if likeness else len(real)
