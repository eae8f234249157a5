"""A pre-trained discriminator's view of a text: which word pieces look out of place.

ELECTRA's discriminator learnt to tell the tokens of a text from those that a generator put in
(Clark et al. 2020). Asked about a text that nobody has changed, it finds typing errors, odd words
and what its own corpus did not hold.

Legend: T tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from malmoi.errors import InputError
from malmoi.inference.cleaning_normalizer import with_cleaning
from malmoi.inference.tokenizing import serialized_tokenizer
from malmoi.messages import Phrase
from malmoi.model_folders import (
    architecture,
    discriminator_folder,
    find_named,
    local_source,
)

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import ElectraForPreTraining

_ARCHITECTURE = "ElectraForPreTraining"
# Characters that are tokenised first, then twice as many until the model reads no further.
_FIRST_CHARACTERS = 4000
# At most these, which bounds the time; a longer run of one character may hide what follows it.
_MOST_CHARACTERS = 128_000
_half = re.compile("[\ud800-\udfff]").sub


@dataclass(frozen=True)
class Piece:
    """A word piece.

    Attributes:
        text: as it was written; one that stands for a whole run (ㅋㅋㅋㅋ) is a part of it.
        start, end: its place in the text as it was given, in characters.
        replaced: probability that another token stood here, 0 to 1.
    """

    text: str
    start: int
    end: int
    replaced: float


class Discriminator:
    """A network and its tokenizer; safe to use from several threads."""

    def __init__(self, model: ElectraForPreTraining, serialized: str, max_length: int) -> None:
        """Use a model in eval mode, with the tokenizer.json that expects clean texts."""
        self._model = model
        self._tokenizer = Tokenizer.from_str(with_cleaning(serialized))
        self._tokenizer.encode_special_tokens = True  # a typed [SEP] is text
        self._tokenizer.enable_truncation(max_length)
        self._tokenizer.no_padding()

    @classmethod
    def load(cls, path: str | Path, revision: str | None = None) -> Discriminator:
        """Load the discriminator of a pre-training run or of a released encoder.

        Args:
            path: directory, name of a run or of a released model, or Hub id.
            revision: branch, tag or commit of a Hub id.

        Raises:
            InputError: there is none, it is damaged or something else, or its tokenizer is one that
                only transformers reads.
        """
        folder = discriminator_folder(_source(path, revision))
        found = architecture(folder)
        if found != _ARCHITECTURE:
            raise InputError(
                "expected a pre-trained discriminator ({architecture}) in {folder}, found "
                "{found}; name an encoder such as malmoi-small or a run of pretrain/run.py",
                architecture=_ARCHITECTURE,
                folder=folder,
                found=found or Phrase("no config.json that names a class"),
            )
        from transformers import ElectraForPreTraining

        from malmoi.transformers_models import (
            check_vocabulary,
            load_model,
            load_tokenizer,
            longest_input,
        )

        model, report = load_model(ElectraForPreTraining, folder, Phrase("the discriminator"))
        if report["missing_keys"]:
            raise InputError(
                "{folder} is not a whole discriminator: its weights lack {missing}; copy or train "
                "it again",
                folder=folder,
                missing=min(report["missing_keys"]),
            )
        tokenizer = load_tokenizer(folder)
        check_vocabulary(model, tokenizer, str(folder))
        serialized = serialized_tokenizer(tokenizer)
        if serialized is None:
            raise InputError(
                "expected a tokenizer.json in {folder}, which tells the places of word pieces; "
                "found a tokenizer without one",
                folder=folder,
            )
        return cls(model.eval(), serialized, longest_input(model, tokenizer))

    def out_of_place(self, text: str) -> list[Piece]:
        """Every word piece with the probability that it was replaced, in the order of the text.

        Args:
            text: of any length; what exceeds the model's length is cut off. It is cleaned as the
                corpus was, but for the rules that `cleaning_normalizer` cannot carry.

        Returns:
            T pieces, [CLS] and [SEP] not among them; none of a text that is empty once clean.

        Raises:
            InputError: something that is no text.
        """
        import torch

        if not isinstance(text, str):
            raise InputError("expected a text (str), found {kind}", kind=type(text).__name__)
        encoding = self._encoded(text)
        named: dict[str, Any] = {
            "input_ids": torch.tensor([encoding.ids]),
            "attention_mask": torch.ones(1, len(encoding.ids), dtype=torch.int64),
        }
        with torch.inference_mode():
            replaced = self._model(**named).logits[0].sigmoid().tolist()
        special = encoding.special_tokens_mask
        return [
            Piece(text[start:end], start, end, probability)
            for (start, end), probability, apart in zip(
                encoding.offsets, replaced, special, strict=True
            )
            if not apart
        ]

    def _encoded(self, text: str) -> Encoding:
        characters = _FIRST_CHARACTERS
        # Half of a surrogate pair is no text to Rust; in its place stands what no token is made of.
        whole = _half("\ufffd", text)
        while True:
            encoding = self._tokenizer.encode(whole[:characters])
            if encoding.overflowing or characters >= min(len(whole), _MOST_CHARACTERS):
                return encoding
            characters *= 2


def _source(path: str | Path, revision: str | None) -> Path:
    """The folder of a run as it is (it has no config.json of its own), of others as always."""
    place = find_named(path)
    return place if place.is_dir() else Path(local_source(path, revision))
