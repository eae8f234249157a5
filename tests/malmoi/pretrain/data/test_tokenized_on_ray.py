"""Tokenising on a Ray cluster: the arrays of one process, and finished units are kept."""

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.pretrain.data import tokenized
from malmoi.pretrain.data.tokenized import TokenizedCorpus, tokenize_corpus
from malmoi.pretrain.data.unit_tokenizer import UnitTokenizer
from malmoi.text.cleaning.cleaner import CleaningSettings
from malmoi.text.corpus.clean_corpus import write_clean_corpus
from malmoi.text.record import Record
from tests.malmoi.workers.conftest import cluster

__all__ = ["cluster"]


@pytest.fixture
def clean(comments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean corpus of real texts, many units of them."""
    monkeypatch.setattr(tokenized, "TEXTS_IN_UNIT", 200)
    records = [
        Record(id=str(n), text=f"{comments[n % len(comments)]} {n}", source="a.txt")
        for n in range(12_000)
    ]
    write_clean_corpus(records, tmp_path / "clean", CleaningSettings())
    return tmp_path / "clean"


def tokenize(clean: Path, tokenizer: PreTrainedTokenizerFast, name: str, **more: Any) -> Any:
    return tokenize_corpus(
        clean, tokenizer, corpus_sha256="0" * 64, max_length=16, cache=clean.parent / name, **more
    )


def files_of(corpus: TokenizedCorpus) -> dict[str, bytes]:
    names = ("ids.bin", "offsets.bin", "corpus.json")
    return {name: (corpus.directory / name).read_bytes() for name in names}


def test_a_node_dies_and_the_arrays_are_those_of_one_process(
    cluster: Any, clean: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes()
    kept = tokenized.keep_results
    killed: list[int] = []

    def killing(*given: Any, on_done: Any, **more: Any) -> list[Path]:
        def count(done: int) -> None:
            on_done(done)
            if done >= 4_000 and not killed:
                killed.append(done)
                cluster.remove_node(node, allow_graceful=False)

        return kept(*given, on_done=count, **more)

    monkeypatch.setattr(tokenized, "keep_results", killing)
    on_cluster = tokenize(clean, tokenizer, "ray", engine="ray")
    assert 4_000 <= killed[0] < 10_000
    assert files_of(on_cluster) == files_of(tokenize(clean, tokenizer, "local"))
    assert not list((clean.parent / "ray").glob(".*.work"))


def test_finished_units_are_not_tokenised_again(
    cluster: Any, clean: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tokenized.keep_results

    def stopping(*given: Any, on_done: Any, **more: Any) -> list[Path]:
        def count(done: int) -> None:
            if done >= 1_000:
                raise KeyboardInterrupt

        return keep(*given, on_done=count, **more)

    with monkeypatch.context() as patched:
        patched.setattr(tokenized, "keep_results", stopping)
        with pytest.raises(KeyboardInterrupt):
            tokenize(clean, tokenizer, "ray", engine="ray")
    (work,) = (clean.parent / "ray").glob(".*.work")
    before = {path.name: path.stat().st_mtime_ns for path in work.glob("*.npz")}
    assert 4 <= len(before) < 60
    after: dict[str, int] = {}

    def noting(*given: Any, **more: Any) -> list[Path]:
        paths = keep(*given, **more)
        after.update({path.name: path.stat().st_mtime_ns for path in paths})
        return paths

    monkeypatch.setattr(tokenized, "keep_results", noting)
    made = tokenize(clean, tokenizer, "ray", engine="ray")
    assert len(after) > len(before) and before.items() <= after.items()
    assert files_of(made) == files_of(tokenize(clean, tokenizer, "local"))


def test_no_cluster_is_one_line_and_keeps_what_is_finished(
    clean: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed (the [cluster] extra)")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match=r"RAY_ADDRESS, found nothing at 127\.0\.0\.1:1"):
        tokenize(clean, tokenizer, "ray", engine="ray")
    (work,) = (clean.parent / "ray").iterdir()
    assert work.suffix == ".work"


TEXTS = ["오늘 경기 보고 울었습니다", "", "[MASK] 가"]


def test_a_unit_is_the_same_whoever_tokenises_it(tokenizer: PreTrainedTokenizerFast) -> None:
    work = UnitTokenizer(
        serialized=tokenizer.backend_tokenizer.to_str(), piece_length=5, dtype="uint16"
    )
    arrays = np.load(io.BytesIO(pickle.loads(pickle.dumps(work))(TEXTS)))
    whole = [
        tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
        for text in TEXTS
    ]
    assert arrays["ids"].tolist() == [token for ids in whole for token in ids]
    assert arrays["ids"].dtype == np.uint16
    pieces = [len(ids[start : start + 5]) for ids in whole for start in range(0, len(ids), 5)]
    assert arrays["lengths"].tolist() == pieces


def test_a_unit_is_neither_padded_nor_cut_whatever_the_tokenizer_was_used_for(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    plain.no_padding()
    plain.no_truncation()
    used = Tokenizer.from_str(plain.to_str())
    used.enable_padding(length=12)
    used.enable_truncation(3)
    units = [
        UnitTokenizer(serialized=each.to_str(), piece_length=5, dtype="uint16")(TEXTS)
        for each in (plain, used)
    ]
    first, second = (np.load(io.BytesIO(unit)) for unit in units)
    assert len(first["ids"]) > 3 and second["ids"].tolist() == first["ids"].tolist()
    assert second["lengths"].tolist() == first["lengths"].tolist()


def test_a_corpus_is_neither_padded_nor_cut_whatever_the_tokenizer_was_used_for(
    clean: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    used = copy.deepcopy(tokenizer)
    used(TEXTS, padding="max_length", truncation=True, max_length=12)
    assert used.backend_tokenizer.padding and used.backend_tokenizer.truncation
    found, expected = tokenize(clean, used, "used"), tokenize(clean, tokenizer, "unused")
    assert files_of(found) == files_of(expected)
    assert tokenizer.pad_token_id not in found.ids
