"""Compile kernels as a shared library for this machine, and compare it with Numba bit for bit."""

from sensorsim._util.files import fill
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.machine.harness import differing_bits, driver_source, load_host, run_on_host
from sensorsim.machine.targets import compile_host
from sensorsim.machine.vectors import edge_vectors, expected, random_vectors


def library(kernels, folder, prefix="ss_", options=()):
    names = Names(kernels, prefix)
    texts = c_sources(kernels, prefix, known_tables(kernels, prefix), "")
    drivers = "".join(driver_source(kernel, names.functions[kernel]) for kernel in kernels)
    texts["drive.c"] = f'#include "{prefix}kernels.h"\n{drivers}'
    fill(folder, texts)
    sources = [*sorted((folder / "src").glob("*.c")), folder / "drive.c"]
    return texts, load_host(compile_host(sources, [folder / "include", folder / "src"], folder / "kernels.so", options))


def off(host, kernel, count=300, lengths=(), function=None):
    """Return how many bits of random and edge vectors differ between the library and Numba."""
    total = 0
    for make in (random_vectors, edge_vectors):
        vectors = make(kernel, dict(lengths), count, 1)
        total += differing_bits(run_on_host(host, vectors, function or f"ss_{kernel.name}"), expected(vectors))
    return total
