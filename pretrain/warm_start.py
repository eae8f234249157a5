"""Skip-gram with negative sampling over the corpus's own word pieces, to start embeddings from.

With few tokens plain replaced-token detection learns nothing for a long time; about a minute of
skip-gram (Mikolov et al. 2013) puts words that are used alike near each other and everything
after it learns faster (docs/experiments.md).
"""

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gensim.models import Word2Vec
from gensim.models.callbacks import CallbackAny2Vec

from pretrain.networks import ElectraPair
from pretrain.tokenized import TokenizedCorpus

# Window, epochs and scale from the first look in docs/experiments.md (one seed).
WINDOW = 5
EPOCHS = 4
EMBEDDING_STD = 0.1
# Below about this many tokens four passes are too few; the count is an assumption.
_TOKENS_WANTED = 4_000_000
# More would take longer than it helps (assumption): every second, third, ... sequence is read.
_MAX_TOKENS = 40_000_000
_MIN_COUNT = 5
_TINY_CORPUS_TOKENS = 100_000


class _EpochProgress(CallbackAny2Vec):
    def __init__(self, epochs: int, report: Callable[[str], None]) -> None:
        self.epochs, self.report, self.done = epochs, report, 0

    def on_epoch_end(self, model: Word2Vec) -> None:
        self.done += 1
        if self.done == self.epochs or self.done % max(1, self.epochs // 4) == 0:
            self.report(f"skip-gram warm start: pass {self.done} of {self.epochs}")


def warm_start_embeddings(
    pair: ElectraPair, corpus: TokenizedCorpus, *, seed: int, report: Callable[[str], None]
) -> int:
    """Replace the word embeddings of frequent word pieces by their skip-gram vectors.

    Trained on all cores; with more than one the threads race, so two warm starts from one seed
    are alike but not identical. A resumed run reads its weights from the checkpoint instead.

    Args:
        pair: its word embeddings, [V, embedding_size], are changed in place; pieces
            seen fewer than 5 times keep their random start.
        report: gets a line of progress now and then.

    Returns:
        How many word pieces got a vector.
    """
    tables = pair.word_tables()
    epochs = int(min(40, max(EPOCHS, _TOKENS_WANTED // max(1, corpus.num_tokens))))
    logging.getLogger("gensim").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="malmoi-skip-gram-") as folder:
        sentences = Path(folder) / "ids.txt"
        _write_sentences(corpus, sentences)
        model = Word2Vec(
            corpus_file=str(sentences),
            vector_size=tables[0].shape[1],
            sg=1,
            negative=5,
            window=WINDOW,
            epochs=epochs,
            # In a handful of texts hardly a piece comes five times.
            min_count=_MIN_COUNT if corpus.num_tokens >= _TINY_CORPUS_TOKENS else 1,
            seed=seed,
            workers=os.cpu_count() or 1,
            callbacks=[_EpochProgress(epochs, report)],
        )
    ids = np.array([int(word) for word in model.wv.index_to_key])
    vectors = torch.from_numpy(np.asarray(model.wv.vectors, dtype=np.float32))
    vectors = vectors * (EMBEDDING_STD / vectors.std())
    with torch.no_grad():
        for table in tables:
            table[torch.from_numpy(ids)] = vectors.to(table.device)
    return len(ids)


def _write_sentences(corpus: TokenizedCorpus, path: Path) -> None:
    """One sequence a line, ids as words: the file form that gensim reads on all cores."""
    every = -(-corpus.num_tokens // _MAX_TOKENS)
    with path.open("w") as file:
        for start, end in zip(corpus.offsets[:-1:every], corpus.offsets[1::every], strict=True):
            file.write(" ".join(map(str, corpus.ids[start:end].tolist())) + "\n")
