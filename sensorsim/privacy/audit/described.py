"""An audit as data: its verdict, what JSON holds of it, a row for each look."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim.privacy.audit.result import Audit, Check, Look

SCHEMA = 2


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
