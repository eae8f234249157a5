"""What the data cards of the written corpora state, as far as it can be counted."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from malmoi.labels.tasks import read_task
from malmoi.text.cleaning.personal_data import find_personal_data

CORPORA = Path(__file__).parents[3] / "corpora"
AGREEMENT = CORPORA / "agreement"
LABELS = {name: set(read_task(CORPORA / name).label_names) for name in ("memos", "reviews")}
# What a second reader writes of a text that has several labels, or none.
NO_SINGLE_LABEL = "?"
SECTIONS = {"games", "news", "shops", "sports", "videos"}
# The nation-wide numbers of a public service, which a comment may name.
PUBLIC_NUMBERS = {"1577-1389"}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def corpus(name: str) -> list[dict[str, str]]:
    return rows_of(CORPORA / name / f"{name}.csv")


def held_out(name: str) -> list[dict[str, str]]:
    return rows_of(CORPORA / "held_out" / f"{name}.csv")


def texts_of(name: str) -> list[str]:
    if name != "comments":
        return [row["text"] for row in (*corpus(name), *held_out(name))]
    files = sorted((CORPORA / name).glob("*.txt"))
    return [text for file in files for text in file.read_text(encoding="utf-8").splitlines()]


def similar_pairs(texts: list[str], bound: float) -> list[tuple[str, str]]:
    """Texts whose character trigrams have a Jaccard similarity above a bound."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    sizes: list[int] = []
    pairs = []
    for later, text in enumerate(texts):
        letters = "".join(text.split())
        trigrams = {letters[at : at + 3] for at in range(len(letters) - 2)} or {letters}
        sizes.append(len(trigrams))
        shared = Counter(earlier for trigram in trigrams for earlier in holders[trigram])
        for earlier, common in shared.items():
            if common > bound * (len(trigrams) + sizes[earlier] - common):
                pairs.append((texts[earlier], text))
        for trigram in trigrams:
            holders[trigram].append(later)
    return pairs


@pytest.mark.parametrize(
    ("name", "fewest", "uneven"), [("memos", 5_300, 0.17), ("reviews", 11_000, 0.11)]
)
def test_labelled_texts_are_of_every_label_and_in_no_order(
    name: str, fewest: int, uneven: float
) -> None:
    rows = corpus(name)
    assert len(rows) >= fewest
    assert list(rows[0]) == ["id", "text", "label"]
    assert len({row["id"] for row in rows}) == len(rows)
    numbers = Counter(row["label"] for row in rows)
    assert set(numbers) == LABELS[name]
    assert max(numbers.values()) - min(numbers.values()) <= uneven * min(numbers.values())
    for start in range(0, len(rows) - 150, 150):
        numbers = Counter(row["label"] for row in rows[start : start + 150])
        assert min(numbers[label] for label in LABELS[name]) >= 15


@pytest.mark.parametrize("name", ["memos", "reviews"])
def test_every_kind_is_held_out_in_numbers_that_can_be_scored(name: str) -> None:
    rows = held_out(name)
    assert list(rows[0]) == ["id", "text", "label", "kind"]
    assert {row["label"] for row in rows} == LABELS[name]
    assert min(Counter(row["kind"] for row in rows).values()) >= 35
    assert not {row["id"] for row in rows} & {row["id"] for row in corpus(name)}


def test_long_memos_of_every_label_but_unusable_input() -> None:
    long = Counter(row["label"] for row in corpus("memos") if len(row["text"]) > 100)
    assert min(long[label] for label in LABELS["memos"] - {"오류"}) >= 150


def test_comments_are_filed_by_section() -> None:
    files = list((CORPORA / "comments").glob("*.txt"))
    assert {file.stem for file in files} == SECTIONS
    assert len(texts_of("comments")) >= 3_000
    assert all(text.strip() == text != "" for text in texts_of("comments"))


@pytest.mark.parametrize("name", ["memos", "reviews", "comments"])
def test_no_text_repeats_another_and_numbers_are_invented(name: str) -> None:
    texts = texts_of(name)
    assert len(set(texts)) == len(texts)
    assert similar_pairs(texts, 0.5) == []
    found = {text[a:b] for text in texts for a, b, _ in find_personal_data(text)}
    assert all("0000" in number for number in found - PUBLIC_NUMBERS)


@pytest.mark.parametrize("name", ["memos", "reviews"])
def test_every_text_was_read_twice_and_disagreements_are_settled_in_the_corpus(name: str) -> None:
    """Both readers' labels are given; a text that was dropped has no settled label.

    What the two did not agree on is the list of disagreements, and nothing else is.
    """
    labels = {row["id"]: row["label"] for row in (*corpus(name), *held_out(name))}
    disagreements = rows_of(AGREEMENT / name / "disagreements.csv")
    assert list(disagreements[0]) == ["id", "text", "first", "second", "settled", "why"]
    for row in disagreements:
        assert row["first"] != row["second"] and row["first"] in LABELS[name]
        assert row["second"] in LABELS[name] | {NO_SINGLE_LABEL}
        assert labels.get(row["id"], "") == row["settled"] and row["why"]
    twice = {row["id"]: row for row in rows_of(AGREEMENT / name / "second_reading.csv")}
    disputed = {row["id"]: row for row in disagreements}
    assert labels.keys() | disputed.keys() <= twice.keys()
    assert {key for key, row in twice.items() if row["first"] != row["second"]} == disputed.keys()
    for key, row in disputed.items():
        assert (row["first"], row["second"]) == (twice[key]["first"], twice[key]["second"])
    for key in labels.keys() - disputed.keys():
        assert labels[key] == twice[key]["first"]
