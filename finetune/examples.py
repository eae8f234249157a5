"""Labelled texts, cleaned and checked, as k-fold fine-tuning needs them."""

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora.cleaning import clean_text
from corpora.errors import InputError
from corpora.reading import iter_records
from corpora.record import Record


@dataclass(frozen=True, kw_only=True)
class Examples:
    """N texts with labels, each text once.

    Attributes:
        path: the file or folder they were read from.
        labels: names; a label's place is its id.
        ids: of the records.
        texts: cleaned.
        label_ids: one a text.
        repeats: rows left out because text and label had been there before.
        contradictions: rows left out because the text had been there with another label.
        empty: rows left out because nothing was left of the text after cleaning.
    """

    path: Path
    labels: list[str]
    ids: list[str]
    texts: list[str]
    label_ids: list[int]
    repeats: int
    contradictions: int
    empty: int

    @property
    def counts(self) -> dict[str, int]:
        """Texts of each label, in the order of the labels."""
        found = Counter(self.label_ids)
        return {label: found[index] for index, label in enumerate(self.labels)}

    @property
    def sha256(self) -> str:
        """Of the cleaned texts and their labels, in order: equal hashes, equal training data."""
        digest = hashlib.sha256()
        for text, index in zip(self.texts, self.label_ids, strict=True):
            digest.update(json.dumps([text, self.labels[index]], ensure_ascii=False).encode())
        return digest.hexdigest()


def parse_labels(text: str) -> list[str]:
    """Label names from "a, b,c", in NFC, for a terminal on macOS may type them decomposed.

    Raises:
        InputError: fewer than two names, an empty one, or one twice.
    """
    labels = [_normal(name) for name in text.split(",")]
    if "" in labels:
        raise InputError(f"expected names between the commas of --labels, found {text!r}")
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise InputError(f"--labels has {', '.join(twice)} more than once")
    if len(labels) < 2:
        raise InputError(f"expected at least two names in --labels, found {text!r}")
    return labels


def read_examples(
    path: Path,
    labels: Sequence[str],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    per_label: int = 1,
) -> Examples:
    """Read, clean and check all labelled texts of a file or folder.

    A text that stands there more than once is kept once, with its first label: two copies in two
    folds would be trained on and tested on at the same time.

    Args:
        path: anything `corpora.reading.iter_records` reads.
        labels: the names expected, exactly.
        text_column: see `iter_records`.
        label_column: see `iter_records`.
        per_label: how many texts each label needs, once repeats are left out.

    Raises:
        InputError: rows without a label, labels on one side only, or too few texts of a label.
    """
    records = list(
        iter_records(path, text_column=text_column, label_column=label_column, need_label=True)
    )
    names = _check_labels(records, labels, path)
    places = {label: index for index, label in enumerate(labels)}
    kept: dict[str, tuple[str, int]] = {}
    repeats = contradictions = empty = 0
    for record, name in zip(records, names, strict=True):
        text = clean_text(record.text)
        if not text:
            empty += 1
        elif text not in kept:
            kept[text] = (record.id, places[name])
        elif kept[text][1] == places[name]:
            repeats += 1
        else:
            contradictions += 1
    examples = Examples(
        path=path,
        labels=list(labels),
        ids=[identifier for identifier, _ in kept.values()],
        texts=list(kept),
        label_ids=[index for _, index in kept.values()],
        repeats=repeats,
        contradictions=contradictions,
        empty=empty,
    )
    few = [f"{label} ({n})" for label, n in examples.counts.items() if n < per_label]
    if few:
        raise InputError(
            f"{path} has too few different texts of {', '.join(few)}: each label needs at least "
            f"{per_label}, one a fold; add texts or lower --folds"
        )
    return examples


def _check_labels(records: list[Record], labels: Sequence[str], path: Path) -> list[str]:
    """Every record's label, once all are there and all are expected."""
    unlabelled = [record for record in records if not record.label]
    if unlabelled:
        first = unlabelled[0]
        # A record's own id says nothing about the file; the default one is "file:line" already.
        where = first.id if first.id.startswith(first.source) else f"{first.source}, id {first.id}"
        raise InputError(
            f"{len(unlabelled):,} of {len(records):,} rows of {path} have no label, the first is "
            f"{where}; label or remove them"
        )
    names = [_normal(record.label or "") for record in records]
    found = Counter(names)
    unexpected = [
        f"{name} ({count:,})" for name, count in found.most_common() if name not in labels
    ]
    if unexpected:
        shown = ", ".join(unexpected[:20]) + (" ..." if len(unexpected) > 20 else "")
        raise InputError(f"{path} has labels that --labels lacks: {shown}; add or remove them")
    absent = [label for label in labels if label not in found]
    if absent:
        raise InputError(
            f"--labels has labels that {path} lacks: {', '.join(absent)}; it has "
            f"{', '.join(sorted(found))}"
        )
    return names


def _normal(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()
