"""What a shell offers when Tab is pressed, and what is offered for a mistyped name."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bad_inputs import declared
from click.shell_completion import ShellComplete

from sensorsim._util.errors import MOST_LETTERS, InputError
from sensorsim._util.hints import did_you_mean
from sensorsim._util.option_kinds import Budget, Choice, Kind, Open, Whole
from sensorsim.commands import COMMANDS
from sensorsim.commands.completion import SHELLS
from sensorsim.commands.program import COMPLETE, group, main
from sensorsim.costing.chips import chip_names, radio_names
from sensorsim.costing.prices import cpu_names
from sensorsim.datasets.public_ranges import ready_ranges
from sensorsim.machine.targets import CORES, HOST
from sensorsim.mechanisms import every
from sensorsim.noise.kinds import KINDS
from sensorsim.paper.recompute import statements

PROGRAM = Path(sys.executable).with_name("sensorsim")
HEAVY = ("numpy", "torch", "numba", "pandas", "matplotlib", "scipy")


def offered(line: str, kind: str = "plain") -> list[str]:
    """What click answers at the end of a line, which may end in a blank."""
    *before, last = line.split(" ")
    items = ShellComplete(group, {}, "sensorsim", COMPLETE).get_completions(before, last)
    return [item.value for item in items if item.type == kind]


MECHANISMS = [mechanism.name for mechanism in every()]
LISTS = {
    "": list(dict.fromkeys(name.split()[0] for name, entry in COMMANDS.items() if entry.shell)),
    "noise ": [name.split()[1] for name in COMMANDS if name.startswith("noise ")],
    "cost --cpu ": cpu_names(),
    "cost --chip ": chip_names(),
    "cost --radio ": radio_names(),
    "cost --random ": ["chacha20", "chacha12", "trng", "free"],
    "cost --format ": ["table", "json", "csv"],
    "cpus show ": cpu_names(),
    "plan --chip ": chip_names(),
    "fleet --radio ": radio_names(),
    "report --chip ": chip_names(),
    "train --mechanism ": MECHANISMS,
    "sweep --mechanism ": MECHANISMS,
    "noise make --kind ": list(KINDS),
    "verify --target ": ["all", HOST, *CORES],
    "kernel spof --verify ": [HOST, *CORES],
    "claims ": [one.id for one in statements()],
    "train --normalise ": ["ranges", "max"],
    "plan --columns ": list(ready_ranges()),
    "export --packet-numbers ": ["epoch", "sequence"],
    "completion ": list(SHELLS),
    **{
        f"train {word} ": list(kind.values)
        for word, kind in declared()["train"].items()
        if isinstance(kind, Choice) and word != "--format"
    },
}


@pytest.mark.parametrize("line", LISTS)
def test_the_lists_are_those_that_the_commands_read(line):
    assert offered(line) == LISTS[line]
    assert LISTS[line], "an empty list would prove nothing"


def test_what_is_begun_is_ended():
    assert offered("co") == ["cost", "completion"]
    assert offered("cost --cpu cortex-m3") == ["cortex-m3", "cortex-m33"]
    assert offered("cost --battery") == ["--battery-mah"]
    assert "spof" in offered("kernel sp") and "spof_lean" in offered("export --kernels sp")


def test_the_last_of_a_comma_list_is_ended_and_none_is_offered_twice():
    assert offered("kernel spof --cpu k7,ib") == ["k7,ibex", "k7,ibex-large"]
    assert offered("verify --target host,k7,cv") == ["host,k7,cv32e40p"]
    assert "k7,k7" not in offered("kernel spof --cpu k7,")
    assert offered("train --mechanism spof,dp") == []  # it takes one


def test_what_an_audit_refuses_is_not_offered():
    """And what is offered has something to observe."""
    from sensorsim.auditing.table_sources import make_source
    from sensorsim.noise.noise_table import ready_table

    names = offered("noise audit --mechanism ")
    assert {"release", "sampled", "spof", "lean"} <= set(names)
    tables = ready_table(1), ready_table(1, 1)
    for name in MECHANISMS:
        refused = []
        for table in tables:
            try:
                make_source(table, name)
            except InputError as error:
                refused.append(str(error))
        told = any("audit release" in one or "audit sampled with" in one for one in refused)
        assert told == (name not in names), (name, refused)


def test_columns_are_those_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("days.csv").write_text("who,steps,sleep\n1,2,3\n", "utf-8")
    Path("noise.bin").write_bytes(b"PAR1\xff\xfe\x00")
    assert offered("train --data days.csv --columns steps,s") == ["steps,sleep"]
    assert offered("train --data days.csv --person ") == ["who", "steps", "sleep"]
    for other in ("noise.bin", "nowhere.csv", "/dev/zero", "."):
        assert offered(f"train --data {other} --columns ") == []


def test_files_where_files_are_taken():
    """The shell itself looks for them; beside names they come first, or bash would forget the names."""
    assert offered("cost --cpu my", "file") == ["my"] and offered("plan --chip ./b", "file") == ["./b"]
    assert offered("cost --radio my", "file") == []
    items = ShellComplete(group, {}, "sensorsim", COMPLETE).get_completions(["cost", "--cpu"], "c")
    assert [item.type for item in items][:2] == ["file", "plain"]
    assert offered("train --data ", "file") == [""] and offered("figures --out ", "dir") == [""]


NOT_NAMED = {  # texts that no list holds
    "--sweep", "--budget-epsilon", "--epsilon", "--sigma", "--c", "--records", "--delta", "--release", "--at",
    "--prefix", "--spdx", "--cc", "--symbol", "--dask",
}  # fmt: skip


def test_every_text_is_completed_or_cannot_be():
    plain = {
        word
        for options in declared().values()
        for word, kind in options.items()
        if type(kind).complete is Kind.complete and "text" in kind.words and not isinstance(kind, Budget | Open | Whole)
    }
    assert plain <= NOT_NAMED


# ---- through real shells, and their protocols


def asked(words: list[str], shell: str, line: str, last: str, folder: Path) -> str:
    """What the program answers to the script of a shell."""
    number = last if shell == "fish" else str(len(shlex.split(line)))
    told = {COMPLETE: f"{shell}_complete", "COMP_WORDS": f"{line} {last}", "COMP_CWORD": number}
    done = subprocess.run(words, env=os.environ | told, capture_output=True, text=True, cwd=folder, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("words", [[str(PROGRAM)], [sys.executable, "-m", "sensorsim"]], ids=["script", "module"])
def test_the_program_answers_every_shell(words, tmp_path):
    line = "sensorsim kernel spof --cpu"
    assert asked(words, "bash", line, "k7,ib", tmp_path) == "plain,k7,ibex\nplain,k7,ibex-large\n"
    assert asked(words, "zsh", line, "k7,ib", tmp_path) == "plain\nk7,ibex\n_\nplain\nk7,ibex-large\n_\n"
    assert asked(words, "fish", line, "k7,ib", tmp_path) == "plain,k7,ibex\nplain,k7,ibex-large\n"
    about = COMMANDS["cost"].about
    assert asked(words, "zsh", "sensorsim", "cos", tmp_path) == f"plain\ncost\n{about}\n"
    assert asked(words, "fish", "sensorsim", "cos", tmp_path) == f"plain,cost\t{about}\n"
    assert list(tmp_path.iterdir()) == []


BASH = """
source <("$1" completion bash)
read -r -a registered <<< "$(complete -p sensorsim)"
for place in "${!registered[@]}"; do [[ ${registered[place]} == -F ]] && function=${registered[place + 1]}; done
shift
COMP_WORDS=(sensorsim "$@")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
"$function" sensorsim
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    "words, found",
    [
        (["cos"], ["cost"]),
        (["cost", "--cpu", "cortex-m4"], ["cortex-m4", "cortex-m4f"]),
        (["verify", "p", "--target", "host,cv"], ["host,cv32e40p"]),
        (["cost", "--n", "=", "3", "--cpu", "=", "ib"], ["ibex", "ibex-large"]),  # as bash cuts --n=3 --cpu=ib
    ],
)
def test_bash_completes(words, found, tmp_path):
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", str(PROGRAM), *words],
        env=os.environ | {"PATH": path}, capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == found, done.stderr
    # `compopt` says that nothing is being completed, as no key was pressed; that is for files
    assert [line for line in done.stderr.splitlines() if "compopt" not in line] == []


FISH = 'sensorsim completion fish | source; complete -C "sensorsim cost --cpu ibex-l"'
ZSH = r"""
zmodload zsh/zpty
zpty shell 'PS1="" zsh -f -i'
zpty -w shell 'autoload -U compinit; compinit -u -D; eval "$(sensorsim completion zsh)"; print READ""Y'
repeat 300 { zpty -r -t shell part && said+=$part; [[ $said == *READY* ]] && break; sleep 0.1 }
zpty -n -w shell $'sensorsim cost --cpu ibex-l\t'
repeat 300 { zpty -r -t shell part && shown+=$part; [[ $shown == *ibex-large* ]] && break; sleep 0.1 }
[[ $shown == *"--cpu ibex-large"* ]] && print ibex-large
"""


@pytest.mark.slow
@pytest.mark.parametrize("shell, words", [("fish", ["--no-config", "-c", FISH]), ("zsh", ["-f", "-c", ZSH])])
def test_fish_and_zsh_complete(shell, words, tmp_path):
    """In a shell of its own; zsh, which completes for a person alone, at a terminal where Tab is pressed."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    told = {"PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"}
    done = subprocess.run(
        [shell, *words], env=os.environ | told, capture_output=True, text=True, cwd=tmp_path, timeout=90
    )
    assert done.stdout.split() == ["ibex-large"], done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed(shell, capsys):
    main(["completion", shell])
    printed = capsys.readouterr().out
    assert f"{COMPLETE}={shell}_complete" in printed
    assert ('string split --max 1 ","' in printed) == (shell == "fish")


def test_completion_loads_nothing_heavy(tmp_path):
    """Of all that is completed, in one process."""
    others = (
        "kernel ",
        "export --kernels ",
        "noise audit --mechanism ",
        "figures --only ",
        "train --data a --columns ",
    )
    lines = [*LISTS, *others]
    code = (
        "import sys\nfrom click.shell_completion import ShellComplete\nfrom sensorsim.commands.program import group\n"
        f"for line in {lines!r}:\n"
        "    *before, last = line.split(' ')\n"
        f"    ShellComplete(group, {{}}, 'sensorsim', {COMPLETE!r}).get_completions(before, last)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_commands_are_completed_without_importing_them(tmp_path):
    code = (
        "import sys\nfrom click.shell_completion import ShellComplete\nfrom sensorsim.commands.program import group\n"
        f"ShellComplete(group, {{}}, 'sensorsim', {COMPLETE!r}).get_completions([], '')\n"
        "print(*sorted(name for name in sys.modules if name.startswith('sensorsim.') and '_util' not in name))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout == "sensorsim.commands sensorsim.commands.program\n"


# ---- mistyped


MEANT = {
    "cots": "cost",
    "noise chck": "check",
    "cost --chp x": "--chip",
    "data make --rwos 3": "--rows",
    "cost --cpu cortex-m5": "cortex-m4",
    "cost --chip nrf5283": "nrf52832",
    "cost --radio ble2m": "ble-2m",
    "train --mechanism skech": "sketch",
    "verify --target hots .": "host",
    "kernel spoof": "spof",
    "claims cost-spo": "cost-spof",
    "figures --out x --only acuracy_c": "accuracy_c",
    "noise make --epsilon 1 --kind row": "rows",
    "plan --columns TotalStep": "TotalSteps",
    "cost --cpu CORTEX-M5": "cortex-m4",
    "cost --cpu k8": "k7",
    "cost --cp k7": "--cpu",
}


@pytest.mark.parametrize("line", MEANT)
def test_a_mistyped_name_is_answered_by_the_nearest(line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2 and f" (did you mean {MEANT[line]}?); " in said
    assert said.count("\n") == 1 and len(said) <= MOST_LETTERS + 1


def test_the_same_in_python():
    """Where no command stands before it: the settings of training, and columns of a table."""
    import pandas as pd

    from sensorsim.datasets.record_tables import need_columns
    from sensorsim.training.config import Config, checked

    with pytest.raises(InputError, match=r"optimiser is 'adamm' \(did you mean adam\?\); give one of adam, sgd"):
        checked(Config("none", optimiser="adamm"), 3)
    with pytest.raises(InputError, match=r"days.csv has no column step \(did you mean steps\?\); it has who, steps"):
        need_columns(pd.DataFrame({"who": [1], "steps": [2]}), ("step",), "days.csv")


def test_what_is_like_nothing_is_not_guessed(capsys):
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    assert capsys.readouterr().err == "Error: No such command 'xyzzy'; see `sensorsim --help`.\n"
    assert did_you_mean("ls", COMMANDS) == "" and did_you_mean("--x", ["--n", "--metric"]) == ""
    assert did_you_mean("pentium", cpu_names()) == "" and did_you_mean(3, ["rows"]) == ""
    assert did_you_mean("TOTALSTEPS", ready_ranges()) == " (did you mean TotalSteps?)"
