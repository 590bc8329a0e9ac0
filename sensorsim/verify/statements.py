"""What a package says of its table, beside what the table proves: its file, the manifest, the comments."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sensorsim.export.files import MANIFEST
from sensorsim.export.manifest import Package
from sensorsim.language.c.comments import comment
from sensorsim.privacy.tablefile import read_table
from sensorsim.terminal import counted
from sensorsim.verify.held import header_of
from sensorsim.verify.proof import Proof
from sensorsim.verify.table import Stated

if TYPE_CHECKING:
    from sensorsim.privacy.certificate import Certificate
    from sensorsim.privacy.tables import NoiseTable


def certificate_proof(package: Package, known: Stated) -> Proof:
    """Whether everything that is said of the table is what it proves."""
    certificate = known.table.certificate
    assert certificate is not None
    untrue = wrong_statements(package, known)
    return Proof("certificate", not untrue, "; ".join(untrue) or _certified(known.table, certificate))


def wrong_statements(package: Package, known: Stated) -> list[str]:
    """Where the package says something else of its table than the table proves."""
    found = []
    file = package.table_file
    assert file is not None
    written, proved = read_table(file).certificate, known.table.certificate
    assert written is not None and proved is not None
    for field in proved.__dataclass_fields__:
        says, holds = getattr(written, field), getattr(proved, field)
        if says != holds:
            found.append(f"{file.relative_to(package.folder)} says {field} {says}, its counts prove {holds}")
    found += _in_record(package.manifest.get("noise_table"), known.noise.record, "noise_table")
    sensor = package.manifest.get("sensor")
    if package.private and isinstance(sensor, dict):
        expected = {"epsilon_of_a_release": str(proved.epsilon_record)}
        found += _in_record({name: sensor.get(name) for name in expected}, expected, "sensor")
    about = comment(known.noise.table.about)
    files = [header_of(package), *(path for path in package.sources if path.name == f"{package.prefix}tables.c")]
    for path in files if known.array else files[:1]:
        if about not in path.read_text("utf-8"):
            name = path.relative_to(package.folder)
            found.append(f"the comment on the table in {name} is not what the table proves (epsilon, symbol values)")
    return found


def _in_record(record: Any, expected: Mapping[str, Any], path: str) -> list[str]:
    """What differs between a part of the manifest and what it should say."""
    if not isinstance(record, dict):
        return [f"{MANIFEST} says nothing of {path}"]
    found = []
    for name, value in expected.items():
        says = record.get(name)
        if isinstance(value, dict):
            found += _in_record(says, value, f"{path}.{name}")
        elif says != value:
            found.append(f"{MANIFEST} says {path}.{name} is {says}, the table proves {value}")
    return found


def _certified(table: "NoiseTable", certificate: "Certificate") -> str:
    released = f"{table.release} of {counted(table.features, 'feature')}"
    if certificate.epsilon_record is not None:
        return f"a record is {certificate.epsilon_record}-private (pure), {released}; certified again from the code"
    return f"delta {certificate.delta_record} at epsilon {table.epsilon}, {released}; certified again from the code"
