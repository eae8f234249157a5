"""The linear part of a classifier: texts in, logits out; kept beside the weights of the encoder.

`linear.json` and `linear.safetensors` in a model's folder: docs/reference/linear-json.md. Neither
scikit-learn nor pickle is needed, and transformers looks at neither file.

Legend: N texts, D numbers of a frozen encoder, K labels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.inference.linear.bags import Keys, character_keys
from malmoi.inference.linear.kiwi_parts import VectorPart, read_by_kiwi
from malmoi.inference.linear.morphemes import ReadMorphemes, morpheme_keys, read_morphemes
from malmoi.inference.linear.parts import NgramName, NgramPart, NgramTable
from malmoi.inference.vectors.sentence_encoder import SentenceEncoder
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS

# Raised by a change that a reader of the files would notice.
VERSION = 3
_OLDER = (1, 2)  # morphemes by Kiwi
# The sentence encoder, in the folder of a classifier that reads its vectors.
SENTENCES = "sentences"
_NGRAMS: tuple[NgramName, ...] = ("characters", "morphemes")


@dataclass(frozen=True, kw_only=True)
class LinearPart:
    """A linear classifier of texts, whose logits are added to those of an encoder.

    Attributes:
        labels: K names.
        bias: float32 [K].
        ngrams: those of characters, of morphemes, both or none.
        encoder_weight: the encoder's logits count so much; 0 where there is no encoder.
        head: float32 [D, K], of the numbers that a frozen encoder makes of a text; None where the
            encoder is a classifier itself, or where there is none.
        sentences: float32 [H, K], of the vectors of `sentence_encoder`; None without.
        sentence_encoder: that it reads; None where others give its vectors.
        analyser: of its morphemes; Kiwi of what an older version has fitted.
        vectors: of Kiwi's word vectors, which such a one may read, too.
    """

    labels: list[str]
    bias: np.ndarray
    ngrams: list[NgramPart]
    encoder_weight: float
    head: np.ndarray | None = None
    sentences: np.ndarray | None = None
    sentence_encoder: SentenceEncoder | None = None
    analyser: Literal["mecab", "kiwi"] = "mecab"
    vectors: VectorPart | None = None

    @property
    def parts(self) -> list[str]:
        """What it is made of."""
        names: list[str] = [part.name for part in self.ngrams]
        others = {"vectors": self.vectors, "sentences": self.sentences}
        return [*names, *(name for name, part in others.items() if part is not None)]

    def logits(
        self,
        texts: Sequence[str],
        morphemes: ReadMorphemes = read_morphemes,
        sentences: np.ndarray | None = None,
    ) -> np.ndarray:
        """Float32 [N, K] of N clean texts; safe to use from several threads.

        Args:
            texts: clean.
            morphemes: reads them; of an older version Kiwi does.
            sentences: float32 [N, H], the vectors of the texts, where they are known.
        """
        found = np.zeros((len(texts), len(self.labels)), dtype=np.float32) + self.bias
        if not texts:
            return found
        names = self.parts
        keys: dict[NgramName, Keys] = {}
        if "characters" in names:
            keys["characters"] = character_keys(texts)
        if self.analyser == "kiwi" and {"morphemes", "vectors"} & set(names):
            by_kiwi = read_by_kiwi(texts)
            keys["morphemes"] = by_kiwi.keys
            if self.vectors is not None:
                found += self.vectors.logits(by_kiwi)
        elif "morphemes" in names:
            keys["morphemes"] = morpheme_keys(texts, morphemes)
        if self.ngrams:
            for of_part in self._table.logits(keys, len(texts)):
                found += of_part
        if self.sentences is not None:
            if sentences is None:
                assert self.sentence_encoder is not None
                sentences = self.sentence_encoder(texts)
            found += sentences @ self.sentences
        return found

    @cached_property
    def _table(self) -> NgramTable:
        return NgramTable(self.ngrams)

    def added(self, encoder: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Logits of both: those of the encoder, float32 [N, K], and `logits` of the same texts."""
        return np.asarray(self.encoder_weight * encoder + own, dtype=np.float32)

    def scaled(self, factor: float) -> LinearPart:
        """The same, whose own logits are so many times as large."""
        vectors = self.vectors
        return replace(
            self,
            bias=self.bias * factor,
            ngrams=[replace(part, weights=part.weights * factor) for part in self.ngrams],
            vectors=None if vectors is None else replace(vectors, weights=vectors.weights * factor),
            sentences=None if self.sentences is None else self.sentences * factor,
        )

    def check_labels(self, labels: Sequence[str], folder: Path) -> None:
        """Raise InputError unless these are the labels that it knows, in their order."""
        if list(labels) != self.labels:
            raise InputError(
                "expected the labels {labels} in {file}, as in config.json, found {found}; delete "
                "{linear} to go without the linear part, or name the labels alike",
                labels=", ".join(labels),
                file=folder / LINEAR,
                found=", ".join(self.labels),
                linear=LINEAR,
            )

    def save(self, folder: Path, facts: dict[str, Any] | None = None) -> None:
        """Write both files and the sentence encoder; `facts` are for readers, changing nothing.

        Only of what this version fits.
        """
        from safetensors.numpy import save

        assert self.analyser == "mecab"
        arrays = {"bias": self.bias.astype(np.float32)}
        for part in self.ngrams:
            arrays[f"{part.name}.keys"] = part.vocabulary.astype(np.uint64)
            arrays[f"{part.name}.idf"] = part.idf.astype(np.float16)
            arrays[f"{part.name}.weights"] = part.weights.astype(np.float16)
        if self.head is not None:
            arrays["encoder.weights"] = self.head.astype(np.float32)
        if self.sentences is not None:
            assert self.sentence_encoder is not None
            arrays["sentences.weights"] = self.sentences
            self.sentence_encoder.save(folder / SENTENCES)
        described = {
            "version": VERSION,
            "labels": self.labels,
            "parts": self.parts,
            "analyser": self.analyser,
            "encoder_weight": self.encoder_weight,
            **(facts or {}),
        }
        write_at_once(folder / LINEAR_WEIGHTS, save(arrays))
        write_at_once(folder / LINEAR, json.dumps(described, ensure_ascii=False, indent=2) + "\n")


def load_linear(folder: Path) -> LinearPart | None:
    """The linear part in a model's folder; None where there is none.

    Raises:
        InputError: it is damaged, or of a later version.
    """
    path = folder / LINEAR
    if not path.is_file():
        return None
    from safetensors.numpy import load_file

    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        if described["version"] not in (*_OLDER, VERSION):
            raise InputError(
                "expected version {known} in {path}, found {version}; update malmoi, or train the "
                "classifier again",
                known=VERSION,
                path=path,
                version=described["version"],
            )
        found = _read(described, load_file(folder / LINEAR_WEIGHTS))
        if found.sentences is not None:
            found = replace(found, sentence_encoder=SentenceEncoder(folder / SENTENCES))
    except InputError:
        raise
    except Exception as error:  # safetensors has its own for a damaged file
        raise InputError(
            "expected a linear part in {path} and {weights}, found {error}; delete both to go "
            "without, or train the classifier again",
            path=path,
            weights=LINEAR_WEIGHTS,
            error=error,
        ) from error
    return found


def _read(described: dict[str, Any], arrays: dict[str, np.ndarray]) -> LinearPart:
    labels = [str(name) for name in described["labels"]]
    parts = described["parts"]
    ngrams = [
        NgramPart(
            name=name,
            vocabulary=arrays[f"{name}.keys"],
            idf=arrays[f"{name}.idf"].astype(np.float32),
            weights=_of_labels(arrays[f"{name}.weights"], labels),
        )
        for name in _NGRAMS
        if name in parts
    ]
    vectors = None
    if "vectors" in parts:
        idf = arrays["vectors.idf"].astype(np.float32)
        vectors = VectorPart(idf=idf, weights=_of_labels(arrays["vectors.weights"], labels))
    for name in ("encoder.weights", "sentences.weights"):
        _of_labels(arrays.get(name, arrays["bias"][None]), labels)
    for part in ngrams:
        if not len(part.vocabulary) == len(part.idf) == len(part.weights):
            raise ValueError(f"{part.name} of different lengths")
    bias = arrays["bias"].astype(np.float32)
    if bias.shape != (len(labels),):
        raise ValueError(f"a bias of {bias.shape} for {len(labels)} labels")
    return LinearPart(
        labels=labels,
        bias=bias,
        ngrams=ngrams,
        analyser=described.get("analyser", "kiwi"),
        vectors=vectors,
        encoder_weight=float(described["encoder_weight"]),
        head=arrays.get("encoder.weights"),
        sentences=arrays.get("sentences.weights"),
    )


def _of_labels(weights: np.ndarray, labels: list[str]) -> np.ndarray:
    if weights.shape[1:] != (len(labels),):
        raise ValueError(f"weights of {weights.shape} for {len(labels)} labels")
    return weights
