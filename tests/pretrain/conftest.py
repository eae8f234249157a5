"""A small tokenizer and pair that the pre-training tests share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerFast

from pretrain.batches import Batch
from pretrain.corruption import VocabularyTables, vocabulary_tables
from pretrain.networks import ElectraPair, PairShape, build_pair
from pretrain.settings import Preset
from tokenizer.training import train_tokenizer

SMALL = Preset(
    num_layers=2,
    hidden_size=64,
    num_heads=4,
    embedding_size=32,
    learning_rate=2e-3,
    tokens_per_batch=512,
)


@pytest.fixture(scope="session")
def tokenizer(comments: list[str]) -> PreTrainedTokenizerFast:
    return train_tokenizer(comments, vocab_size=4_096).tokenizer


@pytest.fixture
def pair(tokenizer: PreTrainedTokenizerFast) -> ElectraPair:
    torch.manual_seed(0)
    return build_pair(SMALL, tokenizer)


# Wide enough first weights that the networks' outputs differ from token to token.
TOY = Preset(
    num_layers=2,
    hidden_size=32,
    num_heads=4,
    embedding_size=16,
    learning_rate=2e-3,
    tokens_per_batch=512,
    initializer_range=0.2,
)
TOY_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]
TOY_WORDS = [*"가나다라마바사아자차카타", *(f"##{c}" for c in "고노도로모보소오")]


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A vocabulary of 26 entries, so that whole distributions are cheap to write out."""

    tokenizer: PreTrainedTokenizerFast
    tables: VocabularyTables
    counts: np.ndarray
    """int64 [V]."""

    def pair(self, *, seed: int = 0, **shape: Any) -> ElectraPair:
        """An untrained pair; `shape` as in `PairShape`."""
        torch.manual_seed(seed)
        pair = build_pair(TOY, self.tokenizer, shape=PairShape(**shape))
        pair.set_attention("eager")
        return pair

    def batch(self, rows: list[list[int]], *, packed: bool = False, seed: int = 0) -> Batch:
        """Random texts, framed. `rows`: the tokens of each text, row by row; padded by 3.

        One token in ten is unknown.
        """
        random = np.random.default_rng(seed)
        width = max(sum(size + 2 for size in row) for row in rows) + 3
        ids, documents, positions = np.zeros((3, len(rows), width), dtype=np.int64)
        for row, sizes in enumerate(rows):
            begin = 0
            for number, size in enumerate(sizes):
                words = random.integers(len(TOY_SPECIAL), len(self.tokenizer), size)
                words[random.random(size) < 0.1] = self.tokenizer.unk_token_id
                part = slice(begin, begin + size + 2)
                ids[row, part] = [
                    self.tokenizer.cls_token_id,
                    *words,
                    self.tokenizer.sep_token_id,
                ]
                documents[row, part] = number + 1
                positions[row, part] = np.arange(size + 2)
                begin += size + 2
        framing = [self.tokenizer.cls_token_id, self.tokenizer.sep_token_id]
        real = documents > 0
        return Batch(
            input_ids=torch.from_numpy(ids),
            maskable=torch.from_numpy(real & ~np.isin(ids, framing)),
            is_real=torch.from_numpy(real),
            position_ids=torch.from_numpy(positions) if packed else None,
            documents=torch.from_numpy(documents) if packed else None,
            num_tokens=int(real.sum()),
        )


@pytest.fixture(scope="session")
def toy() -> Toy:
    vocabulary = {token: index for index, token in enumerate([*TOY_SPECIAL, *TOY_WORDS])}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordPiece(vocabulary, unk_token="[UNK]")),
        **{f"{token.strip('[]').lower()}_token": token for token in TOY_SPECIAL[:5]},
    )
    counts = np.random.default_rng(1).integers(0, 200, len(vocabulary))
    tables = vocabulary_tables(tokenizer, len(vocabulary), counts, torch.device("cpu"))
    return Toy(tokenizer=tokenizer, tables=tables, counts=counts)
