"""A corpus as token ids on disk."""

from pathlib import Path

from transformers import PreTrainedTokenizerFast

from corpora.clean_corpus import write_clean_corpus
from corpora.cleaning import CleaningSettings
from corpora.record import Record
from pretrain.tokenized import tokenize_corpus


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
