"""Prove that timing and addresses do not depend on a kernel's secret parameters, or find the lines where they do.

A parameter is secret when its format says so. Secrecy is followed through every assignment, store, load and call; what
is assigned under a secret condition is secret too. A finding is a place where time may depend on a secret: the
condition of a branch, the bound of a loop, the address of a load or store, an operand of an operation whose time
depends on it on some core, or that says nothing of its time. A kernel may accept such a thing in its own lines and say
why (`exposes`): then it is an exception, which travels with its reason into the C header.
"""

import csv
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sensorsim.language import ir
from sensorsim.language.ir import Place
from sensorsim.language.types import Array, Length, Q
from sensorsim.tables import folder

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

TIMED = ("branch", "loop", "operation")  # what changes the instructions that run, or how long one takes

PLURAL = {
    **{"branch": "branches", "loop": "loops", "address": "addresses", "operation": "operations"},
    **{"port": "calls of the board", "result": "results"},
}


class Finding(NamedTuple):
    """A place where time depends on a secret; `reason` says why that is accepted, and is empty where it is not."""

    kind: str  # branch, loop, address, operation
    at: Place
    text: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.text} at {self.at}" + (f": {self.reason}" if self.reason else "")


NOT_PROVED = "NOT proved "  # a verdict begins with it


def unproved(verdicts: Mapping[str, str]) -> list[str]:
    """Return the verdicts, by kernel, that are no proof, as `secrecy of steps, for x: …`."""
    bad = {name: text for name, text in verdicts.items() if text.startswith(NOT_PROVED)}
    return [f"secrecy of {name}, {text.removeprefix(NOT_PROVED)}" for name, text in bad.items()]


class Secrecy(NamedTuple):
    """The findings in one kernel and all that it calls."""

    kernel: str
    secrets: tuple[str, ...]
    findings: tuple[Finding, ...]
    exceptions: tuple[Finding, ...]

    @property
    def proved(self) -> bool:
        """Return whether nothing depends on a secret but what the kernels declare."""
        return not self.findings

    @property
    def same_path(self) -> bool:
        """Return whether the same instructions run for every secret, each in the same time."""
        return not any(found.kind in TIMED for found in (*self.findings, *self.exceptions))

    @property
    def verdict(self) -> str:
        """Return the whole answer in a sentence."""
        if not self.secrets:
            return "no parameter is declared secret"
        names = ", ".join(self.secrets)
        if self.findings:
            return f"{NOT_PROVED}for {names}: " + "; ".join(map(str, self.findings))
        plain = f"proved: no branch, loop bound, address or time of an operation depends on {names}"
        if not self.exceptions:
            return plain
        return f"{plain}, but for what the kernel declares: " + "; ".join(map(str, self.exceptions))

    @property
    def statement(self) -> str:
        """Return the verdict for readers of the C: each declared exception once, without source lines."""
        if self.findings or not self.exceptions:
            return self.verdict
        declared = Counter((found.kind, found.reason) for found in self.exceptions)
        plain = f"proved: no branch, loop bound, address or time of an operation depends on {', '.join(self.secrets)}"
        parts = (
            f"{times} {PLURAL[kind] if times > 1 else kind} ({reason})" for (kind, reason), times in declared.items()
        )
        return f"{plain}, but for {' and '.join(parts)}"


def secrecy(kernel: "Kernel") -> Secrecy:
    """Follow the kernel's secrets through it and all that it calls."""
    walk = _Walk()
    secret = {name: _declared(kernel, name) for name in kernel.parameters}
    arrays = {name: name for name in kernel.arrays}
    walk.arrays = {name: secret[name] for name in kernel.arrays}
    while True:  # an array may turn secret late and be read early, in a loop of a caller
        before = dict(walk.arrays)
        walk.found.clear()
        _Body(walk, kernel, {name: secret[name] for name in secret if name not in arrays}, arrays, False).result()
        if walk.arrays == before:
            break
    ordered = sorted(walk.found, key=lambda found: (found.at, found.kind, found.text))
    names = tuple(name for name, is_secret in secret.items() if is_secret)
    accepted = tuple(found for found in ordered if found.reason)
    return Secrecy(kernel.name, names, tuple(found for found in ordered if not found.reason), accepted)


def _declared(kernel: "Kernel", name: str) -> bool:
    kind = kernel.parameters[name]
    element = kind.element if isinstance(kind, Array) else kind
    return not isinstance(element, Length) and element.secret and not (isinstance(kind, Array) and kind.written)


def _leaves(body: tuple[ir.Node, ...]) -> bool:
    """Return whether these statements may end the kernel or the loop around them."""
    inner = [node for node in body if isinstance(node, ir.For)]
    rest = [part for node in body if isinstance(node, ir.If) for part in (*node.then, *node.otherwise)]
    ends = any(isinstance(node, ir.Return | ir.Break) for node in body)
    returns = any(isinstance(part, ir.Return) for part in ir.walk(*inner))
    return ends or returns or (bool(rest) and _leaves(tuple(rest)))


class _Walk:
    def __init__(self) -> None:
        self.found: dict[Finding, None] = {}
        self.arrays: dict[str, bool] = {}  # by the name that the outermost kernel gives it: whether it holds a secret


class _Body:
    """One kernel's body; `names` says which scalars are secret, `under` whether running it at all is."""

    def __init__(
        self, walk: _Walk, kernel: "Kernel", names: dict[str, bool], arrays: dict[str, str], under: bool
    ) -> None:
        self.walk, self.kernel, self.names, self.arrays = walk, kernel, names, arrays
        # A name of this kernel is not known outside, so who calls it under which condition does not make it secret;
        # what it stores and returns is.
        self.called_under, self.under, self.returned = under, False, False

    def result(self) -> bool:
        """Return whether the result is secret."""
        self.block(self.kernel.body)
        if self.returned and "result" in self.kernel.exposes:
            at, text = self.kernel.at, f"the result of {self.kernel.name} is public"
            self.walk.found[Finding("result", at, text, self.kernel.exposes["result"])] = None
            return False
        return self.returned

    def block(self, body: tuple[ir.Statement, ...]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ir.Statement) -> None:
        match node:
            case ir.Let(name=name, value=value):
                self.names[name] = self.value(value) or self.under
            case ir.Store(array=array, index=index, value=value):
                secret = [self.value(value), self.address(node, array, index)]  # both are looked at
                self.walk.arrays[self.arrays[array]] |= any(secret) or self.under or self.called_under
            case ir.Do(call=call):
                self.value(call)
            case ir.Return(value=value):
                self.returned |= (value is not None and self.value(value)) or self.under or self.called_under
            case ir.If(test=test):
                self.branch(node, self.value(test))
            case ir.For():
                self.loop(node)

    def branch(self, node: ir.If, secret: bool) -> None:
        if secret:
            self.report("branch", node, f"the branch `{ir.shown(node)}` depends on a secret")
        before = dict(self.names)
        outer, inside = self.under, self.under or secret
        self.under = inside
        self.block(node.then)
        left, self.under = self.under, inside
        one, self.names = self.names, before
        self.block(node.otherwise)
        self.names = {name: one.get(name, False) or self.names.get(name, False) for name in one.keys() | self.names}
        returns = _leaves((*node.then, *node.otherwise))
        # what runs after it shows which way was taken, here or in a branch or loop inside
        self.under = outer or (returns and (left or self.under))

    def loop(self, node: ir.For) -> None:
        secret = any([self.value(node.first), self.value(node.last)])
        if secret:
            self.report("loop", node, f"the number of rounds of `{ir.shown(node)}` depends on a secret")
        outer, self.under = self.under, self.under or secret
        while True:
            before = dict(self.names), self.under
            self.names[node.counter] = secret
            self.block(node.body)
            self.names = {name: self.names.get(name, False) or before[0].get(name, False) for name in self.names}
            self.names[node.counter] = secret
            if {**before[0], node.counter: secret} == self.names and before[1] == self.under:
                break
        returns = any(isinstance(part, ir.Return) for part in ir.walk(*node.body))
        self.under = self.under if returns else outer

    def value(self, node: ir.Node) -> bool:
        """Return whether an expression's value is secret."""
        match node:
            case ir.Const() | ir.Whole():
                return False
            case ir.Name(name=name):
                return self.names[name]
            case ir.Load(array=array, index=index):
                return self.address(node, array, index) or self.walk.arrays[self.arrays[array]]
            case ir.Apply(operands=operands):
                secret = [self.value(operand) for operand in operands]
                self.operation(node, secret)
                return any(secret)
            case ir.Call():
                return self.call(node)
            case ir.Ask():
                return self.ask(node)
        secret = [self.value(part) for part in ir.parts(node)]  # every part is looked at
        return any(secret)

    def operation(self, node: ir.Apply, secret: list[bool]) -> None:
        """Report an operation whose time depends on a secret operand, or is not known to be independent of it."""
        name, varies = node.primitive.name, node.primitive.varies
        if varies is None:
            if any(secret):
                text = f"unknown timing of `{name}`, which a secret reaches (say on which cores it varies=…),"
                self.report("operation", node, text)
            return
        slow = [one for is_secret, names in zip(secret, varies, strict=True) if is_secret for one in names]
        cores = dict.fromkeys(core for one in slow for core in (uneven_cores(one) if one.isupper() else (one,)))
        if cores:
            text = f"the time of `{name}` depends on a secret operand on {', '.join(cores)},"
            self.report("operation", node, text)

    def address(self, node: ir.Node, array: str, index: ir.Expression) -> bool:
        if not self.value(index):
            return False
        what = "write to" if isinstance(node, ir.Store) else "read of"
        self.report("address", node, f"the {what} {array}[{ir.shown(index)}] has a secret address")
        return True

    def call(self, node: ir.Call) -> bool:
        called = node.kernel
        given = dict(zip(called.parameters, node.arguments, strict=True))
        arrays = {name: self.arrays[value.array] for name, value in given.items() if isinstance(value, ir.Whole)}
        names = {name: self.value(value) for name, value in given.items() if name not in arrays}
        return _Body(self.walk, called, names, arrays, self.under or self.called_under).result()

    def ask(self, node: ir.Ask) -> bool:
        """Report a secret that is given to the board; follow those that it gives."""
        port, array = node.port, None if node.array is None else self.arrays[node.array]
        given = [self.value(argument) for argument in node.arguments]
        if array is not None and port.buffer is not None:
            if port.buffer.written:
                assert isinstance(port.buffer.element, Q)
                self.walk.arrays[array] |= port.buffer.element.secret or self.under or self.called_under
            else:
                given.append(self.walk.arrays[array])
        if any(given):
            self.report("port", node, f"`{ir.shown(node)}` gives a secret to the board")
        return port.result.secret

    def report(self, kind: str, node: ir.Node, text: str) -> None:
        self.walk.found[Finding(kind, node.at, text, self.kernel.exposes.get(kind, ""))] = None


@cache
def uneven_cores(operation: str) -> tuple[str, ...]:
    """Return the cores whose table gives an operation class on 32-bit words a range of prices, such as DIV: 2 to 12."""
    names = sorted(path.stem for path in Path(folder(), "cpu").glob("*.csv"))
    return tuple(
        name
        for name in names
        if any(
            operation in row["class"].split("/")
            and {"32", "any"} & set(row["width"].split("/"))
            and row["min"] != row["max"]
            for row in _rows(name)
        )
    )


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a table, after those that it keeps of the one that it extends or alters."""
    lines = Path(folder(), "cpu", f"{name}.csv").read_text("utf-8").splitlines()
    header = dict(line.lstrip("# ").partition(": ")[::2] for line in lines if line.startswith("#"))
    own = tuple(csv.DictReader(lines[len(header) :]))
    base = header.get("extends") or header.get("alters")
    forms = {(row["operation"], form) for row in own for form in row["operands"].split("|")}
    kept = (row for row in (_rows(base) if base else ()) if forms.isdisjoint(
        (row["operation"], form) for form in row["operands"].split("|")))  # fmt: skip
    return (*kept, *own)
