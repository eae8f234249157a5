"""Token ids on disk and the batches drawn from them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from corpora.clean_corpus import write_clean_corpus
from corpora.cleaning import CleaningSettings
from corpora.record import Record
from pretrain.tokenized import (
    TokenizedCorpus,
    iter_plans,
    make_batch,
    padded_width,
    plan_epoch,
    tokenize_corpus,
)


@pytest.fixture(scope="module")
def corpus(
    tmp_path_factory: pytest.TempPathFactory,
    comments: list[str],
    tokenizer: PreTrainedTokenizerFast,
) -> TokenizedCorpus:
    folder = tmp_path_factory.mktemp("corpus")
    records = [Record(id=str(n), text=text) for n, text in enumerate(comments)]
    write_clean_corpus(records, folder / "clean", CleaningSettings())
    return tokenize_corpus(folder / "clean", tokenizer, max_length=32, cache=folder / "cache")


def test_long_texts_are_cut_in_pieces_and_no_token_is_lost(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    text = "오늘 경기 보고 울었습니다 " * 30
    write_clean_corpus(
        [Record(id="1", text=text)], tmp_path / "clean", CleaningSettings(min_distinct=0)
    )
    made = tokenize_corpus(tmp_path / "clean", tokenizer, max_length=16, cache=tmp_path)
    assert made.lengths.max() == 14
    assert made.ids.tolist() == tokenizer(text, add_special_tokens=False).input_ids


def test_every_sequence_once_an_epoch_in_a_new_order(corpus: TokenizedCorpus) -> None:
    plans = [plan_epoch(corpus.lengths, 1_024, seed=1, epoch=epoch) for epoch in (0, 1)]
    for plan in plans:
        assert sorted(np.concatenate(plan).tolist()) == list(range(len(corpus)))
    assert not np.array_equal(plans[0][0], plans[1][0])


@pytest.mark.parametrize("tokens_per_batch", [64, 512, 4_096])
def test_batches_stay_within_their_tokens(corpus: TokenizedCorpus, tokens_per_batch: int) -> None:
    widths = padded_width(corpus.lengths)
    plan = plan_epoch(corpus.lengths, tokens_per_batch, seed=0, epoch=0)
    assert max(len(rows) * widths[rows].max() for rows in plan) <= tokens_per_batch


def test_batches_of_a_large_corpus_waste_little_and_have_few_shapes() -> None:
    # Lengths as of reviews: 17 tokens on average, a long tail.
    lengths = np.random.default_rng(0).gamma(1.6, 10.5, size=60_000).astype(int).clip(1, 126)
    plan = plan_epoch(lengths, 4_096, seed=0, epoch=0)
    areas = [len(rows) * padded_width(lengths[rows]).max() for rows in plan]
    assert (lengths + 2).sum() / sum(areas) > 0.85
    shapes = {(len(rows), padded_width(lengths[rows]).max()) for rows in plan}
    assert len(shapes) < len(plan) / 4


def test_skipping_gives_the_batches_of_the_uninterrupted_order(corpus: TokenizedCorpus) -> None:
    per_epoch = len(plan_epoch(corpus.lengths, 512, seed=7, epoch=0))
    whole = iter_plans(corpus.lengths, 512, 7)
    expected = [next(whole).tolist() for _ in range(3 * per_epoch)]
    for skip in (0, 3, per_epoch, per_epoch + 5):
        resumed = iter_plans(corpus.lengths, 512, 7, skip=skip)
        assert [next(resumed).tolist() for _ in range(4)] == expected[skip : skip + 4]


def test_a_batch_is_framed_and_masks_only_real_text(
    corpus: TokenizedCorpus, tokenizer: PreTrainedTokenizerFast
) -> None:
    rows = np.array([0, 1, 2])
    batch = make_batch(corpus, rows, tokenizer, torch.device("cpu"))
    assert batch.attention_mask is not None
    for row, index in enumerate(rows):
        length = int(corpus.lengths[index])
        ids = batch.input_ids[row]
        assert ids[0] == tokenizer.cls_token_id
        assert ids[length + 1] == tokenizer.sep_token_id
        assert (ids[length + 2 :] == tokenizer.pad_token_id).all()
        assert batch.maskable[row].sum() == length
        assert batch.attention_mask[row].sum() == length + 2
        start = int(corpus.offsets[index])
        assert ids[1 : length + 1].tolist() == corpus.ids[start : start + length].tolist()


def test_the_same_inputs_reuse_the_arrays_and_others_do_not(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    records = [Record(id="1", text="배송이 생각보다 빨라서 놀랐어요")]
    write_clean_corpus(records, tmp_path / "clean", CleaningSettings())
    first = tokenize_corpus(tmp_path / "clean", tokenizer, max_length=32, cache=tmp_path / "c")
    before = (first.directory / "ids.bin").stat().st_mtime_ns
    again = tokenize_corpus(tmp_path / "clean", tokenizer, max_length=32, cache=tmp_path / "c")
    other = tokenize_corpus(tmp_path / "clean", tokenizer, max_length=16, cache=tmp_path / "c")
    assert again.directory == first.directory != other.directory
    assert (first.directory / "ids.bin").stat().st_mtime_ns == before
