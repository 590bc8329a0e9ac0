"""All that `cost` lists: every form of every mechanism, and what stands beside them."""

from sensorsim.errors import InputError
from sensorsim.mechanisms import Form, every
from sensorsim.mechanisms.form import LEAN, PAPER

VARIANTS = (PAPER, LEAN)
BESIDE = (  # no mechanisms: a way to read noise that the paper cites, and the generator that a release needs
    Form("dinar", "DINAR's pre-fetch, shifter used", LEAN, "dinar.dinar", random="stride"),
    Form("dinar-scrambled", "DINAR's pre-fetch, scrambled", LEAN, "dinar.dinar_scrambled", random="stride word"),
    Form("chacha20", "ChaCha20, 512 random bits", LEAN, "chacha20.chacha20"),
)


def forms(variant: str = "all") -> list[Form]:
    """Those of a variant, the printed ones first."""
    if variant not in (*VARIANTS, "all"):
        raise InputError(f"variant {variant!r} is not known; choose paper, lean or all.")
    known = [form for mechanism in every() for form in mechanism.forms] + list(BESIDE)
    wanted = [form for form in known if variant in ("all", form.variant)]
    return sorted(wanted, key=lambda form: form.variant != PAPER)
