"""`sensorsim noise audit`: tables, packets of a board, and the C of a package."""

import hashlib
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from command import run
from own_noise import rows_table

from sensorsim.noise.noise_table import make_table, ready_table
from sensorsim.noise.table_file import table_bytes, write_table


def capture(path: Path, ones: float, count: int = 8000, seed: int = 0, width: int = 5) -> Path:
    """Packets of random bytes; the third is 1 in a share of them, else 0."""
    rng = np.random.default_rng([seed, round(1000 * ones)])
    packets = rng.integers(0, 256, (count, width)).astype(np.uint8)
    packets[:, 2] = rng.random(count) < ones
    path.write_text("".join(row.tobytes().hex() + "\n" for row in packets))
    return path


def test_a_sound_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.txt"
    write_table(path, rows_table(14, 1))
    code, out, _ = run(capsys, *shlex.split(f"noise audit {path} --draws 1e5"))
    assert code == 0 and "No leak found. That is no proof" in out
    out = " ".join(out.split())  # lines end where the screen does
    assert "not secret" in out and "fewer than one packet in" in out and "100,000 draws" in out
    code, out, _ = run(capsys, *shlex.split(f"noise audit {path} --draws 1e5 --format json"))
    found = json.loads(out)
    assert code == 0 and found["schema_version"] == 2 and found["passed"] and not found["words_are_secret"]
    assert found["draws"] == found["looks"][-1]["draws"] == 100_000 and len(found["looks"]) > 2
    assert 0 < found["rarest_leak_seen"] < 0.1


def test_a_table_that_leaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "naive.txt"
    write_table(path, make_table("naive", 1, frac_bits=8, entries=2**10))
    code, out, _ = run(capsys, *shlex.split(f"noise audit {path} --draws 1e6 --format json"))
    found = json.loads(out)
    assert code == 1 and found["leaks"] and not found["passed"] and found["verdict"].startswith("LEAK")
    assert found["draws"] < found["draws_asked"] == 1_000_000
    code, out, _ = run(capsys, *shlex.split(f"noise audit {path} --mechanism shared --draws 1e5 --format csv"))
    assert code == 1 and "exactly" in out.splitlines()[-1]


@pytest.mark.parametrize("epsilon, code", [("1.1", 0), ("0.5", 1)])
def test_packets_of_a_board(epsilon: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One true answer in four against three in four: log 3 = 1.0986."""
    files = [capture(tmp_path / f"{name}.hex", ones) for name, ones in (("x0", 0.25), ("x1", 0.75))]
    found, out, _ = run(capsys, *shlex.split(f"noise audit --samples {files[0]} {files[1]} --epsilon {epsilon}"))
    assert found == code and "best event    byte 2" in out and ("16,000 packets" in out) == (not code)
    assert ("LEAK: byte 2 costs more than" in out) == bool(code)


def test_packets_claim_what_their_table_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "rows.txt", rows_table(14, 1))
    files = [capture(tmp_path / f"{name}.hex", ones) for name, ones in (("x0", 0.25), ("x1", 0.75))]
    line = f"noise audit {tmp_path / 'rows.txt'} --samples {files[0]} {files[1]} --format json"
    code, out, _ = run(capsys, *shlex.split(line))
    assert code == 0 and json.loads(out)["epsilon_claimed"] == pytest.approx(np.log(2991 / 604), abs=1e-9)


def test_packets_that_follow_each_other_give_x_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A byte is a one-time pad that is used twice: each packet is even, two that follow each other are not."""
    files = []
    for x in (0, 200):
        pads = np.random.default_rng([5, x]).integers(0, 256, 4000).astype(np.uint8)
        packets = np.repeat(pads, 2)
        packets[1::2] ^= np.uint8(x + 1)
        files.append(tmp_path / f"x{x}.hex")
        files[-1].write_text("".join(f"{byte:02X}\n" for byte in packets.tolist()))
    code, out, _ = run(capsys, *shlex.split(f"noise audit --samples {files[0]} {files[1]} --epsilon 1"))
    assert code == 1 and "learnt from two packets that follow each other" in out


@pytest.mark.parametrize("text", ["", "00\n" * 499, "0000\n" * 600, "0000\n" * 600 + "00\n", "0g\n" * 600, "é\n" * 600])
def test_bad_packets(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = capture(tmp_path / "good.hex", 0.5, 600), tmp_path / "bad.hex"
    bad.write_text(text, "utf-8")
    code, out, err = run(capsys, *shlex.split(f"noise audit --samples {good} {bad} --epsilon 1"))
    assert code == 2 and out == "" and err.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        *("--draws 10", "--draws many", "--confidence 1", "nowhere.txt", "--threads 0", "--mechanism lean"),
        *("--samples a b --package c", "--samples a b --mechanism release", "--samples a b"),
        *("--samples a b --epsilon 1", "--samples a b --epsilon none", "--package nowhere"),
    ],
)
def test_bad_input(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "--draws 10" in line or "--confidence" in line:
        write_table(tmp_path / "table.txt", rows_table(2, 2))
        line = f"{tmp_path / 'table.txt'} {line}"
    code, out, err = run(capsys, *shlex.split(f"noise audit {line}"))
    assert code == 2 and out == "" and err.count("\n") == 1


def test_a_claim_that_the_counts_do_not_prove_is_not_believed(tmp_path, capsys):
    """The table of a board says 700, its counts prove 1: packets that give x away are judged by the counts."""
    lines = table_bytes(ready_table("1", 1)).decode().splitlines()[:-1]
    body = "".join(("epsilon_record 700" if s.startswith("epsilon_record") else s) + "\n" for s in lines).encode()
    table = tmp_path / "t.txt"
    table.write_bytes(body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode())
    for x in (0, 1):
        (tmp_path / f"{x}.hex").write_text(f"0{x}\n" * 20_000)
    code, out, _ = run(capsys, *shlex.split(f"noise audit --samples {tmp_path}/0.hex {tmp_path}/1.hex {table}"))
    assert code == 1 and "LEAK" in out


def test_an_older_name_is_the_same_audit(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *shlex.split("noise audit --mechanism release_sampled --epsilon 1.6 --draws 1e4"))
    assert code == 0 and "release 1" in out and "is now called sampled" in err
