"""Declare a command once, as a frozen dataclass.

    @dataclass(frozen=True)
    class Cost(Command["CostReport"]):
        \"\"\"Compute what a private record costs on a sensor's processor.\"\"\"

        n: int = option(14, Whole(1, 4096), "Features of a record.")

        def run(self) -> "CostReport": ...

The click command, the Python function with its signature and documentation, the checks of every value, the JSON schema
of the options, lock keys, shell completion and the refusal of options without effect follow from the declaration.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar

from sensorsim._util.errors import InputError, option_name
from sensorsim.commands.option_kinds import Kind

if TYPE_CHECKING:
    import inspect

Answer = TypeVar("Answer")
Given = ParamSpec("Given")
REQUIRED = dataclasses.MISSING


class Declared(NamedTuple):
    """What is declared about one option, beside its default."""

    kind: Kind
    help: str
    flag: str = ""  # the option's name in a shell, where it is not that of the field
    argument: bool = False  # a word without an option's name in a shell
    default_text: str = ""  # what the default means, where it is None
    locked: bool = True  # a lock keeps its value


def option(
    default: Any,
    kind: Kind,
    help: str,
    *,
    flag: str = "",
    argument: bool = False,
    default_text: str = "",
    locked: bool = True,
) -> Any:
    """Declare one option of a command; REQUIRED in place of the default makes it required."""
    metadata = {"option": Declared(kind, help, flag, argument, default_text, locked)}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Command(Generic[Answer]):
    """The base of every command: values are checked when one is made, and `run` computes the answer."""

    example: ClassVar[str] = ""  # lines for the help of the shell command
    plots: ClassVar[bool] = False  # whether the answer can be drawn with --plot
    formats: ClassVar[tuple[str, ...]] = ("table", "json", "csv")
    lockable: ClassVar[bool] = False  # whether --lock and --check keep and compare its figures

    def __post_init__(self) -> None:
        for name, declared in options_of(type(self)).items():
            value = getattr(self, name)
            if value is not None:
                value = value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
                object.__setattr__(self, name, declared.kind.check(option_name(flag_of(name, declared)), value))

    def run(self) -> Answer:
        """Compute the answer."""
        raise NotImplementedError

    def without_effect(self) -> Mapping[str, str]:
        """Return the options that change nothing beside the others, each with the reason."""
        return {}

    def text(self, answer: Answer) -> str:
        """Return the answer for a terminal."""
        return str(answer)

    def exit_code(self, answer: Answer) -> int:
        """Return the exit code of the shell command."""
        return 0

    def draw(self, answer: Answer, path: str) -> None:
        """Draw the answer into a file."""
        answer.plot(path)  # type: ignore[attr-defined]

    def settle(self, locks: Any, answer: Answer) -> None:
        """Write the figures of the answer to a lock, or compare them with one."""


def options_of(command: type[Command[Any]]) -> dict[str, Declared]:
    """Return the declared options of a command by field name."""
    found: dict[str, Declared] = command.__dict__.get("_options", {})
    if not found:
        found = {each.name: each.metadata["option"] for each in dataclasses.fields(command)}
        type.__setattr__(command, "_options", found)
    return found


def flag_of(name: str, declared: Declared) -> str:
    """Return the shell name of an option, without dashes."""
    return declared.flag or name.replace("_", "-")


def make(command: type[Command[Answer]], given: Mapping[str, Any]) -> Command[Answer]:
    """Make a command of the values that were given; refuse those that change nothing."""
    made = command(**given)
    idle = made.without_effect()
    for name in given:
        if name in idle:
            label = option_name(flag_of(name, options_of(command)[name]))
            raise InputError(f"{label} changes nothing here: {idle[name]}; leave it out.")
    return made


def function_of(command: Callable[Given, Command[Answer]], name: str, about: str = "") -> Callable[Given, Answer]:
    """Return the Python function of a command, with its signature and the help of every parameter."""
    assert isinstance(command, type)

    def call(*args: Given.args, **named: Given.kwargs) -> Answer:
        try:
            given = signature_of(command).bind(*args, **named).arguments
        except TypeError as error:
            raise InputError(f"{name}: {error}; see help(sensorsim.{name}).") from None
        answer: Answer = make(command, given).run()
        return answer

    call.__name__ = call.__qualname__ = name
    call.__module__ = "sensorsim"
    call.__doc__ = documentation(command, about)
    call.__dict__.update(command=command, __signature__=signature_of(command))
    return call


def signature_of(command: type[Command[Any]]) -> "inspect.Signature":
    """Return the signature of a command's Python function."""
    import inspect

    fields = dataclasses.fields(command)
    required = inspect.Parameter.empty
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(
                each.name, kind, default=required if each.default is REQUIRED else each.default, annotation=each.type
            )
            for each in fields
        ]
    )


def documentation(command: type[Command[Any]], about: str) -> str:
    """Return the docstring of a command's function: `about`, the command's own, and a line for each parameter."""
    import inspect
    from textwrap import fill

    lines = [about, "", inspect.getdoc(command) or "", "", "Parameters"]
    for name, declared in options_of(command).items():
        more = f" Default: {declared.default_text}." if declared.default_text else ""
        lines.append(fill(f"{name}: {declared.help}{more}", 100, initial_indent="    ", subsequent_indent="        "))
    return "\n".join(lines)


def schema_of(command: type[Command[Any]]) -> dict[str, Any]:
    """Return a JSON Schema of the command's options."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for each in dataclasses.fields(command):
        declared: Declared = each.metadata["option"]
        shape: dict[str, Any] = {**declared.kind.schema, "description": declared.help}
        if each.default is REQUIRED:
            required.append(each.name)
        elif isinstance(each.default, bool | int | float | str):
            shape["default"] = each.default
        properties[each.name] = shape
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def values_of(command: Command[Any], names: Collection[str] = (), without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the values of a command's options by name: those of `names`, or all but `without`."""
    dropped = set(without)
    return {
        name: getattr(command, name)
        for name in options_of(type(command))
        if (name in names if names else name not in dropped)
    }
