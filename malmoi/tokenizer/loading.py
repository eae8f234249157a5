"""Tokenizers that pre-training can use: all five special tokens, as entries and in their roles."""

import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.transformers_models import SPECIAL_TOKENS, load_tokenizer


def load_pretraining_tokenizer(directory: str | Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer directory and check that pre-training can use it.

    Raises:
        InputError: no such directory, no tokenizer in it, a special token is missing, or it takes
            apart the Hangul syllables that its entries are made of.
    """
    path = Path(directory)
    own = {name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()}
    described = any((path / f"{name}.json").is_file() for name in ("tokenizer_config", "config"))
    # KcELECTRA and KoELECTRA are published with a list of entries and their configurations.
    if "tokenizer.json" not in own and not (own and described):
        raise InputError(
            "expected a tokenizer directory with tokenizer.json, or with vocab.txt and "
            "config.json, found none at {path}; copy there the one that belongs to the model, or "
            "for a new model make one with `malmoi tokenizer train --corpus PATH --output DIR`",
            path=path,
        )
    try:
        entries = _entries_of(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "cannot read the tokenizer at {path}: {error}; copy or train it again",
            path=path,
            error=error,
        ) from error
    missing = [token for token in SPECIAL_TOKENS if token not in entries]
    if missing:
        raise _lacking(path, missing)
    tokenizer: Any = load_tokenizer(path, needs_padding=False)
    missing = [
        f"the role of [{role.upper()}]"
        for role in ("mask", "cls", "sep", "pad")
        if getattr(tokenizer, f"{role}_token_id") is None
    ]
    if missing:
        raise _lacking(path, missing)
    return tokenizer


def _lacking(path: Path, missing: list[str]) -> InputError:
    return InputError(
        "expected special tokens {special_tokens} in {path}, missing {missing}; train a tokenizer "
        "with `malmoi tokenizer train`",
        special_tokens=", ".join(SPECIAL_TOKENS),
        path=path,
        missing=", ".join(missing),
    )


def _entries_of(directory: Path) -> set[str]:
    """What the files list: transformers adds what is missing, but no embedding for it."""
    path = directory / "tokenizer.json"
    if not path.is_file():
        return set((directory / "vocab.txt").read_text(encoding="utf-8").splitlines())
    state = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = state["model"]["vocab"]
    names = vocabulary if isinstance(vocabulary, dict) else [entry[0] for entry in vocabulary]
    return {*names, *(token["content"] for token in state.get("added_tokens", []))}
