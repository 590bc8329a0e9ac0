"""The kernel language, whole. Every reader walks these nodes and nothing else.

    kernel      ::=  @kernel(…)  def name(parameter: kind, … [*pack: rest(kernel, "name", …)]) -> format | None:
                     docstring  statement…
    kind        ::=  format | Below("p") | length | format["size"] | out(format["size"]) | record

    statement   ::=  name = expression                                   Let
                  |  array[index] = expression | record.field = …        Store
                  |  for i in range([first,] last): statement…           For
                  |  if flag [and|or flag]: statement… [else: …]         If (nested for `and`, `or`)
                  |  if [not] A_BOOL: statement… [else: …]               the statements of one way, no node
                  |  kernel(argument, …) | record.board.port(…)          Do
                  |  return [expression]                                 Return
                  |  break                                               Break

    expression  ::=  5 | NAME_OF_A_NUMBER                                Const
                  |  name                                                Name
                  |  array[index] | record.field                         Load
                  |  index + index | - | * | << | >> | -index            Index
                  |  primitive(expression, …)                            Apply
                  |  kernel(argument, …)                                 Call
                  |  record.board.port(expression, … [array[5:9]])       Ask
    argument    ::=  expression | array | record | *pack                 Whole; a pack is each of its parameters

A record is read as its fields: `sensor.key` is an array, `sensor.epoch` an array of one cell. A name that is neither a
parameter nor a local means what it did when the kernel was declared, in its module or the function around it.

Types. A value is a 32-bit word, `u32` or `i32`, whatever width its memory has; a comparison is a `flag`; lengths, loop
counters and what is computed from them with Python's operators are an `index`, which fits a signed word. A number takes
the type of its place. A sum of products may be an `i64`, a local of 64 bits, until `narrow` makes it a word. Operators
on values are not in the language: a primitive says what it costs and whether it wraps.

Every name has one type, a value on every way that leads to its use, and no second meaning; there is no `while` and
no recursion. What a value may be (no wrap, no index outside its array, no cell read before it is written) is
proved by `ranges`; what it may show to someone with a stopwatch by `secrecy`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from sensorsim.language.types import Record

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel
    from sensorsim.language.primitive import Primitive
    from sensorsim.language.types import Port


class Place(NamedTuple):
    """Where a node stands: the path of its file and the line."""

    file: str
    line: int

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.file.replace("\\", "/").rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"


class Node(Record, identity=True):
    """The base of every node. Nodes are compared by identity, so that a reader can keep notes on them."""

    at: Place
    type: str  # u32, i32, i64, flag, index; const: a number; array; none: a statement, a call without a result


class Const(Node):
    """A whole number; `name` is that of the constant it was written as."""

    value: int
    name: str | None = None


class Name(Node):
    """A scalar: parameter, local or loop counter."""

    name: str


class Load(Node):
    """One element of an array."""

    array: str
    index: "Expression"


class Index(Node):
    """Arithmetic on lengths and counters: + - * << >> of two operands, `-` of one."""

    operator: str
    operands: tuple["Expression", ...]


class Apply(Node):
    """A primitive and its operands."""

    primitive: "Primitive"
    operands: tuple["Expression", ...]


class Whole(Node):
    """An array, passed on to another kernel."""

    array: str


class Call(Node):
    """Another kernel and its arguments."""

    kernel: "Kernel"
    arguments: tuple[Union["Expression", Whole], ...]


class Ask(Node):
    """A call of a port of the board, with a part of an array where the port takes bytes."""

    port: "Port"
    board: str
    arguments: tuple["Expression", ...]
    array: str | None
    first: int
    last: int  # behind the last cell of the part


class Let(Node):
    """A name gets a value."""

    name: str
    value: "Expression"


class Store(Node):
    """An element of an array gets a value."""

    array: str
    index: "Expression"
    value: "Expression"


class For(Node):
    """counter = first … last-1; `_` is a counter that is not read."""

    counter: str
    first: "Expression"
    last: "Expression"
    body: tuple["Statement", ...]


class If(Node):
    """One of two ways."""

    test: "Expression"
    then: tuple["Statement", ...]
    otherwise: tuple["Statement", ...]


class Do(Node):
    """A call for what it writes."""

    call: Call | Ask


class Return(Node):
    """The end of the kernel, with its result if it has one."""

    value: "Expression | None"


class Break(Node):
    """The end of the innermost loop."""


Expression = Const | Name | Load | Index | Apply | Call | Ask
Statement = Let | Store | For | If | Do | Return | Break


_PARTS: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    Load: lambda node: (node.index,),
    Index: lambda node: node.operands,
    Apply: lambda node: node.operands,
    Call: lambda node: node.arguments,
    Ask: lambda node: node.arguments,
    Let: lambda node: (node.value,),
    Store: lambda node: (node.value, node.index),
    For: lambda node: (node.first, node.last, *node.body),
    If: lambda node: (node.test, *node.then, *node.otherwise),
    Do: lambda node: (node.call,),
    Return: lambda node: () if node.value is None else (node.value,),
}


def parts(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, in the order in which they are evaluated."""
    below = _PARTS.get(type(node))
    return () if below is None else below(node)


def walk(*nodes: Node) -> Iterator[Node]:
    """These nodes and all below them."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(parts(node)))


def shown(node: Node) -> str:
    """The node as a person would write it, for messages."""
    match node:
        case Const(value=value, name=name):
            return name or str(value)
        case Name(name=name):
            return name
        case Whole(array=array):
            return array
        case Load(array=array, index=index):
            return f"{array}[{shown(index)}]"
        case Index(operator=operator, operands=(one,)):
            return f"{operator}{_bracketed(one)}"
        case Index(operator=operator, operands=(left, right)):
            return f"{_bracketed(left)} {operator} {_bracketed(right)}"
        case Apply(primitive=target, operands=below):
            return f"{target.name}({', '.join(map(shown, below))})"
        case Call(kernel=called, arguments=below):
            return f"{called.name}({', '.join(map(shown, below))})"
        case Ask(port=port, board=board, arguments=below, array=array):
            part = () if array is None else (f"{array}[{node.first}:{node.last}]",)
            return f"{board}.{port.name}({', '.join((*map(shown, below), *part))})"
        case Let(name=name, value=value):
            return f"{name} = {shown(value)}"
        case Store(array=array, index=index, value=value):
            return f"{array}[{shown(index)}] = {shown(value)}"
        case For(counter=counter, first=first, last=last):
            return f"for {counter} in range({shown(first)}, {shown(last)})"
        case If(test=test):
            return f"if {shown(test)}"
        case Do(call=call):
            return shown(call)
        case Break():
            return "break"
        case Return(value=value):
            return f"return {shown(value)}" if value is not None else "return"
    raise TypeError(node)


def _bracketed(node: Node) -> str:
    return f"({shown(node)})" if isinstance(node, Index) else shown(node)


def same(a: Node, b: Node) -> bool:
    """Whether two expressions are written alike and so have the same value where they stand side by side."""
    match a, b:
        case Const(value=one), Const(value=other):
            return one == other
        case (Name(name=one), Name(name=other)) | (Whole(array=one), Whole(array=other)):
            return one == other
        case Load(array=one), Load(array=other):
            return one == other and same(a.index, b.index)
        case Index(operator=one), Index(operator=other):
            return one == other and _all_same(a.operands, b.operands)
        case Apply(primitive=one), Apply(primitive=other):
            return one is other and _all_same(a.operands, b.operands)
    return False  # a call may write between the two


def _all_same(a: tuple[Expression, ...], b: tuple[Expression, ...]) -> bool:
    return len(a) == len(b) and all(same(one, other) for one, other in zip(a, b, strict=True))
