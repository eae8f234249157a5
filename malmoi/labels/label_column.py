"""Tables with a column of labels: texts that were labelled in a file come in with their labels."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label, says_nothing
from malmoi.labels.label_reader import ImportedAct
from malmoi.labels.listed_labels import agreed, is_annotations, listed, names_in_list
from malmoi.labels.project import TaskKind
from malmoi.text.reading.columns import label_text
from malmoi.text.reading.json_rows import refuse_unaccepted
from malmoi.text.reading.nested import with_inner_keys
from malmoi.text.reading.options import ReadOptions

# Between the labels of one cell, where a cell is not one label by itself.
SEPARATORS = (",", ";", "|", "/", "#")


@dataclass(kw_only=True)
class LabelColumnReader:
    """Reads the labels of a column; a row with an empty cell has a text only.

    Attributes:
        label_column: of the labels, as `distinct_names` calls it. Where a text may have several,
            a cell is a list as `listed_labels` knows them, or names with commas, semicolons, bars,
            slashes or doccano's # between them.
        annotator_column: of who labelled; None: the files do not say.
        annotator: who labelled where a row does not say.
    """

    options: ReadOptions
    label_column: str
    annotator_column: str | None
    annotator: str
    has_labels: bool = False

    @property
    def name(self) -> str:
        """See `LabelReader`; another column says other things of the same rows."""
        return f"table:{_short(self.label_column, self.annotator_column or '')}"

    def read(
        self, cells: Mapping[str, Any], kind: TaskKind, names: Collection[str]
    ) -> Iterator[ImportedAct | InputError]:
        """See `LabelReader`."""
        cells = with_inner_keys(dict(cells))
        self.has_labels = self.has_labels or self.label_column in cells
        try:
            refuse_unaccepted(cells)
            labels = labels_of_cell(cells.get(self.label_column), kind, names)
        except InputError as error:
            yield error
            return
        if labels is not None:
            who = cells.get(self.annotator_column) if self.annotator_column is not None else None
            annotator = ("" if who is None else str(who).strip()) or self.annotator
            # Another person says other things, too.
            yield ImportedAct(key=_short(annotator), annotator=annotator, labels=labels)

    def require_labels(self) -> None:
        """See `LabelReader`."""
        if not self.has_labels:
            raise InputError(
                "expected a column {label_column!r} with labels, found none of that name; the "
                "texts are imported, their labels are not: import the files again with the right "
                "name",
                label_column=self.label_column,
            )


def labels_of_cell(cell: Any, kind: TaskKind, names: Collection[str]) -> list[str] | None:
    """The labels that a cell names; None where it is empty.

    A written `[]` says that a text of a `multi` project has none of the labels, which is something
    else than nobody having said so.

    Args:
        cell: of any kind that a file can have.
        kind: of the project.
        names: of its labels.

    Raises:
        InputError: the cell holds something that is no label.
    """
    text = label_text(cell, "the column of labels")
    if text is None:
        return None
    if says_nothing(text) and normal_label(text) not in names:
        raise InputError(
            "expected a label, found {cell}, which programs write where there is none; empty the "
            "cell, or add a label of that name to the project",
            cell=text,
        )
    found = listed(text)
    if found is not None:
        labels = agreed(found) if is_annotations(found) else names_in_list(found)
        return None if labels is None or (not labels and kind == "single") else labels
    if kind == "single" or normal_label(text) in names:
        return [text]
    for separator in SEPARATORS:
        parts = [part.strip() for part in text.split(separator)]
        if len(parts) > 1 and all(normal_label(part) in names for part in parts):
            return parts
    return [text]


def _short(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
