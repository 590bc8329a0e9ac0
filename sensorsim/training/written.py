"""Where a model is written: its file, and its encoders in the kernels' integers; all of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError

if TYPE_CHECKING:
    from sensorsim.training.save import Model


def check_paths(out: str | None, encoder: str | None, inputs: Sequence[str] = ()) -> None:
    """Refuse places that cannot be written to before anything is computed."""
    from sensorsim._util.files import check_targets

    if out is not None:
        from sensorsim.training import save

        save.check_path(out)
    if encoder is not None and not encoder.endswith(".json"):
        raise InputError(f"{encoder} is no JSON file; give --encoder a name that ends in .json.")
    check_targets([out, encoder], read=inputs)


def write_model(model: Model, out: str | None, encoder: str | None) -> dict[str, Any]:
    """Write what was asked for; returns where."""
    from sensorsim._util.files import write_all
    from sensorsim.encoders import as_json
    from sensorsim.training import save
    from sensorsim.training.quantise import in_integers

    done: dict[str, Any] = {}
    contents: dict[str, bytes | str] = {}
    if out is not None:
        contents[out] = save.content_of(out, model)
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
