"""What a verification found, as data."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim.verify.proof import Proof
    from sensorsim.verify.result import KernelResult
    from sensorsim.verify.verification import Verification

SCHEMA_VERSION = 2


def kernel_row(result: "KernelResult") -> dict[str, Any]:
    """One kernel on one target."""
    n, price = result.instructions, result.price
    return {
        "kernel": result.kernel,
        "target": result.target,
        "vectors": result.vectors,
        "differing_bits": result.differing_bits,
        "lengths": " ".join(f"{name}={value}" for name, value in result.lengths.items()),
        "instructions_min": n.min if n else None,
        "instructions_mean": n.mean if n else None,
        "instructions_max": n.max if n else None,
        "cost_min": price.min if price else None,
        "cost_mean": price.mean if price else None,
        "cost_max": price.max if price else None,
        "cost_unit": result.unit or None,
        "table": result.table or None,
        "flash_bytes": result.flash_bytes,
        "ram_bytes": result.ram_bytes,
        "stack_bytes": result.stack_bytes,
        "runtime": " ".join(result.runtime),
        "sequences": result.sequences,
        "sequences_by_secret": result.sequences_by_secret,
        "same_path": result.constant_time,
        "same_path_proved": result.proved_same_path if result.sequences is not None else None,
        "same_addresses": result.same_addresses,
        "same_addresses_proved": result.proved_same_addresses if result.sequences is not None else None,
        "same_time": result.same_time,
        "timed_operations": "; ".join(operation.text(result.unit) for operation in result.operations),
    }


def verification_data(report: "Verification") -> dict[str, Any]:
    """All of it, for JSON."""
    results = []
    for result in report.results:
        more: dict[str, Any] = {"classes": result.classes, "table_notes": list(result.table_notes)}
        more |= {"varying": list(result.varying), "moving": list(result.moving)}
        more |= {"timed_operations": [asdict(one) for one in result.operations]}
        results.append({**kernel_row(result), "lengths": result.lengths, **more})
    return {
        "schema_version": SCHEMA_VERSION,
        "folder": report.folder,
        "passed": report.passed,
        "proofs": [asdict(proof) for proof in report.proofs],
        "left_out": list(report.left_out),
        "compiler": report.compiler,
        "flags": report.flags,
        "gcc": report.gcc,
        "ubsan_vectors": report.ubsan_vectors,
        "results": results,
    }


def proof_facts(proofs: "Sequence[Proof]", left_out: Sequence[str]) -> dict[str, str]:
    """Every proof with its answer, and what was not proved."""
    found = {proof.name: f"{'yes' if proof.passed else 'NO'}: {proof.detail}" for proof in proofs}
    return found | {f"not proved {number}": text for number, text in enumerate(left_out, 1)}
