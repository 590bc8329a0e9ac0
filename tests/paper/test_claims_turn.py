"""Verdicts turn when what they rest on does: another figure in print, another quantity behind the computation."""

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest
from claim_verdicts import TRAINED, VERDICT

from sensorsim.language.ranges import RangeError
from sensorsim.noise import noise_table as tables
from sensorsim.paper import cost_claims
from sensorsim.paper.experiment_claims import Experiment
from sensorsim.paper.recompute import ARITHMETIC, DEPENDS, HOLDS, NOT, statements

BY_ID = {one.id: one for one in statements()}

OTHER_FIGURES = [
    ("cost-spof", ("365",), NOT),
    ("cost-dpsgd", ("1361",), NOT),
    ("cost-saving", ("75",), NOT),
    ("cost-division", ("33",), NOT),
    ("cost-width", ("1404",), NOT),
    ("cost-x87", ("1", "1", "1"), HOLDS),
    ("cost-squares", ("1",), HOLDS),
    ("cost-gradient", ("0",), HOLDS),
    ("cost-clip", ("0",), HOLDS),
    ("cost-draws", ("1",), HOLDS),
    ("cost-constant", ("0",), HOLDS),
    ("cost-exp", ("2",), DEPENDS),
    ("cost-uncounted", ("779",), HOLDS),
    ("cost-read", ("8",), NOT),
    ("cost-root", ("20",), HOLDS),
    ("cost-coefficients", ("50",), NOT),
    ("sens-spof", ("20",), NOT),
    ("sens-zero", ("2.8863",), NOT),
    ("sens-minimum", ("4.0348", "0.9058"), NOT),
    ("sens-gap", ("16.4",), NOT),
    ("sens-sgd-n", ("15",), NOT),
    ("sens-sgd-clipped", ("14",), HOLDS),
    ("sens-one", ("1",), HOLDS),
    ("sens-figure", ("8", "2.8863"), NOT),
    ("noise-max", ("0",), HOLDS),
    ("noise-one", ("0.4",), HOLDS),
    ("noise-sum", ("0.001",), HOLDS),
    ("exp-columns", ("13",), NOT),
    ("own-rtl", ("-1",), NOT),
]


@pytest.mark.parametrize(("id", "figures", "verdict"), OTHER_FIGURES)
def test_another_figure_in_print(id, figures, verdict):
    assert BY_ID[id].check(None, *figures).verdict == verdict != VERDICT[id]


def eighth(x):
    return Fraction(1, 8)


def spends(epsilon, covers=None):
    return lambda *args, **use: SimpleNamespace(
        epsilon=epsilon, basic=epsilon, delta=0.0, why="", covers=covers or SimpleNamespace(value="all")
    )


def silent(x, noise, stride, cursor, alpha2, alpha3, n, size):
    """A kernel that gives nothing away."""
    alpha2[:] = [10**9] * n


def unproved():
    raise RangeError("somewhere", "it wraps")


STEPS = {"gradients": 20, "squares": 30, "sum": 5, "root": 10, "clip": 30, "perturbation": 5}
LISTED = SimpleNamespace(
    printed=SimpleNamespace(
        total=100,
        steps={name: SimpleNamespace(cost=SimpleNamespace(typical=cost)) for name, cost in STEPS.items()},
    )
)


OTHER_QUANTITIES = [
    ("cost-spof", {"paper.cost_claims.full_cost": cost_claims.paper_cost}, HOLDS),
    ("cost-order", {"paper.cost_claims.price_by_width": lambda report: {"x87": {"spof": 1, "dpsgd": 2}}}, HOLDS),
    ("cost-order", {"paper.cost_claims.price_by_width": lambda report: {"x87": {"spof": 2, "dpsgd": 1}}}, NOT),
    ("cost-cores", {"paper.cost_claims.cpu_names": lambda: ["cortex-m0plus"]}, HOLDS),
    ("cost-cores", {"paper.cost_claims.cpu_names": lambda: ["cortex-m4"]}, NOT),
    ("cost-random", {"costing.record_energy.WholeRecord.savings": lambda self: {"random words": 1.0}}, HOLDS),
    ("cost-radio", {"costing.record_energy.WholeRecord.savings": lambda self: {"on air": 1.0}}, HOLDS),
    ("cost-norm", {"paper.cost_claims.paper_cost": lambda: SimpleNamespace(mechanisms={"dpsgd": LISTED})}, HOLDS),
    ("loss-first", {"paper.loss_claims.sigmoid": lambda a: 0.3}, NOT),
    ("loss-second", {"paper.loss_claims.second": lambda k, x, a: (x - 1) * math_sigmoid(a) * math_sigmoid(-a)}, HOLDS),
    ("loss-half", {"paper.loss_claims.sigmoid": lambda a: 0.125**0.5}, HOLDS),
    ("loss-alpha1", {"paper.loss_claims.softplus": lambda z: 0.5}, NOT),
    ("loss-alpha2", {"paper.loss_claims.softplus": lambda z: z * z}, NOT),
    ("loss-alpha3", {"paper.loss_claims.alpha3": eighth}, NOT),
    ("loss-bounded", {"paper.loss_claims.alpha3": eighth}, HOLDS),
    ("loss-constant", {"paper.loss_claims.alpha3": lambda x: Fraction(1, 2) - x}, HOLDS),
    ("taylor-premise", {"paper.loss_claims.derivatives": lambda most: [Fraction(1)] * most}, HOLDS),
    ("taylor-bound", {"paper.loss_claims.alpha3": eighth}, HOLDS),
    ("taylor-limit", {"paper.loss_claims.taylor_error": lambda delta: 1.0}, NOT),
    ("inputs-h", {"paper.loss_claims.sigmoid": lambda a: 0.5}, NOT),
    ("inputs-z", {"paper.loss_claims.noise_factor": lambda noise, h: 1.0}, NOT),
    ("inputs-square", {"paper.loss_claims.B": Fraction(1)}, HOLDS),
    ("inputs-revert", {"paper.loss_claims.L": 1}, HOLDS),
    ("sens-near", {"accounting.sensitivities.spof_term": lambda a: (a - 1) ** 2 + 0.1}, NOT),
    ("sens-sgd-term",
     {"accounting.sensitivities.dpsgd_term_printed": lambda a: 2 * max(math_sigmoid(a), math_sigmoid(-a))}, HOLDS),
    ("sens-sgd-clips", {"paper.printed_sensitivities.C": 3.0}, HOLDS),
    ("sens-utility", {"accounting.sensitivities.spof": lambda n: 5.0}, DEPENDS),
    ("inputs-difference", {"paper.loss_claims.noisy_inputs": lambda b, n: 1.5 * b}, HOLDS),
    ("inputs-gradient", {"paper.loss_claims.first": lambda k, x, a: 1.0}, NOT),
    ("sens-lower", {"accounting.sensitivities.spof": lambda n: 5.0}, HOLDS),
    ("sens-constant", {"accounting.sensitivities.stabilized_distance": lambda c, l, n, constant=False: 2654.75}, HOLDS),
    ("sens-noise", {"accounting.sensitivities.stabilized_printed": lambda c_j, n: 21.0}, HOLDS),
    ("dp-sum", {"accounting.sensitivities.spof": lambda n: 1.0}, NOT),
    ("dp-both", {"paper.release_claims.nominal_scale": lambda *use: 21.0,
                 "paper.release_claims.spent": spends(1.0)}, HOLDS),
    ("dp-split", {"paper.release_claims.LAPLACE": {2: 1.0, 4: 3.0}}, HOLDS),  # as if it were a normal variable
    ("dp-variance", {"accounting.sensitivities.JOINT_RELEASE_FACTOR": 2.0}, HOLDS),
    ("dp-constant", {"accounting.sensitivities.stabilized_printed": lambda c_j, n: 21.0,
                     "paper.release_claims.spent": spends(1.0)}, HOLDS),
    ("dp-epochs", {"paper.release_claims.spent": spends(1.0)}, HOLDS),
    ("dp-weights", {"accounting.sensitivities.sigmoid": lambda a: 0.5}, HOLDS),
    ("dp-users", {"paper.release_claims.largest_loss": lambda first, second, scale: float(len(first))}, NOT),
    ("dp-level", {"paper.release_claims.RECORDS": 1}, HOLDS),
    ("dp-sgd", {"paper.release_claims.spent": spends(1.0)}, HOLDS),
    ("dp-inputs", {"paper.release_claims.spent": spends(1.0)}, HOLDS),
    ("dp-fm", {"kernels.spof.fm": silent}, NOT),
    ("noise-variance", {"paper.release_claims.W": [1.0]}, HOLDS),
    ("noise-inverse", {"paper.release_claims.HS": (0.0,)}, HOLDS),
    ("noise-derivative", {"paper.release_claims.HS": (0.0,)}, HOLDS),
    ("noise-h", {"training.run_figures.spread": lambda sigma, printed: 0.0}, HOLDS),
    ("noise-table", {"noise.noise_table.make_table": lambda *kind, **options: tables.ready_table("1.6", 1)}, HOLDS),
    ("noise-order", {"kernels.spof.fm": silent}, HOLDS),
    ("exp-maximum", {"paper.experiment_claims.Experiment.dataset": property(lambda self: self.scaled)}, HOLDS),
    ("exp-unaffected", {"mechanisms.dpsgd.Dpsgd.options": ("epsilon", "C", "c", "point", "redraw", "forward")}, NOT),
    ("own-certificates", {"noise.certificate.Certificate.holds": lambda self, epsilon: False}, NOT),
    ("own-sampled", {"noise.kinds.rows_table.RowsTable.estimate_sd": 1.0}, NOT),
    ("own-release", {"mechanisms.spent": spends(2.0)}, NOT),
    ("own-time", {"language.secrecy.Secrecy.same_path": False}, NOT),
    ("own-ranges", {"language.load.shipped": lambda: {"a.kernel": SimpleNamespace(prove=unproved)}}, NOT),
    ("own-rtl", {"costing.prices.cpu_names": lambda: ["ibex", "avr"]}, HOLDS),
    ("own-rtl", {"costing.prices.cpu_names": lambda: ["cortex-m4"]}, NOT),
    ("cost-expf", {"paper.cost_claims.expf_cycles": lambda core: (0.0, 0.0)}, HOLDS),
    ("cost-expf", {"paper.cost_claims.expf_cycles": lambda core: (float(core == "rv32imc"), 1.0)}, DEPENDS),
    ("own-energy", {"costing.record_energy.RecordCost.microjoule": 1.0}, NOT),
]  # fmt: skip


def math_sigmoid(a):
    return 1 / (1 + math.exp(-a))


@pytest.mark.parametrize(("id", "patches", "verdict"), OTHER_QUANTITIES, ids=[case[0] for case in OTHER_QUANTITIES])
def test_another_quantity_behind_it(id, patches, verdict, monkeypatch):
    for place, value in patches.items():
        monkeypatch.setattr(f"sensorsim.{place}", value)
    assert BY_ID[id].check(Experiment()).verdict == verdict != {**VERDICT, **TRAINED}[id]


class Trained(Experiment):
    """Accuracies of a training that never was."""

    def __init__(self, **means):
        super().__init__(full=True)
        self.means = {"spof": 90.0, "dpsgd": 85.0, "fm": 80.0, "noisy": 0.0, "mean": 95.0, "spread": 0.01} | means

    def accuracy(self, mechanism, epsilon, sigma=0.0, **more):
        found = self.means[mechanism] + (self.means["noisy"] if sigma else 0.0) + self.means.get("slope", 0.0) * epsilon
        found += self.means.get("rise", 0.0) * (more.get("c", 2.5) > 0)
        return [found - self.means["spread"], found + self.means["spread"]]

    def cell(self, mechanism, epsilon, **more):
        return {"accuracy": [1.0] * 20, "diverged": self.means.get("diverged", 20),
                "spent_epsilon": self.means.get("spent", 1.6)}  # fmt: skip

    def trivial(self, scaled=False):
        return {"zeros": 80.0, "untrained net": 80.0, "column mean": self.means["mean"]}

    def seconds(self, mechanism, sigma):
        return self.means["took"] if mechanism == "spof" else 1.0


OTHER_TRAINING = [
    ("exp-gain", {"spof": 87.9}, HOLDS),
    ("exp-gain", {"spof": 84.0}, NOT),
    ("exp-gain-noise", {"spof": 88.52}, HOLDS),
    ("exp-gain-noise", {"spof": 87.9}, NOT),
    ("exp-order", {}, HOLDS),
    ("exp-order", {"spof": 84.0}, NOT),
    ("exp-order", {"spof": 85.0}, DEPENDS),
    ("exp-order", {"spread": 50.0}, DEPENDS),
    ("exp-trivial", {}, NOT),
    ("exp-trivial", {"mean": 84.0}, HOLDS),
    ("exp-trivial", {"mean": 88.0}, DEPENDS),
    ("exp-fm", {}, HOLDS),
    ("exp-fm", {"fm": 95.0}, NOT),
    ("exp-fm", {"fm": 87.0}, DEPENDS),
    ("exp-fm-noise", {"noisy": 1.0}, HOLDS),
    ("exp-fm-noise", {"noisy": -1.0}, NOT),
    ("exp-plateau", {"rise": 2.0}, HOLDS),
    ("exp-plateau", {"rise": -2.0}, NOT),
    ("exp-flat", {}, HOLDS),
    ("exp-flat", {"slope": 1.0}, NOT),
    ("exp-flat", {"spread": 1.0}, DEPENDS),
    ("exp-robust", {}, HOLDS),
    ("exp-robust", {"noisy": -2.0}, NOT),
    ("exp-robust", {"noisy": -1.0}, DEPENDS),
    ("exp-degrades", {"noisy": -2.0}, HOLDS),
    ("exp-degrades", {"noisy": 2.0}, NOT),
    ("exp-diverges", {"diverged": 0}, HOLDS),
    ("exp-diverges", {"diverged": 3}, NOT),
    ("own-accuracy", {"sampled": 96.0}, HOLDS),
    ("own-accuracy", {"sampled": 94.0}, NOT),
    ("own-accuracy", {"sampled": 96.0, "spent": 1.7}, NOT),
    ("exp-time", {"took": 0.43}, HOLDS),
    ("exp-time", {"took": 1.6}, NOT),
]


@pytest.mark.parametrize(("id", "means", "verdict"), OTHER_TRAINING)
def test_another_training(id, means, verdict):
    assert BY_ID[id].check(Trained(**means)).verdict == verdict


def test_every_verdict_has_a_case_that_turns_it():
    cases = (*OTHER_FIGURES, *OTHER_QUANTITIES, *OTHER_TRAINING)
    turned = {id for id, *_, verdict in cases if verdict != {**VERDICT, **TRAINED}.get(id)}
    assert turned | {"exp-samples", "own-c", "own-sd", "own-sd-large"} == set(BY_ID)  # these have tests of their own


def test_samples_follow_from_the_file():
    few, many = (SimpleNamespace(scaled=SimpleNamespace(x=range(rows)), name="a file") for rows in (456, 40_000))
    assert BY_ID["exp-samples"].check(few).verdict == ARITHMETIC
    assert BY_ID["exp-samples"].check(many).verdict == HOLDS
    assert BY_ID["exp-samples"].check(few, "36481").verdict == NOT


def test_what_was_not_compared_is_not_called_the_same(monkeypatch):
    monkeypatch.setattr("sensorsim.paper.project_claims.find_compiler", lambda: None)
    assert BY_ID["own-c"].check(Experiment()) == BY_ID["own-c"].check(Experiment())
    assert BY_ID["own-c"].check(Experiment()).verdict == DEPENDS
    monkeypatch.setattr("sensorsim.paper.project_claims.find_compiler", lambda: "cc")
    monkeypatch.setattr("sensorsim.paper.project_claims.compare_with_c", lambda kernels, command: (9, 10))
    assert BY_ID["own-c"].check(Experiment()).verdict == NOT


def test_an_exponential_that_was_not_compiled_is_not_told(monkeypatch):
    monkeypatch.setattr("sensorsim.paper.cost_claims.find_spec", lambda name: None)
    assert BY_ID["cost-expf"].check(Experiment()).verdict == DEPENDS


def test_the_best_known_decides(monkeypatch):
    monkeypatch.setattr(
        "sensorsim.noise.baseline.fine_sd", lambda epsilon: 0.9 * tables.ready_table(epsilon, 1).estimate_sd
    )
    assert BY_ID["own-sd"].check(Experiment()).verdict == BY_ID["own-sd-large"].check(Experiment()).verdict == NOT
