"""JSON Schemas as text: made of what was seen, laid out for reading, and what they say of a value."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
ENDING = ".schema.json"
WIDTH = 110
NAMES = {bool: "boolean", int: "integer", float: "number", str: "string"}
NAMES |= {dict: "object", list: "array", type(None): "null"}
# By the end of a path what values do not show: a closed list of words, `dict` for keys that are data, such as names of
# columns, `float` for a number that was whole wherever it was seen, the type of None for what may be missing.
Marks = dict[str, Any]


def file_of(name: str) -> Path:
    return FOLDER / f"{name}{ENDING}"


def schema_of(values: Sequence[Any], marks: Marks, path: str = "") -> dict[str, Any]:
    """Describe all these values: their types, the keys that each of them has, their items.

    A mark holds wherever a path ends with it: `steps`, or `claims[].verdict`; `*` is a key that is data.
    """
    mark = next((value for end, value in marks.items() if f".{path}".endswith(f".{end}")), None)
    types = {NAMES[type(value)] for value in values} | ({"null"} if mark is type(None) else set())
    if "number" in types or (mark is float and "integer" in types):
        types = types - {"integer"} | {"number"}
    if isinstance(mark, list | tuple):
        return {"enum": [*mark, *([None] if None in values and None not in mark else [])]}
    if types == {"null"}:
        return {}  # what it is when it is there was not seen
    made: dict[str, Any] = {"type": sorted(types)[0] if len(types) == 1 else sorted(types)}
    objects = [value for value in values if isinstance(value, dict)]
    if objects and mark is dict:
        inner = [each for value in objects for each in value.values()]
        if inner:
            made["additionalProperties"] = schema_of(inner, marks, f"{path}.*")
    elif objects:
        keys = list(dict.fromkeys(key for value in objects for key in value))
        if required := [key for key in keys if all(key in value for value in objects)]:
            made["required"] = required
        made["properties"] = {
            key: schema_of([value[key] for value in objects if key in value], marks, f"{path}.{key}") for key in keys
        }
    if items := [item for value in values if isinstance(value, list) for item in value]:
        made["items"] = schema_of(items, marks, f"{path}[]")
    return made


def text_of(schema: Any, head: str = "", indent: int = 0) -> str:
    """JSON in lines: whatever has room on a line stands on one; `head` is what stands before it."""
    short, space = head + json.dumps(schema, ensure_ascii=False), " " * (indent + 1)
    if indent + len(short) < WIDTH or not isinstance(schema, dict | list):
        return short
    if isinstance(schema, list):
        words = "\0 ".join(json.dumps(item, ensure_ascii=False).replace(" ", "\1") for item in schema)
        lines = textwrap.wrap(words, WIDTH, initial_indent=space, subsequent_indent=space, break_on_hyphens=False)
        return f"{head}[\n" + "\n".join(lines).replace("\0", ",").replace("\1", " ") + f"\n{' ' * indent}]"
    parts = (text_of(value, f"{json.dumps(key, ensure_ascii=False)}: ", indent + 1) for key, value in schema.items())
    return f"{head}{{\n" + ",\n".join(space + part for part in parts) + f"\n{' ' * indent}}}"


def faults(name: str, value: Any) -> list[str]:
    """Return, in sentences, where a value differs from the schema of that name."""
    checker = Draft202012Validator(json.loads(file_of(name).read_text("utf-8")))
    return [f"{name}: {fault.json_path}: {fault.message[:200]}" for fault in checker.iter_errors(value)]
