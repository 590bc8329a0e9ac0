"""Kernels as JSON: what is read is what was written, and an untrusted file is refused without being run."""

import ast
import json
from pathlib import Path

import pytest

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package, package_kernels
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import DATA, write_folder
from sensorsim.language import ir
from sensorsim.language.ir_json import kernels_json
from sensorsim.language.ir_reader import read_kernels
from sensorsim.language.load import find, kernels_of, load_file, shipped
from sensorsim.language.parse import LanguageError
from sensorsim.language.static_reader import declared_kernels
from sensorsim.verification.package_checks import differences

FILES = {kernel.at.file: kernel.at.name for kernel in shipped().values()}
KEYS = {kernel: f"{kernel.at.name}:{kernel.name}" for kernel in shipped().values()}
HEAD = "from sensorsim.language import Q, add, kernel\n\nS = Q('s', 'i32', 0, 0, 9, '')\n\n\n"
KERNEL = '@kernel()\ndef one(a: S) -> S:\n    """One. Scaling and overflow: none."""\n    return a\n'


def refuse_primitive(file, name):
    raise InputError(f"no {name} of {file}")


def read(data, known=None):
    places = {name: Path(file) for file, name in FILES.items()}
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return read_kernels(content, lambda name: places.get(name, Path(name)), known or {}, refuse_primitive)


@pytest.fixture(scope="module")
def stored():
    """Every kernel that ships, written and read."""
    found = read(kernels_json(list(shipped().values()), FILES, {}).encode())
    for kernel, key in KEYS.items():
        found[key].module = kernel.module  # the C says whose a kernel is
    return found


def plain(node):
    """A node and all below it as plain data, with its line and type."""
    own = {name: getattr(node, name) for name in node._fields}
    for name, value in own.items():
        if isinstance(value, ir.Node):
            own[name] = plain(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], ir.Node):
            own[name] = [plain(one) for one in value]
        elif name in ("kernel", "primitive"):
            own[name] = value.name
    return type(node).__name__, own


def answers(kernel):
    """Formula, proof, secrecy and C, or why there is none."""
    found = []
    for ask in (kernel.formula, kernel.prove, kernel.secrecy, kernel.c):
        try:
            found.append(ask())
        except LanguageError as error:
            found.append(str(error))
    return [repr(one) for one in found]


DECLARED = ("at", "doc", "step", "split", "exposes", "lasting", "apart", "result", "names", "written", "records")


@pytest.mark.parametrize("kernel", shipped().values(), ids=lambda kernel: kernel.qualified)
def test_every_kernel_that_ships_survives_the_round_trip(kernel, stored):
    again = stored[KEYS[kernel]]
    assert [getattr(again, name) for name in DECLARED] == [getattr(kernel, name) for name in DECLARED]
    assert list(again.parameters.items()) == list(kernel.parameters.items())
    assert [plain(one) for one in again.body] == [plain(one) for one in kernel.body]
    assert {name: plain(one) for name, one in again.sizes.items()} == {
        name: plain(one) for name, one in kernel.sizes.items()
    }
    assert answers(again) == answers(kernel)


def test_what_was_read_is_written_alike(stored):
    written = kernels_json(list(shipped().values()), FILES, {})
    assert kernels_json([stored[key] for key in KEYS.values()], FILES, {}) == written


def test_a_kernel_that_was_read_runs_as_plain_python_and_by_numba(stored):
    (kernel,) = find("root")[:1]
    again, values = stored[KEYS[kernel]], [0, 1, 2, 24, 25, 2**31]
    assert [again(value) for value in values] == [kernel(value) for value in values]
    (name,) = kernel.parameters
    assert [again.run(**{name: value}) for value in values] == [kernel(value) for value in values]


SMALL = """from sensorsim.language import Length, Q, add, kernel, out

S = Q("s", "i32", 0, 0, 9, "small")
N = Length("n", 1, 9, "values")
LAST = 4


@kernel(step="sum")
def one(a: S, y: out(S["n"]), n: N) -> S:
    for i in range(n):
        y[i] = a
    return add(a, LAST - 4)
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "small.py"
    path.write_text(SMALL, "utf-8")
    return kernels_json(list(kernels_of(load_file(path)).values()), {str(path): "small.py"}, {})


KERNEL_AT = ("kernels", "small.py:one")
LOOP = (*KERNEL_AT, "body", 0)
ADD = (*KERNEL_AT, "body", 1, "return")
DEEP = "[" * 100_000
FAULTS = {  # where in the document, what stands there, and what the refusal says
    "another format": (("format",), "other", "another format"),
    "a newer version": (("schema_version",), 2, "version 2"),
    "a key too many": (("more",), 1, "has an object of"),
    "kernels that are no object": (("kernels",), [], "list where dict"),
    "a name that is no name": ((*KERNEL_AT, "name"), "one; int x", "for a name"),
    "a name of Python's": ((*KERNEL_AT, "name"), "lambda", "for a name"),
    "a name that C has": ((*KERNEL_AT, "name"), "while", "for a name"),
    "a file that is not listed": ((*KERNEL_AT, "file"), "other.py", "names no file"),
    "a line that is a text": ((*KERNEL_AT, "line"), "1", "str where int"),
    "a truth value for a number": ((*KERNEL_AT, "line"), True, "bool where int"),
    "an unknown kind": ((*KERNEL_AT, "returns"), {"Float": {}}, "where one of Q, Below belongs"),
    "a format that does not fit": ((*KERNEL_AT, "returns", "Q", "hi"), 2**40, "does not fit i32"),
    "a number without end": ((*KERNEL_AT, "returns", "Q", "hi"), 2**100, "64 bits"),
    "a comment that ends early": ((*KERNEL_AT, "returns", "Q", "about"), "*/ int x; /*", "no comment can hold"),
    "an array of no known length": ((*KERNEL_AT, "parameters", "y", "Array", "length"), "m", "make m a length"),
    "a length that is a program": ((*KERNEL_AT, "parameters", "y", "Array", "length"), "open('x')", "make open a"),
    "a length of many letters": ((*KERNEL_AT, "parameters", "y", "Array", "length"), "n+" * 500 + "n", "many letters"),
    "a record that is not there": ((*KERNEL_AT, "parameters", "a"), {"record": "sensor"}, "names no record"),
    "a cell outside of a record": ((*KERNEL_AT, "parameters", "y", "Array", "cell"), True, "stands alone"),
    "an unknown statement": (LOOP, {"while": "a"}, "statement of while"),
    "an empty block": ((*LOOP, "body"), [], "empty block"),
    "a store to what is no array": ((*LOOP, "body", 0, "store"), "a", "no array"),
    "a field of what is no record": ((*LOOP, "body", 0, "store"), "a.b", "no array"),
    "an unknown expression": (ADD, {"eval": "1"}, "expression of eval"),
    "an unknown name": (ADD, "b", "not known"),
    "a global of Python's": (ADD, "open", "not known"),
    "a float": (ADD, 1.5, "float where dict"),
    "an unknown primitive": ((*ADD, "apply"), "system", "no primitive of the language"),
    "a primitive of a file": ((*ADD, "apply"), {"primitive": "halve", "file": "small.py"}, "no halve of small.py"),
    "too few operands": ((*ADD, "to"), ["a"], "calls add with 1 arguments"),
    "a call of itself": (ADD, {"call": "small.py:one", "with": ["a"]}, "no kernel before it"),
    "an operator that is none": (ADD, {"index": "**", "of": ["n", "n"]}, "on 2 operands"),
    "a step that is no text": ((*KERNEL_AT, "step"), 3, "int where str"),
    "a split that is none": ((*KERNEL_AT, "split"), "y", "no scalar parameter"),
    "an exposure that is none": ((*KERNEL_AT, "exposes"), {"nothing": "why"}, "exposes 'nothing'"),
    "half a character": ((*KERNEL_AT, "doc"), "\ud800", "no JSON"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_document_that_no_writer_makes_is_refused(fault, document):
    path, value, said = FAULTS[fault]
    data = json.loads(document)
    assert read(data)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=said):
        read(data)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", DEEP.encode(), b"[]", b"1" * 5000, b" " * (1 << 24) + b"{}"])
def test_what_is_no_document_is_refused(content):
    with pytest.raises(InputError, match="export the package again"):
        read(content)


def test_an_expression_that_is_nested_without_end_is_refused(document):
    text = "1"
    for _ in range(300):
        text = '{"index": "+", "of": ["n", ' + text + "]}"
    data = document.replace('"return": {', '"return": ' + text + ', "x": {')
    with pytest.raises(InputError):
        read(data.encode())


def test_every_part_of_a_document_is_looked_at(document):
    """Whatever stands in place of any value, the answer is a kernel or one sentence."""

    def places(data, path=()):
        items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for key, value in items:
            yield (*path, key)
            yield from places(value, (*path, key))

    for path in list(places(json.loads(document))):
        for value in (None, True, -1, 2**70, "x", "__import__", [], {}, [[]], {"let": 1}):
            data = place = json.loads(document)
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            try:
                read(data)
            except InputError:
                continue


# packages


def file_with(folder, text):
    path = folder / "mine.py"
    path.write_text(HEAD + text + "\n\n" + KERNEL, "utf-8")
    return path


PRIMITIVE = """from sensorsim.language import primitive


@primitive(
    "SHIFT", operands="i32", result="i32", interval=lambda a: a, varies=(), c="ss_halve({})",
    helper="static int32_t ss_halve(int32_t a)\\n{\\n    return a;\\n}\\n",
)
def halve(a):
    return a


"""


def test_a_package_s_own_python_is_not_run(tmp_path):
    """The source writes a file when it is run: to open the package, or to write it anew, must not do that."""
    seen = tmp_path / "seen"
    path = file_with(tmp_path, f"open({str(seen)!r}, 'w').close()\n")
    write_folder(tmp_path / "package", make_package(Options(kernels=(f"{path}:one",))))
    seen.unlink()  # its owner has run it
    package = open_package(tmp_path / "package")
    assert package.kernels[0](4) == 4
    assert differences(package) == []
    assert not seen.exists()


def test_a_primitive_of_a_package_is_loaded_only_with_trust(tmp_path):
    """Its Python and its C are taken as they stand."""
    path = file_with(tmp_path, PRIMITIVE)
    path.write_text(
        path.read_text()
        .replace("return a\n", "return halve(a)\n")
        .replace("    return halve(a)\n", "    return a\n", 1)
    )
    write_folder(tmp_path / "package", make_package(Options(kernels=(f"{path}:one",))))
    with pytest.raises(InputError, match="brings the primitive halve"):
        open_package(tmp_path / "package")
    package = open_package(tmp_path / "package", trust=True)
    assert differences(package) == []


@pytest.mark.parametrize("file", ["../x.py", "kernel_sources/../../x.py", "kernel_sources/absent.py", "src/x.c"])
def test_a_package_s_data_name_no_file_outside_of_it(file, tmp_path, document):
    (tmp_path / "kernel_sources").mkdir()
    (tmp_path / DATA).write_text(document.replace("small.py", file))
    manifest = {"files": {DATA: ""}, "functions": {}, "kernel_sources": []}
    with pytest.raises(InputError, match="no source in the package"):
        package_kernels(tmp_path, manifest, False)


def test_a_manifest_names_no_file_outside_the_package(tmp_path):
    manifest = {"files": {}, "functions": {"ss_x": {"kernel": "x", "file": "../x.py"}}, "kernel_sources": []}
    with pytest.raises(FailedProofError, match="names no file"):
        package_kernels(tmp_path, manifest, False)


# packages of 0.2.0, with Python alone


def test_a_package_without_data_is_read_from_its_python_without_running_it(tmp_path):
    path = file_with(tmp_path, "import math\nLAST = round(math.exp(1))\n")
    texts = make_package(Options(kernels=(f"{path}:one",)), as_data=False)
    assert DATA not in texts
    write_folder(tmp_path / "package", texts)
    package = open_package(tmp_path / "package")
    assert package.kernels[0](4) == 4
    assert differences(package) == []


def only_declares(path):
    """Whether a file has kernels and constants alone: one with functions or classes means something only when run."""
    text = path.read_text("utf-8")
    body = ast.parse(text).body
    made = [one for one in body if isinstance(one, ast.FunctionDef)]
    classes = any(isinstance(one, ast.ClassDef) for one in body)
    return not classes and "releases(" not in text and all(one.decorator_list for one in made)


PLAIN = {path for path in {kernel.path for kernel in shipped().values()} if only_declares(path)}


@pytest.mark.parametrize("module", sorted(PLAIN))
def test_declarations_are_read_as_python_runs_them(module):
    own = {kernel.name: kernel for kernel in shipped().values() if kernel.path == module}
    found = declared_kernels(module)
    assert found.keys() == own.keys()
    for name, kernel in own.items():
        assert [getattr(found[name], each) for each in DECLARED] == [getattr(kernel, each) for each in DECLARED]
        assert [plain(one) for one in found[name].body] == [plain(one) for one in kernel.body]


HARMLESS = [
    "import math\nfrom typing import Any\nTABLE = tuple(round(math.exp(k / 8) * 16) for k in range(9))\n",
    "from neighbour import X\nY = X + 1\n",
    "from math import exp, pi\nfrom typing import Final\nTWO: Final = round(exp(pi))\n",
    "from sensorsim.kernels.formats import FRAC, RANDOM\nfrom sensorsim.kernels.spof import feature\n",
    "TOTAL = sum([_ for _ in range(4)])\nA, B = 1, S.hi\n",
]
HARMFUL = [
    *("import os\n", "from os import system\n", "from . import x\n", "from sensorsim.language.load import load_file\n"),
    *("open('x')\n", "f = eval\n", "x = ().__class__\n", "class A:\n    pass\n", "del S\n", "x = f'{1}'\n"),
    *("def twice(a):\n    return 2 * a\n", "RULE = lambda a: a\n", "from neighbour import math as m\nm.exp(1)\n"),
    *("from neighbour import absent\n", "from code import interact\n", "x = 2**9**9\n", "x = 1 << 10**9\n"),
    *(
        "x = sum(range(10**12))\n",
        "x = 'a' * 10**9\n",
        "x = (1,) * 10**9\n",
        "import math\nx = math.factorial(10**6)\n",
    ),
    *("x = [0 for a in range(1000000)]\ny = [0 for a in range(1000000)]\n", "x = __builtins__\n", "def x(:\n"),
    *("from sensorsim.language import primitive\n", "from sensorsim.kernels.formats import *\n", "x = S.about\n"),
    *(
        "from mine import S\n",
        "from sensorsim.kernels.spof import kernel\n",
        "@kernel(step=open)\ndef g(a: S):\n    return a\n",
    ),
    "@kernel()\ndef g(a: 'S') -> S:\n    return a\n",
]


@pytest.fixture
def beside(tmp_path):
    """A neighbour, and one that is called as a module of Python."""
    for name in ("neighbour.py", "code.py"):
        (tmp_path / name).write_text("import math\nX = round(math.pi)\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("text", HARMLESS)
def test_declarations_are_read(text, beside):
    assert declared_kernels(file_with(beside, text))["one"](4) == 4


@pytest.mark.parametrize("text", HARMFUL)
def test_a_file_that_does_more_than_declare_is_refused(text, beside):
    with pytest.raises(InputError, match=r"mine\.py:|neighbour\.py:"):
        declared_kernels(file_with(beside, text))
