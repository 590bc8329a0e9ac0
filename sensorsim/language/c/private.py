"""Private headers: every kernel as a function that is local to the one file that calls it.

A firmware calls a release with constants only: the table, its lengths, its limits. Where the compiler sees the whole
function beside the call it folds them, and what is left is as short as code written for those constants.
"""

from sensorsim.language.c.comments import about, title
from sensorsim.language.c.functions import function
from sensorsim.language.c.heads import apart
from sensorsim.language.c.names import Constants, Names, spelled
from sensorsim.language.c.records import header_of, records_of
from sensorsim.language.c.text import comment, parameter_lines, with_prefix, wrap
from sensorsim.language.kernel import Kernel


class PrivatePlan:
    """One header for each file of kernels, with all of its functions."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def units(self, constants: Constants) -> dict[str, str]:
        return {f"src/{unit}.h": self.header(unit, mine, constants) for unit, mine in self.names.unit_kernels()}

    def header(self, unit: str, kernels: list[Kernel], constants: Constants) -> str:
        guard = f"{unit}_H".upper()
        lines = [comment(wrap(title(kernels, self.names))), f"#ifndef {guard}", f"#define {guard}", ""]
        lines += [f'#include "{header_of(record, self.names.prefix)}"' for record in records_of(kernels)]
        lines += [f'#include "{name}.h"' for name in self.includes(unit, kernels)]
        parts = [self.define(kernel, constants) for kernel in kernels]
        return "\n".join(lines) + "\n\n" + "\n".join(parts) + "\n#endif\n"

    def includes(self, unit: str, kernels: list[Kernel]) -> list[str]:
        names = self.names
        tables = ["tables"] if any(kernel in kernels for kernel, _ in names.in_flash) else []
        used = {names.units[callee] for kernel in kernels for callee in kernel.called} - {unit}
        return [*(names.prefix + name for name in ["arithmetic", "constants", *tables]), *sorted(used)]

    def define(self, kernel: Kernel, constants: Constants) -> str:
        names, text = self.names, about(kernel, self.names)
        if kernel in names.entries:
            text += ["", *parameter_lines(kernel, spelled(kernel, names.prefix))]
        lead = f"{names.prefix.upper()}LOCAL "
        return comment(text) + "\n" + function(kernel, names, constants, lead) + apart(kernel, names)


def entries_source(names: Names) -> str:
    """A file that makes every function of the private headers external, to be called one by one in tests."""
    head = comment(["The functions of the private headers, for tests that call them one by one."])
    headers = [f'#include "{unit}.h"' for unit, _ in names.unit_kernels()]
    return "\n".join([head, with_prefix("#define SS_LOCAL", names.prefix), *headers]) + "\n"
