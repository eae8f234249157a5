"""A corpus as token ids on disk."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

import malmoi.pretrain.data.corpus
from malmoi.pretrain.data.tokenized import tokenize_corpus
from malmoi.text.cleaning.cleaner import CleaningSettings
from malmoi.text.corpus.clean_corpus import write_clean_corpus
from malmoi.text.record import Record
from malmoi.tokenizer.training import train_tokenizer
from tests.malmoi.pretrain.conftest import Command, weights_of


def test_long_texts_are_cut_in_pieces_and_no_token_is_lost(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    text = "오늘 경기 보고 울었습니다 " * 30
    write_clean_corpus(
        [Record(id="1", text=text)], tmp_path / "clean", CleaningSettings(min_distinct=0)
    )
    made = tokenize_corpus(
        tmp_path / "clean", tokenizer, corpus_sha256="0" * 64, max_length=16, cache=tmp_path
    )
    assert made.lengths.max() == 14
    assert made.ids.tolist() == tokenizer(text, add_special_tokens=False).input_ids


def test_the_same_inputs_reuse_the_arrays_and_others_do_not(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    records = [Record(id="1", text="배송이 생각보다 빨라서 놀랐어요")]
    write_clean_corpus(records, tmp_path / "clean", CleaningSettings())
    first = tokenize_corpus(
        tmp_path / "clean", tokenizer, corpus_sha256="0" * 64, max_length=32, cache=tmp_path / "c"
    )
    before = (first.directory / "ids.bin").stat().st_mtime_ns
    again = tokenize_corpus(
        tmp_path / "clean", tokenizer, corpus_sha256="0" * 64, max_length=32, cache=tmp_path / "c"
    )
    other = tokenize_corpus(
        tmp_path / "clean", tokenizer, corpus_sha256="0" * 64, max_length=16, cache=tmp_path / "c"
    )
    assert again.directory == first.directory != other.directory
    assert (first.directory / "ids.bin").stat().st_mtime_ns == before


@pytest.fixture
def tokenized(pretrain_here: Command, tmp_path: Path) -> Path:
    """What a run has made of the texts, taken elsewhere."""
    assert pretrain_here("--max-steps", "3", "--output", "from-texts")[0] == 0
    record = json.loads((tmp_path / "from-texts" / "run.json").read_text())
    return Path(shutil.copytree(record["tokenized_corpus"], tmp_path / "carried"))


def test_a_tokenized_corpus_is_all_that_another_machine_needs(
    tokenized: Path, pretrain_here: Command, tmp_path: Path, corpus: Path
) -> None:
    corpus.unlink()
    code, printed, errors = pretrain_here("--max-steps", "3", "--corpus", str(tokenized))
    assert code == 0, errors
    assert "texts kept" in printed
    before, after = weights_of(tmp_path / "from-texts"), weights_of(tmp_path / "run")
    assert all(torch.equal(before[name], after[name]) for name in before)
    records = [json.loads((tmp_path / n / "run.json").read_text()) for n in ("from-texts", "run")]
    for fact in ("corpus_sha256", "cleaning", "tokenizer_hash", "corpus_tokens"):
        assert records[0][fact] == records[1][fact]


def test_a_tokenized_corpus_that_does_not_fit_is_refused(
    tokenized: Path, pretrain_here: Command, tmp_path: Path, comments: list[str]
) -> None:
    train_tokenizer(comments, vocab_size=2_048).save(tmp_path / "other")
    given = ("--corpus", str(tokenized), "--max-steps", "1")
    for flags, message in (
        (("--tokenizer", str(tmp_path / "other")), "expected the tokenizer that"),
        (("--max-length", "16"), "expected --max-length of at least"),
        (
            ("--tokenizer", "None", "--vocab-size", "2048"),
            "is tokenized already, so --vocab-size has no effect",
        ),
        (("--text-column", "글"), "is tokenized already, so --text-column has no effect"),
    ):
        code, _, errors = pretrain_here(*given, *flags)
        assert code == 2 and errors.count("\n") == 1 and message in errors
    ids = tokenized / "ids.bin"
    ids.write_bytes(ids.read_bytes()[:-8])
    code, _, errors = pretrain_here(*given)
    assert code == 2 and "cut off" in errors and str(ids) in errors
    assert not (tmp_path / "run").exists()


def test_a_damaged_number_is_found_before_it_is_believed(
    tokenized: Path, pretrain_here: Command
) -> None:
    def run_with(name: str, dtype: type, place: int, value: int) -> str:
        path = tokenized / name
        whole = path.read_bytes()
        numbers = np.frombuffer(whole, dtype=dtype).copy()
        numbers[place] = value
        path.write_bytes(numbers.tobytes())
        code, _, errors = pretrain_here("--corpus", str(tokenized), "--max-steps", "1")
        path.write_bytes(whole)
        assert code == 2 and errors.count("\n") == 1 and str(path) in errors
        return errors

    # Believed, it would take all of the memory.
    assert "sequences of 1 to 126 tokens" in run_with("offsets.bin", np.int64, 3, 10**9)
    assert "one after the other" in run_with("offsets.bin", np.int64, 0, 1)
    assert "ids below the 4,096 entries" in run_with("ids.bin", np.uint16, 5, 60_000)
    assert pretrain_here("--corpus", str(tokenized), "--max-steps", "1")[0] == 0


def test_a_damaged_cache_is_made_again(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(malmoi.pretrain.data.corpus, "CACHE", tmp_path / "cache")
    flags = ("--max-steps", "2", "--tokenizer", "None", "--vocab-size", "1024")
    assert pretrain_here(*flags, "--output", "first")[0] == 0
    damaged = [
        *(tmp_path / "cache" / "clean").glob("*/*"),
        *(tmp_path / "cache" / "tokenized").glob("*/*.*"),
    ]
    assert len(damaged) >= 5
    for number, path in enumerate(damaged):
        path.write_bytes(path.read_bytes()[:-9])
        code, _, errors = pretrain_here(*flags, "--output", f"run-{number}")
        assert code == 0 and "made again" in errors and errors.count("\n") == 1, path
    weights = weights_of(tmp_path / "first"), weights_of(tmp_path / f"run-{number}")
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_facts_that_are_damaged_are_one_line(tokenized: Path, pretrain_here: Command) -> None:
    for facts, named in (
        ('{"cleaning": {"sources": {}, "settings": {}}}', "KeyError"),
        ('{"max_length": 128}', "KeyError: 'cleaning'"),
        ("[]", "TypeError"),
        ('{"cleaning": {}, "corpus_sha256": "0", "max_length": 128}', "KeyError: 'sources'"),
        ('{"cleaning": {"sour', "cannot read the tokenized corpus"),
    ):
        (tokenized / "corpus.json").write_text(facts)
        code, _, errors = pretrain_here("--corpus", str(tokenized), "--max-steps", "1")
        assert code == 2 and errors.count("\n") == 1 and named in errors
        assert "corpus.json" in errors or str(tokenized) in errors
