"""A package's Python copies are read before they are run."""

import builtins

import pytest

from sensorsim.errors import FailedProofError, InputError
from sensorsim.export import vet
from sensorsim.export.manifest import open_package
from sensorsim.export.origins import kernels_behind
from sensorsim.export.package import Options, make_package
from sensorsim.export.vet import complaint, load_vetted
from sensorsim.export.write import write_folder
from sensorsim.language.load import find
from sensorsim.verify.anew import options_of

HEAD = "from sensorsim.language import Q, add, kernel\n\nS = Q('s', 'i32', 0, 0, 9, '')\n\n\n"
KERNEL = '@kernel()\ndef one(a: S) -> S:\n    """One. Scaling and overflow: none."""\n    return a\n'

HARMLESS = [
    "import math\nfrom typing import Any\nTABLE = tuple(round(math.exp(k / 8) * 16) for k in range(9))\n",
    "def twice(a):\n    while a:\n        a >>= 1\n    return a.bit_length() if a else 0\n",
    "RULE = lambda a: max(a.lo, a.hi)\n",
    "from neighbour import X, twice\n",
    "from math import exp, pi\nfrom typing import Final\nTWO: Final = round(exp(pi))\n",
    "from sensorsim.kernels.formats import FRAC, RANDOM\nfrom sensorsim.kernels.spof import feature\n",
    "from sensorsim.language.intervals import Span, corners\nRULE = lambda a: Span(0, a.hi)\n",
    "def kept(*many, **named):\n    return [k for k in many if k]\n",
    "TOTAL = sum(_ for _ in range(4))\n",
    "from sensorsim.language import *\nHALF = Q('h', 'i32', 0, 0, 1, '')\n",
]
HARMFUL = {
    "import os\n": "imports os",
    "from os import system\n": "imports from os",
    "from . import x\n": "imports from .",
    "from sensorsim.language import load\nload.load_file('x')\n": "imports from sensorsim.language load",
    "from sensorsim.language.load import load_file\n": "imports from sensorsim.language.load",
    "from sensorsim.kernels.formats import *\n": "imports from sensorsim.kernels.formats",
    "open('x')\n": "uses open",
    "f = eval\n": "uses eval",
    "x = ().__class__\n": "uses the attribute __class__",
    "x = '{0.__class__}'.format(1)\n": "uses the attribute format",
    "__builtins__\n": "uses __builtins__",
    "class A:\n    pass\n": "uses ClassDef",
    "with x:\n    pass\n": "uses With",
    "try:\n    pass\nexcept E:\n    pass\n": "uses Try",
    "del S\n": "uses Delete",
    "global x\n": "uses Global",
    "x = f'{1}'\n": "uses JoinedStr",
    "def __getattr__(n):\n    return n\n": "defines __getattr__",
    "import math\nmath.__loader__\n": "uses the attribute __loader__",
    "def x(:\n": "no Python that can be read",
}

BYPASSES = {
    # a builtin that gets a meaning somewhere, and is the builtin elsewhere
    "def g(exec):\n    return 0\nexec('1')\n": "gives a meaning to exec",
    "def g(*eval):\n    return 0\neval('1')\n": "gives a meaning to eval",
    "def g(**eval):\n    return 0\neval('1')\n": "gives a meaning to eval",
    "def g(a, /, b, *, compile=1):\n    return 0\n": "gives a meaning to compile",
    "g = lambda open: 0\nopen('x', 'w')\n": "gives a meaning to open",
    "def g():\n    getattr = 0\ngetattr(1, 'real')\n": "gives a meaning to getattr",
    "def g():\n    vars: int = 0\nvars()\n": "gives a meaning to vars",
    "def g():\n    def globals():\n        return 0\nglobals()\n": "defines globals",
    "x = [1 for type in (1, 2)]\ntype(x)\n": "gives a meaning to type",
    "x = sum(1 for (a, (b, *input)) in ())\ninput()\n": "gives a meaning to input",
    "def g():\n    for setattr in ():\n        pass\nsetattr\n": "gives a meaning to setattr",
    "def g():\n    breakpoint += 1\nbreakpoint()\n": "gives a meaning to breakpoint",
    "from math import exp as exec\nexec('1')\n": "gives a meaning to exec",
    "from sensorsim.language import add as delattr\n": "gives a meaning to delattr",
    "if (exec := 1):\n    pass\n": "NamedExpr",
    "def g():\n    try:\n        pass\n    except 1 as exec:\n        pass\nexec('1')\n": "uses Try",
    "def g():\n    global exec\n": "uses Global",
    "def f():\n    x = 1\n    def g():\n        nonlocal x\n": "uses Nonlocal",
    "\N{FULLWIDTH LATIN SMALL LETTER E}xec('1')\n": "uses exec",
    "def g(\N{FULLWIDTH LATIN SMALL LETTER E}xec):\n    return 0\n": "gives a meaning to exec",
    "def g(__builtins__):\n    return 0\n": "gives a meaning to __builtins__",
    "__name__ = 'sensorsim.kernels.spof'\n": "gives a meaning to __name__",
    "x = __loader__\n": "uses __loader__",
    # a module under a trusted name, or by way of another
    "from typing import sys as math\nmath = math.modules['os']\nmath.system('x')\n": "gives a meaning to math",
    "from typing import sys\n": "imports from typing sys",
    "from typing import re as x\n": "imports from typing re",
    "from typing import get_type_hints\n": "imports from typing get_type_hints",
    "from typing import NamedTuple\n": "imports from typing NamedTuple",
    "from typing import *\n": "imports from typing *",
    "from math import *\n": "imports from math *",
    "from math import __loader__ as x\n": "imports from math __loader__",
    "import math as m\nm.exp(1)\n": "uses the attribute exp",
    "import math\nm = math\n": "uses math by itself",
    "import math\nx = [math][0]\n": "uses math by itself",
    "def g(math):\n    return math.system\n": "gives a meaning to math",
    "x = [math.pi for math in ()]\n": "gives a meaning to math",
    "import math\nmath.lo = 1\n": "changes the attribute lo",
    "from sensorsim.kernels.formats import RANDOM\nRANDOM.hi = 1\n": "changes the attribute hi",
    "from sensorsim.kernels.formats import RANDOM\nfor RANDOM.lo in range(3):\n    pass\n": "changes the attribute lo",
    "import os as math\n": "gives a meaning to math",
    "import math, os\n": "imports os",
    "import os.path\n": "imports os.path",
    "import sensorsim.language.load\n": "imports sensorsim.language.load",
    "from sensorsim import files\n": "imports from sensorsim",
    "from sensorsim.kernels.formats import math as x\n": "imports from sensorsim.kernels.formats math",
    "from sensorsim.kernels.spof import kernel\n": "imports from sensorsim.kernels.spof kernel",
    "from sensorsim.kernels import formats\n": "imports from sensorsim.kernels",
    "from sensorsim.kernels.absent import X\n": "imports from sensorsim.kernels.absent",
    "from sensorsim.kernels.__init__ import X\n": "imports from sensorsim.kernels.__init__",
    "from sensorsim.language.intervals import itertools\n": "imports from sensorsim.language.intervals itertools",
    "from sensorsim.language.types import Q\n": "imports from sensorsim.language.types",
    "from sensorsim.language import Kernel\n": "imports from sensorsim.language Kernel",
    "from sensorsim.language import *\nPrimitive('x; import os')\n": "uses Primitive",
    "from sensorsim.language import intervals as x\n": "imports from sensorsim.language intervals",
    "from collections.abc import sys\n": "imports from collections.abc",
    "from builtins import exec as x\n": "imports from builtins",
    "from . import neighbour\n": "imports from .",
    "from .neighbour import X\n": "imports from .neighbour",
    "import neighbour\n": "imports neighbour",
    "from neighbour import math as m\n": "imports from neighbour math",
    "from neighbour import kernel\n": "imports from neighbour kernel",
    "from neighbour import absent\n": "imports from neighbour absent",
    "from neighbour import *\n": "imports from neighbour *",
    "from neighbour import __builtins__ as x\n": "imports from neighbour __builtins__",
    "from code import interact\n": "imports from code",  # there is a neighbour of that name
    # expressions that run when the file is loaded
    "@eval\ndef g():\n    return 0\n": "uses eval",
    "@(lambda f: f.__globals__)\ndef g():\n    return 0\n": "uses the attribute __globals__",
    "def g(a=open('x')):\n    return 0\n": "uses open",
    "def g(*, a=().__class__):\n    return 0\n": "uses the attribute __class__",
    "def g(a: open('x')):\n    return 0\n": "uses open",
    "def g() -> eval('1'):\n    return 0\n": "uses eval",
    "x: eval('1') = 1\n": "uses eval",
    "x = f'{open(1)}'\n": "uses JoinedStr",
    "x = (lambda: 0).__code__\n": "uses the attribute __code__",
    "x = (k for k in ()).gi_frame\n": "uses the attribute gi_frame",
    "x = [].__class__.__base__.__subclasses__()\n": "uses the attribute __subclasses__",
    "x = 'a'.join('b')\n": "uses the attribute join",
    "x = Q._replace\n": "uses the attribute _replace",
    "x = {k: 1 for k in ()}\n": "uses DictComp",
    "class A(metaclass=eval):\n    x = open('x')\n": "uses ClassDef",
    "async def g():\n    pass\n": "uses AsyncFunctionDef",
    "def g():\n    yield 1\n": "uses Yield",
    "match 1:\n    case exec:\n        pass\n": "uses Match",
    "assert open('x')\n": "uses Assert",
    "raise 1\n": "uses Raise",
    "x = " + "(" * 150 + "1" + ")" * 400 + "\n": "no Python that can be read",
    "x = " + "-" * 100_000 + "1\n": "no Python that can be read",
}
TEXT = """from sensorsim.language import Q, kernel

S = Q('s', 'i32', 0, 0, 9, '')
EVIL = '[].__class__.__base__.__subclasses__()'


@kernel()
def one(a: {}) -> S:
    return a
"""


def file_with(folder, text):
    path = folder / "mine.py"
    path.write_text(HEAD + text + "\n\n" + KERNEL, "utf-8")
    return path


@pytest.fixture
def beside(tmp_path):
    """A neighbour, and one that is called as a module of Python."""
    text = (
        "import math\nfrom sensorsim.language import kernel\nX = round(math.pi)\n\n\ndef twice(a):\n    return 2 * a\n"
    )
    for name in ("neighbour.py", "code.py"):
        (tmp_path / name).write_text(text + "interact = 1\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("text", HARMLESS)
def test_declarations_pass(text, beside):
    path = file_with(beside, text)
    assert complaint(path) is None
    assert load_vetted(path).one(4) == 4


@pytest.mark.parametrize("text", HARMFUL)
def test_anything_else_does_not(text, beside):
    assert HARMFUL[text] in complaint(file_with(beside, text))


@pytest.mark.parametrize("text", BYPASSES, ids=lambda text: text[:40])
def test_no_way_around(text, beside):
    path = file_with(beside, text)
    assert BYPASSES[text] in complaint(path)
    with pytest.raises(InputError, match="to load it is to run it"):
        load_vetted(path)


@pytest.mark.parametrize("name", sorted(set(dir(builtins)) - vet.BUILTINS - {"__debug__", "_"}))
def test_no_other_builtin_is_read_or_bound(name, tmp_path):
    for text in (f"{name}\n", f"def g({name}):\n    return 0\n", f"{name} = 1\n", f"import math as {name}\n"):
        assert name in complaint(file_with(tmp_path, text))


@pytest.mark.parametrize("coding", ["utf-7", "unicode_escape", "latin-1"])
def test_python_reads_the_text_that_was_vetted(coding, tmp_path):
    """In another encoding a comment may hold a line of code."""
    path = tmp_path / "mine.py"
    path.write_bytes(f"# coding: {coding}\n# +AAo-open('x') \\nopen('x')\n".encode() + HEAD.encode() + KERNEL.encode())
    assert "no plain UTF-8" in complaint(path)
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode() + KERNEL.encode())
    assert "no plain UTF-8" in complaint(path)


@pytest.mark.parametrize("kind", ["EVIL", "'S'", "EVIL[0:]", "('S', S)[0]"])
def test_a_format_by_a_text_is_not_evaluated(kind, tmp_path):
    """The language evaluates annotations that are texts; one of a copy could say anything."""
    path = tmp_path / "mine.py"
    path.write_text(TEXT.format(kind), "utf-8")
    with pytest.raises(InputError, match="declares a by a text"):
        load_vetted(path)
    path.write_text("from __future__ import annotations\n" + TEXT.format(kind), "utf-8")
    with pytest.raises(InputError, match="without a format"):  # evaluated once, as the file says: still a text
        load_vetted(path)
    path.write_text("from __future__ import annotations\n" + TEXT.format("S"), "utf-8")
    assert load_vetted(path).one(4) == 4


@pytest.mark.parametrize(
    "text",
    [
        *(
            "import os",
            "from os import system",
            "import os.path",
            "from typing import sys",
            "from builtins import exec",
        ),
        *("open('x')", "eval('1')", "exec('1')", "__import__('os')", "getattr(1, 'real')", "class A:\n    pass"),
        *("import neighbour", "from math import __loader__", "from sensorsim.language import load", "from . import x"),
    ],
)
def test_what_vetting_might_miss_does_not_run(text, beside, monkeypatch):
    """The second wall: with the reader made blind, the copy still has no builtin and no module to go on."""
    monkeypatch.setattr(vet, "_wrong", lambda *_: None)
    monkeypatch.setattr(vet, "_bound_wrongly", lambda *_: None)
    with pytest.raises(InputError, match=r"mine\.py:6: .*(import|not defined|__build_class__)"):
        load_vetted(file_with(beside, text + "\n"))


def test_copies_that_import_each_other_in_a_circle_are_refused(tmp_path):
    (tmp_path / "other.py").write_text("from mine import S\nX = 1\n", "utf-8")
    with pytest.raises(InputError, match=r"mine\.py: imports itself in a circle"):
        load_vetted(file_with(tmp_path, "from other import X\n"))


@pytest.mark.parametrize("module", ["sensorsim.__main__", "sensorsim.cli", "sensorsim.language.absent", "this", "os"])
def test_a_manifest_names_no_module_to_import(module, tmp_path):
    """To import `sensorsim.__main__` would start the command line."""
    record = {"module": module, "file": "x.py", "sha256": ""}
    with pytest.raises(FailedProofError, match="which sensorsim has not"):
        kernels_behind(tmp_path, {"kernel_sources": [record], "files": {}, "functions": {}}, False)


def test_a_manifest_names_no_source_outside_the_package(tmp_path):
    record = {"module": "x", "file": "kernel_sources/../../x.py", "sha256": ""}
    with pytest.raises(FailedProofError, match="among its sources and not its files"):
        kernels_behind(tmp_path, {"kernel_sources": [record], "files": {}, "functions": {}}, False)


def test_a_package_s_copy_runs_only_when_it_is_harmless(tmp_path):
    """The copy writes a file when it is loaded: opening the package must not do that."""
    seen = tmp_path / "seen"
    path = file_with(tmp_path, f"open({str(seen)!r}, 'w').close()\n")
    write_folder(tmp_path / "package", make_package(Options(kernels=(f"{path}:one",))))
    assert seen.exists()  # its owner has loaded it
    seen.unlink()
    with pytest.raises(InputError, match=r"mine\.py:6: uses the attribute close, .* trust="):
        open_package(tmp_path / "package")
    assert not seen.exists()
    open_package(tmp_path / "package", trust=True)
    assert seen.exists()


def test_a_copy_runs_with_few_builtins_also_when_it_is_written_anew(tmp_path):
    path = file_with(tmp_path, "")
    write_folder(tmp_path / "package", make_package(Options(kernels=(f"{path}:one",))))
    package = open_package(tmp_path / "package")
    (kernel,) = package.kernels
    assert set(kernel.declared.__globals__["__builtins__"]) == vet.BUILTINS | {"__import__"}
    (tmp_path / "again").mkdir()
    ((again,),) = (find(name) for name in options_of(package, tmp_path / "again").kernels)
    assert again.path.is_relative_to(tmp_path / "again")
    assert set(again.declared.__globals__["__builtins__"]) == vet.BUILTINS | {"__import__"}


def test_a_primitive_brings_c_that_would_run(tmp_path):
    """Its `helper` is C as it stands: without --trust no package's own is compiled."""
    path = tmp_path / "own.py"
    path.write_text("from sensorsim.language import kernel, primitive\n", "utf-8")
    assert "primitive" in str(vet.complaint(path))
    path.write_text("from sensorsim.language import kernel\n", "utf-8")
    assert not vet.complaint(path)
