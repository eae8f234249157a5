"""The tasks that encoders are compared on: training rows, test rows, what counts.

All real data of ../shared/data; its README.md has origins, licences and how the files were made.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.quality.downstream import NSMC, RATING_LABELS, REVIEWS, ROOT
from malmoi.inference.tasks import REGRESSION_LABELS, Task
from malmoi.labels.tasks import read_task
from malmoi.text.cleaning.cleaner import clean_text

DATA = NSMC.parents[1]
EMOTIONS = [str(number) for number in range(44)]
MEMO_LABELS = read_task(ROOT / "corpora" / "memos").label_names
THREE = read_task(ROOT / "corpora" / "reviews").label_names


@dataclass(frozen=True, kw_only=True)
class Rows:
    """N texts, cleaned; repeated ones stay, as published scores have them.

    Attributes:
        texts: N texts.
        targets: int64 [N] label ids, float32 [N, K] 0 and 1 for `multi`, float32 [N] values.
        pairs: the second texts, or None.
    """

    texts: list[str]
    targets: np.ndarray
    pairs: list[str] | None = None

    def at(self, places: np.ndarray) -> "Rows":
        """The rows at some places."""
        pairs = self.pairs and [self.pairs[place] for place in places]
        return Rows(
            texts=[self.texts[place] for place in places], targets=self.targets[places], pairs=pairs
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A training file, a test file, and what counts.

    Attributes:
        task: what a row is.
        labels: K names.
        train: reads the rows to learn from.
        test: reads the rows to score; None: every fifth of the training rows in turn.
        metric: a key of what `finetune.evaluation.scores.score_task` returns.
        needs: what has to be there.
        class_weights: of the loss, as in `TrainSettings`.
        dev: reads the rows to choose by, where there is a file of them; None: a part of training's.
    """

    task: Task
    labels: list[str]
    train: Callable[[], Rows]
    test: Callable[[], Rows] | None
    metric: str
    needs: tuple[Path, ...]
    class_weights: Literal["none", "balanced"] = "none"
    dev: Callable[[], Rows] | None = None


def _table(path: Path) -> pd.DataFrame:
    """All rows, without quoting, as these files are written; an empty cell stays a text."""
    return pd.read_csv(path, sep="\t", quoting=3, keep_default_na=False, dtype=str)


def _single(path: Path, text: str, label: str, labels: list[str]) -> Rows:
    table = _table(path)
    return Rows(
        texts=[clean_text(one) for one in table[text]],
        targets=np.array([labels.index(one) for one in table[label]], dtype=np.int64),
    )


def rated_reviews() -> tuple[list[str], np.ndarray]:
    """Texts of all rated reviews, cleaned, none empty, and their ratings, int64 [N]."""
    table = _table(REVIEWS)
    texts = [clean_text(text) for text in table["document"]]
    kept = [place for place, text in enumerate(texts) if text]
    return [texts[place] for place in kept], table["rating"].to_numpy(dtype=np.int64)[kept]


def _three_train() -> Rows:
    """180,000 of the rated reviews, as many of each class (부정 1-4, 중립 5-8, 긍정 9-10)."""
    by_label: dict[str, list[str]] = {}
    for text, rating in zip(*rated_reviews(), strict=True):
        by_label.setdefault(RATING_LABELS[str(rating)], []).append(text)
    draw = random.Random(0)
    chosen = [
        (text, THREE.index(label))
        for label in sorted(by_label)
        for text in draw.sample(by_label[label], 60_000)
    ]
    draw.shuffle(chosen)
    return Rows(
        texts=[text for text, _ in chosen],
        targets=np.array([label for _, label in chosen], dtype=np.int64),
    )


def three_classes(ratings: np.ndarray) -> np.ndarray:
    """Places in THREE of ratings from 1 to 10: 부정 1-4, 중립 5-8, 긍정 9-10. int64 [N]."""
    place_of = [THREE.index(RATING_LABELS[str(rating)]) for rating in range(1, 11)]
    return np.array(place_of)[ratings - 1]


def _three_train_all() -> Rows:
    """All rated reviews, in their own proportions: more than half of them are 긍정."""
    texts, ratings = rated_reviews()
    return Rows(texts=texts, targets=three_classes(ratings))


def _emotions(path: Path) -> Rows:
    table = pd.read_csv(path, sep="\t", quoting=3, header=None, dtype=str)
    targets = np.zeros((len(table), len(EMOTIONS)), dtype=np.float32)
    for row, cell in enumerate(table[2]):
        targets[row, [int(one) for one in cell.split(",")]] = 1
    return Rows(texts=[clean_text(text) for text in table[1]], targets=targets)


def _pairs(path: Path, first: str, second: str, target: str, kind: type) -> Rows:
    table = _table(path)
    return Rows(
        texts=[clean_text(text) for text in table[first]],
        pairs=[clean_text(text) for text in table[second]],
        targets=np.array([kind(value) for value in table[target]]),
    )


def _similarity(name: str) -> Rows:
    rows = _pairs(DATA / "korsts" / name, "sentence1", "sentence2", "score", float)
    return Rows(texts=rows.texts, pairs=rows.pairs, targets=rows.targets.astype(np.float32))


def _questions(name: str) -> Rows:
    return _pairs(QUESTIONS / name, "question1", "question2", "is_duplicate", int)


def _own(path: Path, labels: list[str]) -> Rows:
    """The texts that were written for the project."""
    table = pd.read_csv(path, keep_default_na=False)
    return Rows(
        texts=[clean_text(text) for text in table["text"]],
        targets=np.array([labels.index(label) for label in table["label"]], dtype=np.int64),
    )


MEMOS = ROOT / "corpora" / "memos" / "memos.csv"
WRITTEN = ROOT / "corpora" / "reviews" / "reviews.csv"
HATE = DATA / "korean_hate_speech"
QUESTIONS = DATA / "question_pair"
TASKS = {
    "nsmc": Comparison(
        task="single",
        labels=["0", "1"],
        train=lambda: _single(NSMC, "document", "label", ["0", "1"]),
        test=lambda: _single(NSMC.parent / "ratings_test.txt", "document", "label", ["0", "1"]),
        metric="accuracy",
        needs=(NSMC, NSMC.parent / "ratings_test.txt"),
    ),
    "three": Comparison(
        task="single",
        labels=THREE,
        train=_three_train,
        test=lambda: _single(NSMC.parent / "sentiment3_test.tsv", "document", "label", THREE),
        metric="macro_f1",
        needs=(REVIEWS, NSMC.parent / "sentiment3_test.tsv"),
    ),
    "hate": Comparison(
        task="single",
        labels=["none", "offensive", "hate"],
        train=lambda: _single(
            HATE / "train.tsv", "comments", "hate", ["none", "offensive", "hate"]
        ),
        # The labels of its test file were never published.
        test=lambda: _single(HATE / "dev.tsv", "comments", "hate", ["none", "offensive", "hate"]),
        metric="macro_f1",
        needs=(HATE / "train.tsv", HATE / "dev.tsv"),
    ),
    "kote": Comparison(
        task="multi",
        labels=EMOTIONS,
        # Its training file is not there: trained on the 5,000 of val.
        train=lambda: _emotions(DATA / "kote" / "val.tsv"),
        test=lambda: _emotions(DATA / "kote" / "test.tsv"),
        metric="macro_f1",
        needs=(DATA / "kote" / "val.tsv", DATA / "kote" / "test.tsv"),
    ),
    "korsts": Comparison(
        task="pair-regression",
        labels=REGRESSION_LABELS,
        train=lambda: _similarity("sts-train.tsv"),
        test=lambda: _similarity("sts-test.tsv"),
        metric="spearman",
        needs=tuple(DATA / "korsts" / f"sts-{part}.tsv" for part in ("train", "dev", "test")),
        dev=lambda: _similarity("sts-dev.tsv"),
    ),
    "questions": Comparison(
        task="pair",
        labels=["0", "1"],
        train=lambda: _questions("train.tsv"),
        test=lambda: _questions("test.tsv"),
        metric="accuracy",
        needs=tuple(QUESTIONS / f"{part}.tsv" for part in ("train", "dev", "test")),
        dev=lambda: _questions("dev.tsv"),
    ),
    "memos": Comparison(
        task="single",
        labels=MEMO_LABELS,
        train=lambda: _own(MEMOS, MEMO_LABELS),
        test=None,
        metric="macro_f1",
        needs=(MEMOS,),
    ),
    "written": Comparison(
        task="single",
        labels=THREE,
        train=lambda: _own(WRITTEN, THREE),
        test=None,
        metric="macro_f1",
        needs=(WRITTEN,),
    ),
}
# The same test file.
TASKS["three-all"] = replace(TASKS["three"], train=_three_train_all, class_weights="balanced")
