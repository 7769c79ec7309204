"""What an archive's answers are held to, whatever its own encoder and dtype are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from archiver import drift, probe_texts, torchscript_file, weights
from archiver.errors import PackError, first_line
from archiver.model_dir import ModelDir
from archiver.staging import MODEL, ModelWeights
from marvec import loading
from marvec.errors import ModelDirError
from marvec.model import Model
from marvec.settings import Settings

_MOST_DIFFERENCE = (
    1e-3  # of a number in a vector of unit length, or of a score, between a TorchScript file and the weights
)


def load(
    staged: Path,
    model: ModelDir,
    found: ModelWeights,
    settings: Settings,
    tell: Callable[[str], None],
) -> Model:
    """Load the model in float32 on PyTorch, from its TorchScript file if there is one, else from its weights.

    Args:
        staged: The archive's tree. Weights beside a TorchScript file leave it once both are compared, and drift.json
            comes into it.
        model: The model directory.
        found: Its weights.
        settings: The archive's; the encoder and the dtype do not matter.
        tell: Takes a line for the user.

    Raises:
        PackError: When the files do not fit each other.
    """
    folder = staged / MODEL
    if found.torchscript is None:
        return _of_weights(folder, model.root, settings)
    tell("checking the TorchScript file on inputs of several shapes")
    traced = torchscript_file.load(found.torchscript, folder, settings, model.hidden_size)
    if found.transformer is None:
        tell("nothing to compare it with: the directory has no weights")
        return traced
    inputs = probe_texts.for_task(traced.tokenizer, settings)
    difference = drift.between(_of_weights(folder, model.root, settings), traced, inputs)
    _require_same_model(found.torchscript, model.root, difference)
    tell(f"largest difference to the directory's weights {difference.largest_difference:.1e} on {len(inputs)} inputs")
    difference.save(staged)
    weights.drop(folder)
    return traced


def _of_weights(folder: Path, origin: Path, settings: Settings) -> Model:
    exact = replace(settings.engine, encoder="transformers", dtype="float32")
    try:
        return loading.load(folder, replace(settings, engine=exact))
    except ModelDirError as err:
        # The user knows the model's own folder, not the one that is gone when they read this.
        raise PackError(str(err).replace(str(folder), str(origin))) from err
    except Exception as err:  # a config.json can lack what a model first looks for when it runs
        raise PackError(f"{origin}: the model fails on a text: {first_line(err)}") from err


def _require_same_model(file: Path, origin: Path, difference: drift.Drift) -> None:
    if not difference.largest_difference <= _MOST_DIFFERENCE:
        raise PackError(
            f"{file}: its {difference.what} differ by {difference.largest_difference:.1e} from those of the weights in "
            f"{origin}, allowed is {_MOST_DIFFERENCE:.0e}; drop --torchscript to serve the weights, or take them out "
            "of the directory to serve the file"
        )
