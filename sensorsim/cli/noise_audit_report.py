"""What `sensorsim noise audit` prints."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim.privacy.audit import Audit, Check, Look

SCHEMA = 2
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
    return "\n".join([*lines, "", verdict(found)])


def verdict(found: "Audit") -> str:
    """One line: a leak, or something else that is not as claimed, or nothing."""
    last = found.last
    if last.event.leaks and found.recovered:
        return "LEAK: every packet gives x away exactly."
    if last.event.leaks:
        return f"LEAK: {last.event.of} costs more than {last.event.bound:.4g}, {last.event.claimed:.4g} was claimed."
    if not last.independent:
        assert last.dependence is not None
        return f"DEPENDENT: {last.dependence.of} are not independent, so what they cost together is not certified."
    if not last.matches:
        assert last.distribution is not None
        return f"MISMATCH: {last.distribution.of} does not follow the distribution that the certificate is about."
    return "No leak found. That is no proof; the proof is the certificate (sensorsim noise check)."


def data(name: str, found: "Audit") -> dict[str, Any]:
    """For JSON."""
    return {
        "schema_version": SCHEMA,
        "file": name,
        "mechanism": found.mechanism,
        "sees": found.sees,
        "words": found.words,
        "seed": found.seed,
        "words_are_secret": False,
        "inputs": list(found.inputs),
        "confidence": found.confidence,
        "draws_asked": found.asked,
        "draws": found.draws,
        "packets": found.last.packets,
        "per_record": found.per_record,
        "epsilon_claimed": found.claimed,
        "looks": [_look(look) for look in found.looks],
        "recovered": found.recovered,
        "rarest_leak_seen": found.rarest,
        "matches": found.matches,
        "independent": found.independent,
        "leaks": found.leaks,
        "passed": found.passed,
        "verdict": verdict(found),
    }


def rows(name: str, found: "Audit") -> list[dict[str, Any]]:
    """For CSV: one row for each look."""
    made = []
    for look in found.looks:
        event = look.event
        made.append(
            {
                "file": name,
                "mechanism": found.mechanism,
                "draws": look.draws,
                "packets": look.packets,
                "p_distribution": look.distribution.p_value if look.distribution else None,
                "p_dependence": look.dependence.p_value if look.dependence else None,
                "event": event.of,
                "epsilon_claimed": event.claimed,
                "epsilon_bound": event.bound,
                "rate_likelier": event.rates[0],
                "rate_other": event.rates[1],
                "passed": look.passed,
                "verdict": verdict(found) if look is found.last else "",
            }
        )
    return made


def _look(look: "Look") -> dict[str, Any]:
    event = look.event
    return {
        "draws": look.draws,
        "packets": look.packets,
        "p_allowed": look.allowed,
        "distribution": _test_data(look.distribution),
        "dependence": _test_data(look.dependence),
        "event": {
            "of": event.of,
            "inputs": list(event.inputs),
            "epsilon_claimed": event.claimed,
            "epsilon_bound": event.bound,
            "rate_likelier": event.rates[0],
            "rate_other": event.rates[1],
        },
        "matches": look.matches,
        "independent": look.independent,
        "leaks": event.leaks,
        "passed": look.passed,
    }


def _test_data(test: "Check | None") -> dict[str, Any] | None:
    if test is None:
        return None
    made = test._asdict()
    if made["chi_square"] == float("inf"):
        made["chi_square"] = None  # JSON has no infinity
    return made


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
