"""Kernels as JSON: read and written without running any Python of theirs.

A document holds kernels with all that they call, callees first:

    {"format": "sensorsim kernels", "schema_version": 1,
     "files":   {file: {"doc": text, "declares": [name, …]}},        the sources that the kernels were declared in
     "records": {name: {"fields": {field: kind}, "about": {field: text}}},
     "kernels": {"file:name": {"name", "file", "line", "doc", "step", "split", "exposes", "lasting", "apart", "binds",
                               "parameters": {name: kind | {"record": name}}, "returns": kind | null, "body": […]}}}

    kind        {"Q": {…}} | {"Below": {…}} | {"Length": {…}} | {"Array": {…}}: the fields of `types`, defaults left out
    statement   {"let": name, "value": e} | {"store": array, "at": e, "value": e} | {"do": e} | {"return": e | null}
                | {"for": name, "first": e, "last": e, "body": […]} | {"if": e, "then": […], "else": […]}
                | {"break": true}
    expression  5 | "name" | {"constant": name | null, "value": 5} | {"name": name} | {"load": array, "at": e}
                | {"index": "+", "of": [e, …]} | {"apply": primitive, "to": [e, …]} | {"call": kernel, "with": [e, …]}
                | {"ask": port, "board": field, "with": [e, …], "part": [array, first, last]}
    argument    e | {"array": name} | {"record": name}
    primitive   name | {"primitive": name, "file": file}             of the language, or declared in Python in a file

A kernel outside of the document that is called (one that ships) goes by its qualified name, as "spof.feature". Each
object of a body may have a "line"; without one it is on the line of what it is part of. "at" of a cell is left out.

No type is stored. The reader (`ir_reader`) makes the syntax tree that Python would make of the kernel's text, and the
parser of the language checks it as it checks every kernel; names, kinds and sizes are checked before that.
"""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.language import ir, primitives
from sensorsim.language.kernel import Kernel
from sensorsim.language.primitive import Primitive
from sensorsim.language.types import Record, Struct, grouped

FORMAT, VERSION = "sensorsim kernels", 1
SHIPPED = {one.name: one for one in vars(primitives).values() if isinstance(one, Primitive)}


def kernels_json(kernels: Sequence[Kernel], files: Mapping[str, str], known: Mapping[str, Kernel]) -> str:
    """Return the document of these kernels and all that they call, but those that are `known` by a qualified name.

    `files` gives each source file the name that it has in the document.
    """
    outside = {kernel: name for name, kernel in known.items()}
    keys: dict[Kernel, str] = {}
    order = _callees_first(kernels, outside)
    for one in sorted(order, key=lambda one: one not in kernels):  # those asked for keep their plain names
        key, number = f"{files[one.at.file]}:{one.name}", 2
        while key in keys.values():
            key, number = f"{files[one.at.file]}:{one.name}#{number}", number + 1
        keys[one] = key
    records: dict[str, Struct] = {}
    for one in order:
        for record in one.records.values():
            if records.setdefault(record.name, record) != record:
                raise InputError(f"{one.at}: there are two records {record.name}; give one of them another name.")
    write = _Writer({**outside, **keys}, files)
    sources = {files[one.at.file]: {"doc": one.file_doc, "declares": list(one.siblings)} for one in order}
    data = {
        "format": FORMAT,
        "schema_version": VERSION,
        "files": dict(sorted(sources.items())),
        "records": {
            name: {"fields": {field: _kind_json(kind) for field, kind in one.fields.items()}, "about": one.about}
            for name, one in sorted(records.items())
        },
        "kernels": {keys[one]: write.kernel(one) for one in order},
    }
    return json.dumps(data, ensure_ascii=True) + "\n"


def _callees_first(kernels: Sequence[Kernel], outside: Container[Kernel]) -> list[Kernel]:
    order: dict[Kernel, None] = {}

    def visit(one: Kernel) -> None:
        if one not in order and one not in outside:
            for callee in one.called:
                visit(callee)
            order[one] = None

    for one in kernels:
        visit(one)
    return list(order)


def _kind_json(kind: Record) -> dict[str, Any]:
    own = {name: getattr(kind, name) for name in kind._fields}
    fields = {name: value for name, value in own.items() if name not in kind._defaults or value != kind._defaults[name]}
    return {type(kind).__name__: {name: _field_json(value) for name, value in fields.items()}}


def _field_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_field_json(one) for one in value]
    return _kind_json(value) if isinstance(value, Record) else value


class _Writer:
    def __init__(self, keys: Mapping[Kernel, str], files: Mapping[str, str]) -> None:
        self.keys, self.files = keys, files

    def kernel(self, one: Kernel) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name in grouped(one.parameters):
            record = one.records.get(name)
            given[name] = _kind_json(one.parameters[name]) if record is None else {"record": record.name}
        return {
            "name": one.name,
            "file": self.files[one.at.file],
            "line": one.at.line,
            "doc": one.doc,
            "step": one.step,
            "split": one.split,
            "exposes": one.exposes,
            "lasting": one.lasting,
            "apart": one.apart,
            "binds": self.binds(one),
            "parameters": given,
            "returns": None if one.result is None else _kind_json(one.result),
            "body": self.body(one, one.body, one.at.line),
        }

    def binds(self, one: Kernel) -> dict[str, str]:
        """Return the names that stand for other kernels in this one's text, as `draw` in a release."""
        used = {name: called for name, called in one.read.used.items() if isinstance(called, Kernel)}
        return {name: self.keys[called] for name, called in used.items() if name != called.name}

    def body(self, owner: Kernel, nodes: Sequence[ir.Node], line: int) -> list[Any]:
        return [self.node(owner, one, line) for one in nodes]

    def node(self, owner: Kernel, node: ir.Node, line: int) -> Any:
        """Return a node inside of one on that line."""
        at = node.at.line
        made = self.parts(owner, node, partial(self.node, owner, line=at), partial(self.body, owner, line=at))
        if at != line:
            if not isinstance(made, dict):
                made = {"name": made} if isinstance(made, str) else {"constant": None, "value": made}
            made["line"] = at
        return made

    def parts(self, owner: Kernel, node: ir.Node, one: Callable[..., Any], many: Callable[..., Any]) -> Any:
        match node:
            case ir.Const(value=value, name=name):
                return value if name is None else {"constant": name, "value": value}
            case ir.Name(name=name):
                return name
            case ir.Whole(array=array):
                return {"array": array}
            case ir.Load(array=array, index=index):
                return {"load": array} if owner.arrays[array].cell else {"load": array, "at": one(index)}
            case ir.Index(operator=operator, operands=below):
                return {"index": operator, "of": many(below)}
            case ir.Apply(primitive=target, operands=below):
                shipped = SHIPPED.get(target.name) is target
                own = target.name if shipped else {"primitive": target.name, "file": self.files[target.at.file]}
                return {"apply": own, "to": many(below)}
            case ir.Call(kernel=called):
                return {"call": self.keys[called], "with": many(_as_declared(node))}
            case ir.Ask(port=port, board=board, arguments=below, array=array):
                part = {} if array is None else {"part": [array, node.first, node.last]}
                return {"ask": port.name, "board": board, "with": many(below), **part}
            case _Record(record=record):
                return {"record": record}
            case ir.Let(name=name, value=value):
                return {"let": name, "value": one(value)}
            case ir.Store(array=array, index=index, value=value):
                place = {} if owner.arrays[array].cell else {"at": one(index)}
                return {"store": array, **place, "value": one(value)}
            case ir.For(counter=counter, first=first, last=last, body=body):
                return {"for": counter, "first": one(first), "last": one(last), "body": many(body)}
            case ir.If(test=test, then=then, otherwise=otherwise):
                return {"if": one(test), "then": many(then), "else": many(otherwise)}
            case ir.Do(call=call):
                return {"do": one(call)}
            case ir.Return(value=value):
                return {"return": None if value is None else one(value)}
            case ir.Break():
                return {"break": True}
        raise TypeError(node)


class _Record(ir.Node):
    """A record that is passed on, in place of its fields."""

    record: str


def _as_declared(call: ir.Call) -> list[ir.Node]:
    """Return the arguments of a call as they were written: a record in place of its fields."""
    given = dict(zip(call.kernel.parameters, call.arguments, strict=True))
    made: list[ir.Node] = []
    for owner, names in grouped(call.kernel.parameters).items():
        first = given[names[0]]
        if owner in call.kernel.records:
            assert isinstance(first, ir.Whole)
            made.append(_Record(first.at, "array", first.array.partition(".")[0]))
        else:
            made.append(first)
    return made
