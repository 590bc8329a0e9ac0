"""Trained models as safetensors or npz, never pickle, with their privacy statement inside. To read one needs no torch.

A file holds the numbers of the model and the fields of FIELDS, nothing else. It has no accuracy and no error of a
column, which are measured on raw records; no seed and no configuration from which noise could be drawn again; no name
of a file, no count of a person's records, no maximum of a column. `tensors` are, for every user j of m:

    encoder.j.weight (n, l)   encoder.j.bias (l,)         on the body
    encoder.j.middle (l,)     encoder.j.spread (l, l)     mean and covariance that units are expected to have before
                                                          their sigmoid, from the release: what `decode` starts from
    decoder.weight (m·l, n)   decoder.bias (m, n)         at the hospital
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim._util.files import (
    check_target,
    check_targets,
    read_bounded,
    strict_json,
    suffix_of,
    write_all,
    write_whole,
)
from sensorsim._util.results import TITLE, Result
from sensorsim.datasets.public_ranges import brief
from sensorsim.encoders import MOST_NAME, TOLD, Encoder, as_json, name_of, range_of
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT, HIDDEN
from sensorsim.noise.certificate import format_epsilon_column as epsilon_to
from sensorsim.training.config import MOST_SIGMA
from sensorsim.training.trained import FORMS, LEAST_VARIANCE, Part, Reals, Trained, on_the_lattice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.datasets.public_ranges import Range
    from sensorsim.training.fitting import Statement

SCHEMA_VERSION = 3
CONTENT = "sensorsim model"
SECRET, SEEDED, SENSORS, NONE = "secret", "from a seed, so not private", "the sensors' own", "none"
NOISE = (SECRET, SEEDED, SENSORS, NONE)
NORMALISE = ("ranges", "max", None)  # None: from packets, and nobody said how readings became 0 … 1
MOST_USERS, MOST_FEATURES, MOST_LETTERS = 1 << 16, 4096, 2000
MOST_EPSILON = 1e6
SIZES = {"n": MOST_FEATURES, "l": MOST_FEATURES, "m": MOST_USERS, "records": 1 << 50}
CHOICES = {"form": FORMS, "noise": NOISE, "normalise": NORMALISE}
WORDS = ("mechanism", "covers", "covers_short", "trust", "settings")
OF_STATEMENT = ("nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "trust", "settings")
FIELDS = (
    *("schema_version", "content", "form", "n", "l", "m", "columns", "ranges", "normalise", "mechanism", "kind"),
    *(*OF_STATEMENT, "noise", "records", "identity", "sigma"),
)
FORMATS = (".safetensors", ".npz")
ABOUT = "sensorsim"  # the name of the JSON text beside the tensors
MOST_BYTES = 1 << 29
MOST_ABOUT = 1 << 22
MOST_NUMBER = 1e12  # of a weight


# ── the statement in a file ──


def about_model(
    statement: Statement,
    *,
    sizes: tuple[int, int, int],
    columns: tuple[str, ...],
    ranges: tuple[Range, ...] | None,
    sigma: float = 0.0,
    **others: Any,
) -> dict[str, Any]:
    """Return the fields of a file, checked; `sizes` are n, l and m, `sigma` the environment's noise it was made for.

    `others` are form, mechanism, kind, normalise, noise, identity and records: how many were trained on, or how many
    packets came. All of them are public.
    """
    check_columns(columns, ranges)
    for epsilon in (statement.nominal_epsilon, statement.spent_epsilon):
        if epsilon is not None and not 0 < epsilon <= MOST_EPSILON:
            raise InputError(
                f"a record spends an epsilon of {epsilon:g}; a model can state one up to {MOST_EPSILON:g}."
            )
    made = {"schema_version": SCHEMA_VERSION, "content": CONTENT, **dict(zip("nlm", sizes, strict=True))}
    made |= {"columns": list(columns), "ranges": None if ranges is None else [asdict(one) for one in ranges]}
    return checked_about(made | others | {"sigma": sigma} | {name: getattr(statement, name) for name in OF_STATEMENT})


def checked_about(found: Any) -> dict[str, Any]:
    """Return the fields if they are complete and nothing else is there; raise an error of any kind otherwise."""
    if type(found) is not dict or found.get("content") != CONTENT:
        raise InputError("it is no model of this sensorsim; make it again with sensorsim train --out.")
    if found["schema_version"] != SCHEMA_VERSION:
        raise InputError(f"it has another schema version than {SCHEMA_VERSION}; make it again with sensorsim train.")

    names = (*found["columns"], *found["identity"], found["kind"] or "")
    for name in names:
        name_of(name)
    ranges_of(found)
    valid = (
        set(found) == set(FIELDS),
        all(type(found[name]) is int and 1 <= found[name] <= most for name, most in SIZES.items()),
        all(found[name] in allowed for name, allowed in CHOICES.items()),
        type(found["columns"]) is type(found["identity"]) is list and found["l"] <= found["n"] == len(found["columns"]),
        all(
            type(found[name]) is str and found[name].isprintable() and len(found[name]) <= MOST_LETTERS
            for name in WORDS
        ),
        all(_is_epsilon(found[name]) for name in ("nominal_epsilon", "spent_epsilon")),
        _is_number(found["delta"], 1.0) and _is_number(found["sigma"], MOST_SIGMA),
    )
    if not all(valid):
        raise ValueError("fields")
    return {name: found[name] for name in FIELDS}


def _is_epsilon(value: Any) -> bool:
    return value is None or (_is_number(value, MOST_EPSILON) and value > 0)


def _is_number(value: Any, most: float) -> bool:
    """Compare as it is: a whole number that no float can hold is not converted."""
    return type(value) in (int, float) and bool(0 <= value <= most)


def check_columns(columns: tuple[str, ...], ranges: tuple[Range, ...] | None = None) -> None:
    """Refuse names and units that no file could hold, before anything is trained."""
    if len(columns) > MOST_FEATURES:
        raise InputError(f"there are {len(columns)} columns; a model has at most {MOST_FEATURES}, so choose --columns.")
    for name in (*columns, *(one.unit for one in ranges or ())):
        try:
            name_of(name)
        except TypeError:
            raise InputError(
                f"{brief(name)} cannot be the name or unit of a column; a model holds up to {MOST_NAME} printable "
                "letters, so give another."
            ) from None


def ranges_of(about: dict[str, Any]) -> tuple[Range, ...] | None:
    """Return the ranges of the columns, in their order."""
    found = about["ranges"]
    if found is None:
        return None
    made = tuple(map(range_of, found)) if type(found) is list else ()
    if [one.name for one in made] != about["columns"]:
        raise ValueError("ranges")
    return made


@dataclass(frozen=True, repr=False, eq=False)
class Model(Result):
    """A model as it is stored in a file."""

    trained: Trained
    middle: tuple[Reals, ...]  # (l,) for every user
    spread: tuple[Reals, ...]  # (l, l)
    about: dict[str, Any]
    written: dict[str, Any] = field(default_factory=dict)  # where it was written, and what became of its encoders

    def to_dict(self) -> dict[str, Any]:
        """Return the statement, of which nothing was measured on a raw record."""
        return {**self.about, **self.written, "schema_version": SCHEMA_VERSION}

    def rows(self) -> list[dict[str, Any]]:
        """Return the statement as one row, without lists."""
        said = {**self.about, **self.written}
        return [{name: value for name, value in said.items() if name not in ("columns", "ranges", "identity")}]

    def title(self) -> str:
        about = self.about
        return f"{about['mechanism']}, {about['form']}: n = {about['n']}, l = {about['l']}, m = {about['m']}"

    def facts(self) -> dict[str, str]:
        about = self.about
        spent = epsilon_to(about["spent_epsilon"], 4)
        of = "packet" if about["noise"] == SENSORS else "record"
        facts = {"epsilon": f"{spent} spent per {of}, as it states; delta {about['delta']:g}; {about['trust']}"}
        facts |= {"covers": about["covers"], "noise": about["noise"], f"{of}s": f"{about['records']:,}"}
        return facts | ({"saved in": self.written["saved"]} if "saved" in self.written else {})

    def save(self, path: str) -> None:
        """Write model and statement as .safetensors or .npz."""
        save(path, self)

    def figure(self) -> Figure:
        """Draw the weights of the first encoder, a row for each feature."""
        from matplotlib.figure import Figure

        made = Figure(figsize=(7, 1.5 + 0.28 * self.about["n"]), layout="constrained")
        axes = made.add_subplot()
        weights = self.trained.users[0].W
        most = float(np.abs(weights).max()) or 1.0
        shown = axes.imshow(weights, cmap="cividis", vmin=-most, vmax=most, aspect="auto")
        axes.set_yticks(range(self.about["n"]), [name[:30] for name in self.about["columns"]])
        axes.set(xlabel="hidden unit")
        axes.set_xticks(range(weights.shape[1]))
        made.suptitle("\n".join(wrap(f"{self.title()} · weights of encoder 0, larger is lighter", TITLE)), fontsize=9)
        made.colorbar(shown, label="weight")
        return made


# ── write ──


def check_paths(out: str | None, encoder: str | None, inputs: Sequence[str] = ()) -> None:
    """Refuse places that cannot be written to, before anything is computed."""
    if out is not None:
        _check_form(out)
        check_target(out)
    if encoder is not None and not encoder.endswith(".json"):
        raise InputError(f"{encoder} is no JSON file; give --encoder a name that ends in .json.")
    check_targets([out, encoder], read=inputs)


def _check_form(path: str) -> None:
    if suffix_of(path, FORMATS[0]) not in FORMATS:
        raise InputError(f"{path} ends in {Path(path).suffix or 'nothing'}; a model is saved as .safetensors or .npz.")


def save(path: str, model: Model) -> None:
    """Write model and statement in one file, whole or not at all."""
    check_paths(path, None)
    write_whole(path, content_of(path, model))


def write_model(model: Model, out: str | None, encoder: str | None) -> dict[str, Any]:
    """Write the requested files, the model and its encoders in integers, all or nothing; return where."""
    done: dict[str, Any] = {}
    contents: dict[str, bytes | str] = {}
    if out is not None:
        contents[out] = content_of(out, model)
        done["saved"] = out
    if encoder is not None:
        made = in_integers(model)
        path = Path(encoder)
        files = [encoder] if len(made) == 1 else [str(path.with_stem(f"{path.stem}-{j}")) for j in range(len(made))]
        contents |= {file: as_json(one) for file, one in zip(files, made, strict=True)}
        done |= {"encoder": " ".join(files), "encoder_shared": len(made) == 1 and model.trained.m > 1}
        done["weights_saturated"] = sum(one.provenance["quantisation"]["weights_saturated"] for one in made)
    write_all(contents)
    return done


def content_of(path: str, model: Model) -> bytes:
    """Return the content of the file, checked as it will be when it is read."""
    tensors = tensors_of(model)
    try:
        about = _checked(model.about, tensors).about
    except (ValueError, TypeError):  # LinAlgError is a ValueError
        raise InputError(
            "the model has numbers that no file of a model may hold, so training went astray; try a smaller --lr."
        ) from None
    text = json.dumps(about, sort_keys=True)
    if suffix_of(path, FORMATS[0]) == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, **{ABOUT: np.frombuffer(text.encode(), np.uint8)}, **tensors)  # type: ignore[arg-type]
        return buffer.getvalue()
    from safetensors.numpy import save as as_bytes

    return bytes(as_bytes(tensors, metadata={ABOUT: text}))


def tensors_of(model: Model) -> dict[str, Reals]:
    """Return the paper's matrices, W_j (n, l) of every user and Ŵ (m·l, n); a constant of the decoder is in Ŵ."""
    users: tuple[Part, ...] = model.trained.users
    found: dict[str, Reals] = {}
    for j, (part, middle, spread) in enumerate(zip(users, model.middle, model.spread, strict=True)):
        found |= {f"encoder.{j}.weight": part.W, f"encoder.{j}.bias": part.b}
        found |= {f"encoder.{j}.middle": middle, f"encoder.{j}.spread": spread}
    found["decoder.weight"] = np.concatenate([part.V + model.trained.c for part in users])
    found["decoder.bias"] = np.stack([part.d for part in users])
    return {name: np.ascontiguousarray(value, np.float64) for name, value in found.items()}


def in_integers(model: Model) -> list[Encoder]:
    """Return an encoder in the kernels' integers for every user; one for all of them where all are equal."""
    users, about = model.trained.users, model.about
    first = users[0]
    shared = all(np.array_equal(part.W, first.W) and np.array_equal(part.b, first.b) for part in users)
    made = []
    for j, part in enumerate(users[:1] if shared else users):
        half = len(part.W) // 2  # each of n products is rounded down by half a unit on average
        saturated = int((np.abs(part.W) >= ENCODER_WEIGHT.hi / 2**ENCODER_WEIGHT.frac_bits).sum())
        told = {name: about[name] for name in TOLD if name in about}
        weights = tuple(tuple(ENCODER_WEIGHT.quantise(float(value)) for value in row) for row in part.W.T)
        bias = tuple(ENCODER_BIAS.quantise(float(value)) + half for value in part.b)
        provenance = told | {"user": "all" if shared else j, "quantisation": {"weights_saturated": saturated}}
        made.append(Encoder(weights, bias, tuple(about["columns"]), ranges_of(about), provenance))
    return made


def encode(rows: np.ndarray, weights: Sequence[Sequence[int]], bias: Sequence[int]) -> np.ndarray:
    """Return hidden units of every row by the integer kernel itself, as reals."""
    from sensorsim.kernels.encoder import encoder

    flat, offsets = np.array(weights, dtype=np.int16).ravel(), np.array(bias, dtype=np.int32)
    hidden = encoder.batch(x=on_the_lattice(rows), weights=flat, bias=offsets)["hidden"]
    return np.asarray(hidden / 2**HIDDEN.frac_bits)


# ── read ──


def load(path: str) -> Model:
    """Read the model of a file, untrusted until all of it is checked."""
    _check_form(path)
    try:
        content = read_bounded(path, MOST_BYTES)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; make one with sensorsim train --out {path}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a model of sensorsim train.") from None
    try:
        read = _read_npz if Path(path).suffix.lower() == ".npz" else _read_safetensors
        text, tensors = read(content)
        if len(text) > MOST_ABOUT:
            raise ValueError("about")
        return _checked(strict_json(text), tensors)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception:  # two libraries and JSON, each with errors of its own for a damaged file
        raise InputError(
            f"{path} is not a model of this sensorsim, or was altered; make it again with sensorsim train --out."
        ) from None


def _checked(about: Any, tensors: dict[str, Any]) -> Model:
    """Return a model of exactly the expected tensors, in their shapes, with finite numbers."""
    about = checked_about(about)
    n, l, m = about["n"], about["l"], about["m"]
    shapes: dict[str, tuple[int, ...]] = {"decoder.weight": (m * l, n), "decoder.bias": (m, n)}
    for j in range(m):
        shapes |= {f"encoder.{j}.weight": (n, l), f"encoder.{j}.bias": (l,)}
        shapes |= {f"encoder.{j}.middle": (l,), f"encoder.{j}.spread": (l, l)}
    if {name: value.shape for name, value in tensors.items()} != shapes:
        raise ValueError("shapes")
    for value in tensors.values():
        if value.dtype != np.float64 or not (np.abs(value) < MOST_NUMBER).all():
            raise ValueError("numbers")
    V, d = tensors["decoder.weight"].reshape(m, l, n), tensors["decoder.bias"]
    parts = [Part(tensors[f"encoder.{j}.weight"], tensors[f"encoder.{j}.bias"], V[j], d[j]) for j in range(m)]
    middle, spread = (tuple(tensors[f"encoder.{j}.{name}"] for j in range(m)) for name in ("middle", "spread"))
    for each in spread:  # `decode` divides by deviations and draws by its root
        if not np.array_equal(each, each.T) or np.diag(each).min() < LEAST_VARIANCE / 2:
            raise ValueError("covariance")
        np.linalg.cholesky(each)  # LinAlgError, a ValueError, where it has none
    return Model(Trained(about["form"], tuple(parts)), middle, spread, about)


def _read_npz(content: bytes) -> tuple[bytes, dict[str, Any]]:
    """Read the members of an archive; compare the stated sizes before any memory is taken."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    if sum(member.file_size for member in members) > MOST_BYTES or len({one.filename for one in members}) < len(
        members
    ):
        raise ValueError("too large, or a member twice")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        found = dict(arrays)
    return found.pop(ABOUT).tobytes(), found


def _read_safetensors(content: bytes) -> tuple[bytes, dict[str, Any]]:
    from safetensors.numpy import load as tensors_in

    size = min(int.from_bytes(content[:8], "little"), MOST_BYTES // 8)
    return strict_json(content[8 : 8 + size])["__metadata__"][ABOUT].encode(), tensors_in(content)
