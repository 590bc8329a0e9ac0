"""What `sensorsim noise audit` prints."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sensorsim.auditing import Audit, Check

UNKNOWN = {
    "distribution": "none is known to compare with",
    "dependence": "not asked: packets of a capture may depend on each other, as by a counter",
}


def text(name: str, found: "Audit") -> str:
    """For the terminal: what was looked at, and the verdict."""
    last, event = found.last, found.last.event
    values = "packets" if found.per_record == 1 else f"values in {last.packets:,} packets"
    lines = [
        f"{name}: {found.mechanism}, {found.draws:,} {values}, {_looks(found)}",
        f"  observed      {found.sees}",
        f"  at x =        {', '.join(found.inputs)}",
        f"  words         {_words(found)}",
        *_test("distribution", last.distribution, "as the certificate says" if last.matches else "NOT as certified"),
        *_test("dependence", last.dependence, "none seen" if last.independent else "NOT independent"),
        f"  best event    {event.of}",
        f"                x = {event.inputs[0]} against x = {event.inputs[1]}: {event.rates[0]:.4%} under one, "
        f"{event.rates[1]:.4%} under the other",
        f"  epsilon       claimed {event.claimed:.6g} for this event, {found.claimed:.6g} for a whole packet",
        f"                more than {event.bound:.6g} with confidence {found.confidence:g} (Clopper–Pearson)",
    ]
    if found.passed:
        lines.append(f"  not seen      {_blind(found)}")
    return "\n".join([*lines, "", found.verdict])


def _looks(found: "Audit") -> str:
    looks = "1 look" if len(found.looks) == 1 else f"{len(found.looks)} looks"
    return looks if found.passed else f"{looks}, then certain"


def _words(found: "Audit") -> str:
    if found.mechanism == "capture":
        return found.words
    return f"{found.words}, seed {found.seed}: not secret, so that the audit can be repeated"


def _test(label: str, test: "Check | None", verdict: str) -> list[str]:
    head = f"  {label:<13} "
    if test is None:
        return [f"{head}{UNKNOWN[label]}"]
    place = f"{'':16}{test.of}, x = {test.input}, the worst of {test.tests:,}"
    if test.chi_square == float("inf"):
        return [f"{head}a value that cannot be: {verdict}", place]
    figures = f"chi-square {test.chi_square:.0f} on {test.degrees} degrees of freedom, p = {test.p_value:.3g}"
    return [f"{head}{figures}: {verdict}", place]


def _blind(found: "Audit") -> str:
    fewest = int(1 / found.rarest)
    beyond = f"is beyond {found.draws:,} draws" + (
        ", unless as a value that cannot be" if found.last.distribution else ""
    )
    if fewest <= 1:
        return f"even a leak that shows in one field of every packet {beyond}"
    return f"a leak that shows in one field of fewer than one packet in {fewest:,} {beyond}"
