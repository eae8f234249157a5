"""Texts to vectors whose products say how like the texts are in meaning; without torch.

Reads a folder of sentence-transformers that has its network in ONNX, as `malmoi-vectors`.

Legend: N texts, H numbers of a vector.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from malmoi.errors import InputError
from malmoi.inference.batched_logits import logits_by_length
from malmoi.inference.description import ModelDescription
from malmoi.inference.processor import suited_engine
from malmoi.model_folders import CONFIG, read_json
from malmoi.paths import checkpoint

NAME = "malmoi-vectors"
# The first of these that is there; transformers.js calls them so.
_NETWORKS = ("onnx/model_q4.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx")
_OUTPUT = "sentence_embedding"
_TOKENIZER, _PROMPTS = "tokenizer.json", "config_sentence_transformers.json"
# Tokens of a window; the vectors of a longer text's windows are averaged.
_MAX_LENGTH = 256
# What its small layers keep near the core: 8% less time than with four times as many (measured).
_TOKENS_IN_BATCH = 256


class SentenceEncoder:
    """A sentence encoder in memory; safe to use from several threads.

    Attributes:
        folder: where it lies.
        tokenizer: of clean texts.
    """

    def __init__(self, folder: str | Path, threads: int | None = None) -> None:
        """Load it.

        Args:
            threads: that compute; as many as there are cores where it is None.

        Raises:
            InputError: the folder is no sentence encoder, or is damaged.
        """
        from malmoi.inference.onnx_engine import OnnxEngine
        from malmoi.inference.tokenizing import FastTokenizer

        folder = Path(folder)
        found = next((name for name in _NETWORKS if (folder / name).is_file()), None)
        missing = [name for name in (CONFIG, _TOKENIZER) if not (folder / name).is_file()]
        if found is None or missing:
            raise _none(folder, ", ".join(["no " + name for name in missing or _NETWORKS[:1]]))
        self.folder, self._network = folder, folder / found
        prompts = read_json(folder / _PROMPTS)
        named = prompts.get("prompts") or {}
        self._prompt = str(named.get(prompts.get("default_prompt_name"), ""))
        config = read_json(folder / CONFIG)
        description = ModelDescription(
            labels=[], max_length=_MAX_LENGTH, pad=int(config.get("pad_token_id") or 0)
        )
        try:
            serialized = (folder / _TOKENIZER).read_text(encoding="utf-8")
            self.tokenizer = FastTokenizer(serialized, description)
            network, self._recipe = _suited(self._network)
            self._engine = OnnxEngine(network, "onnx-int8", threads, output=_OUTPUT)
            self._engine.tokens_in_batch = _TOKENS_IN_BATCH
        except Exception as error:  # tokenizers and ONNX Runtime raise their own
            raise _none(folder, (str(error) or repr(error)).splitlines()[0]) from error

    def save(self, folder: Path) -> None:
        """Copy its files into a new folder, without cards and pictures."""
        folder.mkdir(parents=True)
        for path in (self._network, *self.folder.glob("*.json")):
            copy = folder / path.relative_to(self.folder)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)

    @cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that tell its vectors from those of another model."""
        digest = hashlib.sha256(f"{self._prompt}{self._recipe}".encode())
        for path in (self._network, self.folder / _TOKENIZER):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of N clean texts, each of length 1; float32 [N, H]."""
        given = [self._prompt + text for text in texts] or [self._prompt]
        found: np.ndarray | None = None
        for places, rows in logits_by_length(
            self._engine, self.tokenizer(given), range(len(given))
        ):
            if found is None:
                found = np.zeros((len(given), rows.shape[1]), dtype=np.float32)
            found[places] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        assert found is not None
        return found[: len(texts)]


def find_sentence_encoder(threads: int | None = None) -> SentenceEncoder | None:
    """The released sentence encoder, with so many threads; None where it has not been fetched."""
    folder = checkpoint(NAME)
    return SentenceEncoder(folder, threads) if folder.is_dir() else None


def _suited(network: Path) -> tuple[Path | bytes, str]:
    """What this processor computes fastest, and the name of how it differs from the file."""
    if suited_engine() != "onnx-int8":
        return network, ""
    from malmoi.inference.vectors.eight_bits import RECIPE, in_eight_bits  # a tenth of a second

    loaded = in_eight_bits(network)
    return loaded, RECIPE if isinstance(loaded, bytes) else ""


def _none(folder: Path, found: str) -> InputError:
    return InputError(
        "expected a sentence encoder in {folder}: {config}, {tokenizer} and a network with the "
        "output {output} in ONNX, found {found}; give a folder such as checkpoints/{name}",
        folder=folder,
        config=CONFIG,
        tokenizer=_TOKENIZER,
        output=_OUTPUT,
        found=found,
        name=NAME,
    )
