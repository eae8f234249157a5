"""Tables with a column of labels: texts that were labelled in a file come in with their labels."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.acts_here import moment
from malmoi.labels.label_names import labels_between, normal_label, says_nothing
from malmoi.labels.label_reader import ImportedAct, LabelReader, person_of, seconds_of
from malmoi.labels.listed_labels import CHOICES, agreed, is_annotations, listed, names_in_list
from malmoi.labels.project import TaskKind
from malmoi.text.reading.columns import label_text
from malmoi.text.reading.json_rows import refuse_unaccepted
from malmoi.text.reading.nested import with_inner_keys

# Who labelled, as Label Studio and Prodigy call it in tables.
ANNOTATOR_COLUMNS = ("annotator", "_annotator_id", "completed_by")
# Before the number of somebody whose address a file of Label Studio does not have.
NUMBERED = "label-studio:"
# A column that its tables have, and no others.
_OF_LABEL_STUDIO = "annotation_id"


@dataclass(kw_only=True)
class LabelColumnReader(LabelReader):
    """Reads the labels of a column; a row with an empty cell has a text only.

    Attributes:
        label_column: of the labels, as `distinct_names` calls it. Where a text may have several,
            a cell is a list as `listed_labels` knows them, or names as `labels_between` finds them.
        annotator_column: of who labelled; None: the first of `ANNOTATOR_COLUMNS` that a row has;
            "": the files do not say.
    """

    label_column: str
    annotator_column: str | None = None

    @property
    def name(self) -> str:
        """See `LabelReader`; another column says other things of the same rows."""
        return f"table:{self.label_column}:{self.annotator_column or ''}"

    def read(
        self, cells: Mapping[str, Any], kind: TaskKind, names: Collection[str]
    ) -> Iterator[ImportedAct | InputError]:
        cells = with_inner_keys(dict(cells))
        self.has_labels = self.has_labels or self.label_column in cells
        try:
            refuse_unaccepted(cells)
            if (votes := votes_of_cell(cells.get(self.label_column))) is not None:
                for person, names_of_person in votes.items():
                    yield ImportedAct(key=person, annotator=person, labels=names_of_person)
                return
            labels = labels_of_cell(cells.get(self.label_column), kind, names)
        except InputError as error:
            yield error
            return
        if labels is not None:
            yield ImportedAct(
                key="0",
                annotator=self._who(cells),
                labels=labels,
                seconds=seconds_of(cells.get("lead_time", cells.get("seconds"))),
                labelled_at=_time_of(cells),
            )

    def _who(self, cells: Mapping[str, Any]) -> str | None:
        column = self.annotator_column
        if column is None:
            column = column_of_annotators(cells) or ""
        prefix = NUMBERED if _OF_LABEL_STUDIO in cells else ""
        return person_of(cells.get(column), prefix)

    def require_labels(self) -> None:
        if not self.has_labels:
            raise InputError(
                "expected a column {label_column!r} with labels, found none of that name; the "
                "texts come in alone: import the files again with the right name",
                label_column=self.label_column,
            )


def column_of_annotators(columns: Collection[str]) -> str | None:
    """The column that says who labelled, where one is called so."""
    return next((name for name in ANNOTATOR_COLUMNS if name in columns), None)


def votes_of_cell(cell: Any) -> dict[str, list[str]] | None:
    """The labels of each annotator, as our own tables have them in `votes`; None for other cells.

    Args:
        cell: of any kind that a file can have.
    """
    found = listed(cell) if isinstance(cell, str) else cell
    if not isinstance(found, dict) or CHOICES in found:
        return None
    cast = {str(person): names for person, names in found.items() if isinstance(names, list)}
    names = [one for some in cast.values() for one in some]
    is_whole = len(cast) == len(found) and all(isinstance(one, str) for one in names)
    return cast if is_whole else None


def _time_of(cells: Mapping[str, Any]) -> datetime | None:
    """When a row was labelled; a table's own `created_at` may be the time of anything."""
    names = ["labelled_at", "_timestamp"]
    if _OF_LABEL_STUDIO in cells:
        names += ["updated_at", "created_at"]
    found = (moment(cells[name]) for name in names if cells.get(name) is not None)
    return next((one for one in found if one is not None), None)


def labels_of_cell(cell: Any, kind: TaskKind, names: Collection[str]) -> list[str] | None:
    """The labels that a cell names; None where it is empty.

    A written `[]` says that a text of a `multi` project has none of the labels, which is something
    else than nobody having said so.

    Args:
        cell: of any kind that a file can have.

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
    several = labels_between(text, names) if kind == "multi" else None
    return several or [text]
