"""The range check: proves our kernels, and names the line of one that can overflow."""

import random

import broken_kernels
import pytest
from checking import Checker, TooLongError
from generated_kernels import arguments_of, copied
from sensorsim.kernels.noise import advance

from sensorsim.language.arguments import lengths_to_check as lengths_to_test
from sensorsim.language.count import count
from sensorsim.language.ranges import RangeError

MOST_STEPS = 60_000


def test_every_kernel_is_proved(kernel):
    proof = kernel.prove()
    assert proof.lines
    for lo, hi in proof.lines.values():
        assert -(2**31) <= lo <= hi < 2**32
    assert (proof.result is None) == (kernel.result is None)


def test_every_value_lies_in_its_interval(compiled_kernel):
    """By the counting interpreter's own hook, and by a naive one that stops at the first operand outside."""
    kernel, chosen = compiled_kernel, random.Random(1)
    proof = kernel.prove()

    def watch(node, value):
        if node.type != "flag":
            lo, hi = proof.lines[node.at]
            assert lo <= value <= hi, node.at

    for lengths in lengths_to_test(kernel):
        lengths = {name: min(value, 64) if name in "nlk" else value for name, value in lengths.items()}
        for _ in range(4):
            arguments = arguments_of(kernel, lengths, chosen)
            try:
                Checker(proof, MOST_STEPS).run(kernel, copied(arguments))
            except TooLongError:
                break
            count(kernel, arguments, watch)


@pytest.mark.parametrize("name", broken_kernels.FAULTS)
def test_a_faulty_kernel_is_refused_with_its_line(name):
    faulty = getattr(broken_kernels, name)
    lines = faulty.path.read_text().splitlines()
    line = next(k for k, text in enumerate(lines, 1) if f"fault in {name}" in text)
    with pytest.raises(RangeError, match=f"^broken_kernels.py:{line}: in {name}, .*{broken_kernels.FAULTS[name]}"):
        faulty.prove()


def test_the_pointer_stays_inside_the_table():
    proof = advance.prove()
    last = max(at.line for at in proof.lines if at.name == "noise.py")
    assert next(ends for at, ends in proof.lines.items() if at.line == last) == (0, 2**16 - 1)
    assert proof.result == (0, 2**16 - 1)
