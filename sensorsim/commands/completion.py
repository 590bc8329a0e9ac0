"""`sensorsim completion`, and what click does not do for a shell by itself."""

from dataclasses import dataclass

from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete, add_completion_class

from sensorsim._util.option_kinds import Choice
from sensorsim.commands.declare import REQUIRED, Command, option


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


@dataclass(frozen=True)
class Completion(Command[str]):
    """Bash and zsh read the script when they start, fish in a folder of its own. To install it, run the line of your
    shell once:

    \b
      echo 'source <(sensorsim completion bash)' >> ~/.bashrc
      echo 'source <(sensorsim completion zsh)' >> ~/.zshrc     (below compinit)
      sensorsim completion fish > ~/.config/fish/completions/sensorsim.fish
    """

    example = "source <(sensorsim completion bash)"
    formats = ()

    shell: str = option(REQUIRED, Choice(*SHELLS), "The shell.", argument=True)

    def run(self) -> str:
        from sensorsim.commands.program import COMPLETE, NAME, group

        return SHELLS[self.shell](group, {}, NAME, COMPLETE).source().rstrip("\n")
