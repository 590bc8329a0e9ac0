"""Run the C of a package on this machine for an audit: the audit's words in, the packets out.

The driver calls the package's function with the package's own table and constants, as firmware does, so that a mistake
in any of them is seen too.
"""

import ctypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import temporary_folder
from sensorsim.auditing.packet_source import Source, repeat
from sensorsim.auditing.table_sources import NUMPY, Certified, certified, interleaved, release_source
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.language.c.comments import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import compile_host

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

DRIVER = "audit_driver"
OWN = ("x", "word", "order", "chosen", "y")  # arrays that the audit gives; all else is the package's


def package_source(folder: Path, table: "NoiseTable | None" = None, trust: bool = False) -> Source:
    """Return the release of a package as a source. With its table the distribution is checked too."""
    package = open_package(folder, trust)
    record: dict[str, Any] = package.manifest.get("noise_table") or {}
    kernel = _released_by(package, record) if record else None
    if kernel is None:
        raise InputError(
            f"{folder} releases nothing that a certificate covers; export release or sampled with --noise."
        )
    sampled = "chosen" in kernel.parameters
    if table is None:
        proved = record["certificate"]["epsilon_release"]
        share = float(record["epsilon"]) / int(record["release"])
        share = share if proved == "None" else min(share, float(proved))
        about = Certified(int(record["features"]), int(record["release"]), sampled, share, None)
    else:
        about = certified(table, sampled)
        if (table.features, table.release) != (int(record["features"]), int(record["release"])):
            raise InputError(f"{folder} was made with another table; give the one that its manifest names.")
    calls = _Calls(package, kernel, about)
    source = release_source(about, calls.draw, NUMPY)
    return source._replace(mechanism=f"{package.names.functions[kernel]} in C")


def _released_by(package: Package, record: dict[str, Any]) -> Kernel | None:
    """Return the kernel of the package that releases records with its table."""
    sampled = int(record["release"]) < int(record["features"])
    for kernel in package.kernels:
        if {"x", "word", "y"} <= set(kernel.parameters) and ("chosen" in kernel.parameters) == sampled:
            return kernel
    return None


class _Calls:
    """The package's function in a shared library."""

    def __init__(self, package: Package, kernel: Kernel, about: Certified) -> None:
        self.kernel, self.about = kernel, about
        self.arrays = [name for name in OWN if name in kernel.parameters]
        with temporary_folder() as build:
            driver = Path(build) / "audit_driver.c"
            driver.write_text(_driver(package, kernel, self.sizes()), "utf-8")
            sources = [path for path in package.kernel_sources(Path(build)) if path.parent != Path(build)]
            library = compile_host([*sources, driver], package.include, Path(build) / "audit.so")
            self.function = getattr(load_host(library), DRIVER)

    def sizes(self) -> dict[str, int]:
        """Return how far each array moves from record to record; an order stays."""
        n, k = self.about.features, self.about.release
        words = 2 * k if self.about.sampled else n
        return {"x": n, "word": words, "order": 0, "chosen": k, "y": k}

    def draw(self, x: Any, count: int, seed: Any) -> Any:
        """Return packets of `count` records, drawn with words of NumPy's generator."""
        import numpy as np

        sizes = self.sizes()
        words = np.random.default_rng(tuple(seed)).integers(0, 2**32, (count, sizes["word"]), np.uint32)
        given: dict[str, Any] = {"x": np.ascontiguousarray(repeat(x, count, seed), np.uint16), "word": words}
        given["order"] = np.arange(self.about.features, dtype=np.uint32)
        for name in ("chosen", "y"):
            if name in self.kernel.parameters:
                given[name] = np.zeros((count, sizes[name]), _dtype(self.kernel, name))
        self.function(ctypes.c_uint32(count), *(ctypes.c_void_p(given[name].ctypes.data) for name in self.arrays))
        return interleaved(given["chosen"], given["y"]) if self.about.sampled else given["y"]


def _driver(package: Package, kernel: Kernel, sizes: dict[str, int]) -> str:
    """Return a C function that calls the kernel's for many records."""
    prefix, function = package.prefix, package.names.functions[kernel]
    known = _constants(package)
    parameters, passed = ["uint32_t calls"], []
    for name in OWN:
        if name in kernel.parameters:
            const = "" if name in kernel.written else "const "
            parameters.append(f"{const}{_c_type(kernel, name)} *{name}")
    for name, kind in kernel.parameters.items():
        if name in OWN:
            passed.append(f"{name} + ((uint64_t){sizes[name]}U * call)")
        elif isinstance(kind, Array):
            passed.append(f"{prefix}noise_table")
        elif name.upper() in known:
            passed.append(f"{prefix.upper()}NOISE_{name.upper()}")
        else:
            raise InputError(f"the package has no constant for {name} of {function}; export it again with --noise.")
    head = f"void {DRIVER}({', '.join(parameters)})"
    loop = "for (uint32_t call = 0U; call < calls; call++)"
    includes = package.kernel_header + (f'#include "{prefix}tables.h"\n' if package.private else "")
    return f"{includes}{head};\n{head}\n{{\n    {loop} {{\n        {function}({', '.join(passed)});\n    }}\n}}\n"


def _constants(package: Package) -> set[str]:
    """Return the arguments that the package defines for its table."""
    macro = re.compile(rf"^#define {package.prefix.upper()}NOISE_(\w+) ", re.M)
    headers = [*(package.folder / "include").glob("*.h"), *(package.folder / "src").glob(f"{package.prefix}tables.h")]
    texts = [path.read_text("utf-8") for path in headers]
    return {name for text in texts for name in macro.findall(text)}


def _c_type(kernel: Kernel, name: str) -> str:
    kind = kernel.parameters[name]
    assert isinstance(kind, Array)
    return C_TYPES[kind.storage]


def _dtype(kernel: Kernel, name: str) -> str:
    return _c_type(kernel, name).removesuffix("_t")
