"""A mechanism: one object that says everything about itself, and that everyone else asks.

To add one, write a file with a subclass, `register` an instance of it, and test it; nothing else has to know. From
another package, name that instance as an entry point of the group `sensorsim.mechanisms`, and every process finds it.

A subclass says: `name`, the same word everywhere (cost, export, audit, train, accounting, figures); `forms`, its
kernels as they are counted; `options`, what it reads of a training configuration; `spend`, the epsilon and what that
covers; `draw` and `step`, its part of the training loop; colour, line and marker in figures. torch is imported inside
methods.
"""

from typing import Any, ClassVar, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import Spent, Use
from sensorsim.language.kernel import Kernel
from sensorsim.mechanisms.form import PAPER, Form
from sensorsim.noise.noise_table import NoiseTable

Tensor = Any  # torch is not imported for a type
LOOP = ("optimiser", "lr", "batch", "epochs", "start", "schedule")  # of a configuration: the plain training loop
# The settings of the paper's experiment; a mechanism that was tuned has others (`own`).
AUTHORS: dict[str, Any] = dict(zip(LOOP, ("adam", 1e-3, 1, 10, "random", "constant"), strict=True))
AUTHORS |= {"loss": "cross-entropy", "C": 4.0}

LINEAR, SIGMOID = "linear", "sigmoid"  # what is learnt: a linear map in closed form, or the paper's net


class Style(NamedTuple):
    """The look in figures: marker and colour each tell mechanisms apart, so that grey print does too."""

    line: str
    marker: str
    colour: str


class Sensitivity(NamedTuple):
    """L1 sensitivity of what a record releases: as printed by the paper (None: not printed), and what holds."""

    printed: float | None
    true: float


class Mechanism:
    """The base of all mechanisms, with the answers that most of them give."""

    name: ClassVar[str]
    title: ClassVar[str]  # in a legend
    about: ClassVar[str]  # one line, for --help and the README
    style: ClassVar[Style]
    aliases: ClassVar[tuple[str, ...]] = ()  # older names: understood, with a hint
    forms: ClassVar[tuple[Form, ...]] = ()
    as_printed: ClassVar[str] = ""  # the name of the form that the paper prints, and that stands for it in figures
    as_shipped: ClassVar[str] = ""  # and of the one that a firmware engineer would take
    options: ClassVar[tuple[str, ...]] = ()  # of a training configuration
    private: ClassVar[bool] = True  # whether there is an epsilon at all
    trust: ClassVar[str] = "local"  # raw records stay on the body (`local`), or reach the hospital (`central`); `none`
    own_settings: ClassVar[str] = "as printed"  # what its own settings are: `as printed`, or `tuned`
    releases: ClassVar[bool] = False  # whether it draws from a certified table, and all else is post-processing
    reads: ClassVar[str] = "raw"  # what its forward pass reads by default
    may_read: ClassVar[tuple[str, ...]] = ("raw", "released")
    on_noisy_inputs: ClassVar[bool] = False  # whether it treats noisy inputs by the paper's factor b_j
    fresh_environment: ClassVar[bool] = False  # whether the environment's noise on a record is drawn in every epoch
    draws_each_epoch: ClassVar[bool] = False  # whether a record's noise is fresh in every epoch, for any `redraw`
    audited: ClassVar[bool] = False  # whether `observed` says what an observer of a sensor sees
    gaussian: ClassVar[bool] = False  # whether its noise is given by a multiplier of C

    # ---- accounting

    def sensitivity(self, use: Use) -> Sensitivity | None:
        """Return how far another record moves what is released."""
        return None

    def nominal_scale(self, use: Use) -> float:
        """Return the Laplace scale that the nominal epsilon means."""
        raise InputError(f"{self.name} has no Laplace scale.")

    def no_bound(self, use: Use) -> str:
        """Return why no epsilon holds, or "" where one does. A scale that is given is public, and nothing else."""
        return ""

    def spend(self, use: Use) -> Spent:
        """Return epsilon, delta and what they cover."""
        raise NotImplementedError

    # ---- on the body

    def kernel(self, variant: str, table: NoiseTable | None = None) -> Kernel:
        """Return the kernel to export, as printed or lean."""
        wanted = self.as_printed if variant == PAPER and self.as_printed else self.as_shipped
        kernels = [form.kernel for form in self.forms if form.name == wanted]
        if not kernels:
            raise InputError(f"{self.name} has no kernel of its own for a sensor; it runs where the weights are.")
        return kernels[0]

    def cost_form(self) -> Form | None:
        """Return the form whose cost stands for the mechanism in figures: as printed where there is one."""
        wanted = self.as_printed or self.as_shipped
        return next((form for form in self.forms if form.name == wanted), None)

    def observed(self, sources: Any, table: NoiseTable, words: Any = None) -> Any:
        """Return what an observer of a sensor sees, as a packet source of an audit.

        `sources` is the module that makes them (sensorsim.auditing.table_sources); `words` replace the generator's.
        """
        raise InputError(f"{self.name} puts out nothing that comes from a table; audit release, sampled or spof.")

    # ---- in training

    def own(self, config: Any) -> dict[str, Any]:
        """Return the settings of the loop that a configuration has where none are given."""
        return AUTHORS

    def own_map(self, config: Any) -> str:
        """Return the kind of map that is learnt by default; the settings of the loop are those given, or None."""
        return SIGMOID

    def used(self, config: Any) -> tuple[str, ...]:
        """Return the fields of the configuration that have an effect: the same run then always has the same key."""
        return (*self.options, *LOOP)

    def idle(self, config: Any) -> dict[str, str]:
        """Return the options that have no effect beside these settings, and why."""
        known = (
            ("release_sees", not config.sigma, "it is about noisy inputs, and sigma is 0"),
            ("delta", config.noise != "gaussian", "Laplace noise has none"),
            ("decode_c", not config.c, "c is 0"),
            ("bias", config.map == LINEAR, "a linear map has its constant anyway"),
            ("redraw", config.redraw and self.draws_each_epoch, "its noise is fresh at each step anyway"),
        )
        return {option: why for option, idle, why in known if idle}

    def adjusted(self, config: Any, n: int) -> dict[str, Any]:
        """Return changes of the configuration, or raise InputError; called after all other checks."""
        return {}

    def use_of(self, config: Any, n: int) -> Use:
        """Return the use that a training configuration makes of the mechanism."""
        poisson = config.sampling == "poisson"  # every step is then a draw that any record may join
        steps = -(-config.records // config.batch) if poisson else 1
        return Use(
            epsilon=config.epsilon,
            draws=max(config.epochs, 1) * steps if config.redraw or self.draws_each_epoch else 1,
            batch=config.batch,
            rate=min(1.0, config.batch / config.records) if poisson else 1.0,
            features=n,
            hidden=config.l,
            forward=config.reads,
            **{name: getattr(config, name) for name in ("C", "c", "sigma", "point", "noise", "delta")},
        )

    def draw(self, x: Tensor, config: Any, source: Any) -> dict[str, Tensor]:
        """Draw the noise of records x (…, n): once for each, or at each step. `source` gives words, normals, seeds."""
        return {}

    def prepare(self, setting: Any) -> dict[str, Tensor]:
        """Return what is fixed for every record when the first weights are known."""
        return {}

    def step(self, step: Any) -> None:
        """Fill `step.gradient` for one batch. `step` has forward and backward passes ready."""
        raise NotImplementedError

    def decoder_constant(self, config: Any) -> float:
        """Return what is added to every decoder weight when the trained model is used."""
        return 0.0

    def learner(self, config: Any) -> str:
        """Return how a model comes of it: by the plain `loop` over records, or from one `release` of every record."""
        return "loop"
