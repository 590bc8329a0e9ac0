"""The claims: every verdict as it stands, the forms of the answer, and verdicts that turn with what they rest on."""

import json
import subprocess
import sys

import pytest
from claim_verdicts import TRAINED, VERDICT
from command import run

from sensorsim.paper.recompute import VERDICTS, agrees, claims, derived_verdict, statements, verdict_over

LONG = ("own-sd", "own-ranges")  # seconds: a linear program, and every proof of every kernel


@pytest.fixture(scope="module")
def found():
    return claims(only=[id for id in VERDICT if id not in LONG])


def test_every_verdict_is_the_expected_one(found):
    assert {claim.id: claim.verdict for claim in found.claims} == {k: v for k, v in VERDICT.items() if k not in LONG}


@pytest.mark.slow
def test_all_that_needs_no_training():
    whole = claims()
    assert {claim.id: claim.verdict for claim in whole.claims} == VERDICT
    assert whole.left == sum(one.full for one in statements())


@pytest.mark.slow
def test_quick_means_without_torch():
    program = "import sys; from sensorsim.paper.recompute import claims; claims(); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


@pytest.mark.slow
def test_all_that_needs_training():
    """On the synthetic set; the clock alone may say anything."""
    trained = [one.id for one in statements() if one.full]
    whole = {claim.id: claim.verdict for claim in claims(full=True, only=trained).claims}
    assert whole.pop("exp-time") in VERDICTS
    assert whole == TRAINED


def test_there_are_many_and_each_says_everything(found):
    assert len(found.claims) >= 45
    for claim in found.claims:
        assert claim.verdict in VERDICTS
        for text in (claim.id, claim.where, claim.printed, claim.computed, claim.how):
            assert text.strip() == text != ""
            text.encode("latin-1")  # any terminal shows them


def test_printed_figures_have_one_source():
    """The figures that a function is given stand in the text that is shown."""
    for one in statements():
        assert all(figure in one.printed for figure in one.figures), one.id


def test_agreement_is_to_the_printed_decimals():
    assert agrees(74.0556, "74") and agrees(74.0556, "74.06") and not agrees(74.0556, "74.05")
    assert agrees(1403, "1403") and not agrees(1361, "1403")
    assert agrees(0.5, "1") and not agrees(float("0.49999"), "1")


def test_verdicts_follow():
    assert [derived_verdict(*pair) for pair in ((True, True), (True, False), (False, True))] == [
        "holds", "holds as arithmetic", "does not hold",
    ]  # fmt: skip
    assert [verdict_over(cases) for cases in ([True], [False, False], [True, False])] == [
        "holds",
        "does not hold",
        "depends",
    ]


def test_the_table_fits_80_columns(found):
    text = found.text()
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"{claim.id}: {claim.verdict}\n" in text for claim in found.claims)


def test_forms_for_notebooks(found):
    assert len(repr(found)) < 2000 and "claims" in repr(found)
    assert list(found.to_frame()["id"]) == [claim.id for claim in found.claims]
    assert found._repr_html_().count("<tr>") == len(found.claims)
    assert found.to_dict()["claims"] == list(found.rows())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["claims", "cost-spff"], "there is no claim 'cost-spff' (did you mean cost-spof?)"),
        (["claims", "--data", "nowhere.csv"], "nowhere.csv"),
        (["claims", "exp-gain"], "claim exp-gain trains or compiles; add --full"),
    ],
)
def test_bad_input_is_one_sentence(capsys, words, sentence):
    code, out, err = run(capsys, *words)
    assert code == 2 and out == "" and sentence in err and err.count("\n") == 1 and len(err) < 300


@pytest.mark.parametrize("change", ["column", "cell", "constant"])
def test_a_file_that_does_not_fit_is_one_sentence(capsys, tmp_path, change):
    """No way out is named that this command does not have."""
    from sensorsim.datasets.synthetic import make

    frame = make(seed=0).drop(columns=["Calories"] if change == "column" else [])
    if change == "cell":
        frame["TotalSteps"] = [None, *frame["TotalSteps"][1:]]
    elif change == "constant":
        frame["TotalSteps"] = 1
    path = tmp_path / "mine.csv"
    frame.to_csv(path, index=False)
    code, out, err = run(capsys, "claims", "exp-maximum", "--data", path)
    assert code == 2 and out == "" and err.count("\n") == 1 and len(err) < 300
    assert "mine.csv" in err and "leave --data out" in err
    assert not {"--columns", "--normalise", "--drop-missing"} & set(err.replace(":", " ").split())


def test_a_file_of_ones_own(capsys, tmp_path):
    from sensorsim.datasets.synthetic import make

    make(seed=1).to_csv(tmp_path / "mine.csv", index=False)
    code, out, _ = run(capsys, "claims", "exp-samples", "--data", tmp_path / "mine.csv", "--format", "json")
    assert (
        code == 0 and json.loads(out)["data"] == "mine.csv" and "mine.csv" in json.loads(out)["claims"][0]["computed"]
    )


def test_the_order_does_not_depend_on_what_was_imported_first():
    code = "import sensorsim.paper.{}\nfrom sensorsim.paper.recompute import statements\n"
    code += "print([one.id for one in statements()])"
    said = [
        subprocess.run([sys.executable, "-c", code.format(first)], capture_output=True, text=True, check=True).stdout
        for first in ("recompute", "loss_claims")
    ]
    assert said[0] == said[1] and said[0].startswith("['cost-spof'")
