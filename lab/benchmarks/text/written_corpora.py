"""Are the written corpora balanced, free of copies, and not given away by a word or a length?

    python -m lab.benchmarks.text.written_corpora

For the memos, reviews and comments under corpora/: numbers by label and length, the pairs of texts
most alike, and how far one rule alone gets. A rule is a decision tree of one or two questions about
the number of characters, or about whether a word or a character n-gram occurs, scored by 5-fold
cross-validation; vocabulary and questions are learnt on the training folds. Since so small a tree
names only two to four labels, each label is also asked for by itself: the area under the ROC curve
of the length alone, and the word and the n-gram that point to the label most surely among those in
at least one of 20 of its texts, chosen and scored on all texts, so optimistic. Cohen's kappa is
between the writers' labels and the second readers', by corpora/agreement. Of the memos that
were to be hard, those kinds are counted that a rule can find: HARD_MEMOS. Takes half a minute.
"""

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from lab.benchmarks.text.similar_pairs import find_similar_pairs
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import write_at_once

RESULTS = Path(__file__).parents[1] / "results" / "written_corpora.json"
CORPORA = Path(__file__).parents[3] / "corpora"
# The last characters of the bands of length; the last band is open.
BANDS = (12, 30, 100)
FOLDS = 5
# A sign is named if it stands in this share of a label's texts.
LEAST_RECALL = 0.05
_TIME = re.compile(r"\d+\s*시(?!간)|\d+:\d\d|[월화수목금토일]요일|내일|모레")
# Hard kinds of memo that a rule can count; labels they have, and what is in the text or is not.
HARD_MEMOS: dict[str, Callable[[str, str], bool]] = {
    "꿈 without the word 꿈": lambda text, label: label == "꿈" and "꿈" not in text,
    "the word 꿈 under another label": lambda text, label: label != "꿈" and "꿈" in text,
    "일정 without a digit": lambda text, label: label == "일정" and not re.search(r"\d", text),
    "메모 or 일기 with a time or day": lambda text, label: (
        label in ("메모", "일기") and bool(_TIME.search(text))
    ),
}


@dataclass(kw_only=True)
class WrittenSettings:
    """What to check and where to write."""

    corpora: Path = CORPORA
    """Folder with memos, reviews, comments and agreement."""
    seed: int = 0
    """Seed of the folds."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: WrittenSettings) -> None:
    """Check the three corpora, print and write what was found."""
    report: dict[str, object] = {"bands_characters": BANDS, "folds": FOLDS, "seed": settings.seed}
    for name in ("memos", "reviews"):
        rows = read_csv(settings.corpora / name / f"{name}.csv")
        texts, labels = [row["text"] for row in rows], [row["label"] for row in rows]
        report[name] = (
            {"texts": len(texts), "labels": by_length(texts, labels)}
            | likeness(texts)
            | {
                "chance_accuracy": round(max(Counter(labels).values()) / len(labels), 3),
                "rules": rules(texts, labels, settings.seed),
                "one_label": {label: tells(texts, labels, label) for label in sorted(set(labels))},
                "agreement": agreement(
                    read_csv(settings.corpora / "agreement" / name / "second_reading.csv")
                ),
            }
            | ({"hard": hard_memos(rows)} if name == "memos" else {})
        )
    sections = {
        path.stem: path.read_text(encoding="utf-8").splitlines()
        for path in sorted((settings.corpora / "comments").glob("*.txt"))
    }
    texts = [text for section in sections.values() for text in section]
    labels = [name for name, section in sections.items() for _ in section]
    report["comments"] = {
        "texts": len(texts),
        "sections": by_length(texts, labels),
        "characters": sum(map(len, texts)),
    } | likeness(texts)
    content = json.dumps(report, ensure_ascii=False, indent=1)
    print(content)
    write_at_once(settings.output, content + "\n")


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header.

    Raises:
        InputError: there is no such file.
    """
    if not path.is_file():
        raise InputError(f"expected the written texts in {path}, found no such file")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_length(texts: list[str], labels: list[str]) -> dict[str, dict[str, object]]:
    """For each label: texts, texts in each band of length, mean and median characters."""
    lengths: dict[str, list[int]] = {}
    for text, label in zip(texts, labels, strict=True):
        lengths.setdefault(label, []).append(len(text))
    return {
        label: {
            "texts": len(of_label),
            "in_bands": np.bincount(np.searchsorted(BANDS, of_label), minlength=4).tolist(),
            "mean_characters": round(float(np.mean(of_label)), 1),
            "median_characters": float(np.median(of_label)),
        }
        for label, of_label in sorted(lengths.items())
    }


def likeness(texts: list[str]) -> dict[str, object]:
    """Exact duplicates, the highest trigram Jaccard, and the number of pairs from 0.5 and 0.35."""
    pairs = find_similar_pairs(texts, 0.05)
    return {
        "exact_duplicates": len(texts) - len(set(texts)),
        "highest_trigram_jaccard": round(pairs[0][0], 3) if pairs else 0.0,
        "pairs_over_0.5": sum(pair[0] > 0.5 for pair in pairs),
        "pairs_over_0.35": sum(pair[0] > 0.35 for pair in pairs),
    }


def words() -> CountVectorizer:
    """Which words (between spaces) a text has, of those in three texts or more."""
    return CountVectorizer(token_pattern=r"\S+", lowercase=False, binary=True, min_df=3)


def ngrams() -> CountVectorizer:
    """Which runs of one to three characters a text has, of those in five texts or more."""
    return CountVectorizer(
        analyzer="char", ngram_range=(1, 3), lowercase=False, binary=True, min_df=5
    )


def rules(texts: list[str], labels: list[str], seed: int) -> dict[str, dict[str, float]]:
    """Accuracy and macro F1, in cross-validation, of trees of one and two questions."""
    features = {
        "length": FunctionTransformer(lambda rows: np.array([[len(row)] for row in rows])),
        "word": words(),
        "characters": ngrams(),
    }
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    scores = {}
    for name, feature in features.items():
        for depth in (1, 2):
            tree = DecisionTreeClassifier(max_depth=depth, random_state=seed)
            predicted = cross_val_predict(make_pipeline(feature, tree), texts, labels, cv=folds)
            scores[f"{name}, depth {depth}"] = {
                "accuracy": round(accuracy_score(labels, predicted), 3),
                "macro_f1": round(f1_score(labels, predicted, average="macro"), 3),
            }
    return scores


def tells(texts: list[str], labels: list[str], label: str) -> dict[str, object]:
    """How well the length tells this label from the others, and its surest word and n-gram."""
    is_label = np.array([other == label for other in labels])
    area = roc_auc_score(is_label, [len(text) for text in texts])
    return {
        "length_roc_auc": round(float(area), 3),
        "word": _surest_sign(words(), texts, is_label),
        "characters": _surest_sign(ngrams(), texts, is_label),
    }


def _surest_sign(vectorizer: CountVectorizer, texts: list[str], is_label: np.ndarray) -> object:
    """The feature with the highest precision for the label among those with enough recall."""
    occurs = csr_matrix(vectorizer.fit_transform(texts))
    total = np.asarray(occurs.sum(axis=0)).ravel()
    hits = np.asarray(occurs[is_label].sum(axis=0)).ravel()
    precision = np.where(hits >= LEAST_RECALL * is_label.sum(), hits / total, 0)
    best = int(precision.argmax())
    if not precision[best]:
        return None
    return {
        "sign": vectorizer.get_feature_names_out()[best],
        "texts_of_label": int(hits[best]),
        "texts": int(total[best]),
    }


def hard_memos(rows: list[dict[str, str]]) -> dict[str, int]:
    """How many texts are of each hard kind, and of at least one."""
    kinds = {
        kind: {row["id"] for row in rows if is_hard(row["text"], row["label"])}
        for kind, is_hard in HARD_MEMOS.items()
    }
    return {kind: len(ids) for kind, ids in kinds.items()} | {
        "any": len(set.union(*kinds.values()))
    }


def agreement(twice: list[dict[str, str]]) -> dict[str, object]:
    """Cohen's kappa of writers and second readers, over all texts that were read twice.

    Disputed texts count with both first labels, also where they were dropped.
    """
    first, second = [row["first"] for row in twice], [row["second"] for row in twice]
    return {
        "texts_read_twice": len(twice),
        "disagreements": sum(one != other for one, other in zip(first, second, strict=True)),
        "cohen_kappa": round(float(cohen_kappa_score(first, second)), 4),
    }


if __name__ == "__main__":
    sys.exit(run_command(WrittenSettings, main, "Check the written corpora."))
