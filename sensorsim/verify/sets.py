"""Which vectors a kernel of a package is verified with."""

from collections.abc import Mapping

from sensorsim.export.golden import inputs_of
from sensorsim.export.manifest import Package
from sensorsim.language.arguments import array_length, lengths_to_check
from sensorsim.language.kernel import Kernel
from sensorsim.machine.vectors import Vectors, edge_vectors, of_one_call, random_vectors
from sensorsim.verify.own import own_of
from sensorsim.verify.result import Effort

COUNTED = 2  # of all sets the last ones: edges and random values, with the package's own lengths and constants
FEW = 3  # vectors of a long record
LONG = 2000  # values in a vector that is long


def sets_of(package: Package, kernel: Kernel, effort: Effort, seed: int) -> list[Vectors]:
    """Golden vectors, edges at several lengths and random ones.

    The last two have the package's own lengths and constants. Where it has any, half of the random vectors have them,
    the others take every value that is allowed.
    """
    own, edges, many = own_of(package, kernel), effort.edges, effort.core
    made = [of_one_call(kernel, inputs_of(vector, kernel)) for vector in package.golden(kernel)]
    for lengths in lengths_to_check(kernel):
        made.append(edge_vectors(kernel, lengths, _how_many(kernel, lengths, edges // 4), seed))
    if many > 1 and (own.values or own.lengths != kernel.lengths_at()):
        made += [edge_vectors(kernel, {}, edges, seed), random_vectors(kernel, {}, many // 2, seed)]
        many, seed = many - many // 2, seed + 1
    made.append(edge_vectors(kernel, own.lengths, edges, seed).holding(own.values))
    return [*made, random_vectors(kernel, own.lengths, many, seed).holding(own.values)]


def random_sets(package: Package, kernel: Kernel, count: int, seed: int) -> list[Vectors]:
    """Random vectors, half of them with the package's own lengths, table and constants where it has any."""
    own = own_of(package, kernel)
    if count < 2 or (not own.values and own.lengths == kernel.lengths_at()):
        return [random_vectors(kernel, {}, count, seed)]
    half = random_vectors(kernel, own.lengths, count - count // 2, seed + 1).holding(own.values)
    return [random_vectors(kernel, {}, count // 2, seed), half]


def _how_many(kernel: Kernel, lengths: Mapping[str, int], usual: int) -> int:
    """Vectors at these lengths: few where each is long."""
    size = sum(array_length(kernel, name, lengths) for name, kind in kernel.arrays.items() if kind.contents is None)
    return FEW if size > LONG else max(usual, FEW)
