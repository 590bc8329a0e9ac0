"""Trained models as safetensors or npz, never pickle, with their privacy statement inside. To read one needs no torch.

A file holds the numbers of the model and what `about` lists: nothing of it was measured on a raw record, and nothing
lets the noise be drawn again. `tensors` are, for every user j of m:

    encoder.j.weight (n, l)   encoder.j.bias (l,)         on the body
    encoder.j.middle (l,)     encoder.j.spread (l, l)     mean and covariance that units are expected to have before
                                                          their sigmoid, from the release: what `decode` starts from
    decoder.weight (m·l, n)   decoder.bias (m, n)         at the hospital
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim._util.files import check_target, read_bounded, strict_json, suffix_of, write_whole
from sensorsim._util.results import TITLE, Result
from sensorsim.noise.certificate import format_epsilon_column as epsilon_to
from sensorsim.training.about import SENSORS, checked_about
from sensorsim.training.prior_codes import LEAST_VARIANCE
from sensorsim.training.trained import Part, Reals, Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 3
FORMATS = (".safetensors", ".npz")
ABOUT = "sensorsim"  # the name of the JSON text beside the tensors
MOST_BYTES = 1 << 29
MOST_ABOUT = 1 << 22
MOST_NUMBER = 1e12  # of a weight


@dataclass(frozen=True, repr=False, eq=False)
class Model(Result):
    """A model as it lies on disk."""

    trained: Trained
    middle: tuple[Reals, ...]  # (l,) for every user
    spread: tuple[Reals, ...]  # (l, l)
    about: dict[str, Any]
    written: dict[str, Any] = field(default_factory=dict)  # where it was written, and what became of its encoders

    def to_dict(self) -> dict[str, Any]:
        """Its statement: nothing of it was measured on a raw record."""
        return {**self.about, **self.written, "schema_version": SCHEMA_VERSION}

    def rows(self) -> list[dict[str, Any]]:
        """One row: what is said of it, without lists."""
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
        """The weights of the first encoder, a row for each feature."""
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


def check_path(path: str) -> None:
    """Say no before the training, not after it."""
    _check_form(path)
    check_target(path)


def _check_form(path: str) -> None:
    if suffix_of(path, FORMATS[0]) not in FORMATS:
        raise InputError(f"{path} ends in {Path(path).suffix or 'nothing'}; a model is saved as .safetensors or .npz.")


def save(path: str, model: Model) -> None:
    """Write model and statement in one file, whole or not at all."""
    check_path(path)
    write_whole(path, content_of(path, model))


def content_of(path: str, model: Model) -> bytes:
    """What that file holds, checked as it will be when it is read."""
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
    """The paper's matrices: W_j (n, l) of every user and Ŵ (m·l, n). A constant of the decoder is added to Ŵ."""
    users: tuple[Part, ...] = model.trained.users
    found: dict[str, Reals] = {}
    for j, (part, middle, spread) in enumerate(zip(users, model.middle, model.spread, strict=True)):
        found |= {f"encoder.{j}.weight": part.W, f"encoder.{j}.bias": part.b}
        found |= {f"encoder.{j}.middle": middle, f"encoder.{j}.spread": spread}
    found["decoder.weight"] = np.concatenate([part.V + model.trained.c for part in users])
    found["decoder.bias"] = np.stack([part.d for part in users])
    return {name: np.ascontiguousarray(value, np.float64) for name, value in found.items()}


def load(path: str) -> Model:
    """The model of a file, hostile until all of it is checked."""
    _check_form(path)
    try:
        content = read_bounded(path, MOST_BYTES)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; make one with sensorsim train --out {path}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a model of sensorsim train.") from None
    try:
        read = _npz if Path(path).suffix.lower() == ".npz" else _safetensors
        text, tensors = read(content)
        return _checked(strict_json(text), tensors)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception:  # two libraries and JSON, each with errors of its own for a damaged file
        raise InputError(
            f"{path} is not a model of this sensorsim, or was altered; make it again with sensorsim train --out."
        ) from None


def _checked(about: Any, tensors: dict[str, Any]) -> Model:
    """Every tensor that must be there, in its shape, with finite numbers; nothing else."""
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
    for j in range(m):
        _check_covariance(tensors[f"encoder.{j}.spread"])
    V, d = tensors["decoder.weight"].reshape(m, l, n), tensors["decoder.bias"]
    parts = [Part(tensors[f"encoder.{j}.weight"], tensors[f"encoder.{j}.bias"], V[j], d[j]) for j in range(m)]
    middle, spread = (tuple(tensors[f"encoder.{j}.{name}"] for j in range(m)) for name in ("middle", "spread"))
    return Model(Trained(about["form"], tuple(parts)), middle, spread, about)


def _check_covariance(spread: Reals) -> None:
    """`decode` divides by deviations and draws by its root. LinAlgError, a ValueError, where it has none."""
    if not np.array_equal(spread, spread.T) or np.diag(spread).min() < LEAST_VARIANCE / 2:
        raise ValueError("covariance")
    np.linalg.cholesky(spread)


def _npz(content: bytes) -> tuple[bytes, dict[str, Any]]:
    """Members of the archive; what each says of its size is held against its bytes before any memory is taken."""
    import zipfile

    found: dict[str, Any] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > MOST_BYTES:
            raise InputError(f"it holds more than {MOST_BYTES} bytes, and no model is so large; make it again.")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in found:
                raise ValueError("a member stands twice")
            found[name] = _array(archive.read(member))
    text = found.pop(ABOUT)
    if text.dtype != np.uint8 or text.ndim != 1 or text.size > MOST_ABOUT:
        raise ValueError("about")
    return text.tobytes(), found


def _array(data: bytes) -> Any:
    from numpy.lib import format as npy

    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError("version")
    shape, fortran, dtype = npy.read_array_header_1_0(file)
    if fortran or dtype.kind not in "fu":
        raise ValueError("layout")
    return np.frombuffer(data[file.tell() :], dtype).reshape(shape)  # ValueError where the bytes are not as many


def _safetensors(content: bytes) -> tuple[bytes, dict[str, Any]]:
    from safetensors import deserialize

    size = int.from_bytes(content[:8], "little")
    if size > MOST_BYTES // 8:
        raise ValueError("header")
    text = strict_json(content[8 : 8 + size])["__metadata__"][ABOUT].encode()
    if len(text) > MOST_ABOUT:
        raise ValueError("about")
    found = {}
    for name, part in deserialize(content):  # type: ignore[no-untyped-call]
        if part["dtype"] != "F64":
            raise ValueError("type")
        found[name] = np.frombuffer(part["data"], "<f8").reshape(part["shape"])
    return text, found
