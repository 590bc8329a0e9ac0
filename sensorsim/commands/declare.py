"""Declare a command once, as a frozen dataclass: its options, their kinds and help, and `run`."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, ForwardRef, Generic, ParamSpec, TypeVar, get_args, get_origin

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import REQUIRED as REQUIRED
from sensorsim._util.option_kinds import Declared, check_declared, label_of
from sensorsim._util.option_kinds import flag_of as flag_of
from sensorsim._util.option_kinds import option as option

if TYPE_CHECKING:
    import inspect

    from sensorsim.commands.lock_file import Taken

Also = Callable[[str, Callable[[], str]], str]
Answer = TypeVar("Answer")
Given = ParamSpec("Given")


@dataclass(frozen=True)
class Command(Generic[Answer]):
    """The base of every command: values are checked when one is made, and `run` computes the answer."""

    example: ClassVar[str] = ""  # lines for the help of the shell command
    usage: ClassVar[str] = ""  # lines of Python for the documentation of its function
    plots: ClassVar[str] = ""  # help of --plot, which draws the answer
    formats: ClassVar[tuple[str, ...]] = ("table", "json", "csv")
    lockable: ClassVar[bool] = False  # whether --lock and --check keep and compare its figures
    holds: ClassVar[str] = ""  # the attribute of the answer without which the shell command exits with code 1

    def __post_init__(self) -> None:
        check_declared(self)

    def run(self) -> Answer:
        """Compute the answer."""
        raise NotImplementedError

    def without_effect(self) -> Mapping[str, str]:
        """Return the options that change nothing beside the others, each with the reason."""
        return {}

    def text(self, answer: Answer) -> str:
        """Return the answer for a terminal."""
        text = getattr(answer, "text", None)
        return str(text() if text else answer)

    def emit(self, answer: Any, form: str) -> None:
        """Print the answer as table, JSON or CSV; only that form is computed."""
        from sensorsim.commands.outputs import emit

        emit(answer, form, self.text)

    def exit_code(self, answer: Answer) -> int:
        """Return the exit code of the shell command."""
        return 0 if not self.holds or getattr(answer, self.holds) else 1

    def check_drawing(self) -> None:
        """Refuse a figure that cannot be drawn of these options, before the command runs."""

    def draw(self, answer: Any, path: str) -> None:
        """Draw the answer into a file."""
        answer.plot(path)

    def figures(self, answer: Answer, also: "Also") -> "Taken":
        """Return the figures for a lock; `also` keeps a choice that is no option."""
        raise NotImplementedError


def options_of(command: type[Command[Any]]) -> dict[str, Declared]:
    """Return the declared options of a command by field name."""
    return {each.name: each.metadata["option"] for each in ordered_fields(command)}


def ordered_fields(command: type[Command[Any]]) -> "list[dataclasses.Field[Any]]":
    """Return the fields in the order of the help: those of shared groups, which are keyword-only, come last."""
    return sorted(dataclasses.fields(command), key=lambda each: bool(each.kw_only))


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

    def parameter(each: "dataclasses.Field[Any]") -> Parameter:
        kind = Parameter.KEYWORD_ONLY if each.kw_only else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if each.default is REQUIRED else each.default
        return Parameter(each.name, kind, default=default, annotation=each.type)

    bases = [base for part in command.__mro__ for base in part.__dict__.get("__orig_bases__", ())]
    answers = [get_args(base)[0] for base in bases if get_origin(base) is Command]
    answer = answers[0].__forward_arg__ if isinstance(answers[0], ForwardRef) else answers[0]
    return Signature([parameter(each) for each in ordered_fields(command)], return_annotation=answer)


def documentation(command: type[Command[Any]], about: str) -> str:
    """Return the docstring of a command's function: `about`, the command's own, and a line for each parameter."""
    import inspect
    from textwrap import fill

    lines = [about, "", inspect.getdoc(command) or "", "", "Parameters"]
    for name, declared in options_of(command).items():
        more = f" Default: {declared.default_text}." if declared.default_text else ""
        lines.append(fill(f"{name}: {declared.help}{more}", 100, initial_indent="    ", subsequent_indent="        "))
    if command.usage:
        lines += ["", inspect.cleandoc(command.usage)]
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
