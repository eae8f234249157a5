"""The reviews that the released classifier learns from, and how well it does on each kind."""

import csv
import random
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from sklearn.metrics import f1_score

from lab.release.public_texts import REVIEWS, find_files
from malmoi.errors import InputError
from malmoi.inference.learnt_texts import text_keys
from malmoi.labels.tasks import read_task
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records

_CORPUS = Path(__file__).parents[2] / "corpora" / "reviews"
WRITTEN = _CORPUS / "reviews.csv"
# Lowest and highest rating of a label.
RATINGS = {label.name: label.ratings for label in read_task(_CORPUS).labels if label.ratings}


def find_reviews(data: Path) -> Path:
    """The file of rated reviews.

    Raises:
        InputError: it is not there, there are several, or it is no such table.
    """
    found = [path for name in (REVIEWS, f"{REVIEWS}.gz") for path in find_files(data, name)]
    if not found:
        raise InputError(
            f"expected {REVIEWS} or {REVIEWS}.gz below {data}, found none; `malmoi fetch "
            f"nsmc_rated --output {data / 'nsmc_rated'}` makes it, or name its folder with --data"
        )
    if len(found) > 1:
        raise InputError(
            f"expected one {REVIEWS} below {data}, found {len(found)}, such as {found[0]} and "
            f"{found[1]}; name the folder of one of them with --data"
        )
    next(iter_records(found[0], text_column="document", label_column="rating", need_label=True))
    return found[0]


def rated_by_label(data: Path) -> dict[str, list[str]]:
    """Texts of the rated reviews, cleaned, sorted, by the label of their rating.

    A text stands once under a label, but under several where people rated it differently.

    Raises:
        InputError: the table is broken, or a rating is none.
    """
    source = find_reviews(data)
    try:
        table = pd.read_csv(source, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    except pd.errors.ParserError as error:
        raise InputError(
            f"{source}: expected a table with tabs, found a broken one "
            f"({' '.join(str(error).split())}); correct it"
        ) from error
    table.columns = table.columns.str.strip().str.lower()  # as `find_reviews` has found them
    ratings = pd.to_numeric(table["rating"], errors="coerce")
    wrong = table.index[~ratings.between(1, 10)]
    if len(wrong):
        raise InputError(
            f"{source}:{wrong[0] + 2}: expected a rating from 1 to 10, found "
            f"{str(table['rating'][wrong[0]])!r}; correct it or leave the review out"
        )
    return {
        label: sorted(
            {
                cleaned
                for text in table["document"][ratings.between(low, high)]
                if (cleaned := clean_text(text))
            }
        )
        for label, (low, high) in RATINGS.items()
    }


def reviews_to_learn(data: Path, per_label: int) -> pd.DataFrame:
    """Rated reviews, as many of each label or none, with the project's own written ones.

    Returns:
        Columns text, cleaned, and label.

    Raises:
        InputError: as `rated_by_label`, or there are not enough reviews of a label.
    """
    draw = random.Random(0)
    label_of: dict[str, str] = {}
    for label, texts in rated_by_label(data).items():
        if len(texts) < per_label:
            low, high = RATINGS[label]
            raise InputError(
                f"expected {per_label:,} reviews rated {low} to {high} in "
                f"{find_reviews(data)}, found {len(texts):,}; lower --reviews-per-label"
            )
        for text in draw.sample(texts, per_label):
            label_of.setdefault(text, label)  # people rate one text differently
    label_of |= written_reviews()
    rows = list(label_of.items())
    draw.shuffle(rows)
    return pd.DataFrame(rows, columns=["text", "label"])


def ratings_to_begin_with(data: Path, learnt: Iterable[str], most: int) -> list[tuple[str, str]]:
    """Other rated reviews, as many of each label: what a classifier learns before `learnt`.

    Args:
        learnt: texts that must not be among them, for they are to be held out in folds.
        most: of each label; fewer where a label has fewer.

    Returns:
        Text, cleaned, and label, in random order.

    Raises:
        InputError: as `rated_by_label`.
    """
    known = set(text_keys(list(learnt)).tolist())  # k-fold would leave those out that are in both
    others = {
        label: [
            text
            for text, key in zip(texts, text_keys(texts).tolist(), strict=True)
            if key not in known
        ]
        for label, texts in rated_by_label(data).items()
    }
    number = min(most, *map(len, others.values()))
    draw = random.Random(1)
    rows = [(text, label) for label in others for text in draw.sample(others[label], number)]
    draw.shuffle(rows)
    return rows


def written_reviews() -> dict[str, str]:
    """The project's own reviews, cleaned, with their labels."""
    table = pd.read_csv(WRITTEN, keep_default_na=False)
    return dict(zip(map(clean_text, table["text"]), table["label"], strict=True))


def scores_by_origin(predictions: Path) -> dict[str, dict[str, float]]:
    """Texts and macro F1 of the held-out predictions, rated and written reviews apart.

    Reviews of which there are none are left out.
    """
    table = pd.read_csv(predictions, keep_default_na=False)
    written = table["text"].isin(list(written_reviews()))
    return {
        origin: {
            "texts": len(rows),
            "macro_f1": float(f1_score(rows["label"], rows["predicted"], average="macro")),
        }
        for origin, rows in (("rated", table[~written]), ("written", table[written]))
        if len(rows)
    }
