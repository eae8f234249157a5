"""Word embeddings that start from vectors of the corpus's own word pieces."""

from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import malmoi.pretrain.model.word_vectors
from malmoi.errors import InputError
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.model.word_vectors import EMBEDDING_STD, warm_start_embeddings, word_vectors


def silent(line: str) -> None:
    del line


def corpus_of(sequences: list[list[int]], directory: Path) -> TokenizedCorpus:
    lengths = [len(sequence) for sequence in sequences]
    directory.mkdir(exist_ok=True)
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
    ids, vectors = word_vectors(corpus, 16, report=silent)
    assert ids.tolist() == [*range(100, 110), *range(200, 210)]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = unit @ unit.T
    assert alike[:10, :10].mean() > alike[:10, 10:].mean() + 0.3


def test_counts_are_of_neighbours_in_one_text_and_nearer_ones_count_more(tmp_path: Path) -> None:
    """0 stands beside 1, five places before 2, and at the end of another text's beginning."""
    together = malmoi.pretrain.model.word_vectors._occurring_together(
        corpus_of([[0, 1, 3, 3, 3, 2], [4, 0]], tmp_path), np.arange(5)
    ).toarray()
    assert together[0, 1] == together[1, 0] == 1.0
    assert together[0, 2] == together[2, 0] == pytest.approx(0.2)
    assert together[2, 4] == 0 and together[4, 0] == 1.0
    assert together[3, 3] == pytest.approx(2 * (1.0 + 1.0 + 0.8))


def test_blocks_of_texts_are_counted_as_the_whole(
    corpus: TokenizedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = np.flatnonzero(corpus.token_counts())
    whole = malmoi.pretrain.model.word_vectors._occurring_together(corpus, ids).toarray()
    monkeypatch.setattr("malmoi.pretrain.model.word_vectors._BLOCK_TOKENS", 50)
    assert np.allclose(
        malmoi.pretrain.model.word_vectors._occurring_together(corpus, ids).toarray(), whole
    )


def test_only_seen_pieces_change_and_both_networks_get_them(
    corpus: TokenizedCorpus, pair: ElectraPair
) -> None:
    before = pair.word_tables()[0].detach().clone()
    count = warm_start_embeddings(pair, corpus, report=silent)
    assert count == 20
    after = pair.discriminator.get_input_embeddings().weight
    assert pair.generator is not None
    assert torch.equal(after, pair.generator.get_input_embeddings().weight)
    changed = (after != before).any(dim=1).nonzero().flatten().tolist()
    assert changed == [*range(100, 110), *range(200, 210)]
    assert float(after[changed].detach().std()) == pytest.approx(EMBEDDING_STD, rel=0.05)


@pytest.mark.parametrize("sequences", [[[7]], [[7, 7]], [[1, 2, 3]]])
def test_a_corpus_of_hardly_a_word_gives_finite_vectors(
    sequences: list[list[int]], tmp_path: Path
) -> None:
    ids, vectors = word_vectors(corpus_of(sequences, tmp_path), 16, report=silent)
    assert set(ids.tolist()) == {piece for sequence in sequences for piece in sequence}
    assert vectors.shape == (len(ids), 16) and np.isfinite(vectors).all()


def test_texts_give_the_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    """Enough pieces for products that a linear algebra library divides among its threads."""
    draw = np.random.default_rng(0)
    ids = (draw.pareto(1, 120_000) * 20).clip(0, 2_999).astype(np.uint16)
    offsets = np.arange(0, 120_001, 12)
    found = []
    for threads in (1, 2):
        folder = tmp_path / str(threads)
        folder.mkdir()
        corpus = TokenizedCorpus(ids=ids, offsets=offsets, directory=folder)
        with threadpool_limits(threads):
            word_vectors(corpus, 64, report=silent)
        found.append((folder / "word-vectors-64.npz").read_bytes())
    assert found[0] == found[1]


def test_kept_vectors_are_read(corpus: TokenizedCorpus) -> None:
    lines: list[str] = []
    first = word_vectors(corpus, 16, report=lines.append)
    assert "counting" in lines[-1]
    again = word_vectors(corpus, 16, report=lines.append)
    assert "earlier run" in lines[-1]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_damaged_vectors_are_named(corpus: TokenizedCorpus) -> None:
    word_vectors(corpus, 16, report=silent)
    kept = next(corpus.directory.glob("word-vectors-*.npz"))
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(InputError, match=kept.name):
        word_vectors(corpus, 16, report=silent)
