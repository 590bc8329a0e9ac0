"""Read kernels from JSON (see `ir_json`). The file is untrusted: everything in it is checked, and nothing is run."""

import ast
import json
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from sensorsim._util.errors import InputError
from sensorsim.language.ir_json import FORMAT, SHIPPED, VERSION
from sensorsim.language.kernel import Kernel
from sensorsim.language.parse import Parsed, parse_tree
from sensorsim.language.parse_values import OPERATORS
from sensorsim.language.primitive import Primitive
from sensorsim.language.types import Array, Below, Length, Port, Q, Record, Struct

MOST_BYTES = 1 << 24
MOST_LETTERS = 200  # of a name, or of the length of an array
KINDS: dict[str, type[Record]] = {"Q": Q, "Below": Below, "Length": Length, "Array": Array, "Port": Port}
SYMBOLS: dict[str, Callable[[], ast.operator]] = {text: kind for kind, text in OPERATORS.items()}  # type: ignore[misc]
T = TypeVar("T")
OwnPrimitive = Callable[[str, str], Primitive]  # file and name to a primitive that is declared in Python


class StoredKernel(Kernel):
    """A kernel that was read from data: it has nodes, and no Python function."""

    def __init__(
        self, read: Parsed, name: str, declared: Mapping[str, Any], doc: str | None, names: Sequence[str]
    ) -> None:
        self.name, self.doc = name, declared["doc"]
        self.module = "stored_" + re.sub(r"\W", "_", read.at.file)
        self.step, self.split, self.exposes = declared["step"], declared["split"], declared["exposes"]
        self.lasting, self.apart = declared["lasting"], declared["apart"]
        self.file_doc, self.siblings = doc, tuple(names)
        self.read = self.check(read)
        self.home = self.path

    @cached_property
    def function(self) -> Callable[..., Any]:
        from sensorsim.language.count import execute

        return partial(execute, self)


def read_kernels(
    content: bytes, file_of: Callable[[str], Path], known: Mapping[str, Kernel], own: OwnPrimitive
) -> dict[str, Kernel]:
    """Return the kernels of a document by their keys; InputError where it is none. Nothing of it is run.

    `file_of` says where a file of the document lies, `known` are the kernels that may be called from outside of it, and
    `own` finds a primitive that is declared in Python, or refuses it.
    """
    try:
        if len(content) > MOST_BYTES:
            raise _WrongError("has more bytes than any kernels' data")
        data = json.loads(content.decode("utf-8"))
        json.dumps(data, ensure_ascii=False).encode("utf-8")  # refuses half a character
        return _Reader(data, file_of, known, own).kernels()
    except InputError:
        raise
    except (RecursionError, MemoryError):
        raise InputError("the kernels' data are nested too deeply; export the package again.") from None
    except ValueError as error:
        why = str(error) if isinstance(error, _WrongError) else "is no JSON"
        raise InputError(f"what should be the kernels' data {why}; export the package again.") from None


class _WrongError(ValueError):
    """Something that no writer makes; the text says what it is or has."""


class _Reader:
    def __init__(
        self, data: Any, file_of: Callable[[str], Path], known: Mapping[str, Kernel], own: OwnPrimitive
    ) -> None:
        head = _object(data, "format", "schema_version", "files", "records", "kernels")
        if head["format"] != FORMAT or type(head["schema_version"]) is not int:
            raise _WrongError("is of another format")
        if head["schema_version"] != VERSION:
            raise _WrongError(f"has the version {head['schema_version']}, and this program reads {VERSION}")
        self.data, self.file_of, self.own = head, file_of, own
        self.known = dict(known)
        self.records = {_name(name): _struct(name, one) for name, one in _of(dict, head["records"]).items()}

    def kernels(self) -> dict[str, Kernel]:
        files = {_of(str, name): _object(one, "doc", "declares") for name, one in _of(dict, self.data["files"]).items()}
        found: dict[str, Kernel] = {}
        for key, one in _of(dict, self.data["kernels"]).items():
            if key in self.known:
                raise _WrongError(f"has two kernels {key}")
            found[key] = self.known[key] = self.kernel(one, files)
        return found

    def kernel(self, data: Any, files: Mapping[str, Mapping[str, Any]]) -> Kernel:
        one = _object(data, "name", "file", "line", "doc", "step", "split", "exposes", "lasting", "apart",
                      "binds", "parameters", "returns", "body")  # fmt: skip
        if _of(str, one["file"]) not in files:
            raise _WrongError(f"names no file {one['file']!r}")
        home = files[one["file"]]
        kinds = {_name(name): self.parameter(kind) for name, kind in _of(dict, one["parameters"]).items()}
        line = _whole(one["line"])
        names = [ast.arg(name, lineno=line) for name in kinds]
        tree = ast.FunctionDef(_name(one["name"]), ast.arguments([], names, None, [], [], None, []), [], [])
        tree.lineno, tree.body = line, self.block(one["body"], line)
        kinds["return"] = None if one["returns"] is None else _kind(one["returns"], Q, Below)
        declared = {
            "doc": _of(str, one["doc"]),
            "step": None if one["step"] is None else _of(str, one["step"]),
            "split": None if one["split"] is None else _name(one["split"]),
            "exposes": {kind: _of(str, why) for kind, why in _of(dict, one["exposes"]).items()},
            "lasting": _of(bool, one["lasting"]),
            "apart": _of(bool, one["apart"]),
        }
        read = parse_tree(tree, str(self.file_of(one["file"])), {}, kinds)
        binds = {_name(name): self.called(key) for name, key in _of(dict, one["binds"]).items()}
        read = read._replace(used={**read.used, **binds})
        doc = None if home["doc"] is None else _of(str, home["doc"])
        return StoredKernel(read, tree.name, declared, doc, [_name(name) for name in _of(list, home["declares"])])

    def parameter(self, data: Any) -> Any:
        if isinstance(data, dict) and "record" in data:
            name = _object(data, "record")["record"]
            if not isinstance(name, str) or name not in self.records:
                raise _WrongError(f"names no record {name!r}")
            return self.records[name]
        kind = _kind(data, Q, Below, Length, Array)
        if isinstance(kind, Array) and (kind.cell or kind.ports):
            raise _WrongError("has a field of a record that stands alone")
        return kind

    def block(self, data: Any, line: int, least: int = 1) -> list[ast.stmt]:
        if len(_of(list, data)) < least:
            raise _WrongError("has an empty block")
        return [self.statement(one, line) for one in data]

    def statement(self, data: Any, line: int) -> ast.stmt:
        node, shape, line = _node(data, line)
        value = partial(self.expression, line=line)
        made: ast.stmt
        match shape:
            case ("let", "value"):
                made = ast.Assign([ast.Name(_name(node["let"]), ast.Store())], value(node["value"]))
            case ("at", "store", "value"):
                place = ast.Subscript(_array(node["store"], line), value(node["at"]), ast.Store())
                made = ast.Assign([place], value(node["value"]))
            case ("store", "value"):
                made = ast.Assign([_array(node["store"], line, cell=True)], value(node["value"]))
            case ("body", "first", "for", "last"):
                ends = ast.Call(ast.Name("range", ast.Load()), [value(node["first"]), value(node["last"])], [])
                made = ast.For(ast.Name(_name(node["for"]), ast.Store()), ends, self.block(node["body"], line), [])
            case ("else", "if", "then"):
                ways = self.block(node["then"], line), self.block(node["else"], line, 0)
                made = ast.If(value(node["if"]), *ways)
            case ("do",):
                made = ast.Expr(value(node["do"]))
            case ("return",):
                made = ast.Return(None if node["return"] is None else value(node["return"]))
            case ("break",):
                made = ast.Break()
            case _:
                raise _WrongError(f"has a statement of {', '.join(shape)}")
        made.lineno = line
        return made

    def expression(self, data: Any, line: int) -> ast.expr:
        if isinstance(data, str | int):
            data = {"name": data} if isinstance(data, str) else {"constant": None, "value": data}
        node, shape, line = _node(data, line)
        many = partial(self.expressions, line=line)
        made: Any
        match shape:
            case ("constant", "value"):
                made = ast.Constant(_whole(node["value"]))
                made.named = None if node["constant"] is None else _name(node["constant"])
            case ("name",) | ("record",):
                made = ast.Name(_name(node[shape[0]]), ast.Load())
            case ("array",):
                made = _array(node["array"], line)
            case ("at", "load"):
                made = ast.Subscript(_array(node["load"], line), self.expression(node["at"], line), ast.Load())
            case ("load",):
                made = _array(node["load"], line, cell=True)
            case ("index", "of"):
                made = _arithmetic(node["index"], many(node["of"]))
            case ("apply", "to"):
                target = self.primitive(node["apply"])  # which the parser of the language takes for a name
                made = ast.Call(ast.Constant(target), many(node["to"]), [])  # type: ignore[arg-type]
            case ("call", "with"):
                made = ast.Call(ast.Constant(self.called(node["call"])), many(node["with"]), [])  # type: ignore[arg-type]
            case ("ask", "board", "with") | ("ask", "board", "part", "with"):
                port = ast.Attribute(_array(node["board"], line, cell=True), _name(node["ask"]), ast.Load())
                made = ast.Call(port, [*many(node["with"]), *_part(node.get("part"), line)], [])
            case _:
                raise _WrongError(f"has an expression of {', '.join(shape)}")
        made.lineno = line
        found: ast.expr = made
        return found

    def called(self, key: Any) -> Kernel:
        """Return a kernel that is called, by its key."""
        if _of(str, key) not in self.known:
            raise _WrongError(f"calls {key!r}, which is no kernel before it")
        return self.known[key]

    def expressions(self, data: Any, line: int) -> list[ast.expr]:
        return [self.expression(one, line) for one in _of(list, data)]

    def primitive(self, data: Any) -> Primitive:
        if isinstance(data, str):
            if data not in SHIPPED:
                raise _WrongError(f"uses {data!r}, which is no primitive of the language")
            return SHIPPED[data]
        given = _object(data, "primitive", "file")
        return self.own(_of(str, given["file"]), _name(given["primitive"]))


def _node(data: Any, line: int) -> tuple[dict[str, Any], tuple[str, ...], int]:
    """Return an object of a body, its keys in order, and its line."""
    node = _of(dict, data)
    return node, tuple(sorted(node.keys() - {"line"})), _whole(node.get("line", line))


def _array(data: Any, line: int, cell: bool = False) -> ast.expr:
    """Return an array or a field of a record as Python writes it."""
    owner, dot, field = _of(str, data).partition(".")
    made = ast.Name(_name(owner), ast.Load(), lineno=line)
    if cell and not dot:
        raise _WrongError(f"uses {owner} as a field of a record")
    return ast.Attribute(made, _name(field), ast.Load(), lineno=line) if dot else made


def _part(data: Any, line: int) -> list[ast.expr]:
    if data is None:
        return []
    array, first, last = _of(list, data) if len(_of(list, data)) == 3 else ("", 0, 0)
    ends = [ast.Constant(_whole(end), lineno=line) for end in (first, last)]
    return [ast.Subscript(_array(array, line), ast.Slice(*ends), ast.Load(), lineno=line)]


def _arithmetic(symbol: Any, below: list[ast.expr]) -> ast.expr:
    if len(below) == 2 and _of(str, symbol) in SYMBOLS:
        return ast.BinOp(below[0], SYMBOLS[symbol](), below[1])
    if len(below) == 1 and symbol == "-":
        return ast.UnaryOp(ast.USub(), below[0])
    raise _WrongError(f"uses {symbol!r} on {len(below)} operands")


def _struct(name: str, data: Any) -> Struct:
    given = _object(data, "fields", "about")
    about = {_name(field): _remark(text) for field, text in _of(dict, given["about"]).items()}
    fields: dict[str, Array] = {}
    for field, one in _of(dict, given["fields"]).items():
        kind = _kind(one, Array)
        assert isinstance(kind, Array)
        if not kind.ports and not re.fullmatch("[0-9]+", kind.length):
            raise _WrongError(f"has a record {name} with a field of no fixed size")
        fields[field] = kind
    if fields.keys() != about.keys():
        raise _WrongError(f"has a record {name} whose fields are not those that it describes")
    return Struct(name, fields, about)


def _kind(data: Any, *allowed: type[Record]) -> Any:
    """Return a format, a length, an array or a port."""
    ((name, given),) = _of(dict, data).items() if len(_of(dict, data)) == 1 else [("", {})]
    kind = KINDS.get(name)
    if kind not in allowed or kind is None:
        raise _WrongError(f"has {name!r} where one of {', '.join(one.__name__ for one in allowed)} belongs")
    fields = _of(dict, given)
    needed = set(kind._fields) - kind._defaults.keys()
    if not needed <= fields.keys() <= set(kind._fields):
        raise _WrongError(f"has a {name} with the fields {', '.join(sorted(fields))}")
    made = kind(**{field: _field(field, value, kind) for field, value in fields.items()})
    if isinstance(made, Port):
        for one in made.takes:
            _name(one.name)
    return made


def _field(name: str, value: Any, kind: type[Record]) -> Any:
    match name:
        case "frac_bits" | "lo" | "hi" | "typical":
            return _whole(value)
        case "secret" | "drawn" | "once" | "written" | "cell" | "fails":
            return _of(bool, value)
        case "contents" | "tests":
            return tuple(_whole(one) for one in _of(list, value))
        case "element":
            return _kind(value, Q, Below)
        case "takes" | "ports":
            return tuple(_kind(one, Q if name == "takes" else Port) for one in _of(list, value))
        case "result" | "buffer":
            return None if value is None else _kind(value, Q if name == "result" else Array)
        case "length" if len(_of(str, value)) > MOST_LETTERS:
            raise _WrongError("has an array with a length of too many letters")
        case "limit" | "at_most":
            return _name(value)
        case "name" if kind is Port:
            return _name(value)
    return _remark(value)


def _remark(data: Any) -> str:
    """Return a text that may go into a comment of the C."""
    text = _of(str, data)
    if "*/" in text or len(text) > MOST_BYTES >> 8:
        raise _WrongError("has a text that no comment can hold")
    return text


def _object(data: Any, *keys: str) -> dict[str, Any]:
    found = _of(dict, data)
    if found.keys() != set(keys):
        raise _WrongError(f"has an object of {', '.join(sorted(found)) or 'nothing'}, not of {', '.join(keys)}")
    return found


def _whole(data: Any) -> int:
    if _of(int, data).bit_length() > 64:
        raise _WrongError("has a number of more than 64 bits")
    return int(data)


def _name(data: Any) -> str:
    text = _of(str, data)
    if not (text.isascii() and text.isidentifier() and len(text) <= MOST_LETTERS) or keyword.iskeyword(text):
        raise _WrongError(f"has {text[:40]!r} for a name")
    return text


def _of(kind: type[T], data: Any) -> T:
    if type(data) is not kind:
        raise _WrongError(f"has {type(data).__name__} where {kind.__name__} belongs")
    return data
