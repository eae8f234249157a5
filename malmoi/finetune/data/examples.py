"""Labelled texts, cleaned and checked, as k-fold fine-tuning needs them."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Optional

import numpy as np

from malmoi.finetune.data.label_cells import write_list
from malmoi.finetune.data.source import DataPlace
from malmoi.inference.tasks import Task, has_values


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A row left out because its text had been there with another label.

    Attributes:
        text: cleaned; of a pair the first one.
        id: of the row.
        label: its label; several with commas between them.
        kept_id: of the row that is learnt.
        kept_label: its label.
    """

    text: str
    id: str
    label: str
    kept_id: str
    kept_label: str


@dataclass(frozen=True, kw_only=True)
class Examples:
    """N texts with labels, each text once.

    Attributes:
        path: the file, folder or label database they were read from.
        labels: K names; a label's place is its id. One name, "score", for a regression.
        ids: of the records.
        texts: cleaned.
        label_ids: one a text; empty for `multi` and values.
        repeats: rows left out because text and label had been there before.
        contradictions: rows left out because the text had been there with another label.
        empty: rows left out because nothing was left of the text after cleaning.
        task: what the labels are.
        pairs: the second text of each row, cleaned; None where a row has one text.
        label_sets: for `multi`, the label ids of each text, rising.
        values: for `value` and `pair-regression`, the value of each text or pair.
        groups: [N] int64, equal for texts with equal cells of the group column; None without one.
        label_columns: the columns of 0 and 1 that the labels were read from, if they were.
        unlabelled: rows that were left out since they have no label.
        contradicting: the first of the rows with another label.
        separators: that stand between the labels of a cell, where they are mixed.
        rare: labels with too few texts that were left out or joined, and their texts.
        rare_texts: how many texts were left out for that.
        own_test: texts of the same data, or of a file beside it, that are in no fold.
    """

    path: DataPlace
    labels: list[str]
    ids: list[str]
    texts: list[str]
    label_ids: list[int]
    repeats: int
    contradictions: int
    empty: int
    task: Task = "single"
    pairs: list[str] | None = None
    label_sets: list[tuple[int, ...]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    groups: np.ndarray | None = None
    label_columns: tuple[str, ...] = ()
    unlabelled: int = 0
    contradicting: tuple[Contradiction, ...] = ()
    separators: str = ""
    rare: Mapping[str, int] = field(default_factory=dict)
    rare_texts: int = 0
    own_test: Optional["OwnTest"] = None

    def only(self, places: np.ndarray) -> "Examples":
        """These of the texts, the same labels; `places` is int64, rising."""

        def some(values: list[Any]) -> list[Any]:
            return [values[place] for place in places] if values else []

        return replace(
            self,
            ids=some(self.ids),
            texts=some(self.texts),
            label_ids=some(self.label_ids),
            pairs=None if self.pairs is None else some(self.pairs),
            label_sets=some(self.label_sets),
            values=some(self.values),
            groups=None if self.groups is None else self.groups[places],
        )

    @cached_property
    def targets(self) -> np.ndarray:
        """What is learned: int64 [N] label ids, float32 [N, K] 0 and 1 for `multi`, float32 [N]."""
        if self.task == "multi":
            hot = np.zeros((len(self.texts), len(self.labels)), dtype=np.float32)
            for place, ids in enumerate(self.label_sets):
                hot[place, list(ids)] = 1
            return hot
        if has_values(self.task):
            return np.array(self.values, dtype=np.float32)
        return np.array(self.label_ids, dtype=np.int64)

    @property
    def counts(self) -> dict[str, int]:
        """Texts of each label, in the order of the labels; empty for a regression."""
        if has_values(self.task):
            return {}
        all_ids = (one for ids in self.label_sets for one in ids)
        found = Counter(all_ids if self.task == "multi" else self.label_ids)
        return {label: found[index] for index, label in enumerate(self.labels)}

    @property
    def joined_labels(self) -> list[str]:
        """Rare labels that were joined into one."""
        return [] if self.rare_texts else list(self.rare)

    @property
    def what(self) -> str:
        """What there are N of, for a sentence."""
        return "texts" if self.pairs is None else "pairs"

    @property
    def without_label(self) -> int:
        """Texts that have none of the labels; there are some for `multi` only."""
        return sum(not ids for ids in self.label_sets)

    def label_of(self, place: int) -> str:
        """The label of a text as a cell; for `multi` a list, see `label_cells.write_list`."""
        if self.task == "multi":
            return write_list([self.labels[index] for index in self.label_sets[place]])
        if has_values(self.task):
            return f"{self.values[place]:g}"
        return self.labels[self.label_ids[place]]

    @property
    def sha256(self) -> str:
        """Hash of cleaned texts and labels, in order: equal hashes, equal training data."""
        digest = hashlib.sha256()
        for place, text in enumerate(self.texts):
            row = [text, *([self.pairs[place]] if self.pairs else []), self.label_of(place)]
            digest.update(json.dumps(row, ensure_ascii=False).encode())
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class OwnTest:
    """Labelled texts that only score what was learnt from the others.

    Attributes:
        examples: the texts; labels that are not learnt stand behind those that are.
        origin: which texts these are, for a sentence.
        in_both: texts that were left out of training since they stand in the test.
        joined: rows of a part for development, which are learnt.
    """

    examples: Examples
    origin: str
    in_both: int = 0
    joined: int = 0
