"""Write the text of C files: comments from docstrings and source comments, proved statements, line folding.

Firmware sources are plain ASCII: not every embedded compiler and editor agrees on anything else.
"""

import io
import linecache
import re
import textwrap
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING
from unicodedata import combining, normalize
from unicodedata import name as name_of

from sensorsim.language.kernel import Kernel, shipped_module
from sensorsim.language.parse import LanguageError
from sensorsim.language.types import Array, Below, Kind, Length, Q, grouped, power_of_two

if TYPE_CHECKING:
    from sensorsim.language.c.identifiers import Names

WIDTH = 100  # columns of the exported code
C_TYPES = {
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32)},
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32)},
    **{"i64": "int64_t", "flag": "uint32_t", "index": "uint32_t"},
}
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`])")  # where one ends and the next begins
NOTHING: Mapping[str, str] = MappingProxyType({})
ASCII = {
    **{"·": "*", "×": "x", "…": "..", "²": "^2", "³": "^3", "±": "+/-"},
    **{"–": "-", "−": "-", "≤": "<=", "≥": ">=", "ᵀ": "^T", "→": "->"},
}


@dataclass(frozen=True)
class Expression:
    """A C expression and its type: a storage type, or flag."""

    text: str
    kind: str
    atom: bool = True  # needs no parentheses as an operand

    @property
    def operand(self) -> str:
        return self.text if self.atom else f"({self.text})"


def ascii_text(text: str) -> str:
    """Return the text in ASCII: accents are dropped, Greek letters spelled, other characters become `?`."""
    for character, plain in ASCII.items():
        text = text.replace(character, plain)
    made = ""
    for character in normalize("NFKD", text):
        words = name_of(character, "").split()
        if character.isascii():
            made += character
        elif not combining(character):
            greek = words[-1].capitalize() if "CAPITAL" in words else words[-1].lower() if words else ""
            made += greek if words[:1] == ["GREEK"] else "?"
    return made


def with_prefix(text: str, prefix: str) -> str:
    """Replace the prefix of ss_ and SS_ names in a text."""
    return re.sub(r"(?:\b|(?<=CONFIG_))SS_", prefix.upper(), re.sub(r"\bss_", prefix, text))


def prose(doc: str, functions: Mapping[str, str] = NOTHING) -> list[str]:
    """Return a docstring as lines of plain text, with `kernel` replaced by the name of its C function.

    Other words in backticks get quotes. A sentence about a kernel that has none (its function is empty) is left out.
    """

    def called(found: re.Match[str]) -> str:
        return f"{functions[found[1]]}()" if functions.get(found[1]) else f"'{found[1]}'"

    first, _, rest = doc.partition("\n")
    hanging = textwrap.dedent(first + "\n" + textwrap.dedent(rest))  # the first line of a docstring has no indentation
    lines: list[str] = []
    for paragraph in hanging.strip().split("\n\n"):
        for block in re.split(r"\n(?=\* )", paragraph):
            item, text = block.startswith("* "), " ".join(block.removeprefix("* ").split())
            kept = " ".join(part for part in SENTENCE.split(text) if not _foreign(part, functions))
            text = ascii_text(re.sub(r"`([^`]+)`", called, kept))
            if text:
                lines += textwrap.wrap(("- " if item else "") + text, WIDTH - 3, subsequent_indent="  " * item)
        lines += [""] if lines and lines[-1] else []
    return lines[:-1]


def _foreign(sentence: str, functions: Mapping[str, str]) -> bool:
    """Return whether a sentence names a kernel without a function: in backticks, in capitals, or with an underscore."""
    for name, function in functions.items():
        if function or name.lower() not in sentence.lower():
            continue
        plain = rf"\b{re.escape(name)}\b" if "_" in name else rf"\b{re.escape(name.upper())}\b"
        if re.search(rf"`{re.escape(name)}`|{plain}", sentence):
            return True
    return False


def wrap(text: str) -> list[str]:
    """Wrap a paragraph into lines that fit into a comment."""
    return textwrap.wrap(text, WIDTH - 3)


def fold(line: str) -> str:
    """Break a statement that is too long: the arguments of its longest call below each other, or its value below."""
    if len(line) <= WIDTH:
        return line
    best = (0, 0, 0)  # length, opening and closing parenthesis
    stack: list[int] = []
    for place, character in enumerate(line):
        if character == "(":
            stack.append(place)
        elif character == ")" and stack:
            start = stack.pop()
            if line[start - 1].isalnum() and ", " in line[start:place]:
                best = max(best, (place - start, start, place))
    if best[0] == 0:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        return line.replace(" = ", f" =\n{indent}", 1)
    start = best[1]
    parts, depth, last = [], 0, 0
    for place, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if character == "," and place > start and depth == line[: start + 1].count("(") - line[:start].count(")"):
            parts.append(line[last : place + 1])
            last = place + 2
    parts.append(line[last:])
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= WIDTH:
            lines[-1] += " " + part
        else:
            lines.append(" " * (start + 1) + part)
    return "\n".join(lines)


def comment(lines: Iterable[str], indent: str = "") -> str:
    """Return a block comment; a single short line stays on one line."""
    lines = [line.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/").replace("`", "'") for line in lines]
    if len(lines) == 1 and len(lines[0]) + len(indent) <= WIDTH - 6:
        return f"{indent}/* {lines[0]} */"
    body = [f"{indent} * {line}".rstrip() for line in lines]
    return "\n".join([f"{indent}/*", *body, f"{indent} */"])


def fixed_point(kind: Q) -> str:
    """Name a fixed-point format: `Q15`, or `integer` without fraction bits."""
    if kind.frac_bits == 0:
        return "integer"
    return f"{'U' if kind.storage.startswith('u') else ''}Q{kind.frac_bits}"


def describe(kind: Kind, filled: bool = False) -> str:
    """Describe a parameter in one line: format, range, meaning; `filled` says that the kernel writes it."""
    if isinstance(kind, Array):
        what = "written" if kind.written else "read and written" if filled else "read"
        return f"{kind.length} values, {what}; {describe(kind.element)}"
    if isinstance(kind, Below):
        return f"index, 0 .. {kind.limit}-1" + (", none of them twice" if kind.once else "")
    if isinstance(kind, Length):
        return ascii_text(f"{kind.lo} .. {kind.hi}" + (f": {kind.about}" if kind.about else ""))
    about = f": {kind.about}" if kind.about else ""
    return ascii_text(f"{fixed_point(kind)} in {C_TYPES[kind.storage]}, {interval(kind.lo, kind.hi)}{about}")


def interval(lo: int, hi: int) -> str:
    """Format an interval, with powers of two where they are shorter than the digits."""
    return " .. ".join(min(power_of_two(end), str(end), key=len) for end in (lo, hi))


def parameter_lines(kernel: Kernel, spelled: Mapping[str, str]) -> list[str]:
    """List the parameters and the result, aligned, for the comment above a prototype."""
    entries = {
        spelled.get(owner, owner): f"a {kernel.records[owner].name}"
        if owner in kernel.records
        else describe(kernel.parameters[owner], owner in kernel.written)
        for owner in grouped(kernel.parameters)
    }
    if kernel.result is not None:
        entries["returns"] = describe(kernel.result)
    width = max(map(len, entries), default=0)
    lines: list[str] = []
    for name, text in entries.items():
        lines += textwrap.wrap(
            f"{name:<{width}}  {text}", WIDTH - 5, initial_indent="  ", subsequent_indent=" " * (width + 4)
        )
    return lines


SAFE = "no operation wraps and no index leaves its array"


class Comments:
    """The comments of a source file by line. Python's line cache has files and notebook cells."""

    def __init__(self, file: str) -> None:
        self.at: dict[int, str] = {}
        self.beside: dict[str, str] = {}  # constants, with the remark on their line
        self.ends: list[int] = []  # the last line of each statement
        start = ""
        try:
            for token in tokenize.generate_tokens(io.StringIO("".join(linecache.getlines(file))).readline):
                if token.type == tokenize.COMMENT:
                    self.at[token.start[0]] = ascii_text(token.string.lstrip("# "))
                    self.beside.setdefault(start, self.at[token.start[0]])
                elif token.type == tokenize.NEWLINE:
                    self.ends.append(token.start[0])
                    start = ""
                elif token.type == tokenize.NAME and token.start[1] == 0:
                    start = token.string
        except (tokenize.TokenError, SyntaxError, IndentationError):  # a cell with lines that are not Python
            pass

    def body_of(self, kernel: Kernel) -> int:
        """Return the last line of the kernel's signature: comments among its parameters are not part of the body."""
        return next((line for line in self.ends if line >= kernel.at.line), kernel.at.line)


@cache
def comments(file: str) -> Comments:
    return Comments(file)


def remark(name: str, file: str) -> str:
    """Return the comment beside the definition of a constant, in the file that uses it or in the shipped formats."""
    return comments(file).beside.get(name) or comments(str(shipped_module("formats").__file__)).beside.get(name, "")


def proved(kernel: Kernel, prefix: str) -> list[str]:
    """State the proved interval of the result and the verdict on secrets, as lines of a comment."""
    try:
        span = kernel.prove().result
        returns = f"returns {interval(*span)}; " if span is not None else ""
        ranges = f"Proved: {returns}{SAFE} for inputs in the stated ranges."
    except LanguageError:
        ranges = f"Proved for what its callers pass: {SAFE}."
    verdict = with_prefix(ascii_text(kernel.secrecy().statement), prefix)
    lines = [ranges, f"Secrecy: {verdict.rstrip('.')}."]
    return [part for line in lines for part in textwrap.wrap(line, WIDTH - 3, subsequent_indent="  ")]


def about(kernel: Kernel, names: "Names", whole: bool = True) -> list[str]:
    """Return the comment above a function: its docstring, or the first paragraph of it, and what is proved."""
    doc = prose(kernel.doc, names.spoken(kernel))
    if not whole and "" in doc:
        doc = doc[: doc.index("")]
    return [*doc, *([""] if doc else []), *proved(kernel, names.prefix)]


def title(kernels: Sequence[Kernel], names: "Names") -> str:
    """Return the first paragraph of the docstring of the kernels' module, or a list of the functions."""
    doc = kernels[0].file_doc or f"Kernels of {kernels[0].path.name}."
    text = " ".join(prose(doc.strip().split("\n\n")[0], names.spoken(kernels[0])))
    return text or " ".join(["Here:", ", ".join(f"{names.functions[kernel]}()" for kernel in kernels)]) + "."
