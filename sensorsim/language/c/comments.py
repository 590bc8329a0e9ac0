"""What the C says to its reader: the source's own comments, and what is proved of each function."""

import io
import linecache
import sys
import textwrap
import tokenize
from collections.abc import Sequence
from functools import cache

from sensorsim.language.c.names import Names
from sensorsim.language.c.text import WIDTH, ascii_text, interval, prose, with_prefix
from sensorsim.language.kernel import Kernel
from sensorsim.language.parse import LanguageError

SAFE = "no operation wraps and no index leaves its array"


class Comments:
    """The comments of a source file by line; Python's line cache knows files and notebook cells alike."""

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
        """The last line of the kernel's head: comments among its parameters are not part of the body."""
        return next((line for line in self.ends if line >= kernel.at.line), kernel.at.line)


@cache
def comments(file: str) -> Comments:
    return Comments(file)


def remark(name: str, file: str) -> str:
    """What stands beside a constant where it is defined, in the file that uses it or among the shipped ones."""
    from sensorsim.kernels import formats

    return comments(file).beside.get(name) or comments(str(formats.__file__)).beside.get(name, "")


def proved(kernel: Kernel, prefix: str) -> list[str]:
    """The proved interval of the result and the verdict on secrets, as lines of a comment."""
    try:
        span = kernel.prove().result
        returns = f"returns {interval(*span)}; " if span is not None else ""
        ranges = f"Proved: {returns}{SAFE} for inputs in the stated ranges."
    except LanguageError:
        ranges = f"Proved for what its callers pass: {SAFE}."
    verdict = with_prefix(ascii_text(kernel.secrecy().statement), prefix)
    lines = [ranges, f"Secrecy: {verdict.rstrip('.')}."]
    return [part for line in lines for part in textwrap.wrap(line, WIDTH - 3, subsequent_indent="  ")]


def about(kernel: Kernel, names: Names, whole: bool = True) -> list[str]:
    """The comment above a function: its docstring, or the first paragraph of it, and what is proved."""
    doc = prose(kernel.doc, names.spoken(kernel))
    if not whole and "" in doc:
        doc = doc[: doc.index("")]
    return [*doc, *([""] if doc else []), *proved(kernel, names.prefix)]


def title(kernels: Sequence[Kernel], names: Names) -> str:
    """The first paragraph of what the kernels' module says of itself, or which functions there are."""
    doc = (
        getattr(sys.modules.get(kernels[0].declared.__module__), "__doc__", None)
        or f"Kernels of {kernels[0].path.name}."
    )
    text = " ".join(prose(doc.strip().split("\n\n")[0], names.spoken(kernels[0])))
    return text or " ".join(["Here:", ", ".join(f"{names.functions[kernel]}()" for kernel in kernels)]) + "."
