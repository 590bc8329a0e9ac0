"""The range check: proves our kernels, and names the line of one that can overflow."""

import broken_kernels
import pytest

from sensorsim.ranges import RangeError, check_ranges


def test_every_kernel_is_proved(kernel):
    report = check_ranges(kernel)
    for span in report.intervals.values():
        assert -(2**31) <= span.lo <= span.hi < 2**32


@pytest.mark.parametrize("name", broken_kernels.FAULTS)
def test_a_faulty_kernel_is_refused_with_its_line(name):
    faulty = getattr(broken_kernels, name)
    lines = faulty.path.read_text().splitlines()
    line = next(k for k, text in enumerate(lines, 1) if f"fault in {name}" in text)
    with pytest.raises(RangeError, match=f"^broken_kernels.py:{line}: in {name}, .*{broken_kernels.FAULTS[name]}"):
        check_ranges(faulty)


def test_the_pointer_stays_inside_the_table():
    from sensorsim.kernels.noise import advance

    last = max(line for name, line in check_ranges(advance).intervals if name == "noise.py")
    span = check_ranges(advance).intervals["noise.py", last]
    assert (span.lo, span.hi) == (0, 2**16 - 1)
