"""Every field of an encoder's file, changed in every way: the one reader of such files refuses what means nothing."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sensorsim import encoders
from sensorsim._util.errors import InputError
from sensorsim.codegen.package_tables import encoder_file
from sensorsim.commands.program import main
from sensorsim.encoders import read_encoder

DEFAULT = Path(__file__).parents[2] / "tables" / "encoders" / "default.json"
GONE = object()
VALUES: tuple[Any, ...] = (
    *(GONE, None, True, False, 0, -1, 7, 1.5, 1e30, -1e30, 10**400, "", "x", "1", "a\nb", "x" * 300),
    *([], [None], [[]], ["x"], {}, {"x": 1}, [1e30], [[1e30]]),
)
Keys = tuple[Any, ...]


def places(node: Any, path: Keys = ()) -> Iterator[Keys]:
    """Yield the path of every part; of a long list its first and last parts stand for the others."""
    if path:
        yield path
    if isinstance(node, dict):
        for key, part in node.items():
            yield from places(part, (*path, key))
    elif isinstance(node, list) and node:
        for place in {0, len(node) - 1}:
            yield from places(node[place], (*path, place))


def changed(content: Any, path: Keys, value: Any) -> Any:
    """Return the content with another value in one place, or without it."""
    made = copy.deepcopy(content)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def may_be(path: Keys, value: Any) -> bool:
    """Return whether the file still means something: what may be left open, texts, numbers in their ranges."""
    if path[0] == "provenance" and len(path) == 2:
        number = type(value) in (int, float) and 0 <= value < 1e308
        kind = encoders.READ[path[1]]
        return (
            value is GONE
            or (kind == "text" and (value is None or type(value) is str))
            or (kind == "number" and (value is None or number or value == "1"))
            or (kind == "user" and type(value) is int and value >= 0)
        )
    if path == ("provenance", "quantisation", "weights_saturated"):
        return type(value) is int and value >= 0
    if path == ("provenance",):
        return isinstance(value, dict)
    if len(path) == {"weights": 3, "bias": 2}.get(path[0]):
        return type(value) is int and abs(value) < 100
    if path[0] == "ranges" and path[-1] in ("low", "high"):
        number = type(value) in (int, float) and abs(value) < 1e300
        return number and (value < 30 if path[-1] == "low" else value > 0)
    if path[-1] == "unit":
        return value in ("", "x", "1")
    allowed = {("ranges",): (None,), ("sigmoid_table_bits",): (GONE,), ("formats", "hidden"): (GONE,)}
    return any(value is one for one in allowed.get(path, ()))


@pytest.fixture(scope="module")
def forms() -> dict[str, Any]:
    """The file as train writes it, and as a package has it."""
    return {
        "train": json.loads(DEFAULT.read_text()),
        "package": json.loads(encoder_file(read_encoder(DEFAULT))),
    }


@pytest.mark.parametrize("form", ["train", "package"])
def test_every_field_changed(form: str, forms: dict[str, Any]) -> None:
    content, count, wrong = forms[form], 0, []
    encoders.parse(json.dumps(content).encode())
    for path in places(content):
        for value in VALUES:
            made = changed(content, path, value)
            if made == content and json.dumps(made) == json.dumps(content):
                continue
            count += 1
            try:
                encoders.parse(json.dumps(made).encode())
                said = "taken"
            except InputError as error:
                said = str(error)
                if len(said) > 200 or "\n" in said:
                    wrong.append((path, str(value)[:20], said))
            if (said == "taken") != may_be(path, value):
                wrong.append((path, "gone" if value is GONE else str(value)[:20], said[:60]))
    assert count > 900 and not wrong, wrong[:20]


def test_export_refuses_what_the_reader_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(DEFAULT.read_text())
    for change, reason in (
        ({"schema_version": None}, "its schema_version is None"),
        ({"columns": 1e30}, "its columns are no list"),
        ({"formats": {}}, "number format"),
        ({"provenance": 5}, "provenance"),
    ):
        (tmp_path / "e.json").write_text(json.dumps(content | change))
        for words in (["export", "--out", str(tmp_path / "p")], ["receive", "p.bin", "--table", "t.txt"]):
            with pytest.raises(SystemExit) as end:
                main([*words, "--encoder", str(tmp_path / "e.json")])
            said = capsys.readouterr().err
            assert end.value.code == 2 and said.count("\n") == 1 and "e.json: it" in said and reason in said
    assert [path.name for path in tmp_path.iterdir()] == ["e.json"]
