"""The claims: every verdict as it stands, the forms of the answer, and verdicts that turn with what they rest on."""

import csv
import io
import json

import pytest
from command import run

from sensorsim.claims import claims
from sensorsim.claims.claim import FULL, VERDICTS, across, agrees, as_arithmetic
from sensorsim.claims.run import statements

EXPECTED = """
cost-spof            holds as arithmetic
cost-dpsgd           holds as arithmetic
cost-saving          holds as arithmetic
cost-squares         does not hold
cost-gradient        does not hold
cost-clip            does not hold
cost-norm            does not hold
cost-draws           does not hold
cost-constant        does not hold
cost-exp             does not hold
cost-uncounted       does not hold
cost-read            holds as arithmetic
cost-root            depends
cost-coefficients    holds
cost-division        depends
cost-width           depends
cost-order           depends
cost-x87             depends
cost-cores           depends
cost-random          depends
cost-radio           does not hold
loss-first           holds
loss-second          does not hold
loss-half            does not hold
loss-alpha1          holds
loss-alpha2          holds
loss-alpha3          holds as arithmetic
loss-bounded         does not hold
loss-constant        does not hold
inputs-h             holds
inputs-z             holds
inputs-revert        does not hold
inputs-square        does not hold
taylor-premise       does not hold
taylor-bound         does not hold
taylor-limit         holds
sens-spof            holds
sens-zero            holds as arithmetic
sens-minimum         holds as arithmetic
sens-gap             holds as arithmetic
sens-near            holds
sens-sgd-term        depends
sens-sgd-n           holds
sens-sgd-clipped     does not hold
sens-sgd-clips       does not hold
sens-lower           does not hold
sens-constant        holds as arithmetic
sens-noise           does not hold
dp-sum               holds
dp-both              does not hold
dp-split             does not hold
dp-variance          does not hold
dp-constant          does not hold
dp-epochs            does not hold
dp-weights           does not hold
dp-users             holds
dp-level             depends
dp-sgd               depends
dp-inputs            does not hold
dp-fm                holds
noise-variance       does not hold
noise-inverse        does not hold
noise-derivative     holds as arithmetic
noise-max            does not hold
noise-one            does not hold
noise-sum            does not hold
noise-h              does not hold
noise-table          does not hold
noise-order          does not hold
exp-samples          holds as arithmetic
exp-columns          holds as arithmetic
exp-maximum          holds as arithmetic
exp-unaffected       holds
own-certificates     holds
own-sd               holds
own-sampled          holds
own-release          holds
own-time             holds
own-ranges           holds
own-energy           holds
own-rtl              depends
"""
VERDICT = {line.split()[0]: line.split(maxsplit=1)[1] for line in EXPECTED.strip().splitlines()}


@pytest.fixture(scope="module")
def found():
    return claims()


def test_every_verdict_is_the_expected_one(found):
    assert {claim.id: claim.verdict for claim in found.claims} == VERDICT


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
    assert [as_arithmetic(*pair) for pair in ((True, True), (True, False), (False, True))] == [
        "holds", "holds as arithmetic", "does not hold",
    ]  # fmt: skip
    assert [across(cases) for cases in ([True], [False, False], [True, False])] == ["holds", "does not hold", "depends"]


def test_json(capsys):
    code, out, _ = run(capsys, "claims", "cost-spof", "sens-zero", "--format", "json")
    answer = json.loads(out)
    assert code == 0 and answer["schema_version"] == 1 and answer["left_for_full"] == 0
    assert [claim["id"] for claim in answer["claims"]] == ["cost-spof", "sens-zero"]
    assert list(answer["claims"][0]) == ["id", "where", "printed", "computed", "verdict", "how"]


def test_csv(capsys):
    code, out, _ = run(capsys, "claims", "cost-spof", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert code == 0 and row["id"] == "cost-spof" and "364" in row["computed"]


def test_the_table_fits_80_columns(found):
    text = found.text()
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"{claim.id}: {claim.verdict}\n" in text for claim in found.claims)


def test_the_summary_counts_and_names_what_full_adds(found):
    left = sum(one.needs == FULL for one in statements())
    assert sum(found.counts().values()) == len(found.claims) and found.left == left
    assert (f"--full adds {left}" in found.summary()) == bool(left)


def test_forms_for_notebooks(found):
    assert len(repr(found)) < 2000 and "claims" in repr(found)
    assert list(found.to_frame()["id"]) == list(VERDICT)
    assert found._repr_html_().count("<tr>") == len(found.claims) + 1
    assert found.to_dict()["claims"] == list(found.rows())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["claims", "cost-spff"], "there is no claim 'cost-spff' (did you mean cost-spof?)"),
        (["claims", "--data", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_input_is_one_sentence(capsys, words, sentence):
    code, out, err = run(capsys, *words)
    assert code == 2 and out == "" and sentence in err and err.count("\n") == 1 and len(err) < 300
