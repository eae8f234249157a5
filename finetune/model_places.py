"""Where a model to fine-tune or to predict with lies; nothing is loaded here.

So that a mistyped path is answered before anything long is imported.
"""

from pathlib import Path

from corpora.errors import InputError
from pretrain.places import PICKLED, conversion, is_hub_id

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


def has_weights(directory: Path) -> bool:
    """Whether `directory` holds a configuration and safetensors weights, whole or in shards."""
    return (directory / CONFIG).is_file() and any((directory / name).is_file() for name in WEIGHTS)


def check_source(source: str | Path) -> str:
    """Return what transformers should load: a directory with weights, or a Hub id.

    Raises:
        InputError: the directory is missing, or lacks config.json or model.safetensors.
    """
    path = Path(source)
    if path.is_dir():
        if not (path / CONFIG).is_file():
            raise InputError(f"{path} is not a model: it has no {CONFIG}")
        if not has_weights(path) and (path / PICKLED).is_file():
            raise InputError(
                f"{path} has no weights: expected {WEIGHTS[0]} beside {CONFIG}, found {PICKLED} "
                f"alone, which is not read; {conversion(path, path, '--model')}"
            )
        if not has_weights(path):
            raise InputError(
                f"{path} has no weights: expected {WEIGHTS[0]} beside {CONFIG} "
                "(weights in other formats are not read; save the model again as safetensors)"
            )
        return str(path)
    text = str(source)
    if not is_hub_id(text):
        raise InputError(f"no model directory {text}; check the path")
    return text
