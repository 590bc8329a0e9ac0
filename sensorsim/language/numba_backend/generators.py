"""Generate the random words of batches. Both generators depend on the key and the block's number alone, so results are
reproducible and independent of the number of threads:

* `chacha20`: the kernel of that name, several blocks at once. It is what a device would use. The key comes from the
  operating system unless a seed is given; a seed of a few digits is no secret.
* `fast`: a keyed hash of a counter, for benchmarks and audits. Uniform, and no secret: its key is 32 bits for each
  block, few enough to try them all against some released values.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numba
import numba.extending
import numpy as np
import numpy.typing as npt

from sensorsim._util.errors import InputError
from sensorsim.language import ir
from sensorsim.language.kernel import Kernel, shipped_module
from sensorsim.language.numba_backend import INLINED, OUTER, compiled
from sensorsim.language.numba_backend.jit import jit
from sensorsim.language.numba_backend.python_source import Inliner, Lines, Source, variable

GENERATORS = ("chacha20", "fast")
LANES = 8
CIPHER = 16  # words of a cipher block, and of its state
Seed = int | Sequence[int] | None
u32, u64, i64 = numba.uint32, numba.uint64, numba.int64


def generator_state(seed: Seed) -> npt.NDArray[np.uint32]:
    """Return ChaCha20's constants, a key, the block's number (two words, as in the original ChaCha), a nonce of zero,
    and space for the lanes. The key is from the operating system, or from the seed.
    """
    if seed is None:
        key: npt.NDArray[Any] = np.frombuffer(secrets.token_bytes(32), np.uint32)
    else:
        try:
            key = np.random.SeedSequence(seed).generate_state(8, np.uint32)
        except (TypeError, ValueError) as error:
            raise InputError(f"seed {seed!r} is no whole number of 0 or more, nor several; give one.") from error
    return np.concatenate(
        [np.array(shipped_module("chacha20").CONSTANTS, np.uint32), key, np.zeros(4 + 2 * CIPHER * LANES, np.uint32)]
    )


@cache
def generator_fill(generator: str) -> Callable[..., Any]:
    """Return `fill(words, state, number)`, which makes the words of one block of records; their count is a multiple of
    16."""
    if generator not in GENERATORS:
        raise InputError(f"generator {generator!r} is not known; choose {' or '.join(GENERATORS)}.")
    made: Callable[..., Any] = jit(_cipher_fill() if generator == "chacha20" else _fill_fast, **INLINED)
    return made


def _fill_fast(words, state, number):  # type: ignore[no-untyped-def]
    """Hash the place in the block, under a key that is a hash of the block's number."""
    key = _mix(u32(u32(number) ^ state[4]))
    key = _mix(u32(key ^ u32(u64(number) >> u64(32)) ^ state[5]))
    for j in range(words.shape[0]):
        words[j] = _mix(u32(u32(u32(j) * u32(0x9E3779B9)) ^ key))


@numba.extending.intrinsic
def _mix(context, v):  # type: ignore[no-untyped-def]
    """Hash a word, in LLVM's own 32-bit operations: Numba's have 64 bits, which halves the lanes."""

    def made(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word = arguments[0]
        for turn, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97), (15, 1)):
            word = builder.xor(word, builder.lshr(word, word.type(turn)))
            word = builder.mul(word, word.type(factor)) if factor > 1 else word
        return word

    return u32(u32), made


def _cipher_fill() -> Callable[..., Any]:
    """Return a function that computes blocks of the cipher in order, LANES at once."""
    blocks_at_once = jit(lanes_function(shipped_module("chacha20").chacha20, LANES, compiled), **OUTER)

    def fill(words, state, number):  # type: ignore[no-untyped-def]
        blocks = words.shape[0] // CIPHER
        start = u64(number) * u64(blocks)
        begin = state[CIPHER : CIPHER * (LANES + 1)]
        done = state[CIPHER * (LANES + 1) : CIPHER * (2 * LANES + 1)]
        for k in range(CIPHER):
            for lane in range(LANES):
                begin[k * LANES + lane] = state[k]
        for b in range(0, blocks, LANES):
            for lane in range(LANES):
                at = start + u64(b) + u64(lane)
                begin[12 * LANES + lane] = u32(at)
                begin[13 * LANES + lane] = u32(at >> u64(32))
            blocks_at_once(begin, done)
            out = words[b * CIPHER : min(b + LANES, blocks) * CIPHER]
            if blocks - b >= LANES:  # a fixed number of lanes, innermost: LLVM then moves whole vectors
                for k in range(CIPHER):
                    for lane in range(LANES):
                        out[lane * CIPHER + k] = done[k * LANES + lane]
            else:
                for lane in range(blocks - b):
                    for k in range(CIPHER):
                        out[lane * CIPHER + k] = done[k * LANES + lane]

    return fill


def words_below(limit: int, count: int) -> int:
    """Return how many uniform words `below` takes for `count` results; `count` is even."""
    return count // 2 if _halved(limit) else count


def _halved(limit: int) -> bool:
    return limit & (limit - 1) == 0 and limit <= 1 << 16


def _below(words, found, limit):  # type: ignore[no-untyped-def]
    """Turn uniform words into words below `limit`.

    A power of two takes bits, exactly; if it is at most 2^16, one word gives two results. Another limit takes the high
    part of a product: a value has a probability within 2^-32 of 1/limit, so one is up to limit/2^32 more likely than
    another.
    """
    mask = u32(limit - 1)
    if limit & (limit - 1) == 0 and limit <= 1 << 16:
        high = found[words.shape[0] :]
        for j in range(words.shape[0]):
            word = words[j]
            found[j] = word & mask
            high[j] = (word >> u32(16)) & mask
    elif limit & (limit - 1) == 0:
        for j in range(words.shape[0]):
            found[j] = words[j] & mask
    else:
        for j in range(words.shape[0]):
            found[j] = u32((u64(words[j]) * u64(limit)) >> u64(32))


below = jit(_below, **INLINED)


def lanes_function(kernel: Kernel, lanes: int, compiled: Callable[[Any], Any]) -> Any:
    """Return a plain function for several calls of a kernel at once, in the lanes of vector registers.

    Element k of lane l of an array is at k·lanes + l. Loops stay loops; the statements between them become one loop
    over the lanes, in which elements at fixed places are locals, and LLVM turns that loop into vector instructions. It
    is for kernels whose loops and places are the same for all calls, such as a cipher.
    """
    text = _SideBySide(kernel, lanes, compiled)
    if kernel.result is not None or len(kernel.arrays) != len(kernel.parameters):
        raise InputError(f"{kernel.name} cannot run in lanes: it has parameters other than arrays, or a result.")
    lines = [f"def kernel({', '.join(map(variable, kernel.parameters))}):"]
    return text.function("kernel", lines + text.runs(Inliner().body(kernel.body), 1))


class _SideBySide(Source):
    def __init__(self, kernel: Kernel, lanes: int, compiled: Callable[[Any], Any]) -> None:
        super().__init__(compiled)
        self.kernel, self.lanes = kernel, lanes
        self.held: dict[tuple[str, int], str] = {}  # elements in locals, in this run
        self.direct: set[str] = set()  # arrays of this run with a place that is not fixed

    def runs(self, statements: Sequence[ir.Statement], indent: int) -> Lines:
        lines: Lines = []
        run: list[ir.Let | ir.Store] = []
        for node in statements:
            if isinstance(node, ir.Let | ir.Store):
                run.append(node)
                continue
            loads = isinstance(node, ir.For) and any(isinstance(at, ir.Load) for at in ir.walk(node.first, node.last))
            if not isinstance(node, ir.For) or loads:
                raise InputError(f"{node.at}: {self.kernel.name} cannot run in lanes: `{ir.shown(node)}`.")
            lines += self.run(run, indent)
            run = []
            ends = f"{self.cast('index', node.first)}, {self.cast('index', node.last)}"
            lines += [f"{' ' * indent}for {variable(node.counter)} in range({ends}):"]
            lines += self.runs(node.body, indent + 1)
        return lines + self.run(run, indent)

    def run(self, statements: Iterable[ir.Let | ir.Store], indent: int) -> Lines:
        """Write statements without a loop, for all lanes."""
        nodes = list(statements)
        touched = [part for part in ir.walk(*nodes) if isinstance(part, ir.Load | ir.Store)]
        self.direct = {part.array for part in touched if not isinstance(part.index, ir.Const)}
        self.held = {}
        pad, body, written = " " * indent, list[str](), dict[tuple[str, int], None]()
        for node in nodes:
            before = set(self.held)
            for part in ir.walk(node):
                if isinstance(part, ir.Load) and (cell := self.cell(part)) is not None and cell not in before:
                    body += [f"{pad} {self.hold(cell)} = {self.place(*cell)}"]
                    before.add(cell)
            stored = self.cell(node) if isinstance(node, ir.Store) else None
            if stored is None:
                body += self.statement(node, indent + 1)
            else:
                assert isinstance(node, ir.Store)
                kind = self.kernel.arrays[node.array].storage[0] + "32"
                value = self.expression(node.value)
                body += [f"{pad} {self.hold(stored)} = t_{kind}({value})"]
                written[stored] = None
        body += [f"{pad} {self.place(*cell)} = {self.held[cell]}" for cell in written]
        return [f"{pad}for lane in range({self.lanes}):", *body] if body else []

    def cell(self, node: ir.Load | ir.Store) -> tuple[str, int] | None:
        fixed = isinstance(node.index, ir.Const) and node.array not in self.direct
        return (node.array, node.index.value) if fixed and isinstance(node.index, ir.Const) else None

    def hold(self, cell: tuple[str, int]) -> str:
        return self.held.setdefault(cell, f"c_{cell[0]}_{cell[1]}")

    def place(self, array: str, index: int) -> str:
        return f"{variable(array)}[t_place({index * self.lanes} + lane)]"

    def element(self, node: ir.Load | ir.Store) -> str:
        cell = self.cell(node)
        if cell is not None and cell in self.held:
            return self.held[cell]
        return f"{variable(node.array)}[t_place({self.cast('index', node.index)} * {self.lanes} + lane)]"
