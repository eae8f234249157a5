"""The tasks that encoders are compared on: training rows, test rows, what counts.

All but the project's own texts are public, found below a folder by `lab.benchmarks.data`.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from lab.benchmarks.data import (
    HATE_DEV,
    HATE_TRAIN,
    KORSTS,
    KOTE_TEST,
    KOTE_VAL,
    NSMC_TEST,
    NSMC_TRAIN,
    QUESTIONS,
    RATED_REVIEWS,
    THREE_CLASSES_TEST,
    DataFile,
)
from lab.benchmarks.quality.downstream import RATING_LABELS, ROOT
from malmoi.inference.tasks import REGRESSION_LABELS, Task
from malmoi.labels.tasks import read_task
from malmoi.text.cleaning.cleaner import clean_text

if TYPE_CHECKING:
    import pandas as pd

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

    Rows are read from the files below a folder of public data.

    Attributes:
        task: what a row is.
        labels: K names.
        train: reads the rows to learn from.
        test: reads the rows to score; None: every fifth of the training rows in turn.
        metric: a key of what `malmoi.finetune.evaluation.scores.score_task` returns.
        needs: public files that have to be there.
        own: file of the project's own texts, which may change; None: public ones.
        class_weights: of the loss, as in `TrainSettings`.
        dev: reads the rows to choose by, where there is a file of them; None: a part of training's.
    """

    task: Task
    labels: list[str]
    train: Callable[[Path], Rows]
    test: Callable[[Path], Rows] | None
    metric: str
    needs: tuple[DataFile, ...] = ()
    own: Path | None = None
    class_weights: Literal["none", "balanced"] = "none"
    dev: Callable[[Path], Rows] | None = None


def _table(path: Path) -> "pd.DataFrame":
    """All rows, without quoting, as these files are written; an empty cell stays a text."""
    import pandas as pd

    return pd.read_csv(path, sep="\t", quoting=3, keep_default_na=False, dtype=str)


def _single(path: Path, text: str, label: str, labels: list[str]) -> Rows:
    table = _table(path)
    return Rows(
        texts=[clean_text(one) for one in table[text]],
        targets=np.array([labels.index(one) for one in table[label]], dtype=np.int64),
    )


def rated_reviews(data: Path) -> tuple[list[str], np.ndarray]:
    """Texts of all rated reviews, cleaned, none empty, and their ratings, int64 [N]."""
    table = _table(RATED_REVIEWS.find(data))
    texts = [clean_text(text) for text in table["document"]]
    kept = [place for place, text in enumerate(texts) if text]
    return [texts[place] for place in kept], table["rating"].to_numpy(dtype=np.int64)[kept]


def _three_train(data: Path) -> Rows:
    """180,000 of the rated reviews, as many of each class (부정 1-4, 중립 5-8, 긍정 9-10)."""
    by_label: dict[str, list[str]] = {}
    for text, rating in zip(*rated_reviews(data), strict=True):
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


def _three_train_all(data: Path) -> Rows:
    """All rated reviews, in their own proportions: more than half of them are 긍정."""
    texts, ratings = rated_reviews(data)
    return Rows(texts=texts, targets=three_classes(ratings))


def _emotions(path: Path) -> Rows:
    import pandas as pd

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


def _similarity(path: Path) -> Rows:
    rows = _pairs(path, "sentence1", "sentence2", "score", float)
    return Rows(texts=rows.texts, pairs=rows.pairs, targets=rows.targets.astype(np.float32))


def _questions(path: Path) -> Rows:
    return _pairs(path, "question1", "question2", "is_duplicate", int)


def _own(path: Path, labels: list[str]) -> Rows:
    """The texts that were written for the project."""
    import pandas as pd

    table = pd.read_csv(path, keep_default_na=False)
    return Rows(
        texts=[clean_text(text) for text in table["text"]],
        targets=np.array([labels.index(label) for label in table["label"]], dtype=np.int64),
    )


MEMOS = ROOT / "corpora" / "memos" / "memos.csv"
WRITTEN = ROOT / "corpora" / "reviews" / "reviews.csv"
HATE_LABELS = ["none", "offensive", "hate"]
TASKS = {
    "nsmc": Comparison(
        task="single",
        labels=["0", "1"],
        train=lambda data: _single(NSMC_TRAIN.find(data), "document", "label", ["0", "1"]),
        test=lambda data: _single(NSMC_TEST.find(data), "document", "label", ["0", "1"]),
        metric="accuracy",
        needs=(NSMC_TRAIN, NSMC_TEST),
    ),
    "three": Comparison(
        task="single",
        labels=THREE,
        train=_three_train,
        test=lambda data: _single(THREE_CLASSES_TEST.find(data), "document", "label", THREE),
        metric="macro_f1",
        needs=(RATED_REVIEWS, THREE_CLASSES_TEST),
    ),
    "hate": Comparison(
        task="single",
        labels=HATE_LABELS,
        train=lambda data: _single(HATE_TRAIN.find(data), "comments", "hate", HATE_LABELS),
        # The labels of its test file were never published.
        test=lambda data: _single(HATE_DEV.find(data), "comments", "hate", HATE_LABELS),
        metric="macro_f1",
        needs=(HATE_TRAIN, HATE_DEV),
    ),
    "kote": Comparison(
        task="multi",
        labels=EMOTIONS,
        # Trained on the 5,000 of val, as all recorded rows were.
        train=lambda data: _emotions(KOTE_VAL.find(data)),
        test=lambda data: _emotions(KOTE_TEST.find(data)),
        metric="macro_f1",
        needs=(KOTE_VAL, KOTE_TEST),
    ),
    "korsts": Comparison(
        task="pair-regression",
        labels=REGRESSION_LABELS,
        train=lambda data: _similarity(KORSTS["train"].find(data)),
        test=lambda data: _similarity(KORSTS["test"].find(data)),
        metric="spearman",
        needs=tuple(KORSTS.values()),
        dev=lambda data: _similarity(KORSTS["dev"].find(data)),
    ),
    "questions": Comparison(
        task="pair",
        labels=["0", "1"],
        train=lambda data: _questions(QUESTIONS["train"].find(data)),
        test=lambda data: _questions(QUESTIONS["test"].find(data)),
        metric="accuracy",
        needs=tuple(QUESTIONS.values()),
        dev=lambda data: _questions(QUESTIONS["dev"].find(data)),
    ),
    "memos": Comparison(
        task="single",
        labels=MEMO_LABELS,
        train=lambda _: _own(MEMOS, MEMO_LABELS),
        test=None,
        metric="macro_f1",
        own=MEMOS,
    ),
    "written": Comparison(
        task="single",
        labels=THREE,
        train=lambda _: _own(WRITTEN, THREE),
        test=None,
        metric="macro_f1",
        own=WRITTEN,
    ),
}
# The same test file.
TASKS["three-all"] = replace(TASKS["three"], train=_three_train_all, class_weights="balanced")
