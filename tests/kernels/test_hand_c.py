"""Releases from private headers beside hand-written C for the same constants: the same bits, no more instructions."""

import itertools

import pytest
from hand_c import CALLS, CORES, FORMS, build, by_kernel, clang, run, sources


@pytest.mark.parametrize("core", CORES)
def test_no_more_instructions_than_by_hand_and_the_same_bits(tmp_path, core):
    machines = {name: build(clang(core), source, core) for name, source in sources(tmp_path).items()}
    for form, call in itertools.product(FORMS, CALLS):
        found = {}
        for name, machine in machines.items():
            counts, released = run(machine, form, call, core)
            assert released == by_kernel(form, call), (form, call, name)
            assert len(set(counts)) == 1, f"{form}, {call}, {name}: the path depends on secrets"
            found[name] = counts[0]
        assert found["export"] <= found["hand"], (form, call)
