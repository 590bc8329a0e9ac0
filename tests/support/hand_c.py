"""Compile releases from private headers and hand-written C for the same constants, and run both on a core."""

import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from sensorsim._util.files import fill
from sensorsim.costing.prices import load_cpu
from sensorsim.language.c.declarations import Table, declared, tables_source
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.machine.abi import ARGUMENT_PLACES
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS, zig_cc
from sensorsim.machine.vectors import by_plain_python
from sensorsim.noise.noise_table import make_table, ready_table

HAND = Path(__file__).parents[2] / "bench" / "hand_release.c"
CORES = ("cortex-m0plus", "cortex-m4", "rv32imc")
FORMS = ("rows", "bit", "lookup", "stairs")
CALLS = ("all", "one")  # every feature of a record, or one picked at random
FEATURES, ONE = 14, 1 << 15
OPTIONS = ["-std=c99", "-O2", "-ffreestanding", "-fomit-frame-pointer", "-nostdlib", "-static", "-g0"]
SECTIONS = ["-ffunction-sections", "-fdata-sections", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"]


@cache
def table_of(form):
    return {
        "rows": lambda: ready_table("1.6", 1, "rows"),
        "bit": lambda: ready_table("0.1", 1, "rows"),
        "lookup": lambda: make_table("rows", "1.6", FEATURES, 1, count_bits=8),
        "stairs": lambda: ready_table("1.6", 1, "stairs"),
    }[form]()


def kernel_of(form, call):
    return table_of(form).kernel("release" if call == "all" else "sampled")


def constants():
    """Return what hand-written and exported C share: the tables, and a macro for each number."""
    found = {form: table_of(form).c_constants() for form in FORMS}
    assert found["rows"] == {"cuts": 4, "knot_bits": 2}  # what the hand-written C is for
    macros = {
        **{name.upper(): f"{found['bit'][name]}U" for name in ("base", "slope")},
        "LOOKUP_BITS": f"{found['lookup']['knot_bits']}U",
        **{name.upper(): f"{found['stairs'][name]}U" for name in ("drop", "stair_bits")},
        "LIMIT": str(found["stairs"]["limit"]),
    }
    tables = []
    for form in ("rows", "lookup", "stairs"):
        name, values = table_of(form).c_array()
        tables.append(Table(f"{form}_table", kernel_of(form, "all").arrays[name].storage, values, ("A table.",)))
    lines = ["#include <stdint.h>", "#define TABLE", *(f"#define {name} {value}" for name, value in macros.items())]
    return "\n".join([*lines, *(declared(table, "") for table in tables)]) + "\n", tables_source(
        tables, "", "constants"
    )


def bound_calls():
    """Return a file that includes the private headers and calls every release with constants."""
    kernels = [kernel_of(form, call) for form in FORMS for call in CALLS]
    names = Names(kernels, "ss_", private=True)
    lines = [f'#include "{header}"' for header in ("constants.h", *dict.fromkeys(map(names.header, kernels)))]
    for form in FORMS:
        known = {name: str(value) for name, value in table_of(form).bound_constants().items()}
        known |= {"table": f"{form}_table", "n": str(FEATURES)}
        for call in CALLS:
            kernel = kernel_of(form, call)
            kind = "int32_t" if form == "stairs" else "uint8_t"
            chosen = "uint32_t chosen[], " if call == "one" else ""
            passed = ", ".join(known.get(name, name) for name in kernel.parameters)
            lines.append(f"void {form}_{call}(const uint16_t x[], const uint32_t word[], {chosen}{kind} y[])")
            lines.append(f"{{\n    {names.functions[kernel]}({passed});\n}}")
    return c_sources(kernels, "ss_", [], "", private=True) | {"export.c": "\n".join(lines) + "\n"}


def sources(folder):
    """Both, written to a folder; the two files to compile with tables.c."""
    header, tables = constants()
    fill(folder, bound_calls() | {"constants.h": header, "tables.c": tables, "hand.c": HAND.read_text("utf-8")})
    return {"export": folder / "export.c", "hand": folder / "hand.c"}


def build(command, source, core):
    """Compile and link all of its releases; return a machine that is ready to run them."""
    folder, out = source.parent, source.with_suffix(".elf")
    script = (files("sensorsim.machine") / "link.ld").read_text("utf-8").replace("@ENTRY@", "rows_all")
    fill(folder, {"link.ld": script})
    given = [f"-Wl,-T,{folder / 'link.ld'}", "-Wl,--entry=rows_all", "-Wl,--no-gc-sections"]
    given += [f"-I{folder}", f"-I{folder / 'src'}"]
    whole = [*command, *OPTIONS, *SECTIONS, *given, str(source), str(folder / "tables.c"), "-o", str(out)]
    subprocess.run(whole, check=True, capture_output=True)
    return Machine(TARGETS[core], read_elf(out.read_bytes()))


def clang(core):
    return [*zig_cc(), *TARGETS[core].clang]


def inputs(call, count=24):
    """Records and words, with the ends of both among them."""
    draws = np.random.default_rng(5)
    x = draws.integers(0, ONE + 1, (count, FEATURES), np.uint16)
    x[draws.random(x.shape) < 0.3] = draws.choice(np.array([0, 1, ONE - 1, ONE, ONE + 1, 2 * ONE - 1], np.uint16))
    x[0], x[1], x[2] = 0, ONE, 2 * ONE - 1
    word = draws.integers(0, 2**32, (count, FEATURES if call == "all" else 2), np.uint32, endpoint=False)
    word[:4:2], word[1:4:2] = 0, 2**32 - 1
    return x, word


def run(machine, form, call, core):
    """The instructions of each call, and all that was released."""
    x, word = inputs(call)
    size = (4 if form == "stairs" else 1) * (FEATURES if call == "all" else 1)
    at = [ARGUMENT_PLACES[0] + 256 * place for place in range(4)]
    counter, tally = BlockCounter(machine, Decoder(TARGETS[core], load_cpu(TARGETS[core].cpu))), Tally()
    released = []
    for record, words in zip(x, word, strict=True):
        machine.uc.mem_write(at[0], record.tobytes())
        machine.uc.mem_write(at[1], words.tobytes())
        machine.call(f"{form}_{call}", at if call == "one" else [at[0], at[1], at[3]])
        counter.take(tally)
        chosen = machine.uc.mem_read(at[2], 4) if call == "one" else b""
        released.append(bytes(chosen) + bytes(machine.uc.mem_read(at[3], size)))
    return tally.instructions, released


@cache
def by_kernel(form, call):
    """Return the releases of the kernel in plain Python."""
    kernel, released = kernel_of(form, call), []
    table = {name: value.tolist() if name == "table" else value for name, value in table_of(form).arguments().items()}
    for record, words in zip(*inputs(call), strict=True):
        known = {
            "x": record.tolist(),
            "word": words.tolist(),
            "n": FEATURES,
            "y": [0] * FEATURES,
            "chosen": [0],
            **table,
        }
        made = by_plain_python(kernel, {name: known[name] for name in kernel.parameters})
        y = np.array(made["y"][: FEATURES if call == "all" else 1], np.int32 if form == "stairs" else np.uint8)
        released.append(np.array(made.get("chosen", []), np.uint32).tobytes() + y.tobytes())
    return released
