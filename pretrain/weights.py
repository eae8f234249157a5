"""What weights of others say themselves where their configuration is silent, and what they lack."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedModel

from pretrain.places import weight_files

# Of configurations; the classes' defaults are BERT's, which need not be this network's.
_SIZES = {
    "max_position_embeddings": "embeddings.position_embeddings.weight",
    "type_vocab_size": "embeddings.token_type_embeddings.weight",
}
_TOKEN_TYPES = _SIZES["type_vocab_size"]


def complete_config(config: Any, folder: Path) -> Any:
    """`config` with the positions and token types that the weights have where it states none."""
    try:
        stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        silent = {end: name for name, end in _SIZES.items() if name not in stated}
        for file in weight_files(folder) if silent else ():
            with safe_open(file, framework="pt") as tensors:
                for key in tensors.keys():  # noqa: SIM118
                    name = next((name for end, name in silent.items() if key.endswith(end)), None)
                    if name is not None and hasattr(config, name):
                        setattr(config, name, tensors.get_slice(key).get_shape()[0])
    except (OSError, ValueError, SafetensorError):
        pass  # who loads them says so
    return config


def fill_token_types(model: PreTrainedModel, missing: Collection[str]) -> set[str]:
    """Zero for token types that were not saved, which adds nothing; the keys that this settles."""
    settled = {key for key in missing if key.endswith(_TOKEN_TYPES)}
    with torch.no_grad():
        for key in settled:
            model.get_parameter(key).zero_()
    return settled
