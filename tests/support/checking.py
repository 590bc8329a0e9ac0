"""A naive interpreter of kernels that stops at the first thing that the range check promises cannot happen.

It works on exact whole numbers and shares no code with the readers: every rule of the language is written down again
here. `load` declares kernels from text that no file holds, through the line cache, as a notebook does.
"""

import itertools
import linecache
import re

from sensorsim.language import ir
from sensorsim.language.types import Array, Below, Length

RANGES = {
    "i64": (-(2**63), 2**63 - 1),
    "u32": (0, 2**32 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "index": (-(2**31), 2**31 - 1),
}
_texts = itertools.count()


def clamped(value, lo, hi):
    return sorted([lo, value, hi])[1]


WORDS = {  # of signed words, and with a u behind the name of unsigned ones
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "shl": lambda a, k: a * 2**k,
    "ge": lambda a, b: not a < b,
    "lt": lambda a, b: not a >= b,
    "ne": lambda a, b: abs(a - b) > 0,
    "eq": lambda a, b: a - b == 0,
    "select": lambda flag, a, b: (b, a)[flag],
}
EXACT = {
    **WORDS,
    **{f"{name}u": function for name, function in WORDS.items()},
    **{f"{name}64": WORDS[name] for name in ("add", "sub", "mul")},
    **dict.fromkeys(("asr", "shru", "asr64"), lambda a, k: a // 2**k),
    **dict.fromkeys(("min_", "minu"), lambda a, b: sorted([a, b])[0]),
    **dict.fromkeys(("max_", "maxu"), lambda a, b: sorted([a, b])[1]),
    "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not_": lambda a: 2**32 - 1 - a,
    "saturating_add": lambda a, b: clamped(a + b, *RANGES["i32"]),
    "saturating_sub": lambda a, b: clamped(a - b, *RANGES["i32"]),
    "saturating_addu": lambda a, b: clamped(a + b, *RANGES["u32"]),
    "saturating_subu": lambda a, b: clamped(a - b, *RANGES["u32"]),
    "i64": lambda a: a,
    "mac": lambda total, a, b: total + a * b,
    "narrow": lambda a, k: clamped(a // 2**k, *RANGES["i32"]),
    "sign_mask": lambda a: 2**32 - 1 if a < 0 else 0,
    "wrapping_addu": lambda a, b: (a + b) % 2**32,
    "wrapping_subu": lambda a, b: (a - b) % 2**32,
    "wrapping_mulu": lambda a, b: (a * b) % 2**32,
    "wrapping_shlu": lambda a, k: (a * 2**k) % 2**32,
    "rotlu": lambda a, k: (a * 2**k) % 2**32 + a // 2 ** (32 - k),
    "u32": lambda a: a % 2**32,
    "i32": lambda a: (a + 2**31) % 2**32 - 2**31,
}
COUNTS = dict.fromkeys(("asr64", "narrow", "wrapping_shlu", "shl", "asr", "shlu", "shru"), 0) | {"rotlu": 1}


class TooLongError(Exception):
    """More steps than a test has time for."""


class WrongError(Exception):
    """Something that a proved kernel never does."""


class _Returned(Exception):  # noqa: N818 - no error
    pass


class _Left(Exception):  # noqa: N818 - no error
    pass


class Checker:
    """Run one call. `path` is the sequence of nodes that ran, with the place of each access; `ways` of `if` tests."""

    def __init__(self, proof=None, most=10**7):
        self.proof, self.path, self.ways, self.most = proof, [], set(), most

    def run(self, kernel, arguments):
        """The result; `arguments` holds a list for each array, which is filled. Cells that nobody wrote are None."""
        values = dict(arguments)
        for name, kind in kernel.arrays.items():
            if kind.written:
                values[name][:] = [None] * len(values[name])
        self.elements = {id(values[name]): (kind.element, values) for name, kind in kernel.arrays.items()}
        result = self.kernel(kernel, values, None)
        if self.proof is not None and self.proof.result is not None:
            self.inside(result, self.proof.result, "result")
        return result

    def kernel(self, kernel, values, node):
        for name, kind in kernel.parameters.items():
            if isinstance(kind, Length):
                self.need(kind.lo <= values[name] <= kind.hi, node, f"{name} = {values[name]}")
                if kind.at_most is not None:
                    self.need(values[name] <= values[kind.at_most], node, f"{name} above {kind.at_most}")
        for name, kind in kernel.parameters.items():
            if isinstance(kind, Array):
                self.need(len(values[name]) >= self.size(kernel.sizes[name], values), node, f"{name} is short")
                if not kind.written:
                    for cell in values[name]:
                        self.need(cell is None or self.of_format(cell, kind.element, values), node, f"cell of {name}")
            elif not isinstance(kind, Length):
                self.need(self.of_format(values[name], kind, values), node, f"{name} = {values[name]}")
        names = dict(values)
        try:
            self.block(kernel.body, names)
        except _Returned as returned:
            if kernel.result is not None:
                self.need(self.of_format(returned.args[0], kernel.result, values), node, f"returns {returned.args[0]}")
            return returned.args[0]
        return None

    def size(self, node, values):
        match node:
            case ir.Const(value=value):
                return value
            case ir.Name(name=name):
                return values[name]
        return self.index(node.operator, [self.size(part, values) for part in node.operands])

    def of_format(self, value, kind, values):
        if isinstance(kind, Below):
            return 0 <= value < values[kind.limit]
        return kind.lo <= value <= kind.hi

    def block(self, body, names):
        for node in body:
            self.path.append((id(node), None))
            if len(self.path) > self.most:
                raise TooLongError
            match node:
                case ir.Let(name=name, value=value):
                    names[name] = self.seen(node, self.value(value, names), node.type)
                case ir.Store(array=array, index=index, value=value):
                    found = self.seen(node, self.value(value, names))
                    cells, place = self.cell(node, names[array], self.value(index, names))
                    kind, outer = self.elements[id(cells)]
                    self.need(self.of_format(found, kind, outer), node, f"stores {found}")
                    cells[place] = found
                case ir.Do(call=call):
                    self.value(call, names)
                case ir.For(counter=counter, first=first, last=last, body=inner):
                    ends = self.value(first, names), self.value(last, names)
                    self.need(min(ends) >= 0, node, f"loops over {ends}")
                    i = ends[0]
                    while i < ends[1]:
                        names[counter] = i
                        try:
                            self.block(inner, names)
                        except _Left:
                            break
                        i += 1
                    names.pop(counter, None)
                case ir.If(test=test, then=then, otherwise=otherwise):
                    holds = self.value(test, names)
                    self.ways.add(holds)
                    self.block(then if holds else otherwise, names)
                case ir.Break():
                    raise _Left
                case ir.Return(value=value):
                    raise _Returned(None if value is None else self.seen(node, self.value(value, names)))

    def seen(self, node, value, kind=None):
        if kind in RANGES:
            lo, hi = RANGES[kind]
            self.need(lo <= value <= hi, node, f"{value} is no {kind}")
        if self.proof is not None and kind != "flag":
            self.need(node.at in self.proof.lines, node, "runs, and the proof says it never does")
            self.inside(value, self.proof.lines[node.at], node)
        return value

    def value(self, node, names):
        match node:
            case ir.Const(value=value):
                return value
            case ir.Name(name=name):
                self.need(name in names, node, f"{name} has no value")
                return names[name]
            case ir.Whole(array=array):
                return names[array]
            case ir.Load(array=array, index=index):
                cells, place = self.cell(node, names[array], self.value(index, names))
                self.need(cells[place] is not None, node, f"reads {array}[{place}], which is not written")
                return cells[place]
            case ir.Index(operator=operator, operands=operands):
                found = self.index(operator, [self.value(part, names) for part in operands], node)
                self.need(-(2**31) <= found < 2**31, node, f"index {found}")
                return found
            case ir.Apply(primitive=primitive, operands=operands):
                return self.apply(node, primitive, [self.value(part, names) for part in operands])
            case ir.Call(kernel=kernel, arguments=arguments):
                passed = [self.value(part, names) for part in arguments]
                return self.kernel(kernel, dict(zip(kernel.parameters, passed, strict=True)), node)
        raise TypeError(node)

    def index(self, operator, values, node=None):
        if len(values) == 1:
            return -values[0]
        a, b = values
        if operator in ("<<", ">>"):
            self.need(0 <= b <= 31 and a >= 0, node, f"{a} {operator} {b}")
            return a * 2**b if operator == "<<" else a // 2**b
        return {"+": a + b, "-": a - b, "*": a * b}[operator]

    def cell(self, node, cells, place):
        self.need(0 <= place < len(cells), node, f"has the place {place} of {len(cells)}")
        self.path.append((id(node), place))
        return cells, place

    def apply(self, node, primitive, values):
        name = primitive.name
        self.path.append((id(node), None))
        if name not in ("u32", "i32", "i64"):
            for value, kind in zip(values, primitive.operands, strict=True):
                if kind != "flag":
                    self.need(RANGES[kind][0] <= value <= RANGES[kind][1], node, f"reads {value}")
        if name in COUNTS:
            self.need(COUNTS[name] <= values[1] <= 31, node, f"counts {values[1]}")
        if name in ("div", "divu"):
            self.need(values[1] != 0, node, "divides by 0")
        if self.proof is not None:
            self.need(node in self.proof.operands, node, "runs, and the proof says it never does")
            for value, ends in zip(values, self.proof.operands[node], strict=True):
                self.inside(value, ends, node)
        found = EXACT[name](*values)
        if primitive.result != "flag":
            lo, hi = RANGES[primitive.result]
            self.need(lo <= found <= hi, node, f"gives {found}")
        return found

    def inside(self, value, ends, node):
        self.need(ends[0] <= value <= ends[1], node, f"is {value}, and {ends[0]} … {ends[1]} was proved")

    def need(self, holds, node, what):
        if not holds:
            where = f"{node.at}: {ir.shown(node)}" if isinstance(node, ir.Node) else node
            raise WrongError(f"{where}: {what}")


def load(text, file=None, **names):
    """Return what the text declares, by name: run as a notebook cell is."""
    file = file or f"<generated {next(_texts)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"__name__": "generated", **names}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope


def cases(text):
    """Split kernels written one after another: each begins with a comment, its title; decorators are added."""
    found = {}
    for part in text.strip("\n").split("\n# "):
        title, source = part.removeprefix("# ").split("\n", 1)
        decorated = re.sub(r"^def ", "@kernel()\ndef ", source, flags=re.M)
        found[title] = "\n" + re.sub(r"(@kernel\(.+\)\n)@kernel\(\)\n", r"\1", decorated) + "\n"
    return found
