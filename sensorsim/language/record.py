"""Small frozen records, as `dataclass(frozen=True)` makes them, without its milliseconds per class at every start."""

from typing import Any, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """A subclass declares its fields with annotations; a value behind one is its default.

    `class Node(Record, identity=True)` compares by identity, so that notes can be kept on a record.
    """

    _fields: tuple[str, ...] = ()
    _defaults: dict[str, Any] = {}  # noqa: RUF012 - replaced in every subclass

    def __init_subclass__(cls, identity: bool = False) -> None:
        own = tuple(cls.__annotations__)  # of this class alone, on every Python from 3.10 on
        cls._fields = (*cls._fields, *own)
        cls._defaults = {**cls._defaults, **{name: cls.__dict__[name] for name in own if name in cls.__dict__}}
        if identity:
            cls.__eq__ = object.__eq__  # type: ignore[method-assign]
            cls.__hash__ = object.__hash__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        state = self.__dict__
        if not named and len(values) == len(self._fields):  # nearly always
            state.update(zip(self._fields, values, strict=True))
            self.check()
            return
        if len(values) > len(self._fields):
            raise TypeError(f"{type(self).__name__} takes {len(self._fields)} values, not {len(values)}")
        state.update(self._defaults)
        state.update(zip(self._fields, values, strict=False))
        state.update(named)
        if len(state) != len(self._fields) or not named.keys() <= set(self._fields):
            wrong = sorted(set(self._fields) ^ state.keys())
            raise TypeError(f"{type(self).__name__} does not take these values: see {', '.join(wrong)}")
        self.check()

    def check(self) -> None:
        """For a subclass: refuse values that do not go together."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; make another one")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self._fields)})"
