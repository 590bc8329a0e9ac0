"""Write a table's certificate as a theorem for the Rocq prover (formerly Coq), which checks it without this code.

The file defines the table's counts and the draw, and proves that the likelihoods of any two records are within a factor
of exp(epsilon), epsilon the one that is printed. The proofs in proofs/ are the same for every table of a kind; what is
particular to a table is checked there by computation. `coqc FILE.v` (8.16 or later) takes seconds.
"""

import hashlib
from importlib.resources import files

from sensorsim._util.errors import InputError
from sensorsim.noise.certificate import EVERY_PAIR, certify
from sensorsim.noise.noise_table import NoiseTable
from sensorsim.noise.table_file import table_bytes

HEAD = """(* {title}
   Theorem `certificate` at the end: a record is {epsilon}-DP with delta = 0, for any two records.
   Check it with `coqc` 8.16 or later. sha256 of the table: {hash} *)
From Coq Require Import ZArith Lia List Reals Lra.
Import ListNotations.
Open Scope Z_scope.

(* ---- The table *)
"""


def rocq_text(table: NoiseTable) -> str:
    """Return the certificate of a table as a Rocq file; raise InputError where it has no pure epsilon."""
    certificate = certify(table)
    definitions = table.rocq_definitions()
    if certificate.ratio is None or certificate.epsilon_record is None or not definitions:
        raise InputError("this table has no pure epsilon, so there is nothing to prove in Rocq; make one of kind rows.")
    assert certificate.neighbours == EVERY_PAIR
    title = f"Certificate of a {table.kind} table: {table.release} of {table.features} features of a record."
    digest = hashlib.sha256(table_bytes(table)).hexdigest()
    head = HEAD.format(title=title, epsilon=certificate.epsilon_record, hash=digest)
    definitions |= {
        "numerator : Z": str(certificate.ratio.numerator),
        "denominator : Z": str(certificate.ratio.denominator),
        "release : nat": f"{table.release}%nat",
        "epsilon_digits : Z": f"{int(certificate.epsilon_record.scaleb(12))}",  # in units of 10^-12
    }
    lines = [f"Definition {name} := {value}." for name, value in definitions.items()]
    proofs = files("sensorsim.noise") / "proofs"
    parts = [(proofs / f"{name}.v").read_text("utf-8") for name in (table.kind, "privacy")]
    return head + "\n".join(lines) + "\n\n" + "\n".join(parts)
