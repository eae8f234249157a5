"""Tokenizers of every kind, trained once on the sample comments, saved and loaded again."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from malmoi.tokenizer.kinds import ModelKind
from malmoi.tokenizer.sampling import mark_morphemes
from malmoi.tokenizer.training import TrainedTokenizer, train_tokenizer

KINDS: tuple[ModelKind, ...] = ("wordpiece", "unigram", "bpe")
EXTRA = "漢字 漢字 😀 😀 👍🏻 👍🏻 café café"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A tokenizer as trained, and as `AutoTokenizer` loads what was saved."""

    kind: ModelKind
    trained: TrainedTokenizer
    loaded: PreTrainedTokenizerFast
    directory: Path


@pytest.fixture(scope="session")
def pair_of(comments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Pair]:
    @cache
    def make(kind: ModelKind, morphemes: bool = False) -> Pair:
        texts = [*comments, EXTRA]
        if morphemes:
            texts, _ = mark_morphemes(texts)
        trained = train_tokenizer(texts, model=kind, vocab_size=4_096)
        directory = tmp_path_factory.mktemp(kind) / "tokenizer"
        directory.mkdir()
        trained.save(directory)
        loaded = AutoTokenizer.from_pretrained(directory)
        return Pair(kind=kind, trained=trained, loaded=loaded, directory=directory)

    return make


@pytest.fixture(scope="session", params=KINDS)
def pair(request: pytest.FixtureRequest, pair_of: Callable[..., Pair]) -> Pair:
    """Each kind in turn."""
    return pair_of(request.param)
