"""Word embeddings that start from skip-gram vectors of the corpus."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from corpora.errors import InputError
from pretrain.networks import ElectraPair
from pretrain.tokenized import TokenizedCorpus
from pretrain.warm_start import EMBEDDING_STD, skip_gram_vectors, warm_start_embeddings


def corpus_of(sequences: list[list[int]], directory: Path) -> TokenizedCorpus:
    lengths = [len(sequence) for sequence in sequences]
    return TokenizedCorpus(
        ids=np.array([piece for sequence in sequences for piece in sequence], dtype=np.uint16),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        directory=directory,
    )


@pytest.fixture
def corpus(tmp_path: Path) -> TokenizedCorpus:
    """Two topics of ten pieces each, which never share a text."""
    draw = np.random.default_rng(0)
    topics = (np.arange(100, 110), np.arange(200, 210))
    return corpus_of([draw.choice(topics[n % 2], 8).tolist() for n in range(2_000)], tmp_path)


def test_pieces_that_are_used_alike_come_near_each_other(corpus: TokenizedCorpus) -> None:
    ids, vectors = skip_gram_vectors(corpus, 16, seed=1, report=lambda line: None)
    assert sorted(ids) == [*range(100, 110), *range(200, 210)]
    unit = vectors[np.argsort(ids)]
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    alike = unit @ unit.T
    assert alike[:10, :10].mean() > alike[:10, 10:].mean() + 0.3


def test_only_seen_pieces_change_and_both_networks_get_them(
    corpus: TokenizedCorpus, pair: ElectraPair
) -> None:
    before = pair.word_tables()[0].detach().clone()
    count = warm_start_embeddings(pair, corpus, seed=1, report=lambda line: None)
    assert count == 20
    after = pair.discriminator.get_input_embeddings().weight
    assert pair.generator is not None
    assert torch.equal(after, pair.generator.get_input_embeddings().weight)
    changed = (after != before).any(dim=1).nonzero().flatten().tolist()
    assert changed == [*range(100, 110), *range(200, 210)]
    assert float(after[changed].detach().std()) == pytest.approx(EMBEDDING_STD, rel=0.05)


def test_kept_vectors_are_read_and_need_no_gensim(
    corpus: TokenizedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    first = skip_gram_vectors(corpus, 16, seed=1, report=lines.append)
    assert "pass" in lines[-1]
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    again = skip_gram_vectors(corpus, 16, seed=1, report=lines.append)
    assert "earlier run" in lines[-1]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    with pytest.raises(ImportError):
        skip_gram_vectors(corpus, 16, seed=2, report=lines.append)


def test_damaged_vectors_are_named(corpus: TokenizedCorpus) -> None:
    skip_gram_vectors(corpus, 16, seed=1, report=lambda line: None)
    kept = next(corpus.directory.glob("skip-gram-*.npz"))
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(InputError, match=kept.name):
        skip_gram_vectors(corpus, 16, seed=1, report=lambda line: None)
