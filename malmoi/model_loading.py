"""Stock transformers models: loaded from a folder or the Hub with one clear error, and saved.

Weights are safetensors only, nothing is unpickled, remote code is never run.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import PreTrainedTokenizerBase

from malmoi.errors import InputError
from malmoi.files import full_disk_as_oserror
from malmoi.loading import quiet_transformers
from malmoi.model_folders import weight_files
from malmoi.tokenizer_folders import save_tokenizer

if TYPE_CHECKING:
    # A third of a second of imports that a type alone needs.
    from transformers import PreTrainedModel

_NO_LENGTH = 1 << 31


def check_vocabulary(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str
) -> None:
    """Refuse a tokenizer that can give the model an id it has no embedding for.

    Raises:
        InputError: with both sizes.
    """
    known = int(model.get_input_embeddings().num_embeddings)  # type: ignore[arg-type]
    largest = max(tokenizer.get_vocab().values())
    if largest >= known:
        raise InputError(
            "tokenizer and model of {source} do not belong together: the tokenizer has ids up to "
            "{largest}, the model {known} embeddings",
            source=source,
            largest=largest,
            known=known,
        )


def longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens of one text, [CLS] and [SEP] included, that model and tokenizer both allow.

    512, as BERT has, where neither says.
    """
    stated = [position_count(model), tokenizer.model_max_length]
    # transformers fills in 1e30 where there is none.
    bounds = [int(length) for length in stated if length and 0 < length < _NO_LENGTH]
    return min(bounds, default=512)


# Keys of configurations. Defaults of the classes are BERT's, which need not be this network's.
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


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save a stock transformers model with its tokenizer, weights as safetensors.

    Raises:
        OSError: errno.ENOSPC when the disk is full.
    """
    with quiet_transformers(), full_disk_as_oserror(directory):
        model.save_pretrained(directory)
        save_tokenizer(tokenizer, directory)
    for file in directory.iterdir():
        file.chmod(0o644)  # safetensors gives 0o600, which colleagues could not read.


def takes_token_types(model: PreTrainedModel) -> bool:
    """Whether a model tells the second text of a pair by its token type.

    RoBERTa and its kind have one type, DistilBERT none; the [SEP] between the texts tells them.
    """
    types = getattr(model.config, "type_vocab_size", 0) or 0
    return types > 1 and "token_type_ids" in signature(model.forward).parameters


def position_count(model: PreTrainedModel) -> int | None:
    """Most tokens that a model has positions for; None where it has no such bound.

    RoBERTa begins to count behind the padding token's id: the first positions are never used.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - unused
    return int(positions) if isinstance(positions, int) and positions > 0 else None
