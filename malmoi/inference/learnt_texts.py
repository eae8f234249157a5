"""Which texts a classifier has learnt: a list beside its weights, so that none of them scores it.

The list holds 8 bytes of a SHA-256 for each text, not the text; who has both list and text can
tell whether it was learnt. Texts are compared by their letters and digits: punctuation, symbols and
how often a letter repeats depend on the version of the cleaner.
"""

import hashlib
import io
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from malmoi.errors import InputError
from malmoi.files import write_at_once

LEARNT = "learnt_texts.npy"
_runs = re.compile(r"(\D)\1+").sub


def text_keys(texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
    """uint64 [N], equal for texts, or pairs of texts, with the same letters and digits.

    Args:
        texts: cleaned.
        pairs: the second text of each, cleaned.
    """
    seconds = [""] * len(texts) if pairs is None else pairs
    digests = [
        hashlib.sha256(f"{_letters(text)}\0{_letters(second)}".encode()).digest()[:8]
        for text, second in zip(texts, seconds, strict=True)
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(character for character in plain if character.isalnum())
    # A text of symbols alone is compared as it is.
    return _runs(r"\1", letters) or text


def read_learnt(model: str | Path) -> np.ndarray | None:
    """The keys of what a classifier has learnt, uint64; None where it does not say.

    Raises:
        InputError: the list is damaged.
    """
    path = Path(model) / LEARNT
    if not path.is_file():
        return None
    try:
        keys = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            "expected the list of what {model} has learnt, found {error}; copy the model again",
            place=path,
            model=model,
            error=error,
        ) from error
    if keys.dtype != np.uint64 or keys.ndim != 1:
        raise InputError(
            "expected a list of numbers of 8 bytes, found {dtype} {shape}; copy the model again",
            place=path,
            dtype=keys.dtype,
            shape=keys.shape,
        )
    return np.asarray(keys)


def write_learnt(model: Path, keys: np.ndarray, before: np.ndarray | None = None) -> None:
    """Keep the list beside the weights, whole or not at all.

    Args:
        keys: of `text_keys`.
        before: what the model it began as had learnt.
    """
    known = keys if before is None else np.concatenate([keys, before])
    buffer = io.BytesIO()
    np.save(buffer, np.unique(known).astype("<u8"))
    write_at_once(model / LEARNT, buffer.getvalue())
