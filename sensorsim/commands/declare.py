"""Declare a command once, as a frozen dataclass: its options, their kinds and help, and `run`."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar

from sensorsim._util.errors import InputError, option_name
from sensorsim.commands.option_kinds import Kind

if TYPE_CHECKING:
    import inspect

    from sensorsim.commands.locks import Locks

Answer = TypeVar("Answer")
Given = ParamSpec("Given")
REQUIRED = dataclasses.MISSING


class Declared(NamedTuple):
    """The declaration of one option, beside its default."""

    kind: Kind
    help: str
    flag: str  # the option's name in a shell, without dashes; empty for the field's own name
    argument: bool  # a word without an option's name in a shell
    default_text: str  # what the default means, where it is None
    shell: bool  # False: of the Python function only
    lock: str  # with --lock and --check: "keep" the value, "ask" for it each time, "refuse" the option


def option(
    default: Any,
    kind: Kind,
    help: str,
    *,
    flag: str = "",
    argument: bool = False,
    default_text: str = "",
    shell: bool = True,
    lock: str = "keep",
) -> Any:
    """Declare one option of a command; REQUIRED in place of the default makes it required."""
    declared = Declared(kind, help, flag, argument, default_text, shell, lock)
    return dataclasses.field(default=default, metadata={"option": declared})


@dataclass(frozen=True)
class Command(Generic[Answer]):
    """The base of every command: values are checked when one is made, and `run` computes the answer."""

    example: ClassVar[str] = ""  # lines for the help of the shell command
    plots: ClassVar[str] = ""  # help of --plot, which draws the answer
    formats: ClassVar[tuple[str, ...]] = ("table", "json", "csv")
    lockable: ClassVar[bool] = False  # whether --lock and --check keep and compare its figures

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is field.default:
                continue
            label = label_of(field.name, field.metadata["option"])
            if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a number of numpy
                value = value.item()
            object.__setattr__(self, field.name, field.metadata["option"].kind.check(label, value))

    def run(self) -> Answer:
        """Compute the answer."""
        raise NotImplementedError

    def without_effect(self) -> Mapping[str, str]:
        """Return the options that change nothing beside the others, each with the reason."""
        return {}

    def text(self, answer: Answer) -> str:
        """Return the answer for a terminal."""
        return str(answer)

    def emit(self, answer: Any, form: str) -> None:
        """Print the answer as table, JSON or CSV."""
        from sensorsim.commands.outputs import emit

        emit(form, lambda: self.text(answer), lambda: answer.to_dict(), lambda: answer.rows())

    def exit_code(self, answer: Answer) -> int:
        """Return the exit code of the shell command."""
        return 0

    def draw(self, answer: Any, path: str) -> None:
        """Draw the answer into a file."""
        answer.plot(path)

    def settle(self, locks: "Locks", answer: Answer) -> None:
        """Write the figures of the answer to a lock, or compare them with one."""


def options_of(command: type[Command[Any]]) -> dict[str, Declared]:
    """Return the declared options of a command by field name."""
    return {each.name: each.metadata["option"] for each in dataclasses.fields(command)}


def flag_of(name: str, declared: Declared) -> str:
    """Return the shell name of an option, without dashes."""
    return declared.flag or name.replace("_", "-")


def label_of(name: str, declared: Declared) -> str:
    """Name an option in the words of the caller: `--budget-days` in a shell, the field's name in Python."""
    return name if declared.argument else option_name(flag_of(name, declared), name)


def make(command: type[Command[Answer]], given: Mapping[str, Any]) -> Command[Answer]:
    """Make a command of the values that were given; refuse those that change nothing."""
    made = command(**given)
    idle = made.without_effect()
    for name in given:
        if name in idle:
            label = label_of(name, options_of(command)[name])
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
    from inspect import Parameter, Signature

    return Signature(
        [
            Parameter(
                each.name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if each.default is REQUIRED else each.default,
                annotation=each.type,
            )
            for each in dataclasses.fields(command)
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
    for each in dataclasses.fields(command):
        declared: Declared = each.metadata["option"]
        shape: dict[str, Any] = {**declared.kind.schema, "description": declared.help}
        if isinstance(each.default, bool | int | float | str):
            shape["default"] = each.default
        properties[each.name] = shape
    required = [each.name for each in dataclasses.fields(command) if each.default is REQUIRED]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def values_of(command: Command[Any], *without: str) -> dict[str, Any]:
    """Return the values of a command's options by name, all but those named."""
    return {name: getattr(command, name) for name in options_of(type(command)) if name not in without}
