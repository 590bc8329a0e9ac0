"""Names of mechanisms as a user types them."""

import click

from sensorsim.mechanisms import known, resolve


def mechanism_name(word: str) -> str:
    """The name of a mechanism; an older one is understood, with a hint."""
    mechanism, hint = resolve(word)
    if hint:
        click.echo(hint, err=True)
    return mechanism.name


def kernel_name(word: str) -> str:
    """The same where a kernel may be meant as well."""
    return mechanism_name(word) if known(word) else word
