"""An encoder that is not trained: what it makes of a text, for a linear model on top.

An ELECTRA that Malmoi has saved is computed by ONNX Runtime, in int8 where the processor can; any
other one, or on a GPU, by torch.

Legend: N texts, B texts in a batch, H hidden size, K labels.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from malmoi.errors import InputError
from malmoi.inference.batched_logits import logits_by_length
from malmoi.inference.batching import PaddedBatch
from malmoi.inference.description import ModelDescription
from malmoi.inference.electra_export import can_export, read_tokenizer
from malmoi.inference.engine import Engine, Engineless, EngineName
from malmoi.inference.processor import has_gpu, suited_engine
from malmoi.inference.tokenizing import FastTokenizer, TextTokenizer
from malmoi.installed import INSTALL_TORCH, TORCH, need
from malmoi.messages import Phrase
from malmoi.model_folders import WEIGHTS, discriminator_folder, find_encoder, read_config
from malmoi.paths import home

# Tokens of a window, as fine-tuning has by default.
MAX_LENGTH = 128


@dataclass(frozen=True, kw_only=True)
class FrozenEncoder:
    """An encoder without a head; safe to use from several threads.

    Attributes:
        engine: whose logits are [CLS] and the mean of all tokens, float32 [B, 2 H].
        tokenizer: of clean texts.
        description: has no labels.
        source: the folder it is from.
        save: writes encoder and tokenizer into a new folder, for `load`.
    """

    engine: Engine
    tokenizer: TextTokenizer
    description: ModelDescription
    source: Path
    save: Callable[[Path], None]

    @classmethod
    def load(cls, folder: Path, *, exact: bool = False) -> FrozenEncoder:
        """Load an encoder, or a run of pre-training; a head that it has is left out.

        Args:
            folder: has it.
            exact: in fp32.

        Raises:
            InputError: the folder has no model that can be loaded, or one for which torch is
                needed, and it is not installed.
        """
        source = discriminator_folder(folder) if (folder / "discriminator").is_dir() else folder
        config = {} if has_gpu() or not can_export(source, head=False) else read_config(source)
        found = read_tokenizer(source, config) if config else None
        if found is None:
            need(Phrase("a linear classifier that reads an encoder"), *TORCH, instead=INSTALL_TORCH)
            from malmoi.inference.linear.torch_encoder import TorchEncoder

            torch_encoder = TorchEncoder.load(source)
            return cls(
                engine=torch_encoder,
                tokenizer=torch_encoder.tokenizer,
                description=torch_encoder.description,
                source=source,
                save=torch_encoder.save,
            )
        from malmoi.inference.electra_network import build_features  # a tenth of a second: onnx
        from malmoi.inference.onnx_engine import OnnxEngine

        name: EngineName = "onnx-fp32" if exact else suited_engine()
        weights = load_file(source / WEIGHTS)
        network = build_features(config, weights, quantized=name == "onnx-int8")
        serialized, facts = found
        facts["max_length"] = min(MAX_LENGTH, facts["max_length"])
        description = ModelDescription(labels=[], **facts)
        return cls(
            engine=OnnxEngine(network.SerializeToString(), name),
            tokenizer=FastTokenizer(serialized, description),
            description=description,
            source=source,
            save=lambda place: _copy(source, place),
        )

    def with_head(self, weights: np.ndarray) -> Engine:
        """An engine whose logits are those of `weights`, float32 [2 H, K]."""
        return _WithHead(self.engine, weights.astype(np.float32))

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """[CLS] and mean of N clean texts, float32 [N, 2 H], N at least 1."""
        tokens = self.tokenizer(texts)
        found: np.ndarray | None = None
        for places, rows in logits_by_length(self.engine, tokens, range(len(texts))):
            if found is None:
                found = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
            found[places] = rows
        assert found is not None
        return found


def encoders_at_hand() -> list[FrozenEncoder]:
    """What `find_encoder` finds, then the other released encoders and classifiers; [] without any.

    Raises:
        InputError: the first cannot be loaded.
    """
    try:
        first = find_encoder()
    except InputError:
        return []
    released = [
        folder
        for folder in sorted((home() / "checkpoints").glob("*"))
        if folder != first and can_export(folder, head=False)
    ]
    return [FrozenEncoder.load(folder) for folder in (first, *released)]


class _WithHead:
    """An engine, and a linear model of what it gives."""

    def __init__(self, encoder: Engine, weights: np.ndarray) -> None:
        self._encoder, self._weights = encoder, weights
        self.name: EngineName | Engineless = encoder.name
        self.place, self.tokens_in_batch = encoder.place, encoder.tokens_in_batch
        self.batches_at_once = encoder.batches_at_once

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        """Float32 [B, K]."""
        return np.asarray(self._encoder.logits(batch) @ self._weights, dtype=np.float32)


def _copy(source: Path, folder: Path) -> None:
    """Copy weights and tokenizer into a new folder, without cards and numbers of a training."""
    folder.mkdir(parents=True)
    for name in ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(source / name, folder / name)
