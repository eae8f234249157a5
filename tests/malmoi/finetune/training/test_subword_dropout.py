"""Words cut anew for training: same characters, other pieces, and nothing else touched."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    ElectraForSequenceClassification,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from malmoi.errors import InputError
from malmoi.finetune.settings import TrainSettings
from malmoi.finetune.training.encoders import load_encoder_tokenizer
from malmoi.finetune.training.fit import train_classifier
from malmoi.finetune.training.subword_dropout import SubwordDropout, word_pieces_of
from malmoi.inference.batching import TokenizedTexts, tokenize_all
from malmoi.tokenizer.training import wrap_tokenizer
from tests.malmoi.finetune.conftest import tiny_config

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["양", "양도", "##도", "많", "많고", "##고", "맛", "맛있", "맛있어", "맛있어요", "##있"]
PIECES += ["##있어요", "##어", "##어요", "##요", "##ㅋ", "ㅋ", "ㅋㅋ", "##ㅋㅋ", "!", "😀", "##😀"]
TEXTS = ["양도 많고 맛있어요", "맛있어요ㅋㅋㅋ!! 😀", "몰라요 맛", "", "ㅋㅋㅋㅋ 양"]


def tokenizer_of(model: models.Model) -> PreTrainedTokenizerFast:
    backend = Tokenizer(model)
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(SPECIAL)
    return wrap_tokenizer(backend)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *PIECES])}
    return tokenizer_of(models.WordPiece(vocabulary, unk_token="[UNK]"))


def rows(tokens: TokenizedTexts) -> list[list[int]]:
    return [part.tolist() for part in np.split(tokens.flat, tokens.offsets[1:-1])]


def characters(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> str:
    return "".join(piece.removeprefix("##") for piece in tokenizer.convert_ids_to_tokens(ids))


def cut(
    tokenizer: PreTrainedTokenizerBase,
    tokens: TokenizedTexts,
    rate: float,
    *,
    places: list[int] | None = None,
    max_length: int = 128,
    seed: int = 0,
) -> TokenizedTexts:
    chosen = np.arange(len(tokens.lengths)) if places is None else np.array(places)
    dropout = SubwordDropout(word_pieces_of(tokenizer), rate)
    return dropout.cut_anew(tokens, chosen, max_length, random.Random(seed))


def test_without_dropout_words_are_cut_as_wordpiece_cuts_them(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    tokens = tokenize_all(tokenizer, TEXTS, 128)
    assert rows(cut(tokenizer, tokens, 0.0)) == rows(tokens)


def test_cuts_differ_and_characters_stay(tokenizer: PreTrainedTokenizerBase) -> None:
    tokens = tokenize_all(tokenizer, TEXTS, 128)
    first, second = (rows(cut(tokenizer, tokens, 0.5, seed=seed)) for seed in (1, 2))
    assert first != rows(tokens) and first != second
    assert rows(cut(tokenizer, tokens, 0.5, seed=1)) == first
    for before, after in zip(rows(tokens), first, strict=True):
        assert characters(tokenizer, after) == characters(tokenizer, before)
    unknown = tokenizer.unk_token_id
    assert [row.count(unknown) for row in first] == [row.count(unknown) for row in rows(tokens)]


def test_a_piece_is_overlooked_as_often_as_asked(tokenizer: PreTrainedTokenizerBase) -> None:
    """맛있어요 is one piece; without it 맛있어 comes first, and so on down to characters."""
    tokens = tokenize_all(tokenizer, ["맛있어요"] * 4000, 128)
    firsts = [tokenizer.convert_ids_to_tokens(row[1]) for row in rows(cut(tokenizer, tokens, 0.3))]
    expected = {"맛있어요": 0.7, "맛있어": 0.3 * 0.7, "맛있": 0.09 * 0.7, "맛": 0.027}
    for piece, share in expected.items():
        spread = (share * (1 - share) / 4000) ** 0.5
        assert abs(firsts.count(piece) / 4000 - share) < 4 * spread


def test_only_the_chosen_texts_are_cut(tokenizer: PreTrainedTokenizerBase) -> None:
    tokens = tokenize_all(tokenizer, TEXTS, 128)
    found = rows(cut(tokenizer, tokens, 0.9, places=[1]))
    assert found[1] != rows(tokens)[1]
    assert [row for place, row in enumerate(found) if place != 1] == [
        row for place, row in enumerate(rows(tokens)) if place != 1
    ]


def test_a_text_that_would_be_too_long_stays(tokenizer: PreTrainedTokenizerBase) -> None:
    tokens = tokenize_all(tokenizer, TEXTS, 128)
    limit = int(tokens.lengths.max())
    for seed in range(20):
        found = cut(tokenizer, tokens, 0.9, max_length=limit, seed=seed)
        assert found.lengths.max() <= limit


def test_a_text_as_long_as_the_limit_is_cut_anew(tokenizer: PreTrainedTokenizerBase) -> None:
    tokens = tokenize_all(tokenizer, ["맛있어요", "양"], 128)
    anew = cut(tokenizer, tokens, 0.9)
    limit = int(anew.lengths.max())
    assert limit > tokens.lengths.max()
    assert rows(cut(tokenizer, tokens, 0.9, max_length=limit)) == rows(anew)
    assert rows(cut(tokenizer, tokens, 0.9, max_length=limit - 1)) == rows(tokens)


def test_pairs_know_where_the_second_begins(tokenizer: PreTrainedTokenizerBase) -> None:
    tokens = tokenize_all(tokenizer, ["맛있어요", "양도"], 128, pairs=["많고 양도", "맛있어요"])
    found = cut(tokenizer, tokens, 0.9)
    assert found.second_from is not None
    for row, second, text in zip(rows(found), found.second_from, ["맛있어요", "양도"], strict=True):
        assert characters(tokenizer, row[:second]) == f"[CLS]{text}[SEP]"


def test_a_pair_that_stays_as_it_is_keeps_where_the_second_begins(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    tokens = tokenize_all(tokenizer, ["맛있어요"], 128, pairs=["양도"])
    assert tokens.second_from is not None
    found = cut(tokenizer, tokens, 0.9, max_length=int(tokens.lengths.max()))
    assert found.second_from is not None and rows(found) == rows(tokens)
    assert found.second_from.tolist() == tokens.second_from.tolist()
    anew = cut(tokenizer, tokens, 0.9).second_from
    assert anew is not None and anew.tolist() != tokens.second_from.tolist()


def test_other_kinds_are_refused(tokenizer: PreTrainedTokenizerBase) -> None:
    unigram = tokenizer_of(models.Unigram([("[UNK]", 0.0), ("양", -1.0)], unk_id=0))
    with pytest.raises(InputError, match=r"training.subword_dropout .* kind Unigram; leave it out"):
        word_pieces_of(unigram)


def test_the_released_tokenizer() -> None:
    released = load_encoder_tokenizer(
        str(Path(__file__).parents[4] / "checkpoints" / "malmoi-small")
    )
    texts = [*TEXTS, "ㅠㅠ 2만원 넘는데 배송이 너무 느림;; ##", "[SEP] 이건 [MASK]?"]
    tokens = tokenize_all(released, texts, 128)
    assert rows(cut(released, tokens, 0.0)) == rows(tokens)
    anew = rows(cut(released, tokens, 0.5))
    assert sum(map(len, anew)) > len(tokens.flat)
    for before, after in zip(rows(tokens), anew, strict=True):
        assert characters(released, after) == characters(released, before)


def test_every_epoch_sees_other_cuts_and_training_repeats(
    tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[list[int]]] = []

    class Watched(SubwordDropout):
        def cut_anew(self, *args: Any) -> TokenizedTexts:
            found = super().cut_anew(*args)
            seen.append(rows(found))
            return found

    monkeypatch.setattr("malmoi.finetune.training.fit.SubwordDropout", Watched)

    def trained(rate: float, texts: list[str]) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        model = ElectraForSequenceClassification(tiny_config(tokenizer))
        settings = TrainSettings(epochs=2, batch_size=4, subword_dropout=rate)
        train_classifier(model, tokenizer, texts, [0, 1] * 4, settings)
        return model.state_dict()

    words = ["맛있어요 양도", "많고 ㅋㅋㅋ"] * 4
    first, second, without = trained(0.5, words), trained(0.5, words), trained(0.0, words)
    assert len(seen) == 4 and seen[0] != seen[1] and seen[:2] == seen[2:]
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], without[name]) for name in first)
    # Texts of single characters leave nothing to overlook.
    plain = ["양 맛", "ㅋ 많 !"] * 4
    first, without = trained(0.5, plain), trained(0.0, plain)
    assert all(torch.equal(first[name], without[name]) for name in first)
