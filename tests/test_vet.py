"""A package's Python copies are read before they are run."""

import pytest

from sensorsim.errors import InputError
from sensorsim.export.manifest import open_package
from sensorsim.export.package import Options, make_package
from sensorsim.export.vet import complaint
from sensorsim.export.write import write_folder

HEAD = "from sensorsim.language import Q, add, kernel\n\nS = Q('s', 'i32', 0, 0, 9, '')\n\n\n"
KERNEL = '@kernel()\ndef one(a: S) -> S:\n    """One. Scaling and overflow: none."""\n    return a\n'

HARMLESS = [
    "import math\nfrom typing import Any\nTABLE = tuple(round(math.exp(k / 8) * 16) for k in range(9))\n",
    "def twice(a):\n    while a:\n        a >>= 1\n    return a.bit_length() if a else 0\n",
    "RULE = lambda a: max(a.lo, a.hi)\n",
    "from neighbour import X\n",
    "from sensorsim.language import *\nHALF = Q('h', 'i32', 0, 0, 1, '')\n",
]
HARMFUL = {
    "import os\n": "imports os",
    "from os import system\n": "imports from os",
    "from . import x\n": "imports from .",
    "from sensorsim.language import load\nload.load_file('x')\n": "uses the attribute load_file",
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


def file_with(folder, text):
    path = folder / "mine.py"
    path.write_text(HEAD + text + "\n\n" + KERNEL, "utf-8")
    return path


@pytest.mark.parametrize("text", HARMLESS)
def test_declarations_pass(text, tmp_path):
    assert complaint(file_with(tmp_path, text), {"neighbour"}) is None


@pytest.mark.parametrize("text", HARMFUL)
def test_anything_else_does_not(text, tmp_path):
    assert HARMFUL[text] in complaint(file_with(tmp_path, text), {"neighbour"})


def test_a_package_s_copy_runs_only_when_it_is_harmless(tmp_path):
    """The copy writes a file when it is loaded: opening the package must not do that."""
    seen = tmp_path / "seen"
    path = file_with(tmp_path, f"open({str(seen)!r}, 'w').close()\n")
    write_folder(tmp_path / "package", make_package(Options(kernels=(f"{path}:one",))))
    assert seen.exists()  # its owner has loaded it
    seen.unlink()
    with pytest.raises(InputError, match=r"mine\.py:6: uses the attribute close, .* --trust"):
        open_package(tmp_path / "package")
    assert not seen.exists()
    open_package(tmp_path / "package", trust=True)
    assert seen.exists()
