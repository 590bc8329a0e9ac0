"""C of a package runs on this machine only where its files are as export writes them, and never in this process."""

import contextlib
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path

import pytest

from sensorsim._util.errors import FailedProofError
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.machine.emulator import EndlessError, Machine
from sensorsim.noise.noise_table import ready_table
from sensorsim.noise.table_file import write_table
from sensorsim.verification import step_runner
from sensorsim.verification.bits import Effort, Work
from sensorsim.verification.kernel_timing import KernelResult, Proof
from sensorsim.verification.step_runner import NOT_RUN, Run, Worker
from sensorsim.verification.verification import NO_TABLE, NOT_DRAWN, Contents, Setup, Step, groups, verify

FEW = Effort(20, 20, 4, 8)
OWN = "sha256_of_this_file_without_this_line"
BOOM = """
#if defined(__linux__)
{declared}
__attribute__((constructor)) static void boom(void);
static void boom(void) {{ {does}; }}
#endif
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The files of a small package with a table."""
    table = tmp_path_factory.mktemp("table") / "t.txt"
    write_table(table, ready_table("1.6", 1))
    return make_package(Options(("sampled",), noise=table))


def with_boom(texts, declared, does):
    """The files with C that runs as soon as it is loaded, all hashes repaired."""
    made = dict(texts)
    name = "src/ss_tables.c"
    made[name] += BOOM.format(declared=declared, does=does)
    return sealed(made, name)


def sealed(made, name):
    """The files with the hash of one that was changed."""
    manifest = json.loads(made["MANIFEST.json"])
    manifest["files"][name] = hashlib.sha256(made[name].encode()).hexdigest()
    del manifest[OWN]
    manifest[OWN] = hashlib.sha256((json.dumps(manifest, indent=1) + "\n").encode()).hexdigest()
    made["MANIFEST.json"] = json.dumps(manifest, indent=1) + "\n"
    return made


def written(folder, texts):
    write_folder(folder, texts)
    return folder


@pytest.mark.slow
def test_code_that_ends_its_process_is_a_failed_proof_and_not_the_end_of_this_one(texts, tmp_path):
    """Export itself is taken to have made the code, so that nothing but its run can tell."""
    made = with_boom(texts, "extern void _exit(int);", "_exit(0)")
    report = verify(written(tmp_path / "p", made), ["host"], FEW, made=made)
    assert not report.passed
    assert report.proof("files").passed
    for name, about in (("table", "the table in the code"), ("every draw", "every draw")):
        assert f"{about}: the code ended the process that ran it on host (exit 0)" in report.proof(name).detail
    assert "ends the process on host" in report.proof("self-test").detail
    assert not report.proof("bits").passed


@pytest.mark.slow
def test_code_for_this_machine_does_not_run_where_the_files_differ(texts, tmp_path):
    mark = tmp_path / "mark"
    made = with_boom(texts, "extern int system(const char *);", f'(void)!system("touch {mark}")')
    report = verify(written(tmp_path / "p", made), ["host", "cortex-m0plus"], FEW, made=texts)
    assert not mark.exists()
    assert not report.passed
    assert "differs" in report.proof("files").detail
    assert report.proof("every draw") == Proof("every draw", False, NOT_RUN)
    assert report.proof("table").detail.endswith("read from the code for cortex-m0plus")
    assert report.proof("self-test").detail == "on cortex-m0plus"
    assert {result.target for result in report.results} == {"cortex-m0plus"}
    assert report.left_out == (f"self-test, bits, every draw, the table in the code, on host: {NOT_RUN}",)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A package, and processes that note what they are asked and answer by rote."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "MANIFEST.json").write_text("{}")
    steps = []
    answers = {
        "contents": Contents(("one", "two"), True),
        "files": {"MANIFEST.json": "{}"},
        "table": [Proof("table", True, "")],
        "every draw": [Proof("every draw", True, "")],
        "gcc": "gcc 1",
        "UBSan": 3,
        "self-test": None,
    }

    def do(self, step):
        steps.append(step)
        return KernelResult("k", step.target, 1, 0) if step.check == "bits" else answers[step.check]

    def never(*_):
        raise AssertionError("the package is opened in this process")

    monkeypatch.setattr(Worker, "do", do)
    monkeypatch.setattr(step_runner, "Workspace", never)
    return folder, steps, answers


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_a_package_whose_python_is_trusted_is_opened_in_other_processes_only(asked, jobs):
    folder, steps, _ = asked
    report = verify(folder, ["host", "k7"], FEW, jobs=jobs, trust=True)
    assert report.passed
    assert [result.target for result in report.results] == ["host", "k7"] * 2
    assert [step.check for step in steps[:2]] == ["contents", "files"]
    assert len(steps) == 1 + 1 + 2 + 1 + 1 + 1 + 2 * 3


def test_what_is_not_proved_is_said_and_a_secret_that_shows_in_the_source_fails(asked):
    folder, _, answers = asked
    one = verify(folder, ["host"], FEW, trust=True)
    assert one.left_out == () and "2 kernels, 1 target" in one.proof("bits").detail
    assert verify(folder, ["k7"], FEW, trust=True).left_out == (NOT_DRAWN,)
    answers["contents"] = Contents(("one",), False, ("secrecy of one, for x: a branch",))
    told = verify(folder, ["host"], FEW, trust=True)
    assert not told.passed and told.left_out == (NO_TABLE,)
    assert told.proof("secrecy") == Proof("secrecy", False, "secrecy of one, for x: a branch")
    assert "1 kernel, 1 target" in told.proof("bits").detail


def test_without_trust_and_jobs_only_what_runs_nothing_on_the_host_is_done_here(asked, monkeypatch):
    folder, apart, answers = asked
    here = []

    class Here:
        def __init__(self, setup, name):
            pass

        def do(self, step):
            here.append(step)
            return KernelResult("k", step.target, 1, 0) if step.check == "bits" else answers[step.check]

    monkeypatch.setattr(step_runner, "Workspace", Here)
    assert verify(folder, ["host", "k7"], FEW).passed
    assert not any(step.on_host or step.check == "self-test" for step in here)
    assert {step.check for step in apart if step.on_host} == {"self-test", "table", "every draw", "bits"}
    here.clear()
    (folder / "added").write_text("")
    assert not verify(folder, ["host", "k7"], FEW).passed
    assert {step.check for step in here} == {"contents"}  # an altered one can be ended, whatever it does


@pytest.mark.parametrize("jobs", [0, 2])
@pytest.mark.parametrize("made", [{"MANIFEST.json": "{ }"}, {}, {"MANIFEST.json": "{}", "a": ""}, ["export refuses"]])
def test_the_files_are_compared_here_and_nothing_runs_on_the_host_where_they_differ(asked, jobs, made):
    folder, steps, answers = asked
    answers["files"] = made
    report = verify(folder, ["host", "k7"], FEW, jobs=jobs, trust=True)
    assert not report.passed
    assert not report.proof("files").passed
    assert not any(step.on_host or step.check == "every draw" for step in steps)
    assert {step.check for step in steps} == {"contents", "files", "table", "gcc", "self-test", "bits", "UBSan"}


def test_an_error_in_making_the_files_is_no_leave_to_run_the_code(asked, monkeypatch):
    folder, steps, _ = asked
    known = Worker.do

    def do(self, step):
        if step.check == "files":
            raise FailedProofError("the process is lost")
        return known(self, step)

    monkeypatch.setattr(Worker, "do", do)
    assert verify(folder, ["host"], FEW, trust=True).proof("files").detail == "the process is lost"
    assert not any(step.on_host for step in steps)


def test_while_the_files_are_made_emulated_cores_run_and_the_host_waits(tmp_path):
    setup = Setup(tmp_path, tmp_path, ("host", "k7"), FEW, 0, False)
    run = Run(setup, None, 2)
    run.groups = groups(Contents(("one", "two"), True), setup)
    run.waiting = [list(group) for group in run.groups]
    first = run._take_steps()
    assert [step.check for step in first] == ["files"]
    seen = []
    for _ in range(4):
        taken = run._take_steps()
        seen += taken
        run.found |= dict.fromkeys(taken)
    assert [step.check for step in seen] == ["self-test", "bits", "UBSan", "bits", "UBSan", "gcc"]
    assert not any(step.on_host for step in seen)
    run.found[first[0]] = []
    assert run._take_steps() == [Step("table", "the table in the code", "host")]


def test_ctrl_c_in_a_step_that_is_done_here_is_not_lost_in_a_callback(asked, monkeypatch):
    folder, _, answers = asked
    done = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it

    class Here:
        def __init__(self, setup, name):
            pass

        def do(self, step):
            if step.check == "contents":
                return answers["contents"]
            with contextlib.suppress(KeyboardInterrupt):  # as a callback of C does
                os.kill(os.getpid(), signal.SIGINT)
            done.append(step)
            return answers[step.check]

    monkeypatch.setattr(step_runner, "Workspace", Here)
    with pytest.raises(KeyboardInterrupt):
        verify(folder, ["k7"], FEW)
    assert len(done) == 1
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("answer", ["code", "garbage", "shape"])
def test_an_answer_that_is_code_or_none_is_a_failed_proof(answer, tmp_path):
    worker = Worker(Setup(tmp_path, tmp_path, ("host",), FEW, 0, False), "w")
    worker.process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    worker.ours, theirs = Pipe()
    told = {"code": pickle.dumps((True, Hostile(tmp_path / "made"))), "garbage": b"\x80", "shape": pickle.dumps(3)}
    theirs.send_bytes(told[answer])
    with pytest.raises(FailedProofError, match="a step: what its process answers is no answer"):
        worker.do(Step("every draw", "a step", "host"))
    theirs.close()
    assert not (tmp_path / "made").exists()
    assert worker.process is None


def test_temporary_files_of_a_process_are_below_the_build_folder_and_it_prints_nothing(tmp_path, monkeypatch):
    started = {}

    def popen(command, **options):
        started.update(options)
        raise OSError("not started")

    monkeypatch.setattr(subprocess, "Popen", popen)
    worker = Worker(Setup(tmp_path, tmp_path, ("host",), FEW, 0, False), "w")
    with pytest.raises(OSError, match="not started"):
        worker._start()
    worker.ours.close()
    assert started["env"]["TMPDIR"].startswith(f"{tmp_path}{os.sep}")
    assert Path(started["env"]["TMPDIR"]).is_dir()
    assert started["stdout"] == subprocess.DEVNULL


ENDLESS = "for (volatile int k = 0; k < 1; k += 0) { }"


def endless(texts, folder):
    """A package whose kernel never returns, all hashes repaired."""
    made, name = dict(texts), "src/ss_release_kernels.c"
    assert "\n{\n" in made[name]
    made[name] = made[name].replace("\n{\n", f"\n{{\n    {ENDLESS}\n")
    write_folder(folder, sealed(made, name))
    return folder


def test_code_that_never_ends_is_a_failed_proof(texts, tmp_path, monkeypatch):
    """Outside of the self-test, which does not run on this machine where a file differs."""
    monkeypatch.setattr(Machine, "limit", 1)
    work = Work(open_package(endless(texts, tmp_path / "p")), tmp_path, FEW, 0)
    with pytest.raises(EndlessError, match="does not end on k7: stopped after 1 s") as caught:
        work.without_undefined_behaviour(work.package.kernels[0])
    assert caught.value.exit_code == 1


def test_a_call_in_time_is_not_stopped(texts, tmp_path):
    write_folder(tmp_path / "p", texts)
    work = Work(open_package(tmp_path / "p"), tmp_path, FEW, 0)
    assert work.without_undefined_behaviour(work.package.kernels[0]) > 0


@pytest.mark.slow
def test_verify_ends_where_the_code_does_not(texts, tmp_path):
    words = ["verify", str(endless(texts, tmp_path / "p")), "--target", "host"]
    done = subprocess.run([sys.executable, "-m", "sensorsim", *words], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "does not end on k7" in " ".join(done.stdout.split()), done
    assert "undefined behaviour in " in done.stderr and "Error" not in done.stderr


def test_c_that_does_not_return_on_this_machine_ends_its_process(tmp_path, monkeypatch):
    program = "from sensorsim.verification.bits import _ended_after\nwith _ended_after(1):\n    {}\n"
    for does, code in (("while True: pass", -signal.SIGPROF), ("pass", 0)):
        assert subprocess.run([sys.executable, "-c", program.format(does)]).returncode == code
    worker = Worker(Setup(tmp_path, tmp_path, ("host",), FEW, 0, False), "w")

    def start():
        worker.ours, theirs = Pipe()
        worker.process = subprocess.Popen(["sh", "-c", "kill -PROF $$"], start_new_session=True)
        theirs.close()

    monkeypatch.setattr(worker, "_start", start)
    with pytest.raises(FailedProofError, match="a step: the code does not end on host"):
        worker.do(Step("bits", "a step", "host"))


def test_an_image_whose_self_test_loops_for_ever_is_told(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from sensorsim.machine.elf import read_elf
    from sensorsim.machine.targets import TARGETS, Ziglang
    from sensorsim.verification import binary

    monkeypatch.setattr(Machine, "limit", 1)
    core, source = TARGETS["cortex-m0plus"], tmp_path / "loop.c"
    source.write_text("unsigned ss_selftest(void); unsigned ss_selftest(void) { for (volatile int k = 0;; k++) { } }\n")
    out = Ziglang().elf(core, [source], [tmp_path], "ss_selftest", tmp_path / "loop.elf")
    program = read_elf((out or tmp_path / "loop.elf").read_bytes())
    (proof,) = binary.selftest_proofs(binary.Image(program, core, SimpleNamespace(prefix="ss_")))
    assert not proof.passed and "ss_selftest does not end on cortex-m0plus: stopped after 1 s" in proof.detail
