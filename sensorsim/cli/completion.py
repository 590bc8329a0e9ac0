"""`sensorsim completion`, and what click does not do for a shell by itself."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete, add_completion_class

from sensorsim.cli import COMPLETE, NAME


class Bash(BashComplete):
    """Bash gives `--cpu=k7` as three words; without the middle one they are what click reads."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, last = super().get_completion_args()
        return [word for word in words if word != "="], last


class Fish(FishComplete):
    """click's script for fish cuts an answer at every comma; of `plain,k7,cortex-m4` the first alone separates."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


SHELLS: dict[str, type[ShellComplete]] = {made.name: made for made in (Bash, ZshComplete, Fish)}
for made in SHELLS.values():
    add_completion_class(made)


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)), metavar="|".join(SHELLS))
def command(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and names with the Tab key.

    Bash and zsh read it when they start, fish in a folder of its own. To install it, run the line of your shell once:

    \b
      echo 'source <(sensorsim completion bash)' >> ~/.bashrc
      echo 'source <(sensorsim completion zsh)' >> ~/.zshrc     (below compinit)
      sensorsim completion fish > ~/.config/fish/completions/sensorsim.fish

    Example: source <(sensorsim completion bash)
    """
    click.echo(script(shell), nl=False)


def script(shell: str) -> str:
    """What a shell is to read."""
    from sensorsim.cli import group

    return SHELLS[shell](group, {}, NAME, COMPLETE).source()
